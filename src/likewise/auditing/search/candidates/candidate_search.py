"""The exact audit over a finite set of candidates, for any model at all (DESIGN: inner search, any model).

Candidates are the rows of the data, their twins with sensitive columns edited to all combinations of values, and
twins whose proxies go along. The model is asked once about each; a candidate's loss depends on nothing but itself
and the audited row's label. Distances come in blocks, and every row keeps its concave frontier, which solves the
inner problem for every λ at once (`likewise.auditing.support` does the rest).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from likewise.auditing.problem.audit_problem import AuditProblem, rows_of
from likewise.auditing.problem.zero_cost import priced_distance
from likewise.auditing.search.candidates.candidate_losses import CandidateLosses, ask_about
from likewise.auditing.search.candidates.candidate_rows import Candidates, plan_candidates
from likewise.auditing.search.candidates.pareto_scan import FallingLoss, scan_pairs
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.auditing.support.supporting_rows import Support
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.frames import is_frame
from likewise.domains import Unbounded
from likewise.evaluation.edits import EditParts, edited_columns, read_edits
from likewise.texts import Said

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
    changed : bool array of shape (n,)
        Whether any candidate at no fair distance, and not only the one with the worst loss, is decided differently.
    """

    frontier: Frontier
    candidates: Candidates
    outside: Ints
    places: int
    changed: np.ndarray[Any, np.dtype[np.bool_]]

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
class CandidateSearch(Search):
    """Choices of the finite-support search.

    Parameters
    ----------
    edits : mapping, Edit, or sequence, optional
        What twins exchange, in the language of `correspondence_study`: ``["sex", Edit("age", (25, 45, 65))]``. A
        column without values takes all combinations of those it has; a number with more than 20 values its
        smallest, largest and quartiles. An `Edit` with consequences adds the twins that carry them, at their fair
        distance. Default: what the audit's metric was told is sensitive, or makes free.
    proxies : "auto", None or mapping, default="auto"
        Whether columns that give a sensitive one away may go along (Husband becomes Wife with the sex). Such
        twins are extra candidates. See `proxy_columns` for the rule, and for the mapping
        ``{"sex": {"relationship": {"Husband": "Wife", "Wife": "Husband"}}}``.
    use_rows : bool or "pool", default=True
        Compare each row with everybody's rows and twins. False: with its own twins only. "pool": with its own
        twins and those of a pool of people only, so that the outcome of a row does not depend on the rows beside it.
    max_candidates : int, default=500_000
        Of the candidates shared by all, keep at most so many, spread evenly. A row's own twins are always
        kept. Bounds the memory to about 20 bytes per candidate and encoded column.
    block_bytes : int, default=32 MiB
        Bound of one block of distances.
    batch_size : int, default=16384
        Candidates made, and shown to the model, at once.
    pool_rows : int, default=2000
        Size of the pool: people, drawn at random, whom everybody is compared with.
    shard_rows : int, default=20000
        People of the pool that are compared at once: memory is bounded by the largest shard.

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
    >>> found = CandidateSearch(edits=[1]).run(model, X, y, metric=metric)
    >>> worst = solve_dual(found.frontier, eps=0.0)
    >>> round(worst.gap, 3), found.twins(worst.corner).tolist()
    (0.324, [[0.0, 1.0], [0.5, 0.0], [2.0, 0.0]])
    """

    name: ClassVar[str] = "candidates"

    edits: Any = None
    proxies: Any = "auto"
    use_rows: bool | Literal["pool"] = True
    max_candidates: int = 500_000
    block_bytes: int = 2**25
    batch_size: int = 16_384
    pool_rows: int = 2_000
    shard_rows: int = 20_000

    def __post_init__(self) -> None:
        for name in ("max_candidates", "block_bytes", "batch_size", "pool_rows", "shard_rows"):
            check_number(getattr(self, name), owner="CandidateSearch", name=name, low=1)
        if not isinstance(self.use_rows, (bool, np.bool_)) and self.use_rows != "pool":
            raise bad_parameter(
                "CandidateSearch", "use_rows", allowed="True, False or 'pool'", got=self.use_rows
            )

    # ---- the contract of a search ----------------------------------------------------------------------

    def for_parts(self) -> CandidateSearch:
        """Return this search with a pool in place of everybody."""
        return replace(self, use_rows="pool") if self.use_rows is True else self

    def own_twins(self) -> CandidateSearch:
        """Return this search with everybody's own twins only, so that nobody else's row has a say in what is found."""
        return replace(self, use_rows=False, proxies=None if self.proxies == "auto" else self.proxies)

    @property
    def pool_size(self) -> int:
        """How many people of the table everybody is to be compared with, apart from themselves."""
        return self.pool_rows if self.use_rows == "pool" else 0

    def prepare(self, problem: AuditProblem) -> CandidateSearch:
        """Return the same choices with the values and proxies of these people, so that others cannot change them."""
        if self.use_rows is True:  # everybody is here
            return self
        plan = self.plan(problem)
        proxies = tuple(part.settled() for part in plan.counterparts)
        return replace(self, edits=plan.settled_edits(self._edits(problem)), proxies=proxies)

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say who may be a twin."""
        said: list[str] = []
        names = edited_columns(self._edits(problem))
        if names:
            listed = ", ".join(str(name) for name in names)
            key = "assumption.exchange" if self.proxies is None else "assumption.exchange_along"
            said.append(Said(key, columns=listed))
        if self.use_rows == "pool":
            said.append(Said("assumption.pool"))
        elif self.use_rows:
            said.append(Said("assumption.rows"))
        return tuple(said)

    def improve(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add every candidate that treats somebody worse; the outcome is exact for this finite set."""
        for shard in _shards(problem.pool, self.shard_rows) if self.use_rows == "pool" else (None,):
            found = self.search(problem, shard)
            support = support.with_source(found.candidates, found.frontier, found.changed)
        return Found(support)

    # ---- the search ------------------------------------------------------------------------------------

    def run(
        self, model: Any, X: Any, y: Any, *, metric: Any, domain: Any = None, pool: Any = None
    ) -> CandidateFrontier:
        """Build the frontier of every row, outside of an audit.

        Parameters
        ----------
        model, X, y, metric
            As in `audit`. A twin keeps the label of the row it is compared with.
        domain : Domain, optional
            Candidates that cannot exist are left out, and columns it calls immutable are the same in a row
            and its candidates. Default: anything may exist.
        pool : like `X`, optional
            More rows to make candidates of, such as the training data.

        Returns
        -------
        CandidateFrontier
        """
        problem = AuditProblem.build(
            model, X, y, metric=metric, domain=_domain_or_any(domain, metric), random_state=0
        )
        own = () if self.edits is None else read_edits(self.edits, owner="CandidateSearch")
        problem = replace(problem, edits=own)
        return self.search(problem, None if pool is None else rows_of(pool, problem.coordinates))

    def search(self, problem: AuditProblem, pool: Any = None) -> CandidateFrontier:
        """Build the frontier of everybody over their own twins and those of the pool, or of each other."""
        n, candidates = problem.n, self.plan(problem, pool)
        own = candidates.source < n
        shared = np.zeros(len(candidates), dtype=bool)
        if self.use_rows:
            open_to_all = np.flatnonzero(~own) if self.use_rows == "pool" else np.arange(len(candidates))
            spread = np.linspace(0, len(open_to_all) - 1, min(self.max_candidates, len(open_to_all)))
            shared[open_to_all[np.unique(spread.astype(np.int64))]] = True
        wanted = np.flatnonzero(own | shared)
        losses, outside = ask_about(problem.coordinates, candidates, wanted, n, self.batch_size)
        audited = _Audited(problem, losses)
        possible = ~np.isin(losses.number, outside)
        mine = np.flatnonzero(possible & own[losses.number] & (losses.number >= n))
        parts = [audited.corners(candidates.source[losses.number[mine]], mine)]
        everyone = np.flatnonzero(possible & shared[losses.number])
        for task in _tasks(audited, everyone):
            parts += task.corners(audited, self.block_bytes)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        frontier = Frontier.from_points(
            base_loss=problem.base_loss,
            row=columns[0],
            squared_distance=columns[1],
            loss=columns[2],
            candidate=losses.number[columns[3].astype(np.int64)],
        )
        changed = audited.changed(candidates, mine, everyone, self.batch_size)
        places = len(np.unique(losses.place[everyone]))
        return CandidateFrontier(frontier, candidates, outside, places, changed)

    def plan(self, problem: AuditProblem, pool: Any = None) -> Candidates:
        """List the candidates that `search` compares the people with; nothing is asked of the model."""
        people = problem.editable()
        if pool is not None:
            people = people.below(problem.editable(pool))
        fixed = problem.coordinates.fixed_names()
        return plan_candidates(
            people,
            self._edits(problem),
            proxies=self.proxies,
            fixed=fixed,
            owner="CandidateSearch",
            carry=True,
        )

    def _edits(self, problem: AuditProblem) -> EditParts:
        return problem.edits if self.edits is None else read_edits(self.edits, owner="CandidateSearch")


def _domain_or_any(domain: Any, metric: Any) -> Any:
    known = getattr(metric, "feature_map", None)
    if domain is not None or hasattr(known, "encoding_"):
        return domain
    return Unbounded()


def _shards(pool: Any, rows: int) -> Iterator[Any]:
    if pool is None:
        yield None
        return
    for start in range(0, len(pool), rows):
        part = slice(start, start + rows)
        yield pool.iloc[part].reset_index(drop=True) if is_frame(pool) else pool[part]


Corners = tuple[Ints, Floats, Floats, Ints]


@dataclass(frozen=True, eq=False)
class _Audited:
    """The first n candidates are the audited rows; every position counts in `evaluated`."""

    problem: AuditProblem
    evaluated: CandidateLosses

    @property
    def model(self) -> Any:
        return self.problem.coordinates.model

    @property
    def target(self) -> Any:
        return self.problem.target

    @property
    def base_loss(self) -> Floats:
        return self.problem.base_loss

    def losses(self, rows: Ints, positions: Ints) -> Floats:
        """Loss of candidates under the labels of rows, pair by pair."""
        if not self.model.loss.regression:
            return np.asarray(self.evaluated.scores[positions, self.target[rows]])
        return np.asarray(self.model.loss.losses(self.evaluated.scores[positions], self.target[rows]))

    def squared_distance(self, rows: Ints, positions: Ints) -> Floats:
        """Exact squared fair distance pair by pair, 0 where it is rounding."""
        out = np.empty(len(rows))
        features, place = self.evaluated.features, self.problem.coordinates
        metric, exact = place.metric.without_feature_map(), place.metric.feature_map is None
        for start in range(0, len(rows), 2**14):
            part = slice(start, start + 2**14)
            out[part] = priced_distance(
                metric,
                features[rows[part]],
                features[positions[part]],
                resolution=self.evaluated.resolution,
                exact=exact,
            )
        return out

    def changed(
        self, candidates: Candidates, mine: Ints, everyone: Ints, batch_size: int
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether any candidate at no distance from a row is decided differently, row by row."""
        problem, evaluated, n = self.problem, self.evaluated, self.problem.n
        found = np.zeros(n, dtype=bool)
        if not problem.decides:
            return found
        source = candidates.source[evaluated.number[mine]]
        free = np.flatnonzero(self.squared_distance(source, mine) == 0)
        # Candidates at one place, which agree in what may not change, are at no distance from each other.
        room = evaluated.place * (int(evaluated.group.max(initial=0)) + 1) + evaluated.group
        beside = everyone[np.isin(room[everyone], room[:n]) & (evaluated.number[everyone] >= n)]
        asked = np.unique(np.concatenate([mine[free], beside]))
        decided = np.empty(len(evaluated.number), dtype=object)
        decided[:n] = problem.decisions
        place = problem.coordinates
        for start in range(0, len(asked), batch_size):
            part = asked[start : start + batch_size]
            table = candidates.take(evaluated.number[part])
            decided[part] = place.model.predict(place.for_model(table))
        differs = decided[mine[free]] != decided[source[free]]
        found[source[free[differs]]] = True
        shared = np.concatenate([everyone[evaluated.number[everyone] < n], beside])
        return np.asarray(found | _not_unanimous(room, decided, n, shared))

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
    evaluated, n = audited.evaluated, audited.problem.n
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


def _not_unanimous(
    room: Ints, decided: np.ndarray[Any, Any], n: int, shared: Ints
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether somebody among `shared` who is in a row's room is decided differently from the row."""
    if not len(shared):
        return np.zeros(n, dtype=bool)
    used = np.concatenate([np.arange(n), shared])
    codes = np.unique(decided[used].astype(str), return_inverse=True)[1]
    rooms, where = np.unique(room[used], return_inverse=True)
    lowest = np.full(len(rooms), np.iinfo(np.int64).max)
    highest = np.full(len(rooms), -1)
    np.minimum.at(lowest, where[n:], codes[n:])
    np.maximum.at(highest, where[n:], codes[n:])
    met = highest[where[:n]] >= 0
    return np.asarray(met & ((lowest[where[:n]] != codes[:n]) | (highest[where[:n]] != codes[:n])))
