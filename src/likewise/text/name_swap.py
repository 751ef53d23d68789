"""The edit that gives the people of a text other first names, and the pronouns and titles that follow."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from likewise.core.errors import bad_parameter
from likewise.text.edited import Change, Edited, Word, addresses, edited_text, folded, like_case, words_of
from likewise.text.name_finding import Reading, find_names
from likewise.text.name_lists import (
    GENDERS,
    ORDINARY,
    RACES,
    WORD_LISTS,
    gender_of,
    known_gender,
    name_key,
    names_of,
)

_MIXED = "people of both sexes: who should change cannot be told"


@dataclass(frozen=True)
class NameSwap:
    """Give the one whom a text is about a first name of a race, a gender or both, or a name of your own.

    Names are found as whole words with a capital, in ALL CAPS, hyphenated, as possessives, as the initial before a
    surname and in e-mail addresses and links; in lower case behind "my name is" and the like, or if the whole text is.
    Superiors, referees, those written to and further full names stay, and so do surnames, firms, products, places and words
    that only look like names. If the gender changes, pronouns and titles (Mr., Ms.) change with it. The same name gets the
    same new name everywhere in the text, and two people never get one name. A text in which something cannot be told is
    left as it is, and `Edited.skipped` says why.

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
    Left as it is: a text with people of both sexes if the gender should change, or with a pronoun that may be somebody
    else's; one that names only a superior or referee; one with a name behind "worked for" that may be a firm; one with "gave
    her credit", which may be "him" or "his"; one with a handle that holds the name in another way than the rules know. The
    rules are for English.

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
                raise bad_parameter("NameSwap", name, f"one of {', '.join(allowed)} or None", value)
        if not (self.race or self.gender or self.names):
            raise bad_parameter("NameSwap", "race", "given, or gender, or names", None, "Say who to become.")
        given: dict[str, Any] = {"names": self.names, "source": self.source}
        for name, values in given.items():
            if isinstance(values, str) or not all(isinstance(value, str) and value for value in values):
                raise bad_parameter("NameSwap", name, "a tuple of names", values)

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.label:
            return self.label
        words = [word for word in (self.race, self.gender) if word] or [folded(self.names[0])]
        return "name_" + "-".join(words) + (f"-{self.start}" if self.start else "")

    def __call__(self, text: str) -> Edited:
        """Edit one text."""
        found, doubtful, others = find_names(text, self.source)
        if doubtful:
            named = ", ".join(dict.fromkeys(word.text for word in doubtful))
            return Edited(
                text, skipped=f"doubtful: {named} may be a person or not, or not the one the text is about"
            )
        if not found:
            return Edited(text, skipped="no first name found")
        old = list(dict.fromkeys(name_key(word.text) or folded(word.text) for word in found))
        changes, surnames = name_changes(text, found, self._new_names(old))
        left = names_left(text, old, changes)
        if left:
            return Edited(text, skipped=f"doubtful: {left[0]} holds the name")
        wanted = self.gender or (gender_of(self.names) if self.names else "")
        if self.pronouns and wanted and {known_gender(name) for name in old} != {wanted}:
            followed = self._pronouns(text, wanted, found, others)
            if isinstance(followed, str):
                return Edited(text, skipped=followed)
            taken = [(change.start, change.start + len(change.before)) for change in changes]
            followed += title_changes(text, wanted, {*map(folded, (w.text for w in found)), *surnames})
            changes += [one for one in followed if _free(one, taken)]
        return edited_text(text, changes, skipped="the names are these already")

    def _pronouns(self, text: str, wanted: str, found: list[Word], others: list[Word]) -> list[Change] | str:
        """Return the pronouns and titles that follow a new gender, or why they cannot be told."""
        other = {"female": "male", "male": "female"}[wanted]
        genders = {known_gender(name_key(word.text)) for word in found}
        if genders >= {wanted, other} or (has_pronouns(text, other) and has_pronouns(text, wanted)):
            return _MIXED
        for word in others:
            if known_gender(name_key(word.text)) != wanted and has_pronouns(text, other, word.start):
                return f"doubtful: a pronoun may be {found[0].text}'s or {word.text}'s"
        changes, doubtful = pronoun_changes(text, wanted)
        if doubtful:
            return f"doubtful: “{doubtful[0]}” may be whose or whom"
        return changes

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
                    "NameSwap", "names", f"at least {len(old)} names, as the text has", self.names
                )
            new[name] = free[0]
        return new


def _free(change: Change, taken: list[tuple[int, int]]) -> bool:
    return not any(low <= change.start < high for low, high in taken)


# What replaces a name: the words, initials before the surname, parts of addresses.


def name_changes(
    text: str, found: Collection[Word], new_names: Mapping[str, str]
) -> tuple[list[Change], dict[str, str]]:
    """Return what replaces names (words, possessives, initials, addresses), and the first name of each surname."""
    changes = []
    surnames: dict[str, str] = {}
    reader = Reading(text)
    starts = {word.start: place for place, word in enumerate(reader.words)}
    for word in found:
        key, place = name_key(word.text), starts[word.start]
        new = new_names[key]
        written = like_case(new, word.text) if word.text[0].isupper() else new.lower()
        last = reader.last(place)
        if reader.joined(place) and _women(key, reader.keys[place + 1]):
            place += 1  # "Mary Ann"
        whole = Word(text[word.start : reader.words[place].end], word.start)
        changes.append(_with_possessive(text, whole, written))
        surnames.update(
            {folded(one.text): key for one in reader.words[place + 1 : last + 1] if len(one.text) > 1}
        )
    changes += _initials(text, surnames, new_names)
    for low, high in addresses(text):
        changes += _in_address(text, low, high, new_names, surnames)
    return changes, surnames


def _women(*keys: str) -> bool:
    return all(key not in ORDINARY and known_gender(key) == "female" for key in keys)


def _with_possessive(text: str, word: Word, new: str) -> Change:
    """James' becomes Jamal's, James's becomes Jamal's; a closing quotation mark stays."""
    rest = text[word.end : word.end + 2]
    bare = rest[:1] in ("'", "’") and word.text[-1] in "sS" and not rest[1:2].isalpha()
    opened = re.search(r"(?:^|[\s(])['‘][^'’]*$", text[: word.start]) is not None
    if bare and not opened and re.match(r".\s+\w", text[word.end :]) and new[-1] not in "sS":
        return Change(word.start, word.text + rest[0], new + rest[0] + ("S" if word.text.isupper() else "s"))
    return Change(word.start, word.text, new)


def _initials(text: str, surnames: Mapping[str, str], new_names: Mapping[str, str]) -> list[Change]:
    """Find E. for Emily in "E. Walsh" where the text has her whole name."""
    changes = []
    for surname, name in surnames.items():
        pattern = re.compile(
            rf"(?<![\w.])([^\W\d_])(?=\.[ \u00a0]?(?:[A-Z]\.[ \u00a0]?)?{re.escape(surname)}(?!\w))",
            re.IGNORECASE,
        )
        changes += [
            Change(hit.start(1), hit[1], new_names[name][0].upper())
            for hit in pattern.finditer(text)
            if folded(hit[1]) == name[0] and hit[1].isupper()
        ]
    return changes


def _in_address(
    text: str, low: int, high: int, new_names: Mapping[str, str], surnames: Mapping[str, str]
) -> list[Change]:
    """Names in the parts of an address, alone or glued to the surname: emily.walsh, emilywalsh, ewalsh."""
    at = text.find("@", low + 1, high)
    end = at if at > low else high
    changes = []
    for part in re.finditer(r"[^\W\d_]+", text[low:end]):
        key = folded(part.group())
        new = new_names.get(key)
        for surname, name in surnames.items():
            if key == name + surname:
                new = new_names[name] + surname
            elif key == name[0] + surname:
                new = new_names[name][0] + surname
            elif key in (surname + name, surname + name[0]):
                new = surname + (new_names[name] if key.endswith(name) else new_names[name][0])
            elif len(name) > 2 and key.startswith(name) and surname.startswith(key[len(name) :]):
                new = new_names[name] + key[len(name) :]
            elif key == name[0] and re.match(
                rf"[._-]{re.escape(surname)}\b", folded(text[low + part.end() : end])
            ):
                new = new_names[name][0]
        if new is not None:
            written = like_case(new, part.group()) if part.group()[0].isupper() else new.lower()
            changes.append(Change(low + part.start(), part.group(), written))
    return changes


def names_left(text: str, names: Collection[str], changes: Collection[Change]) -> list[str]:
    """Return the addresses and handles that still hold one of the names after the changes."""
    left = []
    for low, high in addresses(text):
        at = text.find("@", low + 1, high)
        end = at if at > low else high
        for part in re.finditer(r"[^\W\d_]+", text[low:end]):
            key, start = folded(part.group()), low + part.start()
            held = any(len(name) > 3 and name in key for name in names)
            if held and not any(change.start == start for change in changes):
                left.append(text[low:high])
    return left


# Pronouns and titles of the other sex: which words change, into what, and of which it cannot be told.

TITLES = {"mr": "male", "ms": "female", "mrs": "female", "miss": "female"}

_TO_MALE = {"she": "he", "herself": "himself", "hers": "his"}
_TO_FEMALE = {"he": "she", "himself": "herself", "him": "her"}
_GENDERED = {"female": {*_TO_MALE, "her"}, "male": {*_TO_FEMALE, "his"}}

_NO_NOUN, _ADVERBS, _DEGREES, _QUANTITIES, _LY_ADJECTIVES, _TWO_OBJECTS, _OWNED = (
    WORD_LISTS[key]
    for key in ("no_noun_behind", "adverbs", "degrees", "quantities", "ly_adjectives", "two_objects", "owned")
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
