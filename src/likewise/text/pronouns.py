"""Pronouns and titles of the other sex: which words change, into what, and of which it cannot be told."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

from likewise.text.edited import Change, Word, folded, like_case, words_of
from likewise.text.name_lists import WORD_LISTS

TITLES = {"mr": "male", "ms": "female", "mrs": "female", "miss": "female"}

_TO_MALE = {"she": "he", "herself": "himself", "hers": "his"}
_TO_FEMALE = {"he": "she", "himself": "herself", "him": "her"}
_GENDERED = {"female": {*_TO_MALE, "her"}, "male": {*_TO_FEMALE, "his"}}

_NO_NOUN, _ADVERBS, _DEGREES, _QUANTITIES, _LY_ADJECTIVES, _TWO_OBJECTS, _OWNED = (
    WORD_LISTS[key]
    for key in (
        "no_noun_behind",
        "adverbs",
        "degrees",
        "quantities",
        "ly_adjectives",
        "two_objects",
        "owned",
    )
)
# "found her capable", "with her leading": behind these a word may say something about her.
_JUDGED = frozenset({"find", "finds", "found", "think", "thought", "believe", "know", "knew", "with"})
_NOUN = re.compile(r".+(?:tion|sion|ment|ness|ity|ance|ence|ship|ism|ogy)s?$")
# "Everyone around her grows", and "around her clients".
# "Everyone who meets her likes her", and "who read her books".
_WHO = re.compile(r"\b(?:who|whoever) (?:\w+ ){1,2}$", re.IGNORECASE)
# "A friend of his called", and "a friend of his mother".
_ONE_OF = re.compile(r"\b(?:an?|another|any|some|this|that|two) (?:\w+ )?\w+ of $", re.IGNORECASE)
_PLACED = frozenset({"around", "behind", "beside", "near", "like"})
_ADJECTIVE = re.compile(r".+(?:able|ible|ful|ive|ous|ant|ent|ic|al|ing|ed)$")


def has_pronouns(text: str, gender: str, behind: int = 0) -> bool:
    """Whether a text has pronouns of a gender behind a place."""
    return any(word.start >= behind and folded(word.text) in _GENDERED[gender] for word in words_of(text))


def pronoun_changes(text: str, gender: str) -> tuple[list[Change], list[str]]:
    """Return what makes all pronouns of a text those of one gender, and those of which it cannot be told."""
    words, found, doubtful = list(words_of(text)), [], []
    for place, word in enumerate(words):
        key = folded(word.text)
        if gender == "male" and key == "her":
            new = {"possessive": "his", "object": "him"}.get(_role_of_her(text, words, place))
            if new is None:
                doubtful.append(" ".join(one.text for one in words[place : place + 2]))
        elif gender == "female" and key == "his":
            new = "hers" if _stands_alone(text, words, place) == "alone" else "her"
            if new == "her" and _ONE_OF.search(text[: word.start]):
                new = None
                doubtful.append(" ".join(one.text for one in words[place : place + 2]))
        else:
            new = (_TO_MALE if gender == "male" else _TO_FEMALE).get(key)
        if new is not None:
            found.append(Change(word.start, word.text, like_case(new, word.text)))
    return found, doubtful


def title_changes(text: str, gender: str, people: Collection[str]) -> list[Change]:
    """Return what makes Mr., Ms., Mrs. and Miss before one of these names (lower case) those of one gender."""
    new = "Mr" if gender == "male" else "Ms"
    changes = []
    words = list(words_of(text))
    for word, following in pairwise(words):
        between = text[word.end : following.start]
        titled = TITLES.get(folded(word.text), gender) != gender and word.text[0].isupper()
        if titled and re.fullmatch(r"\.?[ \u00a0]+", between) and folded(following.text) in people:
            changes.append(Change(word.start, word.text, new.upper() if word.text.isupper() else new))
    return changes


def _role_of_her(text: str, words: list[Word], place: int) -> str:
    """Return "possessive" ("her work"), "object" ("recommend her highly") or "doubtful" ("gave her credit")."""
    stands = _stands_alone(text, words, place)
    if stands != "before a noun":
        return "object" if stands == "alone" else "doubtful"
    following = folded(words[place + 1].text)
    previous = folded(words[place - 1].text) if place else ""
    if following in _OWNED or (len(following) > 1 and words[place + 1].text.isupper() and not text.isupper()):
        return "possessive"
    if following in _QUANTITIES:
        return "object" if previous in _TWO_OBJECTS else "doubtful"
    if (previous in _PLACED and following.endswith("s")) or _WHO.search(text[: words[place].start]):
        return "doubtful"
    if previous in WORD_LISTS["perceptions"] and _NOUN.match(following):
        return "possessive"
    judged = previous in _JUDGED and (following in _DEGREES or _ADJECTIVE.match(following))
    if previous in _TWO_OBJECTS or judged or following in WORD_LISTS["given_words"]:
        return "doubtful"
    return "possessive"


def _stands_alone(text: str, words: list[Word], place: int) -> str:
    """Return "alone", "before a noun", or "doubtful" behind adverbs: "trust her completely", "her highly regarded work"."""
    adverbs = 0
    while True:
        if place + 1 == len(words):
            return "alone"
        between = text[words[place].end : words[place + 1].start]
        following = folded(words[place + 1].text)
        if re.fullmatch(r"[ \u00a0][$€£]?\d[\d.,]*(?:[ \u00a0-]|th |st |nd |rd )", between):
            return "doubtful" if adverbs else "before a noun"  # "her 10 years of practice"
        if between.strip(" \n\t\"'“‘(\u00a0") or following in _NO_NOUN:
            return "alone"
        degree = following in _DEGREES or following in _LY_ADJECTIVES
        adverb = following in _ADVERBS or (
            following.endswith("ly") and not degree and following not in _OWNED
        )
        if not adverb and not degree:
            return "doubtful" if adverbs else "before a noun"
        adverbs, place = adverbs + adverb, place + 1
