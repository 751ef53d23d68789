"""Best-first branch and bound for sup over x of loss(x, y) − λ d²(x, x₀), person by person, at any time a bracket.

A family of models says how high the loss can be over a region and where to cut it; everything else is here, in
`open_regions` and in `region_evaluation`. People are worked on in batches, each with open regions of their own: what is
found for one does not depend on the others. Whatever ends the work, time or an interrupt, the brackets so far hold.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from likewise.auditing.bounds.brackets import Brackets, RegionBudget
from likewise.auditing.bounds.contenders import Ask
from likewise.auditing.bounds.family import Family
from likewise.auditing.bounds.open_regions import OpenRegions
from likewise.auditing.bounds.region_evaluation import RegionEvaluation
from likewise.core.arrays import FloatArray

__all__ = ["maximise"]

# People worked on at the same time, where no time is set.
_TOGETHER = 48
# Whole domains that are looked at together, at most.
_WHOLE = 512
# Everybody gets so many regions before anybody gets more, so that a run that is stopped has looked at all; without a set
# time only up to so many people, whose open regions are kept in memory.
_FIRST_PASS, _FEW = 32, 2_000
# Where a time is set, a step takes this share of it.
_STEP_SHARE = 0.04


def maximise(
    family: Family,
    metric: Any,
    X: FloatArray,
    targets: Any,
    lambda_: float,
    *,
    starts: FloatArray | None = None,
    budget: RegionBudget | None = None,
    tol: float = 1e-4,
    ask: Ask | None = None,
) -> Brackets:
    """Bracket sup over rows x that can exist of loss(x, y_i) − λ d²(x, x_i), for each person.

    Parameters
    ----------
    family : Family
        The model over the domain's columns.
    metric : FairMetric
        On encoded rows.
    X : float array of shape (n, d)
        The people, encoded.
    targets : array of shape (n,)
        Class indices, or numbers for a regression.
    lambda_ : float
        λ ≥ 0; inf allows only moves that cost nothing.
    starts : float array of shape (n, s, d), optional
        Encoded valid rows to begin from, such as what a search found; NaN where a person has none.
    budget : RegionBudget, optional
    tol : float, default=1e-4
        Width at which a person's bracket counts as closed.
    ask : callable (rows (m, d), targets (m,)) -> losses (m,), optional
        The model itself, on encoded rows. Regions in which it gives one answer then carry that answer and no slack for
        rounding, and with λ = inf people whose free moves have finitely many answers get brackets of width 0.

    Returns
    -------
    Brackets

    Examples
    --------
    >>> from likewise.auditing.bounds.table_layout import TableLayout
    >>> from likewise.auditing.bounds.trees.feature_sources import encoded_sources
    >>> from likewise.auditing.bounds.trees.tree_family import TreeFamily
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> from likewise.models.losses import ZeroOne
    >>> from likewise.models.tree_ensemble import TreeEnsemble
    >>> stump = TreeEnsemble.from_nodes(
    ...     roots=[0], left=[1, -1, -1], right=[2, -1, -1], feature=[0, 0, 0], threshold=[0.5, 0.0, 0.0],
    ...     values=[[0.0], [-1.0], [2.0]], base=[0.0], kind="scores", n_features=1,
    ... )
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> family = TreeFamily(stump, layout, encoded_sources(layout), ZeroOne())
    >>> found = maximise(family, euclidean(1), np.array([[0.2]]), np.array([0]), 1.0)
    >>> found.lower.round(3), found.rows.round(3)
    (array([0.91]), array([[0.5]]))
    """
    work = RegionEvaluation(
        family,
        metric,
        np.asarray(X, dtype=np.float64),
        np.asarray(targets),
        float(lambda_),
        tol,
        asks=ask is not None,
    )
    if starts is not None:
        work.offer_starts(starts)
    opened = OpenRegions(work)
    interrupted = False
    try:
        _run(opened, work.n, budget or RegionBudget())
    except KeyboardInterrupt:
        interrupted = True
    return opened.brackets(ask, interrupted=interrupted)


def _run(opened: OpenRegions, n: int, limit: RegionBudget) -> None:
    """Look at everybody's whole domain, then cut, until all is closed or the budget is spent."""
    pace = _Pace(limit)
    first = 0
    while first < n:
        if pace.over():
            return
        people = np.arange(first, min(first + min(8 * pace.together, _WHOLE), n))
        opened.begin(people)
        first += len(people)
        pace.step()
    whole = limit.seconds is None and n > _FEW
    for nodes in (limit.nodes,) if whole else (min(_FIRST_PASS, limit.nodes), limit.nodes):
        waiting = list(range(n - 1, -1, -1))
        active: list[int] = []
        while waiting or active:
            if pace.over():
                return
            while waiting and len(active) < pace.together:
                active.append(waiting.pop())
            active = opened.advance(active, nodes, last=nodes == limit.nodes)
            pace.step()


class _Pace:
    """When to stop, and how many people to work on before time is looked at again."""

    def __init__(self, limit: RegionBudget) -> None:
        self._limit = limit
        self._start = self._last = time.perf_counter()
        self.together = _TOGETHER if limit.seconds is None else 4

    def over(self) -> bool:
        """Whether the budget is spent."""
        if self._limit.tell is not None:
            self._limit.tell()
        if self._limit.stop is not None and self._limit.stop():
            return True
        return self._limit.seconds is not None and self._last - self._start >= self._limit.seconds

    def step(self) -> None:
        """Book a step, and make the next one shorter or longer by what it took."""
        now = time.perf_counter()
        took, self._last = now - self._last, now
        if self._limit.seconds is None:
            return
        if took > _STEP_SHARE * self._limit.seconds:
            self.together = max(1, self.together // 2)
        elif took < _STEP_SHARE * self._limit.seconds / 3:
            self.together = min(_TOGETHER, 2 * self.together)
