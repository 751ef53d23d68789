"""Names, not bookkeeping: original column names and contrasts become coordinates of φ(x)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import FloatArray
from likewise.core.errors import InputError, bad_parameter, did_you_mean, listed
from likewise.fair_metrics.feature_maps import is_encoder

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric

# A minus stands between spaces, since categories such as "Not-in-family" contain hyphens themselves.
_MINUS = re.compile(r"\s+[−–-]\s+")


def split_contrast(text: str) -> tuple[str, str, str] | None:
    """Split "column: a − b" into its three parts; None for a text of any other form."""
    column, colon, rest = text.partition(":")
    parts = _MINUS.split(rest.strip())
    if not colon or len(parts) != 2 or not all(parts):
        return None
    return column.strip(), parts[0].strip(), parts[1].strip()


@dataclass(frozen=True)
class ColumnPlaces:
    """Which coordinates of φ(x) a name means."""

    owner: str
    n_features: int
    names: tuple[str, ...] | None = None
    domain: Any = None

    def has(self, name: Any) -> bool:
        """Whether a name or an index means something here."""
        try:
            self.find(name)
        except InputError:
            return False
        return True

    def find(self, name: Any) -> list[int]:
        """Indices of all coordinates of a column given by name, or of one given by index."""
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            if not -self.n_features <= name < self.n_features:
                raise InputError(
                    f"{self.owner}: there is no column {name}: the rows have {self.n_features} columns. "
                    f"Pass an index from 0 to {self.n_features - 1}."
                )
            return [int(name) % self.n_features]
        if not isinstance(name, str):
            raise bad_parameter(self.owner, "column", allowed="a column name or an index", got=name)
        found = self._find_name(name)
        if not found:
            raise self._unknown(name)
        return found

    def _find_name(self, name: str) -> list[int]:
        column = self._column(name)
        if column is not None:
            return list(range(column.start, column.stop))
        if self.names is None:
            return []
        if name in self.names:
            return [self.names.index(name)]
        return [i for i, have in enumerate(self.names) if have.startswith(f"{name}_")]

    def _column(self, name: str) -> Any:
        if not is_encoder(self.domain):
            return None
        return next((column for column in self.domain.columns_ if column.name == name), None)

    def _unknown(self, name: str) -> InputError:
        if self.names is None:
            return InputError(
                f"{self.owner}: there is no column {name!r}, since the rows have no column names. "
                "Pass a data frame, or the index of the column."
            )
        known = [column.name for column in self.domain.columns_] if is_encoder(self.domain) else []
        known = known or list(self.names)
        hint = did_you_mean(name, known)
        return InputError(
            f"{self.owner}: there is no column {name!r}{hint}. The columns: {listed(known, 30)}."
        )

    def whole_column(self, name: Any) -> str | None:
        """Original column that a name or an index means as a whole; None for a part of one, or without names."""
        found = self.find(name)
        if is_encoder(self.domain):
            blocks = {column.name: list(range(column.start, column.stop)) for column in self.domain.columns_}
            return next((str(column) for column, block in blocks.items() if block == found), None)
        if isinstance(name, str):
            return name
        return None if self.names is None else self.names[found[0]]

    def unit(self, index: int) -> FloatArray:
        """The coordinate vector e_index."""
        vector = np.zeros(self.n_features)
        vector[index] = 1.0
        return vector

    def axes(self, name: Any) -> FloatArray:
        """Coordinate vectors of all coordinates of a column, one per row."""
        return np.stack([self.unit(i) for i in self.find(name)])

    def direction(self, contrast: str) -> FloatArray:
        """The vector of a contrast "column: a − b": from a person with b to the same person with a."""
        parts = split_contrast(contrast)
        if parts is None:
            raise bad_parameter(
                self.owner,
                "contrast",
                allowed="written as 'column: a − b', with spaces around the minus",
                got=contrast,
            )
        column, plus, minus = parts
        if plus == minus:
            raise bad_parameter(self.owner, "contrast", allowed="between two categories", got=contrast)
        group = self.find(column)
        ends = [self._category(column, group, value) for value in (plus, minus)]
        vector = np.zeros(self.n_features)
        for index, sign in zip(ends, (1.0, -1.0), strict=True):
            if index is not None:
                vector[index] += sign
        if not vector.any():
            raise self._no_category(column, group, plus)
        return vector

    def _category(self, column: str, group: list[int], value: str) -> int | None:
        """Coordinate that is 1 for a category; None for the category that a 0/1 column writes as 0."""
        known = self._column(column)
        if known is not None:
            categories = [str(c) for c in known.categories or ()]
            if value not in categories:
                raise self._no_category(column, group, value)
            if len(group) == len(categories):
                return group[categories.index(value)]
            position = categories.index(value) - (len(categories) - len(group))
            return group[position] if position >= 0 else None
        names = self.names or ()
        full = f"{column}_{value}"
        if full in names:
            return names.index(full)
        if len(group) == 1:
            return None
        raise self._no_category(column, group, value)

    def _no_category(self, column: str, group: list[int], value: str) -> InputError:
        known = self._column(column)
        if known is not None:
            have = ", ".join(str(c) for c in known.categories or ()) or "none: it is a number"
        else:
            have = ", ".join((self.names or ())[i].removeprefix(f"{column}_") for i in group)
        return InputError(
            f"{self.owner}: column {column!r} has no category {value!r}. Its categories: {have}."
        )


def displacement(metric: FairMetric, units: Mapping[str, Any]) -> FloatArray:
    """The move in the space of φ that changes the named columns by so many of their original units."""
    owner = "FairMetric.budget"
    if not units:
        raise InputError(f"{owner}: no column was named. Pass one, for example budget(age=5).")
    if metric.n_features is None or metric.feature_names is None:
        raise InputError(
            f"{owner}: the metric does not know the names of its columns. Learn it on a data frame, or pass "
            "feature_names to it."
        )
    where = ColumnPlaces(owner, metric.n_features, metric.feature_names, metric.feature_map)
    delta = np.zeros(metric.n_features)
    for name, amount in units.items():
        delta += _move(where, str(name), amount)
    return delta


def _move(where: ColumnPlaces, name: str, amount: Any) -> FloatArray:
    if isinstance(amount, str):
        return where.direction(f"{name}: {amount}")
    group = where.find(name)
    column = where._column(name)
    if len(group) > 1 or (column is not None and column.kind == "categorical"):
        raise bad_parameter(
            where.owner,
            name,
            allowed="a change between two categories, written as text",
            got=amount,
            remedy=f"For example {{{name!r}: 'a - b'}}.",
        )
    try:
        number = float(amount)
    except (TypeError, ValueError) as error:
        raise bad_parameter(where.owner, name, allowed="a number of units", got=amount) from error
    if not np.isfinite(number):
        raise bad_parameter(where.owner, name, allowed="a finite number of units", got=amount)
    if column is not None and column.curve is not None:
        raise InputError(
            f"{where.owner}: {name!r} is on the scale {column.curve.name!r}, where a change by {number:g} is not equally far "
            "everywhere. Name a column on a linear scale, or pass the budget as a number."
        )
    return where.unit(group[0]) * (number / (1.0 if column is None else float(column.scale)))
