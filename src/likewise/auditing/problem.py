"""What is audited: the people, and model, metric and domain in one coordinate system, the domain's encoding.

Each of the three may bring an encoder of its own. Two encodings of the same columns differ by an affine map, so a
metric moves exactly between them (Σ′ = AᵀΣA), and a model of numbers is the same model behind that map. What cannot
be brought together is refused. A frame is encoded or not by what it is declared to be, never by its column names; a
model without an encoder and a metric without a feature map get what the user passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likewise.auditing.editable_rows import check_may_change
from likewise.auditing.people import (
    AuditedPeople,
    TableCoordinates,
    TableKind,
    check_tolerance,
    model_in,
    rows_of,
    tabular,
)
from likewise.core.checks import FloatArray, IntArray, check_labels, check_matrix, check_same_length, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns, read_edits
from likewise.data.domain import BoxDomain
from likewise.data.encoding import Encoding, EncodingMismatchError, ScaleMismatchError
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.constructors import reexpress
from likewise.fair_metrics.learner import ready_metric
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models import Model
from likewise.models.losses import as_loss
from likewise.models.matching import answers_frames
from likewise.models.model_files import LoadedModel

# When does a move cost nothing: squared fair distances with the rounding taken out.


def priced_distance(
    metric: Any,
    first: FloatArray,
    second: FloatArray,
    *,
    resolution: float = 2.3e-16,
    alone: bool = True,
    exact: bool = False,
) -> FloatArray:
    """Squared fair distance of paired rows, exactly 0 if it is rounding."""
    delta = first - second
    moved, one, two = (np.einsum("ij,ij->i", rows, rows) for rows in (delta, first, second))
    if alone:
        # δᵀΣδ, each row by itself.
        Q = metric.basis if metric.n_features else np.zeros((delta.shape[1], 0))
        inside = np.einsum("ij,jk->ik", delta, Q)
        distance = (inside**2 * (metric.scale + metric.values)).sum(axis=1)
        if metric.scale != 0:
            outside = delta - np.einsum("ik,jk->ij", inside, Q) if Q.shape[1] else delta
            distance = distance + metric.scale * np.einsum("ij,ij->i", outside, outside)
    else:
        distance = metric.squared_norm(delta)
    distance = np.maximum(distance, 0.0)
    largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
    noise = 0.0 if exact else (4 * resolution) ** 2 * (one + two)
    free = distance <= largest * (COSTS_NOTHING * moved + noise)
    if exact:
        touched = np.zeros(delta.shape[1], dtype=bool)
        if metric.n_features is not None:
            basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
            touched = np.abs(basis).max(axis=1, initial=0.0) > COSTS_NOTHING
        apart = (delta[:, ~touched] != 0).any(axis=1)
        # The square of a rounding may be less than any number there is.
        distance = np.where(apart, np.maximum(distance, np.finfo(np.float64).tiny), distance)
        free &= ~apart
    return np.where(free, 0.0, distance)


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
        table = TableKind.of(X, encoding, raw=raw)
        measured, said = _metric_in(metric, encoding, table)
        takes, own = model_in(model, encoding, table)
        free = _free_columns(metric, _metric_encoding(metric, encoding, table))
        return cls(
            model=model,
            metric=measured,
            domain=domain,
            encoding=encoding,
            kind=table,
            takes=takes,
            free=free,
            own=own,
            said=said,
        )

    def features(self, table: Any, encoded: FloatArray) -> tuple[FloatArray, float]:
        """Return φ of rows, float64 (n, d), and the resolution of the numbers φ is made of."""
        if self.metric.feature_map is None:
            return encoded, float(np.finfo(np.float64).eps)
        phi = to_numpy(self.metric.features(table))
        return phi.astype(np.float64), float(np.finfo(phi.dtype).eps)

    def why_no_gradient(self) -> str | None:
        """Why gradients cannot be followed here; None if they can."""
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


def _metric_encoding(metric: FairMetric, encoding: Encoding | None, table: TableKind) -> Encoding | None:
    """Return the encoding that the metric measures; None if a feature map of its own hides it."""
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
    metric: FairMetric, encoding: Encoding | None, table: TableKind
) -> tuple[FairMetric, tuple[str, ...]]:
    """Return the metric of encoded rows."""
    if encoding is None:
        return (metric.without_feature_map() if tabular(metric.feature_map) else metric), ()
    own = _metric_encoding(metric, encoding, table)
    if own is None:
        return metric, ("The metric's own feature map reads the table.",)
    if own is encoding and metric.n_features not in (None, encoding.n_features):
        raise InputError(
            f"audit: the metric is of {metric.n_features} columns, the encoded rows have {encoding.n_features}. "
            "Learn it on the same table, so that it knows how to encode it: AttributeSubspace([…]).fit(frame)."
        )
    if own is encoding or own.agrees(encoding):
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


@dataclass(frozen=True, eq=False)
class AuditProblem(AuditedPeople):
    """The auditor's problem of some people; make one with `AuditProblem.build`."""

    coordinates: Coordinates
    y: np.ndarray[Any, Any]
    random_state: int = 0
    pool: Any = None
    unnamed: tuple[str, ...] = ()

    @classmethod
    def build(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        metric: Any,
        domain: Any = None,
        loss: Any = None,
        edits: Any = None,
        encoded: bool | None = None,
        random_state: int = 0,
        tolerance: float | None = None,
    ) -> AuditProblem:
        """Sort out what the user passed."""
        labels = check_labels(y, owner="audit", min_classes=1)
        check_same_length("audit", X=X, y=labels)
        adapter = _adapter(model, X, loss)
        ready = getattr(metric, "metric_", None)
        if ready is None:
            ready = ready_metric(metric, X, owner="audit", encoder=tabular(domain) or adapter.encoder)
        domain, said = _ready_domain(domain, X, ready, adapter.encoder, encoded=encoded)
        coordinates = Coordinates.build(X, model=adapter, metric=ready, domain=domain, encoded=encoded)
        made = cls(
            coordinates,
            rows_of(X, coordinates),
            labels,
            assumptions=(*said, *coordinates.said),
            random_state=random_state,
            tolerance=tolerance,
        )
        made.check()
        check_tolerance(made)
        exchanged, unnamed = _all_edits(made, edits, ready)
        return made.exchanging(exchanged).with_known(unnamed=unnamed)

    @property
    def sensitive_edits(self) -> EditParts:
        """What twins exchange of the columns that were called sensitive; rests on no learned metric."""
        return tuple(part for part in self.edits if not set(edited_columns((part,))) <= set(self.unnamed))

    def of(self, X: Any, y: Any, *, first: int = 0, absent: Any = None) -> Self:
        """Return the same problem of other people; without labels, their loss is that of the model's own decisions."""
        found = super().of(X, y, first=first, absent=absent)
        found.check()
        return found.with_known(y=found.decisions) if y is None else found

    def check(self) -> None:
        """Raise an error that names column, value and row where somebody cannot exist by the domain's own rules."""
        place, encoded = self.coordinates, self.X
        outside = np.flatnonzero(~place.possible(encoded))
        if not len(outside):
            return
        row = int(outside[0])
        known = tabular(place.domain)
        if known is not None:
            found = known.validate(encoded[row : row + 1])[0]
            what = f"column {found.column!r} = {found.value!r} ({found.reason})"
        else:
            inside = to_numpy(place.domain.nearest_valid(encoded[row : row + 1]))[0]
            at = int(np.abs(encoded[row] - inside).argmax())
            names = None if place.encoding is None else place.encoding.feature_names
            name = f"column {names[at]!r}" if names is not None else f"column {at}"
            what = f"{name} = {encoded[row, at]:.6g} (nearest possible {inside[at]:.6g})"
        raise InputError(
            f"audit: {len(outside):,} of {len(encoded):,} audited people cannot exist in the domain, first row "
            f"{self.first + row}: {what}. Make the domain of all people, TabularDomain.from_frame(X) or ranges={{…}}, or "
            "say encoded=True or encoded=False if the rows were taken in the wrong units."
        )

    def squared_distance(
        self, x: FloatArray, person: IntArray, *, resolution: float | None = None
    ) -> FloatArray:
        """Squared fair distance of encoded rows from people, pair by pair; 0 if it is rounding."""
        place = self.coordinates
        plain = place.metric.without_feature_map()
        if place.metric.feature_map is None:
            finest = float(np.finfo(np.float64).eps)
            rows = self.X[person], x
            return priced_distance(plain, *rows, resolution=resolution or finest, exact=resolution is None)
        one, fine = place.features(self._some(person), self.X[person])
        two, other = place.features(place.given(x), x)
        return priced_distance(plain, one, two, resolution=max(fine, other, resolution or 0.0))


def _adapter(model: Any, X: Any, loss: Any) -> Model:
    if isinstance(model, Model):
        return model if loss is None or as_loss(loss) == model.loss else model.with_loss(loss)
    loaded = LoadedModel(model, "import path")
    # What does not say which columns it takes gets what the user passes: a table if X is one.
    table = is_frame(X) and answers_frames(loaded, to_pandas(X, owner="audit", name="X").head(5))
    return loaded.under("auto" if loss is None else loss, True if table else None)


def _ready_domain(
    domain: Any, X: Any, metric: FairMetric, encoder: Any, *, encoded: bool | None
) -> tuple[Any, tuple[str, ...]]:
    if domain is not None:
        return domain, ()
    raw = is_frame(X) and not (declared_encoded(X) if encoded is None else encoded)
    for known, whose in ((tabular(metric.feature_map), "metric"), (tabular(encoder), "model")):
        if known is not None:
            said = Message(f"assumption.domain_of_{whose}")
            return (known.widened(X) if raw else known), (said,)
    if raw:
        return TabularDomain.from_frame(to_pandas(X, owner="audit", name="X")), (
            Message("assumption.domain_of_table"),
        )
    matrix = np.asarray(to_numpy(check_matrix(X, owner="audit")), dtype=np.float64)
    return BoxDomain.from_data(matrix), (Message("assumption.domain_of_numbers"),)


def _all_edits(problem: AuditProblem, edits: Any, metric: FairMetric) -> tuple[EditParts, tuple[str, ...]]:
    """What twins exchange: what was asked for, what the metric was told is sensitive, and what it makes free.

    The second are those that are free only, where others are named.
    """
    asked = () if edits is None else read_edits(edits, owner="audit")
    place = problem.coordinates
    known = () if place.encoding is None else place.encoding.names
    fixed = place.fixed_names()
    told = [name for name in metric.sensitive_features if name in known and name not in fixed]
    # Every change of these costs nothing.
    free = [name for name in place.free if name not in fixed]
    named = edited_columns(asked, owner="audit")
    more = [name for name in dict.fromkeys([*told, *free]) if name not in named]
    unknown = [name for name in named if isinstance(name, str) and known and name not in known]
    if unknown:
        raise InputError(
            f"audit: 'edits' names column {unknown[0]!r}, which the table does not have. "
            f"Its columns: {', '.join(known[:30])}."
        )
    check_may_change(named, fixed)
    unnamed = tuple(name for name in more if name not in told) if told or named else ()
    return (*(Edit(name) for name in more), *asked), unnamed
