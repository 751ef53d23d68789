"""The inputs of `fit` as rows of a network: labels, weights, splits, sensitive attributes, the metric."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from likewise.core.checks import (
    FloatArray,
    IntArray,
    attribute_columns,
    check_labels,
    check_same_length,
    is_tensor,
    is_whole,
    sorted_values,
    take_rows,
    to_numpy,
)
from likewise.core.errors import InputError, bad_parameter, listed
from likewise.core.frames import check_no_missing, has_numbers
from likewise.core.subspace import Subspace
from likewise.counterfactuals.cells import Table, find_attribute
from likewise.data.domain import DataRangeDomain, Domain
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.attribute import as_list
from likewise.fair_metrics.learner import ready_metric
from likewise.mitigation.project import check_width, read_first_rows, read_new_rows, table_or_array
from likewise.training.results import TrainingWarning

# Weights of rows: the user's `sample_weight`, and weights that balance the classes.


def read_sample_weight(sample_weight: Any, x: FloatArray, *, owner: str) -> FloatArray | None:
    """Return the weights of the rows; None if there are none or all are the same."""
    if sample_weight is None:
        return None
    values = to_numpy(sample_weight) if is_tensor(sample_weight) else sample_weight
    weights = check_array(values, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim != 1:
        raise bad_parameter(owner, "sample_weight", "one number per row", f"shape {weights.shape}")
    check_same_length(owner, X=x, sample_weight=weights)
    if weights.min() < 0 or weights.max() == 0:
        raise bad_parameter(
            owner,
            "sample_weight",
            "numbers >= 0, not all of them 0",
            "only zeros" if weights.max() == 0 else f"{weights.min():g}",
        )
    return None if np.ptp(weights) == 0 else np.asarray(weights)


def classes_alike(codes: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return weights under which every class counts for the same, rows within a class as before."""
    own = np.ones(len(codes)) if weights is None else weights
    totals = np.bincount(codes, weights=own)
    return np.asarray(own / totals[codes] / np.count_nonzero(totals))


def spaced(n: int, most: int) -> IntArray:
    """Return at most so many places of n, evenly, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def canonical_order(x: FloatArray, codes: IntArray) -> IntArray:
    """Return an order of the rows that does not depend on the one they came in.

    Drawn by their weights in this order, a row of weight 2 and two of that row make the same batches.
    """
    return np.lexsort((codes, *x.T[::-1]))


# What a user passes to `fit` and `predict`, as the rows that a network gets.


# Columns that spread more than this were not standardised.
_WIDE = 50.0

Labels = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of one `fit`."""

    given: Any
    x: FloatArray
    codes: Labels
    sensitive_features: Any
    encoder: TabularDomain | None
    weights: FloatArray | None = None

    def take(self, rows: Labels) -> TrainingRows:
        """Return some of the rows, by index."""
        return TrainingRows(
            take_rows(self.given, rows),
            self.x[rows],
            self.codes[rows],
            take_rows(self.sensitive_features, rows),
            self.encoder,
            None if self.weights is None else self.weights[rows],
        )


def read_rows(
    estimator: Any, X: Any, *, owner: str, domain: Any = None, first: bool = True
) -> tuple[Any, FloatArray, TabularDomain | None]:
    """Return X as it came, encoded in float64, and the encoder, in a first or in a later call."""
    if first:
        given, x, encoder = read_first_rows(estimator, X, owner=owner, domain=domain, min_rows=2)
        return given, np.asarray(x, dtype=np.float64), encoder
    given = table_or_array(X, owner)
    x = np.asarray(read_new_rows(estimator, X, owner=owner), dtype=np.float64)
    return given, x, getattr(estimator, "encoder_", None)


def warn_unscaled(rows: TrainingRows, *, owner: str) -> None:
    """Give a `TrainingWarning` when columns are far from standardised: nothing would be learned from the others."""
    wide = np.flatnonzero(rows.x.std(axis=0) > _WIDE)
    if len(wide):
        names = rows.given.columns if isinstance(rows.given, pd.DataFrame) else range(rows.x.shape[1])
        shown = listed([names[int(i)] for i in wide], 5)
        warnings.warn(
            f"{owner}: columns are not standardised ({shown}; standard deviations up to "
            f"{rows.x.std(axis=0).max():.3g}), and a network hardly learns from such rows. Pass "
            "domain=TabularDomain() to have the table encoded, or put a StandardScaler in front.",
            TrainingWarning,
            stacklevel=4,
        )


def read_labels(y: Any, x: FloatArray, *, owner: str, classes: Any = None) -> tuple[Labels, Labels]:
    """Return the class labels and the class index of every row."""
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None. Pass one label per row."
        )
    values = column_or_1d(to_numpy(y) if is_tensor(y) else y, warn=True)
    if values.dtype == object:
        # Numbers in a column of objects are numbers.
        values = pd.Series(values).infer_objects().to_numpy()
    labels = check_labels(values, owner=owner, min_classes=1 if classes is not None else 2)
    check_classification_targets(labels)
    check_same_length(owner, X=x, y=labels)
    if classes is None:
        known, codes = np.unique(labels, return_inverse=True)
        return known, np.asarray(codes, dtype=np.int64)
    known = np.unique(to_numpy(classes))
    if len(known) < 2:
        raise bad_parameter(owner, "classes", "two or more labels", known.tolist())
    codes = np.searchsorted(known, labels).clip(max=len(known) - 1)
    if not bool((known[codes] == labels).all()):
        new = sorted({str(label) for label in labels[known[codes] != labels]})
        raise InputError(
            f"{owner}: 'y' has labels that are not among the classes {known.tolist()}: {', '.join(new[:5])}. "
            "Name all classes in the first call of partial_fit."
        )
    return known, np.asarray(codes, dtype=np.int64)


# A number with more values than this is not a class of its own.
_FEW = 10

Codes = IntArray


def attribute_table(rows: TrainingRows, attributes: Any, *, owner: str) -> pd.DataFrame:
    """Return the values of the attributes, one column each, without missing values."""
    table = (
        None if rows.sensitive_features is None else attribute_columns(rows.sensitive_features, owner=owner)
    )
    if attributes is None:
        if table is None:
            raise InputError(
                f"{owner}: no sensitive attributes were given. Name columns of X in 'attributes', or pass their "
                "values as fit(X, y, sensitive_features=...)."
            )
        found = table
    else:
        names = as_list(attributes)
        if not names:
            raise bad_parameter(owner, "attributes", "at least one column", "none")
        found = pd.DataFrame({name: _values(name, table, rows, owner) for name in names})
    check_no_missing(found.set_axis([str(c) for c in found.columns], axis=1), owner=owner, name="attributes")
    return found.reset_index(drop=True)


def _values(name: Any, table: pd.DataFrame | None, rows: TrainingRows, owner: str) -> Any:
    if table is not None and name in table.columns:
        return table[name].to_numpy()
    if isinstance(rows.given, pd.DataFrame) and isinstance(name, str):
        return find_attribute(Table.of(rows.given, owner=owner), name, owner=owner).column
    width = np.shape(rows.given)[1]
    if is_whole(name) and -width <= name < width:
        given = rows.given
        return given.iloc[:, int(name)].to_numpy() if isinstance(given, pd.DataFrame) else given[:, int(name)]
    raise bad_parameter(
        owner, "attributes", "names of columns of sensitive_features or X, or indices of columns of X", name
    )


@dataclass(frozen=True)
class AttributeCodes:
    """Values of each attribute, and the index of each row's value among them."""

    attributes: Any
    values: tuple[tuple[Any, ...], ...]
    cuts: tuple[float | None, ...]

    @classmethod
    def of(cls, rows: TrainingRows, attributes: Any, *, owner: str) -> AttributeCodes:
        """Learn the values from the rows of `fit`."""
        table = attribute_table(rows, attributes, owner=owner)
        values, cuts = [], []
        for name in table.columns:
            column = table[name]
            cut = _median(column)
            known = (
                (f"<= {cut:g}", f"> {cut:g}")
                if cut is not None
                else tuple(sorted_values(pd.unique(column).tolist()))
            )
            if len(known) < 2 or (cut is not None and bool((column <= cut).all())):
                raise InputError(
                    f"{owner}: the attribute {name!r} has one value only. An adversary has nothing to guess; "
                    "leave it out."
                )
            values.append(known)
            cuts.append(cut)
        return cls(attributes, tuple(values), tuple(cuts))

    def codes(self, rows: TrainingRows, *, owner: str) -> Codes:
        """Return the index of every row's value, (n, k)."""
        table = attribute_table(rows, self.attributes, owner=owner)
        columns = []
        for name, values, cut in zip(table.columns, self.values, self.cuts, strict=True):
            if cut is not None:
                columns.append((table[name].to_numpy(dtype=float) > cut).astype(np.int64))
                continue
            found = pd.Index(values, dtype=object).get_indexer(pd.Index(table[name], dtype=object))
            if (found < 0).any():
                new = table[name].tolist()[int(found.argmin())]
                raise InputError(
                    f"{owner}: the attribute {name!r} has the value {new!r}, which the first rows did not have."
                )
            columns.append(found.astype(np.int64))
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class ProxyVectors:
    """Attributes as vectors: numbers as they are, categories as 0/1 columns (one for two categories)."""

    attributes: Any
    categories: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def of(cls, rows: TrainingRows, attributes: Any, *, owner: str) -> ProxyVectors:
        """Learn the categories from the rows of `fit`."""
        table = attribute_table(rows, attributes, owner=owner)
        categories = [
            None if has_numbers(table[c]) else tuple(sorted_values(pd.unique(table[c]).tolist()))
            for c in table.columns
        ]
        return cls(attributes, tuple(categories))

    @property
    def width(self) -> int:
        """Length of a vector."""
        return sum(1 if kinds is None or len(kinds) == 2 else len(kinds) for kinds in self.categories)

    def vectors(self, rows: TrainingRows, *, owner: str) -> FloatArray:
        """Return the vectors, (n, `width`)."""
        table = attribute_table(rows, self.attributes, owner=owner)
        parts = []
        for name, kinds in zip(table.columns, self.categories, strict=True):
            if kinds is None:
                parts.append(table[name].to_numpy(dtype=np.float64)[:, None])
                continue
            column = table[name].to_numpy(dtype=object)
            shown = kinds[1:] if len(kinds) == 2 else kinds
            parts.append(np.stack([column == kind for kind in shown], axis=1).astype(np.float64))
        return np.concatenate(parts, axis=1)


def _median(column: pd.Series[Any]) -> float | None:
    """The median of a number with too many values for classes; None for anything else."""
    if not has_numbers(column) or column.nunique() <= _FEW:
        return None
    numbers = column.to_numpy(dtype=float)
    cut = float(np.median(numbers))
    # If half of the rows or more have the largest value, the cut goes below it.
    return cut if bool((numbers > cut).any()) else float(numbers[numbers < cut].max())


# The metric on the encoded rows, from the metric or learner that was given, and the directions that cost nothing.


def metric_encoder(metric: Any) -> TabularDomain | None:
    """Return the encoder that a metric or a learner (or one of a list) carries, if any."""
    if isinstance(metric, (list, tuple)):
        return next((found for part in metric if (found := metric_encoder(part)) is not None), None)
    for name in ("feature_map", "domain"):
        carried = getattr(metric, name, None)
        if isinstance(carried, TabularDomain):
            return carried
    return None


def trained_metric(metric: Any, rows: TrainingRows, *, owner: str) -> FairMetric:
    """Return the metric on the encoded rows, fitted on them if it is a learner."""
    found = ready_metric(
        metric, rows.given, owner=owner, sensitive_features=rows.sensitive_features, encoder=rows.encoder
    )
    check_width(found, rows.x.shape[1], owner=owner)
    if rows.encoder is None or found.feature_names is None:
        return found
    names = tuple(str(name) for name in rows.encoder.get_feature_names_out())
    if found.feature_names != names:
        other = next((a, b) for a, b in zip(found.feature_names, names, strict=True) if a != b)
        raise InputError(
            f"{owner}: the metric was made on other columns than the table is encoded to: {other[0]!r} where "
            f"the table has {other[1]!r}. Pass the metric's own encoder as domain=."
        )
    if isinstance(found.feature_map, TabularDomain):
        for mine, theirs in zip(rows.encoder.columns_, found.feature_map.columns_, strict=True):
            if mine.curve != theirs.curve:
                raise InputError(
                    f"{owner}: the metric was made with another scale of {mine.name!r} than the table is encoded with. "
                    "Pass the metric's own encoder as domain=."
                )
    return found


def metric_of_model(
    metric: FairMetric, removed: Subspace | None, sensitive_features: Sequence[str] = ()
) -> FairMetric:
    """Return the metric of a model that does not see `removed`: what is projected off costs nothing too."""
    if removed is None:
        return metric
    return metric | FairMetric.from_subspace(
        removed,
        feature_map=metric.feature_map,
        feature_names=metric.feature_names,
        sensitive_features=sensitive_features,
    )


def searched_metric(metric: FairMetric, removed: Subspace | None) -> FairMetric:
    """Return the metric to search with: without the projected directions, along which nothing can be found."""
    if removed is None:
        return metric
    free = metric.null_space
    rest = removed.remove(np.asarray(to_numpy(free.basis), dtype=float).T)
    # What lies inside the projection up to rounding is not a direction of its own.
    rest = rest[np.linalg.norm(rest, axis=1) > 1e-6]
    if metric.weight != 0.0:
        # Not all cheap directions are free: leave their prices as they are.
        return metric
    left = Subspace.from_directions(rest if len(rest) else np.zeros((1, removed.n_features)))
    return FairMetric.from_subspace(
        left, feature_names=metric.feature_names, sensitive_features=metric.sensitive_features
    )


def search_region(search_domain: Any, metric: FairMetric, rows: TrainingRows, *, owner: str) -> Domain | None:
    """Return where the search may go: anywhere (None), a domain, or along each free direction as far as the data goes."""
    if search_domain is None or isinstance(search_domain, Domain):
        return search_domain
    if not isinstance(search_domain, str) or search_domain != "data":
        raise bad_parameter(owner, "search_domain", "None, 'data' or a Domain", search_domain)
    free = metric.null_space
    return DataRangeDomain.from_data(rows.x, free) if free.dim else None
