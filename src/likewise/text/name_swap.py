"""The edit that gives the people of a text other first names, and pronouns that follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from likewise.core.errors import bad_parameter
from likewise.text.edited import Change, Edited, Word, edited_text, folded, like_case, words_of
from likewise.text.name_finding import (
    GENDERS,
    RACES,
    WORD_LISTS,
    find_names,
    gender_of,
    known_gender,
    name_changes,
    name_key,
    names_left,
    names_of,
)

# Pronouns and titles of the other sex.


TITLES = {"mr": "male", "ms": "female", "mrs": "female", "miss": "female"}

_TO_MALE = {"she": "he", "herself": "himself", "hers": "his", "ms": "mr", "mrs": "mr", "miss": "mr"}
_TO_FEMALE = {"he": "she", "himself": "herself", "him": "her", "mr": "ms"}
_GENDERED = {"female": {*_TO_MALE, "her"}, "male": {*_TO_FEMALE, "his"}}

# "her" before one of these, or at the end of a clause, is "him", else "his"; "his" there is "hers", else "her".
_NO_NOUN = WORD_LISTS["no_noun_behind"]
_LY_ADJECTIVES, _TWO_OBJECTS, _OWNED = (WORD_LISTS[key] for key in ("ly_adjectives", "two_objects", "owned"))
# "found her capable", "consider her reliable": after these an adjective says something about her.
_JUDGED = frozenset({"find", "finds", "found", "think", "believe", "know", "knew"})
_ADJECTIVE = re.compile(r".+(?:able|ible|ful|ive|ous|ant|ent|ic|al|ing|ed)$")


def pronoun_changes(text: str, gender: str) -> list[Change]:
    """Return what makes all pronouns and titles of a text those of one gender."""
    words = list(words_of(text))
    found = []
    for place, word in enumerate(words):
        new = _other(text, words, place, gender)
        if new is not None:
            found.append(Change(word.start, word.text, like_case(new, word.text)))
    return found


def has_pronouns(text: str, gender: str) -> bool:
    """Whether a text has pronouns or titles of a gender."""
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
            return {"possessive": "his", "object": "him"}.get(_role_of_her(text, words, place))
        return _TO_MALE.get(key)
    if key == "his":
        return "her" if _before_noun(text, words, place) else "hers"
    return _TO_FEMALE.get(key)


def doubtful_pronouns(text: str) -> list[str]:
    """Return every "her" of a text, with the word behind it, of which the words do not tell what it would be of a man."""
    words = list(words_of(text))
    return [
        " ".join(one.text for one in words[place : place + 2])
        for place, word in enumerate(words)
        if folded(word.text) == "her" and _role_of_her(text, words, place) == "doubtful"
    ]


def _role_of_her(text: str, words: list[Word], place: int) -> str:
    """Return "possessive" ("her work"), "object" ("recommend her highly") or "doubtful" ("gave her credit")."""
    if not _before_noun(text, words, place):
        return "object"
    following, previous = folded(words[place + 1].text), folded(words[place - 1].text) if place else ""
    if following.endswith("ly") and following not in _LY_ADJECTIVES:
        # "her highly regarded work" or "trust her completely"
        return "doubtful" if _before_noun(text, words, place + 1) else "object"
    if following in _OWNED:
        return "possessive"
    if previous in _TWO_OBJECTS or (previous in _JUDGED and _ADJECTIVE.match(following)):
        return "doubtful"
    return "possessive"


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


_MIXED = "people of both sexes: who should change cannot be told"


@dataclass(frozen=True)
class NameSwap:
    """Give the people of a text first names of a race, a gender or both, or names of your own.

    Names are found as whole words with a capital, in ALL CAPS, hyphenated, as possessives, as the initial before a
    surname and in e-mail addresses and links; in lower case behind "my name is" and the like, or if the whole text is.
    Surnames, firms, products, places and words that only look like names stay. If the gender changes, pronouns and titles
    (Mr., Ms.) change with it. The same name gets the same new name everywhere in the text, and two people never get one
    name. A text in which something cannot be told is left as it is, and `Edited.skipped` says why.

    Parameters
    ----------
    race : "black", "white" or None, default=None
        Of the evaluation names of Caliskan et al. (2017).
    gender : "female", "male" or None, default=None
        None keeps each person's.
    names : tuple of str, default=()
        Names of your own instead.
    source : tuple of str, default=()
        The names to replace; none given: those found by the census list.
    pronouns : bool, default=True
        Keep pronouns and titles consistent with a new gender.
    start : int, default=0
        Where in the list of names to begin; edits that differ in it use other names of the same group.
    label : str, default=""
        What tables call it; made from the other parameters if empty.

    Notes
    -----
    Left as it is: a text with people of both sexes if the gender should change; one with a name behind "at" or "worked
    for" and nowhere else, which may be a firm; one with "gave her credit", which may be "him" or "his"; one with a handle
    that holds the name in another way than the rules know. The rules are for English.

    Examples
    --------
    >>> swap = NameSwap(race="black", gender="male")
    >>> edited = swap("Emily Walsh (e.walsh@x.org) sent her CV. Emily's phone is new; Ms. Walsh likes it.")
    >>> edited.text
    "Alonzo Walsh (a.walsh@x.org) sent his CV. Alonzo's phone is new; Mr. Walsh likes it."
    >>> edited.undone()
    "Emily Walsh (e.walsh@x.org) sent her CV. Emily's phone is new; Ms. Walsh likes it."
    """

    race: str | None = None
    gender: str | None = None
    names: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    pronouns: bool = True
    start: int = 0
    label: str = ""

    def __post_init__(self) -> None:
        for name, value, allowed in (("race", self.race, RACES), ("gender", self.gender, GENDERS)):
            if value is not None and value not in allowed:
                raise bad_parameter(
                    "NameSwap", name, allowed=f"one of {', '.join(allowed)} or None", got=value
                )
        if not (self.race or self.gender or self.names):
            raise bad_parameter(
                "NameSwap",
                "race",
                allowed="given, or gender, or names",
                got=None,
                remedy="Say who to become.",
            )
        given: dict[str, Any] = {"names": self.names, "source": self.source}
        for name, values in given.items():
            if isinstance(values, str) or not all(isinstance(value, str) and value for value in values):
                raise bad_parameter("NameSwap", name, allowed="a tuple of names", got=values)

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.label:
            return self.label
        words = [word for word in (self.race, self.gender) if word] or [folded(self.names[0])]
        return "name_" + "-".join(words) + (f"-{self.start}" if self.start else "")

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        found, doubtful = find_names(text, self.source)
        if doubtful:
            named = ", ".join(dict.fromkeys(word.text for word in doubtful))
            return Edited(text, skipped=f"doubtful: {named} may be a person or not")
        if not found:
            return Edited(text, skipped="no first name found")
        old = list(dict.fromkeys(name_key(word.text) or folded(word.text) for word in found))
        new = self._new_names(old)
        wanted = self.gender or (gender_of(self.names) if self.names else "")
        genders = {known_gender(name) for name in old}
        other = {"female": "male", "male": "female"}.get(wanted, "")
        turns = self.pronouns and bool(other) and genders != {wanted}
        if turns and (
            {wanted, other} <= genders or (has_pronouns(text, other) and has_pronouns(text, wanted))
        ):
            return Edited(text, skipped=_MIXED)
        changes = name_changes(text, found, new)
        left = names_left(text, old, changes)
        if left:
            return Edited(text, skipped=f"doubtful: {left[0]} holds the name")
        if turns:
            if wanted == "male" and (unclear := doubtful_pronouns(text)):
                return Edited(text, skipped=f"doubtful: “{unclear[0]}” is him or his of a man")
            taken = [(change.start, change.start + len(change.before)) for change in changes]
            changes += [one for one in pronoun_changes(text, wanted) if _free(one, taken)]
        return edited_text(text, changes, skipped="the names are these already")

    def _new_names(self, old: list[str]) -> dict[str, str]:
        """Choose a new name for each person: the next of the list that nobody in the text bears."""
        new: dict[str, str] = {}
        for name in old:
            gender = self.gender or known_gender(name) or None
            pool = self.names or names_of(self.race, gender)
            fits = [folded(one) for one in pool]
            if name in fits and not self.names:
                new[name] = pool[fits.index(name)]  # of this group already
                continue
            turn = [pool[(self.start + place) % len(pool)] for place in range(len(pool))]
            taken = {folded(one) for one in new.values()} | ({*old} - {name})
            free = [one for one in turn if folded(one) not in taken]
            if not free:
                raise bad_parameter(
                    "NameSwap", "names", allowed=f"at least {len(old)} names, as the text has", got=self.names
                )
            new[name] = free[0]
        return new


def _free(change: Change, taken: list[tuple[int, int]]) -> bool:
    return not any(low <= change.start < high for low, high in taken)
