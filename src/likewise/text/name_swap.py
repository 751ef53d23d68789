"""The edit that gives the people of a text other first names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled, read_bundled_text
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.edited import Change, Edited, Word, addresses, edited_text, folded, like_case, words_of

# First names by sex and race: the census list and the evaluation names.


GENDERS = ("female", "male")
RACES = ("black", "white")

# A name that one sex bears this many times as often as the other tells the sex.
_CLEARLY = 20.0


def names_of(race: str | None = None, gender: str | None = None) -> tuple[str, ...]:
    """Return the evaluation names (Caliskan et al. 2017) of a race, a gender or both, with capitals.

    Parameters
    ----------
    race : "black", "white" or None
    gender : "female", "male" or None

    Examples
    --------
    >>> names_of("black", "female")[:3], len(names_of("white"))
    (('Aiesha', 'Lashelle', 'Nichelle'), 50)
    """
    for name, value, allowed in (("race", race, RACES), ("gender", gender, GENDERS)):
        if value is not None and value not in allowed:
            raise bad_parameter("names_of", name, allowed=f"one of {', '.join(allowed)} or None", got=value)
    people = evaluation_names()
    keep = pd.Series(True, index=people.index)
    for column, value in (("race", race), ("gender", gender)):
        if value is not None:
            keep &= people[column] == value
    return tuple(capitalised(name) for name in people["name"][keep])


@cache
def known_genders() -> dict[str, str]:
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it)."""
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    people = evaluation_names()
    return found | dict(zip(people["name"], people["gender"], strict=True))


def gender_of(names: Iterable[str]) -> str:
    """Return the gender that all names share, or ``""``."""
    genders = {known_genders().get(folded(name), "") for name in names}
    return genders.pop() if len(genders) == 1 else ""


def _tell(female: float, male: float) -> str:
    if female > _CLEARLY * male:
        return "female"
    return "male" if male > _CLEARLY * female else ""


# First names of the census that are ordinary words or places too: they count as names only in a name's
# place.


_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(read_bundled_text("name_words.toml")).items()
}

# Places, firms, months and days are written with a capital wherever they stand.
PLACES_AND_TIMES = _LISTS["places_and_times"]
ORDINARY = _LISTS["words"] | PLACES_AND_TIMES

# A name before one of these is a place, a street, an institution or a firm.
AFTER_A_PLACE_NAME = _LISTS["after_a_place_name"]


# Where first names stand in a text: as words, in addresses and as initials.


_TITLE_BEFORE = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|MR|MRS|MS|MISS|DR|PROF)\.?[ \u00a0]+$")
_SAID_BEFORE = re.compile(
    r"(?:\b(?:[Mm]y name is|[Nn]amed|[Cc]alled|[Dd]ear)|\b(?:[Ff]irst |[Ff]ull )?[Nn]ame:)[ \u00a0]+$"
)
_PLACE_BEFORE = re.compile(r"\b(?:St|Saint|San|Santa|Fort|Mount|Port|Lake|New|Los|El)\.?[ \u00a0]+$")
_NAME_LINE = re.compile(r"\s*[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){1,3}\s*(?:\n|$)")

_NOT_BEFORE_NAMES = frozenset({"the", "a", "an", "in", "at", "this", "that"})
# Words that begin a sentence and are followed by no capital of their own.
_BEGINNINGS = frozenset(
    {"with", "for", "to", "by", "from", "when", "if", "about", "and", "but", "because", "like"}
)


def names_in(text: str, source: Collection[str] = ()) -> list[Word]:
    """Find the first names of a text: whole words with a capital, no surnames, no places."""
    wanted = {folded(name) for name in source}
    words = list(words_of(text))
    found: list[Word] = []
    sure: set[str] = set()
    unsure: list[Word] = []
    for place, word in enumerate(words):
        key = folded(word.text)
        if wanted:
            if key in wanted and not _inside_other(text, word):
                found.append(word)
            continue
        if key not in known_genders() or not word.text[0].isupper() or _no_first_name(text, words, place):
            continue
        if key not in ORDINARY or _must_be_name(text, words, place):
            found.append(word)
            sure.add(key)
        else:
            unsure.append(word)
    # What is a name in one place of a text is the same person's name in the others.
    found += [word for word in unsure if folded(word.text) in sure]
    return sorted(found, key=lambda word: word.start)


def name_changes(text: str, found: Collection[Word], new_names: Mapping[str, str]) -> list[Change]:
    """Return what replaces names: the words, their possessives, initials before the surname, addresses."""
    changes = []
    surnames: dict[str, str] = {}
    words = list(words_of(text))
    starts = {word.start: place for place, word in enumerate(words)}
    for word in found:
        new = new_names[folded(word.text)]
        changes.append(_with_possessive(text, word, like_case(new, word.text)))
        place = starts[word.start] + 1
        if place < len(words) and _one_space(text, word, words[place]) and words[place].text[0].isupper():
            surnames[folded(words[place].text)] = folded(word.text)
    changes += _initials(text, surnames, new_names)
    for low, high in addresses(text):
        changes += _in_address(text, low, high, new_names, surnames)
    return changes


def _no_first_name(text: str, words: list[Word], place: int) -> bool:
    word = words[place]
    if _inside_other(text, word) or _PLACE_BEFORE.search(text[: word.start]):
        return True
    if len(word.text) < 2:
        return True
    following = words[place + 1] if place + 1 < len(words) else None
    if (
        following is not None
        and _one_space(text, word, following)
        and (folded(following.text) in AFTER_A_PLACE_NAME and following.text[0].isupper())
    ):
        return True
    alone = following is None or not _one_space(text, word, following) or not following.text[0].isupper()
    if alone and _TITLE_BEFORE.search(text[: word.start]):
        return True  # "Mr. James": a surname
    if place == 0:
        return False
    before = words[place - 1]
    if not before.text[0].isupper() or not re.fullmatch(r"\.?[ \u00a0]", text[before.end : word.start]):
        return False
    if len(before.text) == 1 and before.text != "I":
        return True  # "E. James"
    key = folded(before.text)
    first = key in known_genders() and (key not in ORDINARY or _must_be_name(text, words, place - 1))
    return (
        first and text[before.end : word.start].strip() == "" and not _no_first_name(text, words, place - 1)
    )


def _inside_other(text: str, word: Word) -> bool:
    """Angelo in D'Angelo, Ann in Ann's-lace."""
    before = text[max(word.start - 2, 0) : word.start]
    return len(before) == 2 and before[1] in "'’" and before[0].isalpha()


def _must_be_name(text: str, words: list[Word], place: int) -> bool:
    """Whether an ordinary word stands where only a name can: behind a title, in a CV's first line, mid-sentence."""
    word = words[place]
    before = text[: word.start]
    if _TITLE_BEFORE.search(before) or _SAID_BEFORE.search(before):
        return True
    if not before.strip():
        return _NAME_LINE.match(text) is not None and "\n" in text.strip()
    if folded(word.text) in PLACES_AND_TIMES or word.text.isupper():
        return False
    previous = words[place - 1] if place else None
    return (
        previous is not None
        and _one_space(text, previous, word)
        and (previous.text.islower() or folded(previous.text) in _BEGINNINGS)
        and previous.text not in _NOT_BEFORE_NAMES
    )


def _one_space(text: str, word: Word, following: Word) -> bool:
    return text[word.end : following.start] in (" ", "\u00a0")


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
            rf"(?<![\w.])([^\W\d_])(?=\.[ \u00a0]?{re.escape(surname)}(?!\w))", re.IGNORECASE
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
            elif key == surname + name:
                new = surname + new_names[name]
            elif key == name[0] and re.match(
                rf"[._-]{re.escape(surname)}\b", folded(text[low + part.end() : end])
            ):
                new = new_names[name][0]
        if new is not None:
            written = new if part.group()[0].isupper() else new.lower()
            changes.append(Change(low + part.start(), part.group(), written))
    return changes


# Pronouns and titles of the other sex.


TITLES = {"mr": "male", "ms": "female", "mrs": "female", "miss": "female"}

_TO_MALE = {"she": "he", "herself": "himself", "hers": "his", "ms": "mr", "mrs": "mr", "miss": "mr"}
_TO_FEMALE = {"he": "she", "himself": "herself", "him": "her", "mr": "ms"}
_GENDERED = {"female": {*_TO_MALE, "her"}, "male": {*_TO_FEMALE, "his"}}

# "her" before one of these, or at the end of a clause, is "him", else "his"; "his" there is "hers", else "her".
_NO_NOUN = _LISTS["no_noun_behind"]


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


_MIXED = "people of both sexes: pronouns cannot be told apart"


@dataclass(frozen=True)
class NameSwap:
    """Give the people of a text first names of a race, a gender or both, or names of your own.

    Names are found as whole words with a capital, in ALL CAPS, as possessives, as the initial before a
    surname and in e-mail addresses and links; surnames, places and words that only look like names stay.
    Where the gender changes, pronouns and titles (Mr., Ms.) change with it. The same name gets the same new
    name everywhere in the text, and two people never get one name.

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
    A text with people of both sexes and with pronouns is left as it is when the gender should change: who
    "she" is cannot be told from the words. `Edited.skipped` says so.

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
        found = names_in(text, self.source)
        if not found:
            return Edited(text, skipped="no first name found")
        old = list(dict.fromkeys(folded(word.text) for word in found))
        wanted = self.gender or (gender_of(self.names) if self.names else "")
        genders = {known_genders().get(name, "") for name in old}
        other = {"female": "male", "male": "female"}.get(wanted, "")
        turns = self.pronouns and bool(other) and genders != {wanted} and has_pronouns(text, other)
        if turns and ({wanted, other} <= genders or has_pronouns(text, wanted)):
            return Edited(text, skipped=_MIXED)
        changes = name_changes(text, found, self._new_names(old))
        if turns:
            taken = [(change.start, change.start + len(change.before)) for change in changes]
            changes += [one for one in pronoun_changes(text, wanted) if _free(one, taken)]
        return edited_text(text, changes, skipped="the names are these already")

    def _new_names(self, old: list[str]) -> dict[str, str]:
        """Choose a new name for each person: the next of the list that nobody in the text bears."""
        new: dict[str, str] = {}
        for name in old:
            gender = self.gender or known_genders().get(name) or None
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
