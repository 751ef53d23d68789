"""First names by sex and race: the census list and the evaluation names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.words_in_text import folded

__all__ = ["GENDERS", "RACES", "known_genders", "names_of"]

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
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it).

    Examples
    --------
    >>> genders = known_genders()
    >>> genders["emily"], genders["jamal"], genders["robin"]
    ('female', 'male', '')
    """
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    people = evaluation_names()
    return found | dict(zip(people["name"], people["gender"], strict=True))


def gender_of(names: Iterable[str]) -> str:
    """Return the gender that all names share, or ``""``.

    Examples
    --------
    >>> gender_of(["Emily", "Greta"]), gender_of(["Emily", "Greg"])
    ('female', '')
    """
    genders = {known_genders().get(folded(name), "") for name in names}
    return genders.pop() if len(genders) == 1 else ""


def _tell(female: float, male: float) -> str:
    if female > _CLEARLY * male:
        return "female"
    return "male" if male > _CLEARLY * female else ""
