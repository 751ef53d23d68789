"""The word lists of the sentiment task: opinion words, names, gender pairs and the two sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import pandas as pd

from likewise.core.errors import FormatError, InputError, bad_parameter
from likewise.core.files import check_file
from likewise.datasets.bundled import open_bundled, read_bundled_text

# Section 4.1 of the paper: the sentences of the cuisine gap.
SENTENCES = ("Let's go get Italian food", "Let's go get Mexican food")

# Bolukbasi et al. 2016: the ten pairs that define the gender direction (hard debiasing), female first.
GENDER_PAIRS = (
    ("woman", "man"),
    ("girl", "boy"),
    ("she", "he"),
    ("mother", "father"),
    ("daughter", "son"),
    ("gal", "guy"),
    ("female", "male"),
    ("her", "his"),
    ("herself", "himself"),
    ("Mary", "John"),
)

NAME_COLUMNS = ("child's first name", "first name", "first_name", "firstname", "given name", "name")


def unique(words: Iterable[str]) -> tuple[str, ...]:
    """Drop repeated words, keeping the first of each."""
    return tuple(dict.fromkeys(words))


def capitalised(name: str) -> str:
    """Write a name the way cased text does, each part of a hyphenated name with a capital."""
    return "-".join(part.capitalize() for part in name.split("-"))


def opinion_words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the positive and the negative words of Hu and Liu's opinion lexicon.

    Words that stand in both lists (envious, enviously, enviousness) say nothing about sentiment and are
    left out of both, which leaves 2,003 positive and 4,780 negative words.
    """
    positive, negative = (
        unique(read_bundled_text(f"opinion_{sign}.txt").split()) for sign in ("positive", "negative")
    )
    both = set(positive) & set(negative)
    return (
        tuple(word for word in positive if word not in both),
        tuple(word for word in negative if word not in both),
    )


def evaluation_names() -> pd.DataFrame:
    """Return the 50 + 50 names of Caliskan et al. (2017) with race and gender, in the order of its appendix."""
    lists = json.loads(read_bundled_text("caliskan_names.json"))
    rows = []
    for race in ("white", "black"):
        first_female = lists[race].index(lists["first_female"][race])
        rows += [
            (name, race, "male" if place < first_female else "female")
            for place, name in enumerate(lists[race])
        ]
    return pd.DataFrame(rows, columns=["name", "race", "gender"])


def read_names(names: str | PathLike[str] | Iterable[str], *, owner: str) -> tuple[str, ...]:
    """Return a list of first names, in lower case and each once."""
    if isinstance(names, (str, PathLike)):
        values = _names_in_csv(names, owner=owner)
    else:
        try:
            values = list(names)
        except TypeError as error:
            raise bad_parameter(
                owner, "names", '"census", the path of a CSV file or a list of names', names
            ) from error
        if not all(isinstance(value, str) for value in values):
            raise bad_parameter(owner, "names", "a list of strings", values[:3])
    found = unique(word for word in (value.strip().lower() for value in values) if word)
    if not found:
        raise InputError(f"{owner}: 'names' has no names in it. Pass at least one.")
    return found


def sentence_tokens(sentence: str) -> list[tuple[str, str]]:
    """Split a sentence at spaces into (preferred spelling, fallback) pairs to look up.

    What follows an apostrophe is dropped ("Let's" is "let"), since files differ in how they treat it. The
    first word is looked up in lower case, the others as spelt, and if a file has no such word, in lower
    case: "Italian" in a cased file, "italian" in an uncased one.
    """
    words = [word.split("'")[0].split("’")[0].strip(".,!?") for word in sentence.split()]
    return [(word.lower() if place == 0 else word, word.lower()) for place, word in enumerate(words) if word]


def _names_in_csv(source: str | PathLike[str], *, owner: str) -> list[str]:
    # keep_default_na: "Nan" and "Na" are first names.
    if source == "census":
        with open_bundled("census_first_names.csv") as stream:
            table = pd.read_csv(stream, dtype=str, keep_default_na=False)
        return [str(name) for name in table["name"]]
    path = Path(source)
    check_file(path, owner=owner, remedy="'names' is \"census\", the path of a CSV file or a list of names.")
    try:
        with path.open("rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
        table = pd.read_csv(path, dtype=str, keep_default_na=False, compression="gzip" if gzipped else None)
    except (ValueError, OSError, EOFError) as error:  # parser and Unicode errors are ValueErrors
        raise FormatError(f"{owner}: 'names': {path.name} is not a CSV file ({error}).") from error
    by_lower = {str(column).strip().lower(): column for column in table.columns}
    known = [by_lower[column] for column in NAME_COLUMNS if column in by_lower]
    if not known and table.shape[1] == 1:
        known = list(table.columns)
    if not known:
        raise FormatError(
            f"{owner}: 'names': {path.name} has no column called \"Child's First Name\", 'First Name' or "
            f"'Name'. Its columns: {', '.join(map(str, table.columns[:20]))}. Rename the right one."
        )
    return [str(name) for name in table[known[0]]]
