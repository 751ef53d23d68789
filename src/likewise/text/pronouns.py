"""Pronouns and titles of the other sex."""

from __future__ import annotations

import re

from likewise.text.edited import Change
from likewise.text.words_in_text import Word, folded, like_case, words_of

__all__ = ["TITLES", "has_pronouns", "pronoun_changes"]

TITLES = {"mr": "male", "ms": "female", "mrs": "female", "miss": "female"}

_TO_MALE = {"she": "he", "herself": "himself", "hers": "his", "ms": "mr", "mrs": "mr", "miss": "mr"}
_TO_FEMALE = {"he": "she", "himself": "herself", "him": "her", "mr": "ms"}
_GENDERED = {"female": {*_TO_MALE, "her"}, "male": {*_TO_FEMALE, "his"}}

# "her" before one of these, or at the end of a clause, is "him", else "his"; "his" there is "hers", else "her".
_NO_NOUN_BEHIND = """
a about after again alone also although an and are as at because before being but by can could did does
during for from had has he here if in into is it of off on once or our out over quickly she should since
so soon than that the there these they this those though through to today tomorrow too under until up
very was we were what when where which while who why will with without would yesterday you
"""
_NO_NOUN = frozenset(_NO_NOUN_BEHIND.split())


def pronoun_changes(text: str, gender: str) -> list[Change]:
    """Return what makes all pronouns and titles of a text those of one gender.

    Parameters
    ----------
    text : str
    gender : "female" or "male"
        The gender wanted.

    Examples
    --------
    >>> from likewise.text.edited import edited_text
    >>> text = "Mr. Hall said he lost his keys; the dog is his. I told him."
    >>> edited_text(text, pronoun_changes(text, "female")).text
    'Ms. Hall said she lost her keys; the dog is hers. I told her.'
    >>> edited_text("She saw her mother with her.", pronoun_changes("She saw her mother with her.", "male")).text
    'He saw his mother with him.'
    """
    words = list(words_of(text))
    found = []
    for place, word in enumerate(words):
        new = _other(text, words, place, gender)
        if new is not None:
            found.append(Change(word.start, word.text, like_case(new, word.text)))
    return found


def has_pronouns(text: str, gender: str) -> bool:
    """Whether a text has pronouns or titles of a gender.

    Examples
    --------
    >>> has_pronouns("He left.", "male"), has_pronouns("He left.", "female")
    (True, False)
    """
    return any(
        folded(word.text) in _GENDERED[gender] and (folded(word.text) not in TITLES or _is_title(text, word))
        for word in words_of(text)
    )


def _other(text: str, words: list[Word], place: int, gender: str) -> str | None:
    word = words[place]
    key = folded(word.text)
    if key in TITLES and not _is_title(text, word):
        return None
    if gender == "male":
        if key == "her":
            return "his" if _before_noun(text, words, place) else "him"
        return _TO_MALE.get(key)
    if key == "his":
        return "her" if _before_noun(text, words, place) else "hers"
    return _TO_FEMALE.get(key)


def _before_noun(text: str, words: list[Word], place: int) -> bool:
    if place + 1 == len(words):
        return False
    following = words[place + 1]
    between = text[words[place].end : following.start]
    return not between.strip(" \n\t\"'“‘(") and folded(following.text) not in _NO_NOUN


def _is_title(text: str, word: Word) -> bool:
    """A title has a capital and a capitalised word behind it: "Miss Hall", not "a near miss"."""
    return (
        word.text[0].isupper()
        and re.match(r"\.?[ \u00a0]+[^\W\d_]", text[word.end :]) is not None
        and (text[word.end :].lstrip(". \u00a0")[:1].isupper())
    )
