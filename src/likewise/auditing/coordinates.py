"""Model, fair metric and domain in one coordinate system: the domain's encoding.

Each of the three may bring an encoder of its own. Two encodings of the same columns differ by an affine map, so a
metric moves exactly between them (Σ′ = AᵀΣA), and a model of numbers is the same model behind that map. What cannot
be brought together is refused. A frame is encoded or not by what it is declared to be, never by its column names; a
model without an encoder and a metric without a feature map get what the user passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.dual.frontier import Floats
from likewise.auditing.people import TableColumns, TableCoordinates, TableKind, model_in, tabular
from likewise.core.checks import to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.core.messages import Message
from likewise.data.encoding import Encoding, EncodingMismatchError, ScaleMismatchError
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.constructors import reexpress
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models import Model

# When does a move cost nothing: squared fair distances with the rounding taken out.


def priced_distance(
    metric: Any,
    first: Floats,
    second: Floats,
    *,
    resolution: float = 2.3e-16,
    alone: bool = True,
    exact: bool = False,
) -> Floats:
    """Squared fair distance of paired rows, exactly 0 where it is rounding."""
    delta = first - second
    distance = np.maximum(_squared_norm(metric, delta) if alone else metric.squared_norm(delta), 0.0)
    largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
    noise = 0.0 if exact else (4 * resolution) ** 2 * (_lengths(first) + _lengths(second))
    free = distance <= largest * (COSTS_NOTHING * _lengths(delta) + noise)
    if exact:
        touched = np.zeros(delta.shape[1], dtype=bool)
        if metric.n_features is not None:
            basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
            touched = np.abs(basis).max(axis=1, initial=0.0) > COSTS_NOTHING
        moved = (delta[:, ~touched] != 0).any(axis=1)
        # The square of a rounding may be less than any number there is.
        distance = np.where(moved, np.maximum(distance, np.finfo(np.float64).tiny), distance)
        free &= ~moved
    return np.where(free, 0.0, distance)


def _lengths(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _squared_norm(metric: Any, delta: Floats) -> Floats:
    """δᵀΣδ, each row by itself."""
    Q = metric.basis if metric.n_features else np.zeros((delta.shape[1], 0))
    inside = np.einsum("ij,jk->ik", delta, Q)
    total = (inside**2 * (metric.scale + metric.values)).sum(axis=1)
    if metric.scale == 0:
        return np.asarray(total)
    outside = delta - np.einsum("ik,jk->ij", inside, Q) if Q.shape[1] else delta
    return np.asarray(total + metric.scale * np.einsum("ij,ij->i", outside, outside))


@dataclass(frozen=True, eq=False, kw_only=True)
class Coordinates(TableCoordinates):
    """Everything about an audit but the people; make one with `Coordinates.build`."""

    metric: FairMetric
    free: tuple[str, ...]
    said: tuple[str, ...] = ()

    @classmethod
    def build(
        cls, X: Any, *, model: Model, metric: FairMetric, domain: Any, encoded: bool | None = None
    ) -> Coordinates:
        """Bring the three together for tables like `X`."""
        raw = is_frame(X) and not (declared_encoded(X) if encoded is None else encoded)
        encoding = _encoding_of(X, domain, metric)
        table = TableColumns.of(X, encoding, raw=raw)
        measured, said = _metric_in(metric, encoding, table)
        takes, own = model_in(model, encoding, table)
        free = _free_columns(metric, _metric_encoding(metric, encoding, table))
        kind = TableKind.of(to_pandas(X, owner="audit", name="X"), encoding) if raw and encoding else None
        return cls(
            model=model,
            metric=measured,
            domain=domain,
            encoding=encoding,
            raw=raw,
            takes=takes,
            free=free,
            own=own,
            said=said,
            kind=kind,
        )

    def features(self, table: Any, encoded: Floats) -> tuple[Floats, float]:
        """Return φ of rows, float64 (n, d), and the resolution of the numbers φ is made of."""
        if self.metric.feature_map is None:
            return encoded, float(np.finfo(np.float64).eps)
        phi = to_numpy(self.metric.features(table))
        return phi.astype(np.float64), float(np.finfo(phi.dtype).eps)

    def free_columns(self) -> tuple[str, ...]:
        """Names of the columns whose every change costs nothing, and that may change."""
        fixed = self.fixed_names()
        return tuple(name for name in self.free if name not in fixed)

    def why_no_gradient(self) -> str | None:
        """Why gradients cannot be followed here; None where they can."""
        found = super().why_no_gradient()
        if found is None and self.metric.feature_map is not None:
            return Message("why_not.no_derivative")
        return found


def _encoding_of(X: Any, domain: Any, metric: FairMetric) -> Encoding | None:
    known = tabular(domain) or tabular(metric.feature_map)
    if known is not None:
        found: Encoding = known.encoding_
        return found
    if not is_frame(X):
        return None
    frame = to_pandas(X, owner="audit", name="X")
    text = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    if text:
        raise InputError(
            f"audit: column {text[0]!r} is text, and the domain given is one of plain numbers. "
            "Pass domain=TabularDomain.from_frame(X)."
        )
    return Encoding.plain(list(frame.columns))


def _metric_encoding(metric: FairMetric, encoding: Encoding | None, table: TableColumns) -> Encoding | None:
    """Return the encoding that the metric measures; None where a feature map of its own hides it."""
    known = tabular(metric.feature_map)
    if known is not None:
        found: Encoding = known.encoding_
        return found
    if encoding is None or metric.feature_map is not None:
        return None
    if table.is_numeric and metric.n_features in (None, len(table.columns)):
        # What has no feature map measures the rows that are passed, here the table's own numbers.
        return Encoding.plain(list(metric.feature_names or table.columns))
    return encoding


def _free_columns(metric: FairMetric, encoding: Encoding | None) -> tuple[str, ...]:
    if encoding is None or metric.n_features not in (None, encoding.n_features):
        return ()
    plain, names = metric.without_feature_map(), []
    for column in encoding.columns:
        # From the first category to every other; a number, or one indicator of two, by one unit.
        moves = np.zeros((max(column.width - 1, 1), encoding.n_features))
        moves[:, column.start] = 1.0
        moves[np.arange(column.width - 1), column.start + 1 + np.arange(column.width - 1)] = -1.0
        if not priced_distance(plain, np.zeros_like(moves), moves).any():
            names.append(column.name)
    return tuple(names)


def _metric_in(
    metric: FairMetric, encoding: Encoding | None, table: TableColumns
) -> tuple[FairMetric, tuple[str, ...]]:
    """Return the metric of encoded rows."""
    if encoding is None:
        return (metric.without_feature_map() if tabular(metric.feature_map) else metric), ()
    own = _metric_encoding(metric, encoding, table)
    if own is None:
        return metric, ("The metric's own feature map reads the table.",)
    if own is not encoding:
        return _recoded(metric, own, encoding)
    if metric.n_features not in (None, encoding.n_features):
        raise InputError(
            f"audit: the metric is of {metric.n_features} columns, the encoded rows have {encoding.n_features}. "
            "Learn it on the same table, so that it knows how to encode it: AttributeSubspace([…]).fit(frame)."
        )
    return metric.without_feature_map(), ()


def _recoded(metric: FairMetric, own: Encoding, encoding: Encoding) -> tuple[FairMetric, tuple[str, ...]]:
    if own.agrees(encoding):
        return metric.without_feature_map(), ()
    unknown = [c for c in encoding.columns if c.name not in own.by_name and not c.immutable]
    if unknown:
        raise InputError(
            f"audit: the metric does not know column {unknown[0].name!r}, so any change of it would cost nothing. "
            "Learn the metric on a table that has it, or call the column immutable in the domain."
        )
    try:
        change = own.map_from(encoding)
    except ScaleMismatchError as error:
        raise InputError(
            f"audit: the metric cannot be re-expressed in the domain's encoding: {error}, and no linear map leads from one "
            "to the other. Use one domain for both: AttributeSubspace([…], domain=domain).fit(frame), or "
            "domain=metric.feature_map."
        ) from error
    except EncodingMismatchError as error:
        raise InputError(
            f"audit: the metric and the domain encode the table differently, and not by an affine map: {error}. "
            "Learn the metric on the table that is audited, or pass domain=metric.feature_map."
        ) from error
    return reexpress(metric, change.matrix), (Message("assumption.re_expressed"),)
