"""The exact audit over a finite set of candidates, for any model at all (DESIGN: inner search, any model).

Candidates are the rows of the data, their twins with sensitive columns edited to all combinations of values, and
twins whose proxies go along. The model is asked once about each; a candidate's loss depends on nothing but itself
and the audited row's label. Distances come in blocks, and every row keeps its concave frontier, which solves the
inner problem for every λ at once (`likewise.auditing.support.finite_dual` does the rest).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from likewise.auditing.problem.coordinates import Views
from likewise.auditing.problem.editable_rows import people_of
from likewise.auditing.problem.zero_cost import priced_distance
from likewise.auditing.search.candidates.candidate_losses import Evaluated, evaluate
from likewise.auditing.search.candidates.candidate_rows import Candidates, plan_candidates
from likewise.auditing.search.candidates.pareto_scan import FallingLoss, scan_pairs
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.core.checks import check_number, check_same_length
from likewise.core.errors import bad_parameter

__all__ = ["CandidateFrontier", "CandidateSearch"]


@dataclass(frozen=True, eq=False)
class CandidateFrontier:
    """What the search found: the frontier of every audited row, and the candidates its corners name.

    Parameters
    ----------
    frontier : Frontier
        Of the n audited rows; `frontier.candidate` counts in `candidates`.
    candidates : Candidates
        ``candidates.take(numbers)`` makes rows of them. The first n are the audited rows themselves.
    outside : int array
        Candidates that the domain rules out, and that were not used.
    places : int
        How many different places, under the metric, were compared with every row.
    """

    frontier: Frontier
    candidates: Candidates
    outside: Ints
    places: int

    def twin_numbers(self, corner: Any) -> Ints:
        """Candidate number of the worst case of each row, itself where it stays.

        Parameters
        ----------
        corner : int array of shape (n,)
            One corner of each row: `DualSolution.corner`, or `frontier.best(lam)`.
        """
        number = self.frontier.candidate[corner]
        return np.where(number < 0, np.arange(len(number)), number)

    def twins(self, corner: Any) -> Any:
        """Return the worst case of each row, as the kind of table the audited rows are."""
        return self.candidates.take(self.twin_numbers(corner))


@dataclass(frozen=True)
class CandidateSearch:
    """Choices of the finite-support search.

    Parameters
    ----------
    sensitive : sequence of column names, default=()
        Columns to edit to all combinations of their values: names of the original table, or positions in a
        plain array. A number with more than 20 values takes its smallest, largest and quartiles. Immutable
        columns of the domain cannot be among them.
    edits : mapping, optional
        Values to try, by column, instead of all: ``{"age": [25, 45, 65]}``.
    proxies : "auto", None or mapping, default="auto"
        Whether columns that give a sensitive one away may go along (Husband becomes Wife with the sex). Such
        twins are extra candidates. See `likewise.auditing.search.candidates.proxy_columns` for the rule, and for the mapping
        ``{"sex": {"relationship": {"Husband": "Wife", "Wife": "Husband"}}}``.
    use_rows : bool or "pool", default=True
        Compare each row with everybody's rows and twins. False: with its own twins only. "pool": with its own
        twins and those of the `pool` only, so that the outcome of a row does not depend on the rows beside it.
    max_candidates : int, default=500_000
        Of the candidates shared by all, keep at most so many, spread evenly. A row's own twins are always
        kept. Bounds the memory to about 20 bytes per candidate and encoded column.
    zero_tol : float, default=1e-15
        A move δ costs nothing when d² ≤ zero_tol · ‖δ‖² (times the largest eigenvalue of Σ): it lies in the
        free directions up to rounding (an angle of 3e-8, what a basis learned from data is good for). A move
        that leaves them by more keeps its price, however small.
    block_bytes : int, default=32 MiB
        Bound of one block of distances.
    batch_size : int, default=16384
        Candidates made, and shown to the model, at once.
    pool_rows : int, default=2000
        Of Parquet files: how many people, drawn at random, everybody is compared with.

    Examples
    --------
    A score that adds one for sex, in the second column, where the metric sees the first column only:

    >>> from likewise.auditing.support.finite_dual import solve_dual
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.fair_metrics import FairMetric
    >>> from likewise.models import as_model
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    >>> model = as_model(lambda X: 1 / (1 + np.exp(-X.sum(axis=1))))
    >>> X, y = np.array([[0.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), [0, 1, 1]
    >>> found = CandidateSearch(sensitive=[1]).run(model, X, y, metric=metric)
    >>> worst = solve_dual(found.frontier, eps=0.0)
    >>> round(worst.gap, 3), found.twins(worst.corner).tolist()
    (0.324, [[0.0, 1.0], [0.5, 0.0], [2.0, 0.0]])
    """

    sensitive: Sequence[Hashable] = ()
    edits: Mapping[Any, Sequence[Any]] | None = None
    proxies: Any = "auto"
    use_rows: bool | Literal["pool"] = True
    max_candidates: int = 500_000
    zero_tol: float = 1e-15
    block_bytes: int = 2**25
    batch_size: int = 16_384
    pool_rows: int = 2_000

    def run(
        self, model: Any, X: Any, y: Any, *, metric: Any, domain: Any = None, pool: Any = None
    ) -> CandidateFrontier:
        """Build the frontier of every row.

        Parameters
        ----------
        model : Model
            As `as_model` makes them.
        X : frame, array or tensor of shape (n, p)
            The audited rows: a raw table, or rows in the encoding of the domain.
        y : array of shape (n,)
            Their labels. A twin keeps the label of the row it is compared with.
        metric : FairMetric
        domain : Domain, optional
            Candidates that cannot exist are left out, and columns it calls immutable are the same in a row
            and its candidates.
        pool : like `X`, optional
            More rows to make candidates of, such as the training data.

        Returns
        -------
        CandidateFrontier
        """
        self._check()
        views = Views.of(X, model=model, metric=metric, domain=domain)
        candidates = self.plan(model, X, metric=metric, domain=domain, pool=pool)
        n = check_same_length("audit", X=X, y=y)
        own = candidates.source < n
        shared = np.zeros(len(candidates), dtype=bool)
        if self.use_rows:
            open_to_all = np.flatnonzero(~own) if self.use_rows == "pool" else np.arange(len(candidates))
            spread = np.linspace(0, len(open_to_all) - 1, min(self.max_candidates, len(open_to_all)))
            shared[open_to_all[np.unique(spread.astype(np.int64))]] = True
        wanted = np.flatnonzero(own | shared)
        evaluated, outside = evaluate(views, candidates, wanted, n, self.batch_size)
        audited = _Audited.of(model, evaluated, y, n, metric, self.zero_tol)
        possible = ~np.isin(evaluated.number, outside)
        mine = np.flatnonzero(possible & own[evaluated.number] & (evaluated.number >= n))
        parts = [audited.corners(candidates.source[evaluated.number[mine]], mine)]
        everyone = np.flatnonzero(possible & shared[evaluated.number])
        for task in _tasks(audited, everyone):
            parts += task.corners(audited, self.block_bytes)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        frontier = Frontier.from_points(
            base_loss=audited.base_loss,
            row=columns[0],
            squared_distance=columns[1],
            loss=columns[2],
            candidate=evaluated.number[columns[3].astype(np.int64)],
        )
        places = len(np.unique(evaluated.place[everyone]))
        return CandidateFrontier(frontier, candidates, outside, places)

    def plan(self, model: Any, X: Any, *, metric: Any, domain: Any = None, pool: Any = None) -> Candidates:
        """List the candidates that `run` compares the rows with; nothing is asked of the model.

        Parameters
        ----------
        model, X, metric, domain, pool
            As in `run`.
        """
        views = Views.of(X, model=model, metric=metric, domain=domain)
        people = people_of(X, views.encoder, raw=views.raw, owner="audit")
        if pool is not None:
            people = people.below(people_of(pool, views.encoder, raw=views.raw, owner="audit"))
        return plan_candidates(
            people,
            (self.sensitive,) if isinstance(self.sensitive, str) else self.sensitive,
            edits=self.edits,
            proxies=self.proxies,
            fixed=views.fixed_names(),
        )

    def settled(self, plan: Candidates) -> CandidateSearch:
        """Return the same choices with the values and proxies of a plan, so that other rows cannot change them.

        Parameters
        ----------
        plan : Candidates
            Of a sample of the table.
        """
        return replace(
            self,
            sensitive=tuple(field.name for field in plan.fields),
            edits={field.name: list(field.values) for field in plan.fields} or None,
            proxies=tuple(part.settled() for part in plan.counterparts),
        )

    def _check(self) -> None:
        for name in ("max_candidates", "block_bytes", "batch_size", "pool_rows"):
            check_number(getattr(self, name), owner="CandidateSearch", name=name, low=1)
        check_number(self.zero_tol, owner="CandidateSearch", name="zero_tol", low=0, high=1e-3)
        if not isinstance(self.use_rows, (bool, np.bool_)) and self.use_rows != "pool":
            raise bad_parameter(
                "CandidateSearch", "use_rows", allowed="True, False or 'pool'", got=self.use_rows
            )


Corners = tuple[Ints, Floats, Floats, Ints]


@dataclass(frozen=True, eq=False)
class _Audited:
    """The first n evaluated candidates are the audited rows; every position counts in `evaluated`."""

    model: Any
    evaluated: Evaluated
    target: Any
    base_loss: Floats
    metric: Any
    zero_tol: float

    @classmethod
    def of(cls, model: Any, evaluated: Evaluated, y: Any, n: int, metric: Any, zero_tol: float) -> _Audited:
        target = model.targets(y)
        draft = cls(model, evaluated, target, np.zeros(n), metric, zero_tol)
        rows = np.arange(n)
        return cls(model, evaluated, target, draft.losses(rows, rows), metric, zero_tol)

    def losses(self, rows: Ints, positions: Ints) -> Floats:
        """Loss of candidates under the labels of rows, pair by pair."""
        if not self.model.loss.regression:
            return np.asarray(self.evaluated.scores[positions, self.target[rows]])
        return np.asarray(self.model.loss.losses(self.evaluated.scores[positions], self.target[rows]))

    def squared_distance(self, rows: Ints, positions: Ints) -> Floats:
        """Exact squared fair distance pair by pair, 0 where it is rounding."""
        out = np.empty(len(rows))
        features = self.evaluated.features
        for start in range(0, len(rows), 2**16):
            part = slice(start, start + 2**16)
            out[part] = priced_distance(
                self.metric,
                features[rows[part]],
                features[positions[part]],
                zero_tol=self.zero_tol,
                resolution=self.evaluated.resolution,
            )
        return out

    def corners(self, rows: Ints, positions: Ints) -> Corners:
        """Corners of the frontiers of some rows over some candidates: row, d², loss, position."""
        which, local = np.unique(rows, return_inverse=True)
        if not len(which):
            return rows, np.zeros(0), np.zeros(0), positions
        frontier = Frontier.from_points(
            base_loss=self.base_loss[which],
            row=local,
            squared_distance=self.squared_distance(rows, positions),
            loss=self.losses(rows, positions),
            candidate=positions,
        )
        moved = frontier.candidate >= 0
        return (
            which[frontier.row[moved]],
            frontier.squared_distance[moved],
            frontier.loss[moved],
            frontier.candidate[moved],
        )


@dataclass(frozen=True, eq=False)
class _Task:
    """Rows for which the same order of candidates is the order of falling loss."""

    rows: Ints
    order: Ints  # positions of candidates
    prefix: Ints  # how many of them have a higher loss than each row

    def corners(self, audited: _Audited, block_bytes: int) -> Iterator[Corners]:
        if not self.prefix.any():
            return
        places = audited.evaluated.places
        # Candidates beyond the longest prefix have no row to matter to.
        falling = FallingLoss(places[self.order[: int(self.prefix.max())]])
        for row, which in scan_pairs(places[self.rows], self.prefix, falling, block_bytes=block_bytes):
            yield audited.corners(self.rows[row], self.order[which])


def _tasks(audited: _Audited, everyone: Ints) -> Iterator[_Task]:
    evaluated, n = audited.evaluated, len(audited.base_loss)
    # Sorted once: there may be as many groups as rows where a number may not change.
    rows_of = np.argsort(evaluated.group[:n], kind="stable")
    pool_of = everyone[np.argsort(evaluated.group[everyone], kind="stable")]
    rows_in, pool_in = evaluated.group[rows_of], evaluated.group[pool_of]
    for group in np.unique(rows_in):
        rows = rows_of[np.searchsorted(rows_in, group) : np.searchsorted(rows_in, group, side="right")]
        pool = pool_of[np.searchsorted(pool_in, group) : np.searchsorted(pool_in, group, side="right")]
        if not len(pool):
            continue
        if audited.model.loss.regression:
            yield from _regression_tasks(audited, rows, pool)
            continue
        for label in np.unique(audited.target[rows]):
            mine = rows[audited.target[rows] == label]
            loss = evaluated.scores[pool, label]
            yield _task(audited, mine, pool, loss, audited.base_loss[mine])


def _regression_tasks(audited: _Audited, rows: Ints, pool: Ints) -> Iterator[_Task]:
    prediction, target = audited.evaluated.scores[:, 0], audited.target
    if audited.model.loss.name == "squared":
        # (f − y)² rises with f above y and with −f below: two orders serve all targets.
        error = np.abs(prediction[rows] - target[rows])
        yield _task(audited, rows, pool, prediction[pool], target[rows] + error)
        yield _task(audited, rows, pool, -prediction[pool], -(target[rows] - error))
        return
    for value in np.unique(target[rows]):
        mine = rows[target[rows] == value]
        loss = audited.losses(np.full(len(pool), mine[0]), pool)
        yield _task(audited, mine, pool, loss, audited.base_loss[mine])


def _task(audited: _Audited, rows: Ints, pool: Ints, height: Floats, own: Floats) -> _Task:
    """Order candidates by falling height, the highest of each place only."""
    place = audited.evaluated.place[pool]
    best = np.lexsort((pool, -height, place))
    best = best[np.concatenate([[True], place[best][1:] != place[best][:-1]])]
    best = best[np.lexsort((pool[best], -height[best]))]
    prefix = np.searchsorted(-height[best], -own, side="left").astype(np.int64)
    return _Task(rows, pool[best], prefix)
