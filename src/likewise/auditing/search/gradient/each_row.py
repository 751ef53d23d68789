"""Every row of a batch searched by gradients: what came is checked, rows go in blocks, results keep their order."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch

from likewise.auditing.search.gradient.phases import Outcome, search_block
from likewise.auditing.search.gradient.row_status import SearchResult
from likewise.auditing.search.gradient.search_task import prepare
from likewise.core.checks import check_matrix
from likewise.core.errors import InputError, bad_parameter
from likewise.domains.domain import Domain
from likewise.fair_metrics.metric import FairMetric
from likewise.models.oracle import Oracle

if TYPE_CHECKING:
    from likewise.auditing.search.gradient.gradient_search import GradientSearch

__all__ = ["search_each_row"]


def search_each_row(
    search: GradientSearch,
    oracle: Oracle,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    metric: FairMetric,
    domain: Domain,
    lam: Any,
    start: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> SearchResult:
    """Search the worst case of every row; the parameters are those of `GradientSearch.run`."""
    x, y, start = _checked_rows(x, y, start)
    weights, scalar = _checked_lam(lam, x)
    task = prepare(
        search,
        oracle,
        x,
        y,
        metric=_identity_metric(metric, x),
        domain=domain,
        lam=scalar,
        generator=generator,
    )
    found = _Collected(x)
    kinds = (weights == 0, torch.isinf(weights), (weights > 0) & ~torch.isinf(weights))
    with torch.no_grad():
        for kind in kinds:
            index = kind.nonzero()[:, 0]
            for first in range(0, len(index), search.batch_size):
                rows = index[first : first + search.batch_size]
                # A block of neighbours needs no copy.
                whole: Any = slice(first, first + len(rows)) if len(index) == len(x) else rows
                begin = None if start is None else start[whole]
                found.put(whole, search_block(task, x[whole], y[whole], weights[whole], begin))
    return found.result()


class _Collected:
    """The result under construction, in the order of the rows."""

    def __init__(self, x: torch.Tensor) -> None:
        n = len(x)
        self._outcome = Outcome(
            torch.empty_like(x),
            x.new_empty(n),
            x.new_empty(n),
            torch.empty(n, dtype=torch.int8, device=x.device),
            torch.empty(n, dtype=torch.int32, device=x.device),
        )

    def put(self, rows: Any, part: Outcome) -> None:
        for field in fields(Outcome):
            getattr(self._outcome, field.name)[rows] = getattr(part, field.name)

    def result(self) -> SearchResult:
        found = self._outcome
        return SearchResult(found.x, found.loss, found.squared, found.status, found.steps)


def _checked_rows(
    x: torch.Tensor, y: torch.Tensor, start: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        raise bad_parameter(
            "GradientSearch.run", "x and y", allowed="tensors", got=f"{type(x).__name__}, {type(y).__name__}"
        )
    x = check_matrix(x, owner="GradientSearch.run", name="x").detach()
    if y.shape != (len(x),):
        raise bad_parameter(
            "GradientSearch.run", "y", allowed=f"of shape ({len(x)},), one per row", got=str(tuple(y.shape))
        )
    if start is not None:
        start = check_matrix(start, owner="GradientSearch.run", name="start", n_features=x.shape[1]).detach()
        if len(start) != len(x):
            raise bad_parameter(
                "GradientSearch.run",
                "start",
                allowed=f"one row for each of the {len(x)} rows",
                got=f"{len(start)}",
            )
        start = start.to(x)
    return x, y, start


def _checked_lam(lam: Any, x: torch.Tensor) -> tuple[torch.Tensor, float | None]:
    """Return λ for every row, and λ itself where it is one number for all."""
    weights = torch.as_tensor(lam, dtype=x.dtype, device=x.device).detach()
    if weights.ndim > 1 or (weights.ndim == 1 and len(weights) != len(x)):
        raise bad_parameter(
            "GradientSearch.run",
            "lam",
            allowed=f"a number or {len(x)} numbers",
            got=str(tuple(weights.shape)),
        )
    if not bool((weights >= 0).all()):
        raise bad_parameter("GradientSearch.run", "lam", allowed=">= 0 (inf for free moves only)", got=lam)
    scalar = float(weights) if weights.ndim == 0 else None
    return weights.expand(len(x)).contiguous(), scalar


def _identity_metric(metric: FairMetric, x: torch.Tensor) -> FairMetric:
    from likewise.domains.tabular import TabularDomain

    if metric.feature_map is not None and not isinstance(metric.feature_map, TabularDomain):
        raise InputError(
            "GradientSearch.run: 'metric' measures a feature map of the rows, which this search does not "
            "differentiate. Search in the space of the features with metric.without_feature_map(), or use the "
            "candidate search."
        )
    if metric.n_features not in (None, x.shape[1]):
        raise InputError(
            f"GradientSearch.run: 'x' has {x.shape[1]} columns, the metric has {metric.n_features}. "
            "Pass rows in the encoding that the metric was made on."
        )
    return metric.without_feature_map()
