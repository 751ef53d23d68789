"""The edit that gives the people of a text other first names, and pronouns that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.core.errors import bad_parameter
from likewise.text.edited import Change, Edited, Word, edited_text, folded
from likewise.text.name_finding import (
    GENDERS,
    RACES,
    called,
    find_names,
    gender_of,
    known_gender,
    name_changes,
    name_key,
    names_left,
    names_of,
)
from likewise.text.pronouns import has_pronouns, pronoun_changes, title_changes

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
        found, doubtful, others = find_names(text, self.source)
        if doubtful:
            named = ", ".join(dict.fromkeys(word.text for word in doubtful))
            return Edited(
                text, skipped=f"doubtful: {named} may be a person or not, or not the one the text is about"
            )
        if not found:
            return Edited(text, skipped="no first name found")
        old = list(dict.fromkeys(name_key(word.text) or folded(word.text) for word in found))
        changes = name_changes(text, found, self._new_names(old))
        left = names_left(text, old, changes)
        if left:
            return Edited(text, skipped=f"doubtful: {left[0]} holds the name")
        wanted = self.gender or (gender_of(self.names) if self.names else "")
        if self.pronouns and wanted and {known_gender(name) for name in old} != {wanted}:
            followed = self._pronouns(text, wanted, found, others)
            if isinstance(followed, str):
                return Edited(text, skipped=followed)
            taken = [(change.start, change.start + len(change.before)) for change in changes]
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
        return changes + title_changes(text, wanted, called(text, found))

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
