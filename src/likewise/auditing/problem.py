"""What is audited: the people, and model, metric and domain in one coordinate system, sorted out once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.coordinates import Coordinates, priced_distance, tabular
from likewise.auditing.dual.frontier import Floats
from likewise.auditing.editable_rows import EditableRows, editable_rows
from likewise.core.checks import (
    IntArray,
    check_labels,
    check_matrix,
    check_number,
    check_same_length,
    to_numpy,
)
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns, one_hot_together, read_edits
from likewise.data.domain import BoxDomain
from likewise.data.missing_values import MissingCells
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.models import CallableModel, Model, as_model
from likewise.models.losses import as_loss
from likewise.models.matching import MissingCellsModel

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.results.sensitive import SensitiveValues

# People whose answers are asked for twice.
ASKED_TWICE = 64


def answers_repeat(model: Model, rows: Callable[[slice], Any]) -> bool:
    """Whether a model gives rows the same answers twice, in another order, up to rounding."""
    # A decision may hang on rounding.
    model = model.graded()
    first, second = model.outputs(rows(slice(None))), model.outputs(rows(slice(None, None, -1)))[::-1]
    allowed = max(1e-6, 64.0 * model.roundoff) * (1.0 + np.abs(first).max())
    return bool(np.allclose(first, second, rtol=0.0, atol=allowed))


@dataclass(frozen=True, eq=False)
class AuditProblem:
    """The auditor's problem of some people; make one with `AuditProblem.build`."""

    coordinates: Coordinates
    rows: Any
    y: np.ndarray[Any, Any]
    edits: EditParts = ()
    assumptions: tuple[str, ...] = ()
    random_state: int = 0
    first: int = 0
    pool: Any = None
    total: int | None = None
    unnamed: tuple[str, ...] = ()
    values: SensitiveValues | None = None
    tolerance: float | None = None
    # Which sensitive cells were missing in the table and were filled for the model, a column each.
    absent: pd.DataFrame | None = None
    # Whether `y` are labels; else they are the model's own decisions.
    labelled: bool = True

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
        ready = _ready_metric(metric, X, tabular(domain) or adapter.encoder)
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
        _check_tolerance(made)
        alone, unnamed = _all_edits(made, edits, ready)
        exchanged = _together(alone, made.editable())
        grouped = [part for part in exchanged if all(part is not one for one in alone)]
        together = edited_columns(tuple(grouped))
        if together:
            note = Message("assumption.one_hot", columns=together)
            made = replace(made, assumptions=(*made.assumptions, note))
        return made.with_known(edits=exchanged, unnamed=unnamed)

    def with_known(self, **changes: Any) -> AuditProblem:
        """Return the same problem of the same people with other choices, without computing what is known already again."""
        found = replace(self, **changes)
        known = ("X", "repeats", "_own", "base_loss", "decisions")
        found.__dict__.update({name: self.__dict__[name] for name in known if name in self.__dict__})
        return found

    @property
    def sensitive_edits(self) -> EditParts:
        """What twins exchange of the columns that were called sensitive; rests on no learned metric."""
        return tuple(part for part in self.edits if not set(edited_columns((part,))) <= set(self.unnamed))

    def of(self, X: Any, y: Any, *, first: int = 0, pool: Any = None, absent: Any = None) -> AuditProblem:
        """Return the same problem of other people."""
        found = replace(
            self,
            rows=rows_of(X, self.coordinates),
            y=np.asarray(y),
            first=first,
            pool=self.pool if pool is None else rows_of(pool, self.coordinates),
            absent=absent,
        )
        found.check()
        return found

    def check(self) -> None:
        """Raise an error that names column, value and row where somebody cannot exist in the domain."""
        self.coordinates.check_possible(self.X, self.first)

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.y)

    @cached_property
    def X(self) -> Floats:  # noqa: N802 (the field's name for rows)
        """The people as encoded rows, float64 (n, d)."""
        return self.coordinates.encoded(self.rows)

    @cached_property
    def target(self) -> np.ndarray[Any, Any]:
        """Labels as class indices, or numbers for a regression."""
        place = self.coordinates
        if place.model.known_classes is None and self.decides:
            # A bare function shows how many classes it knows when it is first asked.
            place.model.outputs(place.for_model(self._some(np.arange(1))))
        return place.model.targets(self.y)

    @cached_property
    def labels(self) -> np.ndarray[Any, Any]:
        """Labels as the model calls its classes."""
        target, classes = self.target, self.coordinates.model.classes_
        return target if classes is None else np.asarray(classes[target])

    def ask(self, table: Any) -> tuple[Floats, np.ndarray[Any, Any]]:
        """Return the model's outputs about rows, and its decisions: positions of classes, or numbers of a regression."""
        model, shown = self.coordinates.model, self.coordinates.for_model(table)
        outputs: Floats = np.asarray(model.outputs(shown), dtype=np.float64)
        if not self.decides:
            return outputs, outputs[:, 0]
        if model.decides_by_outputs:
            return outputs, np.argmax(outputs, axis=1)
        return outputs, model.targets(model.predict(shown))

    @cached_property
    def _own(self) -> tuple[Floats, np.ndarray[Any, Any], float]:
        clock = time.time()
        outputs, decided = self.ask(self.rows)
        return outputs, decided, time.time() - clock

    @property
    def seconds_to_ask(self) -> float:
        """How long the model takes to answer about everybody once."""
        return self._own[2]

    @property
    def outputs(self) -> Floats:
        """What the model says about each person, as `Model.outputs`."""
        return self._own[0]

    @property
    def decided(self) -> np.ndarray[Any, Any]:
        """The model's decision about each person: the position of a class, or a number."""
        return self._own[1]

    @cached_property
    def base_loss(self) -> Floats:
        """Loss of each person where they stand."""
        return np.asarray(self.coordinates.model.losses_of(self.outputs, self.labels), dtype=np.float64)

    @cached_property
    def decisions(self) -> np.ndarray[Any, Any]:
        """The model's decision about each person."""
        classes = self.coordinates.model.classes_
        return self.decided if classes is None else np.asarray(classes[self.decided])

    @cached_property
    def repeats(self) -> bool:
        """Whether the model gives the same answers when it is asked about the same people twice."""
        place, some = self.coordinates, np.arange(min(self.n, ASKED_TWICE))
        return answers_repeat(place.model, lambda at: place.for_model(self._some(some[at])))

    @property
    def decides(self) -> bool:
        """Whether the model decides at all: a regression predicts numbers, of which no two are the same decision."""
        return not self.coordinates.model.loss.regression

    @property
    def counts_changes(self) -> bool:
        """Whether people who fare differently can be counted: the model decides, or a tolerance was given."""
        return self.decides or self.tolerance is not None

    def differ(
        self, predicted: np.ndarray[Any, Any], person: IntArray
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether what is predicted of rows is another decision than that about people, pair by pair."""
        if self.decides:
            return np.asarray(predicted != self.decisions[person])
        return np.asarray(np.abs(predicted - self.decisions[person]) > (self.tolerance or 0.0))

    @property
    def missing(self) -> MissingCells | None:
        """Which columns have missing cells that the table fills and marks and the model is shown as missing."""
        model = self.coordinates.model
        return model.missing if isinstance(model, MissingCellsModel) else None

    def editable(self, rows: Any = None, *, fill_missing: bool = False) -> EditableRows:
        """Return the people, or other rows of the same kind, as a table whose columns can be rewritten.

        A cell that is missing stays missing, whatever is written there, unless `fill_missing`.
        """
        place, missing = self.coordinates, self.missing
        marks = dict(zip(missing.columns, missing.marks, strict=True)) if missing and fill_missing else None
        given = self.rows if rows is None else rows
        return editable_rows(given, place.encoding, raw=place.raw, owner="audit", marks=marks)

    def squared_distance(self, x: Floats, person: IntArray, *, resolution: float | None = None) -> Floats:
        """Squared fair distance of encoded rows from people, pair by pair; 0 where it is rounding."""
        place = self.coordinates
        plain = place.metric.without_feature_map()
        if place.metric.feature_map is None:
            finest = float(np.finfo(np.float64).eps)
            rows = self.X[person], x
            return priced_distance(plain, *rows, resolution=resolution or finest, exact=resolution is None)
        one, fine = place.features(self._some(person), self.X[person])
        two, other = place.features(place.given(x), x)
        return priced_distance(plain, one, two, resolution=max(fine, other, resolution or 0.0))

    def _some(self, person: IntArray) -> Any:
        return self.rows.iloc[person] if is_frame(self.rows) else self.rows[person]


def _check_tolerance(problem: AuditProblem) -> None:
    if problem.tolerance is None:
        return
    if problem.decides:
        raise bad_parameter(
            "audit",
            "tolerance",
            allowed="None for a model that decides",
            got=problem.tolerance,
            remedy="It is for models that predict numbers.",
        )
    check_number(problem.tolerance, owner="audit", name="tolerance", low=0)


def rows_of(X: Any, coordinates: Coordinates) -> Any:
    """Return people as a raw pandas frame, or as a float64 array of encoded rows."""
    if coordinates.raw:
        return to_pandas(X, owner="audit", name="X").reset_index(drop=True)
    if coordinates.encoding is not None and is_frame(X):
        return coordinates.encoding.read_encoded(X, owner="audit")
    return np.asarray(to_numpy(check_matrix(X, owner="audit")), dtype=np.float64)


def _adapter(model: Any, X: Any, loss: Any) -> Model:
    if isinstance(model, Model):
        return model if loss is None or as_loss(loss) == model.loss else model.with_loss(loss)
    loss = "cross_entropy" if loss is None else loss
    adapter = as_model(model, loss=loss)
    # A bare function gets what the user passes: a table where X is one.
    if isinstance(adapter, CallableModel) and is_frame(X):
        return as_model(model, loss=loss, takes_frame=True)
    return adapter


def _ready_metric(metric: Any, X: Any, encoder: Any) -> FairMetric:
    if hasattr(metric, "metric_"):
        ready: FairMetric = metric.metric_
        return ready
    return ready_metric(metric, X, owner="audit", encoder=encoder)


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
    named = edited_columns(asked, owner="audit")
    more = [name for name in dict.fromkeys([*told, *place.free_columns()]) if name not in named]
    unknown = [name for name in named if isinstance(name, str) and known and name not in known]
    if unknown:
        raise InputError(
            f"audit: 'edits' names column {unknown[0]!r}, which the table does not have. "
            f"Its columns: {', '.join(known[:30])}."
        )
    unnamed = tuple(name for name in more if name not in told) if told or named else ()
    return (*(Edit(name) for name in more), *asked), unnamed


def _together(parts: EditParts, rows: EditableRows) -> EditParts:
    """Exchange 0/1 columns that stand for one attribute together."""
    alone = [part.column for part in parts if isinstance(part, Edit)]
    fields = [rows.field(name, owner="audit") for name in dict.fromkeys([*alone, *rows.two_valued()])]
    return one_hot_together(
        parts, {field.name: (field.values, field.codes) for field in fields}, owner="audit"
    )
