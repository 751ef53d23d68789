"""First names by sex and race, and lists of words that are like them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache

import pandas as pd

from likewise.core.errors import bad_parameter
from likewise.datasets.bundled import open_bundled, read_bundled_text
from likewise.datasets.words import capitalised, evaluation_names
from likewise.text.edited import folded

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
    return tuple(
        capitalised(name)
        for name, of_race, of_gender in _evaluation_names()
        if race in (None, of_race) and gender in (None, of_gender)
    )


@cache
def _evaluation_names() -> list[tuple[str, str, str]]:
    people = evaluation_names()
    return list(zip(people["name"], people["race"], people["gender"], strict=True))


@cache
def known_genders() -> dict[str, str]:
    """Return every first name known, in lower case, with ``"female"``, ``"male"`` or ``""`` (both bear it)."""
    with open_bundled("census_first_names.csv") as stream:
        table = pd.read_csv(stream, keep_default_na=False)
    found = {}
    shares = table.pivot_table(index="name", columns="sex", values="percent", aggfunc="sum", fill_value=0.0)
    for name, female, male in zip(shares.index, shares["female"], shares["male"], strict=True):
        found[str(name)] = _tell(float(female), float(male))
    more = {
        word.partition(":")[0]: {"f": "female", "m": "male"}.get(word.partition(":")[2], "")
        for word in WORD_LISTS["more_names"]
    }
    return found | {name: gender for name, _, gender in _evaluation_names()} | more


def gender_of(names: Iterable[str]) -> str:
    """Return the gender that all names share, or ``""``."""
    genders = {known_gender(folded(name)) for name in names}
    return genders.pop() if len(genders) == 1 else ""


def known_gender(name: str) -> str:
    """Return the gender of a name in lower case, of a hyphenated one by its first part; ``""`` if unknown."""
    return known_genders().get(name, "") or known_genders().get(name.partition("-")[0], "")


def _tell(female: float, male: float) -> str:
    if female > _CLEARLY * male:
        return "female"
    return "male" if male > _CLEARLY * female else ""


WORD_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(read_bundled_text("name_words.toml")).items()
}
# First names that are words, places, products or firms too: people's only with evidence.
ORDINARY = frozenset[str]().union(
    *(WORD_LISTS[key] for key in ("words", "places_and_times", "products", "firms_alone", "names_too"))
)


def name_key(word: str) -> str:
    """Return a word as the list of first names has it, or an empty text if it is not a first name."""
    key = folded(word)
    if key in known_genders():
        return key
    parts = key.split("-")
    # Mary-Jane, Jean-Luc; not anti-Emily, Emily-like.
    if len(parts) == 2 and all(part in known_genders() for part in parts) and word[0].isupper():
        return key if all(part[:1].isupper() for part in word.split("-")) else ""
    return ""
