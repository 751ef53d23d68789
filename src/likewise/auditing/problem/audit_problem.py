"""What the user passed, sorted out once: the model's adapter, the fitted metric, the domain, rows and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.problem.coordinates import Views
from likewise.auditing.problem.editable_rows import tabular
from likewise.auditing.support.frontier import Floats
from likewise.core.arrays import to_numpy
from likewise.core.checks import check_labels, check_matrix, check_same_length
from likewise.core.frames import is_frame, to_pandas
from likewise.domains import BoxDomain, TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.fitted_metric import ready_metric
from likewise.models import CallableModel, DifferentiableModel, Model, as_model

__all__ = ["AuditProblem", "free_columns"]

# A move inside a column costs nothing when its squared distance is below this share of its length.
_FREE = 1e-9


@dataclass(frozen=True, eq=False)
class AuditProblem:
    """One audit to be done.

    Parameters
    ----------
    views : Views
        The model, the metric and the domain, and how each sees a row.
    rows : DataFrame or ndarray
        The audited rows.
    y : ndarray of shape (n,)
        Their labels.
    assumptions : tuple of str
        What was filled in for the user.
    """

    views: Views
    rows: Any
    y: np.ndarray[Any, Any]
    assumptions: tuple[str, ...]

    @classmethod
    def build(cls, model: Any, X: Any, y: Any, *, metric: Any, domain: Any, loss: Any) -> AuditProblem:
        """Check and complete what the user passed.

        Parameters
        ----------
        model, X, y, metric, domain, loss
            As in `audit`.
        """
        adapter = model if isinstance(model, Model) else _adapter(model, X, loss)
        rows = (
            to_pandas(X, owner="audit", name="X") if is_frame(X) else to_numpy(check_matrix(X, owner="audit"))
        )
        labels = check_labels(y, owner="audit", min_classes=1)
        check_same_length("audit", X=rows, y=labels)
        ready = _ready_metric(metric, rows, adapter.encoder)
        domain, said = _ready_domain(domain, rows, ready, adapter.encoder)
        views = Views.of(rows, model=adapter, metric=ready, domain=domain)
        return cls(views, rows, labels, said)

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.y)

    def encoded(self) -> Floats | None:
        """Return the audited rows as the domain sees them, or None where no one can encode them."""
        if not self.views.raw:
            return np.asarray(to_numpy(self.rows), dtype=np.float64)
        if self.views.encoder is not None:
            return np.asarray(self.views.encoder.encode_array(self.rows), dtype=np.float64)
        if is_frame(self.rows) and all(dtype.kind in "biuf" for dtype in self.rows.dtypes):
            return np.asarray(self.rows.to_numpy(dtype=np.float64))
        return None

    def searchable(self) -> bool:
        """Whether gradients can be followed: a differentiable model of the same numbers the metric measures."""
        views = self.views
        identity = views.metric.feature_map is None or tabular(views.metric.feature_map) is not None
        return (
            isinstance(views.model, DifferentiableModel)
            and identity
            and not (views.raw and views.model.takes_frame and views.encoder is not None)
            and views.model_agrees
            and views.domain is not None
            and self.encoded() is not None
        )


def free_columns(views: Views) -> tuple[str, ...]:
    """Return the categorical columns whose every change costs nothing under the metric: the sensitive ones.

    Parameters
    ----------
    views : Views
        With a `TabularDomain` among them; else nothing is known and nothing returned.
    """
    domain = views.encoder
    if domain is None:
        return ()
    names = []
    for column in domain.columns_:
        if column.kind != "categorical" or column.immutable:
            continue
        width = column.stop - column.start
        moves = np.zeros((max(width - 1, 1), domain.n_features))
        moves[:, column.start] = 1.0
        for j in range(1, width):
            moves[j - 1, column.start + j] = -1.0
        cost = np.asarray(views.metric.without_feature_map().squared_norm(moves))
        if (cost <= _FREE * (moves**2).sum(axis=1)).all():
            names.append(column.name)
    return tuple(names)


def _adapter(model: Any, X: Any, loss: Any) -> Model:
    adapter = as_model(model, loss=loss)
    # A bare function gets what the user passes: a table where X is one.
    if isinstance(adapter, CallableModel) and is_frame(X):
        return as_model(model, loss=loss, takes_frame=True)
    return adapter


def _ready_metric(metric: Any, rows: Any, encoder: Any) -> FairMetric:
    if hasattr(metric, "metric_"):
        ready: FairMetric = metric.metric_
        return ready
    return ready_metric(metric, rows, owner="audit", encoder=encoder)


def _ready_domain(domain: Any, rows: Any, metric: FairMetric, encoder: Any) -> tuple[Any, tuple[str, ...]]:
    if domain is not None:
        return domain, ()
    known = tabular(metric.feature_map)
    if known is not None:
        return known, ("The metric's own table domain says which people can exist.",)
    if tabular(encoder) is not None:
        return encoder, ("The model's own table domain says which people can exist.",)
    numeric = not is_frame(rows) or all(dtype.kind in "biuf" for dtype in rows.dtypes)
    if numeric:
        matrix = np.asarray(to_numpy(rows), dtype=np.float64)
        return BoxDomain.from_data(matrix), (
            "People can exist anywhere between the smallest and largest value of each column.",
        )
    return TabularDomain.from_frame(rows), (
        "People can exist with any combination of the values and ranges seen in the table.",
    )
