"""What is audited: the people, and model, metric and domain in one coordinate system, sorted out once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.auditing.coordinates import Coordinates, priced_distance
from likewise.auditing.dual.frontier import Floats
from likewise.auditing.people import AuditedPeople, check_tolerance, rows_of, tabular
from likewise.core.checks import IntArray, check_labels, check_matrix, check_same_length, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.core.messages import Message
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns, read_edits
from likewise.data.domain import BoxDomain
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.models import CallableModel, Model, as_model
from likewise.models.losses import as_loss


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
        check_tolerance(made)
        exchanged, unnamed = _all_edits(made, edits, ready)
        return made.exchanging(exchanged).with_known(unnamed=unnamed)

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
