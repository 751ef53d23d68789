"""The known feature map φ of Appendix B.2, and which of its coordinates original column names and contrasts are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import FloatArray, is_tensor, is_torch_module, is_whole, like, to_numpy
from likewise.core.errors import InputError, bad_parameter, did_you_mean, listed
from likewise.core.frames import declared_encoded, is_frame, to_pandas

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric


def is_encoder(feature_map: Any) -> bool:
    """Whether the map is a `TabularDomain`: an encoder of raw frames that can be written to a file."""
    return all(hasattr(feature_map, name) for name in ("encode_array", "to_dict", "columns_"))


def map_names(feature_map: Any) -> tuple[str, ...] | None:
    """Names of the columns of φ(x), if the map knows them."""
    if not is_encoder(feature_map):
        return None
    return tuple(str(name) for name in feature_map.get_feature_names_out())


def apply_feature_map(feature_map: Any, X: Any) -> Any:
    """Return φ(X), not yet checked."""
    if feature_map is None:
        return X
    if is_encoder(feature_map):
        if not is_frame(X):
            return X
        if declared_encoded(X):
            return feature_map.encoding_.read_encoded(X, owner="FairMetric")
        return feature_map.encode_array(X)
    if is_torch_module(feature_map):
        return _run_module(feature_map, X)
    if hasattr(feature_map, "transform"):
        return _transform(feature_map, X)
    if callable(feature_map):
        return _dense(feature_map(X))
    raise bad_parameter(
        "FairMetric",
        "feature_map",
        "None, a TabularDomain, a torch module, a fitted scikit-learn transformer or a callable",
        type(feature_map).__name__,
    )


def _transform(transformer: Any, X: Any) -> Any:
    if not is_tensor(X):
        return _dense(transformer.transform(X))
    if X.requires_grad:
        raise InputError(
            f"FairMetric: the feature map {type(transformer).__name__} is not a torch module, so no gradient can "
            "flow through it. Pass tensors without requires_grad, or a feature map written in torch."
        )
    return like(_dense(transformer.transform(to_numpy(X))), X)


def _dense(features: Any) -> Any:
    return features.toarray() if hasattr(features, "toarray") else features


def _run_module(module: Any, X: Any) -> Any:
    import torch

    if is_frame(X):
        X = to_pandas(X, owner="FairMetric", name="X").to_numpy(dtype=float)
    parameters = [*module.parameters(), *module.buffers()]
    floating = [p for p in parameters if p.dtype.is_floating_point]
    kind = floating[0] if floating else torch.zeros(0, dtype=torch.get_default_dtype())
    training = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        if is_tensor(X):
            return module(X)
        with torch.no_grad():
            features = module(torch.as_tensor(np.asarray(X), dtype=kind.dtype, device=kind.device))
        return to_numpy(features)
    finally:
        for part, mode in training:
            part.training = mode


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
        if is_whole(name):
            if not -self.n_features <= name < self.n_features:
                raise InputError(
                    f"{self.owner}: there is no column {name}: the rows have {self.n_features} columns. "
                    f"Pass an index from 0 to {self.n_features - 1}."
                )
            return [int(name) % self.n_features]
        if not isinstance(name, str):
            raise bad_parameter(self.owner, "column", "a column name or an index", name)
        column, names = self._column(name), self.names or ()
        if column is not None:
            return list(range(column.start, column.stop))
        if name in names:
            return [names.index(name)]
        found = [i for i, have in enumerate(names) if have.startswith(f"{name}_")]
        if found:
            return found
        if self.names is None:
            raise InputError(
                f"{self.owner}: there is no column {name!r}, since the rows have no column names. "
                "Pass a data frame, or the index of the column."
            )
        known = list(self.columns)
        raise InputError(
            f"{self.owner}: there is no column {name!r}{did_you_mean(name, known)}. The columns: {listed(known, 30)}."
        )

    def _column(self, name: str) -> Any:
        if not is_encoder(self.domain):
            return None
        return next((column for column in self.domain.columns_ if column.name == name), None)

    @property
    def columns(self) -> dict[str, range]:
        """The coordinates of each of the table's columns; columns without names are counted."""
        if is_encoder(self.domain):
            return {column.name: range(column.start, column.stop) for column in self.domain.columns_}
        names = self.names or [f"column {i}" for i in range(self.n_features)]
        return {name: range(i, i + 1) for i, name in enumerate(names)}

    def whole_column(self, name: Any) -> str | None:
        """Original column that a name or an index means as a whole; None for a part of one, or without names."""
        found = self.find(name)
        if is_encoder(self.domain):
            return next((str(column) for column, block in self.columns.items() if list(block) == found), None)
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
                self.owner, "contrast", "written as 'column: a − b', with spaces around the minus", contrast
            )
        column, plus, minus = parts
        if plus == minus:
            raise bad_parameter(self.owner, "contrast", "between two categories", contrast)
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
            "a change between two categories, written as text",
            amount,
            f"For example {{{name!r}: 'a - b'}}.",
        )
    try:
        number = float(amount)
    except (TypeError, ValueError) as error:
        raise bad_parameter(where.owner, name, "a number of units", amount) from error
    if not np.isfinite(number):
        raise bad_parameter(where.owner, name, "a finite number of units", amount)
    if column is not None and column.curve is not None:
        raise InputError(
            f"{where.owner}: {name!r} is on the scale {column.curve.name!r}, where a change by {number:g} is not equally far "
            "everywhere. Name a column on a linear scale, or pass the budget as a number."
        )
    return where.unit(group[0]) * (number / (1.0 if column is None else float(column.scale)))
