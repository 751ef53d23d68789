"""How likely everybody is of each group, from names and places or from any table of probabilities."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_softmax

from likewise.core.checks import FloatArray, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.core.text import text_table
from likewise.datasets.names_race import RACES, SEXES, Chances, names_race, sex_given_first_name

# What became of the cells of a column.
_TALLY = ["found", "in part", "unknown", "empty", "contradicts"]

# Letters that Unicode does not take apart into a letter and an accent.
_LETTERS = str.maketrans({"Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Æ": "AE", "Œ": "OE", "Þ": "TH", "ı": "I"})
_SUFFIX = re.compile(r"(?:[\s,]+(?:JR|SR|II|III|IV)\.?)+\s*$")
_ZIP = re.compile(r"^(\d{3,5})(?:\.0+)?$|^(\d{5})[-\s]\d{1,4}$|^(\d{8,9})(?:\.0+)?$|^(\d{4})-\d{4}$")


def name_spellings(name: object) -> tuple[str, ...]:
    """Spellings under which a name may be listed, best first: the whole, then the parts of a double name.

    Capitals without accents, apostrophes and suffixes such as Jr. Empty for an empty cell.

    Examples
    --------
    >>> name_spellings("Núñez-O'Brien Jr."), name_spellings(None)
    (('NUNEZOBRIEN', 'NUNEZ', 'OBRIEN'), ())
    """
    if not isinstance(name, str):
        return ()
    capitals = unicodedata.normalize("NFKD", name.upper().translate(_LETTERS)).translate(_LETTERS)
    plain = _SUFFIX.sub("", "".join(sign for sign in capitals if not unicodedata.combining(sign)))
    words = ["".join(filter(str.isalpha, word)) for word in re.split(r"[\s\-‐‑–]+", plain)]
    words = [word for word in words if word]
    parts = [word for word in words if len(word) > 1] if len(words) > 1 else []
    return tuple(dict.fromkeys(["".join(words), *parts])) if words else ()


def zip_spellings(place: object) -> tuple[str, ...]:
    """The five digits of a ZIP code: of ZIP+4, of a number, with leading zeros restored.

    Examples
    --------
    >>> [zip_spellings(place) for place in ("05150-1234", 5150.0, "5150", "BT1 5GS", None)]
    [('05150',), ('05150',), ('05150',), ('BT1 5GS',), ()]
    """
    if place is None or place is pd.NA or (isinstance(place, float) and np.isnan(place)):
        return ()
    text = str(place).strip()
    found = _ZIP.match(text)
    if not found:
        return (text,) if text else ()
    five, plus, nine, cut = found.groups()
    return ((five or plus or cut).zfill(5) if not nine else nine.zfill(9)[:5],)


def _as_written(value: Any) -> tuple[str, ...]:
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = "" if value is None or value is pd.NA or value != value else str(value).strip()
    return (text,) if text else ()


@dataclass(frozen=True)
class GroupProbabilities:
    """How likely everybody is of each group. Names and places are not kept.

    Parameters
    ----------
    table : DataFrame of shape (n, k)
        One column per group; the rows sum to 1.
    how : str
        How they were found.
    matched : DataFrame
        One row for each column that was used: how many of its cells were found, found only by a part of a double
        name, not in the table, empty, or left out since they contradict the columns before.
    informed : array of shape (n,) of truth values
        Who was found in at least one table.
    area : array of shape (n, k), optional
        Shares of the groups where everybody lives, if a place was used.

    Examples
    --------
    >>> people = pd.DataFrame({"first": ["Mary", "Jürgen", None]})
    >>> print(group_probabilities(people, "sex:first"))
    3 people: female 66.6%, male 33.4% (sex:first)
    column  found  in part  unknown  empty  contradicts
    first       1        0        1      1            0
    2 people were found in no table: they have the shares of everybody.
    """

    table: pd.DataFrame
    how: str
    matched: pd.DataFrame
    informed: np.ndarray[Any, np.dtype[np.bool_]]
    area: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.table)

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.table.mean().items())
        said = [f"{len(self):,} people: {shares} ({self.how})"]
        rows = [[str(name), *(f"{count:,}" for count in row)] for name, row in self.matched.iterrows()]
        if rows:
            said.append(text_table(["column", *self.matched.columns], rows))
        lost = int((~self.informed).sum())
        if lost:
            said.append(f"{lost:,} people were found in no table: they have the shares of everybody.")
        return "\n".join(said)

    def calibrated(self, known: Any) -> GroupProbabilities:
        """Return the probabilities after they were fitted to people whose group is known.

        One sharpness for all and one factor per group: log p becomes t log p + b, then the rows are brought to the sum 1.
        That corrects a population whose shares differ from those of the tables, or tables that are too sure.

        Parameters
        ----------
        known : array-like of shape (n,)
            The true group, None or NaN if it is not known. At least 50 people must be known.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> chance = rng.uniform(size=2000)
        >>> given = group_probabilities(pd.DataFrame({"a": chance, "b": 1 - chance}))
        >>> known = np.where(rng.uniform(size=2000) < chance**2, "a", "b")
        >>> bool(abs(given.calibrated(known).table["a"].mean() - (known == "a").mean()) < 0.01)
        True
        """
        codes, rows = known_groups(known, self.table, owner="calibrated")
        if len(rows) < 50:
            raise bad_parameter(
                "calibrated", "known", "the group of at least 50 people", f"that of {len(rows)}"
            )
        logs = np.log(np.maximum(self.table.to_numpy(float), 1e-9))
        eye = np.eye(self.table.shape[1])[codes]

        def loss(packed: FloatArray) -> tuple[float, FloatArray]:
            fitted = log_softmax(packed[0] * logs[rows] + packed[1:], axis=1)
            off = np.exp(fitted) - eye
            # Half a person per factor: a group that nobody known belongs to keeps a finite one.
            cost = float(-(fitted * eye).sum()) + 0.25 * float((packed[1:] ** 2).sum())
            return cost, np.concatenate([[(off * logs[rows]).sum()], off.sum(0) + 0.5 * packed[1:]])

        found = minimize(loss, np.r_[1.0, np.zeros(eye.shape[1])], jac=True, method="L-BFGS-B").x
        fitted = np.exp(log_softmax(found[0] * logs + found[1:], axis=1))
        table = pd.DataFrame(fitted, index=self.table.index, columns=self.table.columns)
        return replace(self, table=table, how=f"{self.how}, calibrated on {len(rows):,}")


def known_groups(known: Any, table: pd.DataFrame, *, owner: str) -> tuple[Any, Any]:
    """Codes of the groups of those whose group is known, and their rows."""
    labels = pd.Series(np.asarray(known, dtype=object))
    check_same_length(owner, known=labels.to_numpy(), probabilities=table)
    rows = np.flatnonzero(labels.notna().to_numpy())
    codes = pd.Index(table.columns.map(str)).get_indexer(labels.iloc[rows].map(str))
    if (codes < 0).any():
        strange = sorted({str(one) for one in labels.iloc[rows][codes < 0]})[:5]
        raise bad_parameter(
            owner, "known", f"one of {[str(name) for name in table.columns]}", ", ".join(strange)
        )
    return codes, rows


# What each word before the colon takes: the columns it needs, in order, and how their cells are read.
_Source = tuple[tuple[str, ...], tuple[str, ...]]
_METHODS: dict[str, _Source] = {
    "bisg": (("surname", "zip"), RACES),
    "bifsg": (("surname", "first", "zip"), RACES),
    "sex": (("first",), SEXES),
}


def group_probabilities(
    X: Any, by: str | Mapping[str, Any] | None = None, *, shares: Mapping[str, float] | None = None
) -> GroupProbabilities:
    """Estimate how likely everybody is of each group.

    Parameters
    ----------
    X : DataFrame of n rows
        The people; with names and places, or with the probabilities themselves if `by` is not given.
    by : str or dict, optional
        ``"bisg:surname,zip"``: race from surname and ZIP code, P(r | s, g) ∝ P(r | s) P(g | r) (Elliott et al. 2009);
        ``"bifsg:surname,first,zip"``: also from the first name, ∝ P(r | s) P(f | r) P(g | r) (Voicu 2018);
        ``"sex:first"``: sex from the first name, women and men being equally many. The words after the colon are columns
        of X. These tables are of the United States. For any other country or attribute: a dict of column to a DataFrame of
        P(group | value), one row per value and one column per group; several columns are taken as independent given the
        group.
    shares : dict of group to float, optional
        Shares of the groups among everybody, for those found in no table and to bring several tables together. By default
        those of the 2020 census, equal shares of women and men, or the mean over the rows of the first
        table. Each table of a dict is taken to hold for a population with the mean of its rows.

    Returns
    -------
    GroupProbabilities

    Notes
    -----
    Names are compared in capitals without accents, apostrophes and suffixes (Jr.); double names also by their parts. ZIP+4 is
    cut, leading zeros are restored. A surname or first name that is not listed gets what the census says about all names
    that it does not list; a cell that is empty tells nothing. How many there are is in `matched`.

    Examples
    --------
    >>> people = pd.DataFrame({"last": ["Nguyen", "Smith"], "given": ["Kim", "John"], "zip": ["10001", 5150]})
    >>> group_probabilities(people, "bifsg:last,given,zip").table[["asian", "white"]].round(3).values.tolist()
    [[0.974, 0.006], [0.0, 0.989]]
    """
    owner = "group_probabilities"
    frame = to_pandas(X, owner=owner, name="X")
    if not len(frame):
        raise InputError(f"{owner}: 'X' has no rows.")
    if by is None:
        return _given(frame, owner)
    if isinstance(by, str):
        how, sources, groups, base = _words(by, owner)
    elif isinstance(by, Mapping) and by:
        how, (sources, groups, base) = ", ".join(map(str, by)), _tables(by, owner)
    else:
        raise bad_parameter(owner, "by", "'bisg:surname,zip' or a dict of column to table", type(by).__name__)
    check_columns(frame, [column for column, _, _ in sources], owner=owner, name="X")
    prior = base if shares is None else _shares(shares, groups, owner)
    logs = np.tile(np.log(np.maximum(prior, 1e-300)), (len(frame), 1))
    informed, tallies, area = np.zeros(len(frame), dtype=bool), {}, None
    for column, spell, likelihood in sources:
        told, kinds = _look_up(frame[column], spell, likelihood)
        if spell is zip_spellings:
            area = np.exp(log_softmax(np.log(np.maximum(prior, 1e-300)) + told, axis=1))
        tried = logs + told
        # Tables that together exclude every group contradict each other: the later one is left out.
        possible = np.isfinite(tried).any(axis=1)
        logs[possible] = tried[possible]
        kinds[~possible] = len(_TALLY) - 1
        informed |= kinds <= 1
        tallies[column] = np.bincount(kinds, minlength=len(_TALLY))
    table = pd.DataFrame(np.exp(log_softmax(logs, axis=1)), index=frame.index, columns=list(groups))
    matched = pd.DataFrame.from_dict(tallies, orient="index", columns=_TALLY)
    return GroupProbabilities(table, how, matched, informed, area)


def _given(frame: pd.DataFrame, owner: str) -> GroupProbabilities:
    try:
        values = frame.to_numpy(float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{owner}: without 'by' every column of 'X' must hold the probabilities of one group. "
            "Name the columns to estimate from: by='bisg:surname,zip'."
        ) from error
    if values.shape[1] < 2 or not (values >= 0).all() or abs(values.sum(1) - 1).max() > 1e-3:
        raise bad_parameter(
            owner,
            "X",
            "two or more columns of probabilities whose rows sum to 1",
            f"{values.shape[1]} columns of numbers from {values.min():g} to {values.max():g} "
            f"with sums from {values.sum(1).min():g} to {values.sum(1).max():g}",
        )
    table = pd.DataFrame(values / values.sum(1, keepdims=True), index=frame.index, columns=frame.columns)
    none = pd.DataFrame(columns=_TALLY)
    return GroupProbabilities(table, "given probabilities", none, np.ones(len(frame), dtype=bool))


_Spell = Callable[[object], tuple[str, ...]]
_Sources = list[tuple[str, _Spell, Chances]]


def _words(by: str, owner: str) -> tuple[str, _Sources, tuple[str, ...], FloatArray]:
    method, _, listed = by.partition(":")
    columns = [column.strip() for column in listed.split(",") if column.strip()]
    if method not in _METHODS or len(columns) != len(_METHODS[method][0]) or len(set(columns)) < len(columns):
        forms = ", ".join(f"'{name}:{','.join(needs)}'" for name, (needs, _) in _METHODS.items())
        raise bad_parameter(owner, "by", f"one of {forms}, with the columns of X in this order", by)
    needs, groups = _METHODS[method]
    if method == "sex":
        return by, [(columns[0], name_spellings, sex_given_first_name())], groups, np.full(2, 0.5)
    tables = names_race()
    # P(r | s) is P(s | r) up to a factor, over the share of r that the prior brings in again.
    surname = tables.race_given_surname
    chances = {
        "surname": (
            name_spellings,
            Chances(
                surname.values,
                surname.chances / tables.race,
                None if surname.others is None else surname.others / tables.race,
            ),
        ),
        "first": (name_spellings, tables.first_given_race),
        "zip": (zip_spellings, tables.area_given_race),
    }
    sources = [(column, *chances[need]) for column, need in zip(columns, needs, strict=True)]
    return by, sources, groups, tables.race


def _tables(by: Mapping[str, Any], owner: str) -> tuple[_Sources, tuple[str, ...], FloatArray]:
    sources: _Sources = []
    groups: tuple[str, ...] = ()
    base = np.zeros(0)
    for column, table in by.items():
        if not isinstance(table, pd.DataFrame) or not len(table):
            raise bad_parameter(
                owner,
                "by",
                "a dict of column to DataFrame of P(group | value)",
                f"{column}: {type(table).__name__}",
            )
        own = _given(table, f"{owner}: the table of {column!r}").table
        if not groups:
            groups, base = tuple(own.columns), own.to_numpy().mean(0)
        if set(own.columns) != set(groups):
            raise bad_parameter(owner, "by", f"tables with the groups {list(groups)}", list(own.columns))
        keys = pd.Index([" ".join(_as_written(value)) for value in own.index])
        if keys.has_duplicates:
            raise InputError(
                f"{owner}: the table of {column!r} has values twice: {keys[keys.duplicated()][0]!r}."
            )
        known = own[list(groups)].to_numpy()
        chances = known / np.maximum(known.mean(0), 1e-300)
        sources.append((column, _as_written, Chances(keys, chances, None)))
    return sources, groups, base


def _shares(shares: Mapping[str, float], groups: tuple[str, ...], owner: str) -> FloatArray:
    if set(shares) != set(groups):
        raise bad_parameter(owner, "shares", f"one number for each of {list(groups)}", list(shares))
    found = np.array([float(shares[group]) for group in groups])
    if (found < 0).any() or abs(found.sum() - 1.0) > 1e-3:
        raise bad_parameter(owner, "shares", "shares >= 0 that sum to 1", found.tolist())
    return np.asarray(found / found.sum())


def _look_up(cells: pd.Series[Any], spell: _Spell, table: Chances) -> tuple[FloatArray, Any]:
    """Log of how likely each cell makes the groups, and whether it was found (0), in part (1), not (2) or is empty (3)."""
    codes, distinct = pd.factorize(cells, use_na_sentinel=True)
    with np.errstate(divide="ignore"):
        logs = np.log(table.chances)
        others = np.zeros(logs.shape[1]) if table.others is None else np.log(table.others)
    # One more for empty cells, whose code is -1.
    told = np.zeros((len(distinct) + 1, logs.shape[1]))
    kinds = np.full(len(distinct) + 1, 3)
    for i, value in enumerate(distinct):
        spellings = spell(value)
        if not spellings:
            continue
        places = table.values.get_indexer(pd.Index(spellings))
        hit = np.flatnonzero(places >= 0)
        kinds[i] = 2 if not len(hit) else int(hit[0] > 0)
        told[i] = others if not len(hit) else logs[places[hit[0]]]
    return told[codes], kinds[codes]
