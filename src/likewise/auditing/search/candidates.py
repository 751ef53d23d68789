"""The exact audit over a finite set of candidates, for any model at all.

Candidates are the rows of the data, and their twins with sensitive columns edited to all combinations of values. The model
is asked once about each; a candidate's loss depends on nothing but itself and the audited row's label. Distances come in
blocks, and every row keeps its concave frontier, which solves the inner problem for every λ at once (`likewise.auditing.dual`
does the rest).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from likewise.auditing.dual.finite_dual import Frontier
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.editable_rows import Candidates, plan_candidates
from likewise.auditing.people import rows_of
from likewise.auditing.problem import AuditProblem, priced_distance
from likewise.auditing.search.contract import Budget, Found, Search, unfinished
from likewise.core.checks import FloatArray, IntArray, check_number
from likewise.core.errors import bad_parameter
from likewise.core.frames import is_frame
from likewise.core.messages import Message
from likewise.counterfactuals.edits import EditParts, edited_columns, read_edits
from likewise.data.domain import Unbounded

# Candidates that are made, and shown to the model, at once, and people of a pool that are compared at once: they bound the
# memory.
BATCH, SHARD = 16_384, 20_000
# Candidates closer to each other than about this, relative to their distance from the origin, are at one place.
_SAME_PLACE = 2.0**-33


def _fingerprint(values: FloatArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Two 64-bit hashes of each row of numbers."""
    # Adding 0 makes −0 and 0 one number.
    mixed = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    keys = (
        np.random.default_rng(0).integers(2**63, size=(values.shape[1], 2), dtype=np.int64).astype(np.uint64)
    )
    return np.asarray(mixed @ (2 * keys + np.uint64(1)))


def _numbered(key: np.ndarray[Any, np.dtype[np.uint64]]) -> IntArray:
    """Number equal rows of fingerprints alike, from 0."""
    order = np.lexsort((key[:, 1], key[:, 0]))
    first = np.concatenate([[False], (key[order][1:] != key[order][:-1]).any(axis=1)])
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.cumsum(first)
    return number


# Which candidates can matter for a row: none has a higher loss at a smaller distance. All pairs, few
# passes.


_CHUNK = 128  # candidates whose smallest distance is looked at first
_MAX_ROWS = 256  # more rows per block bring no more speed and leave the cache
_TOO_MANY = 512  # pairs per row beyond which float32 is judged too coarse for a block
_FAR = 1e30  # distance of the padding


class FallingLoss:
    """Candidates in falling order of loss, ready for matrix products with rows."""

    def __init__(self, places: FloatArray) -> None:
        self.places, self.size = places, len(places)
        self._columns: dict[Any, Any] = {}

    def columns(self, dtype: Any) -> Any:
        """Return padded rows (b, ‖b‖²), so that one product with (-2a, 1) gives ‖a − b‖² − ‖a‖²."""
        if dtype not in self._columns:
            m, d = self.places.shape
            columns = np.zeros((-(-max(m, 1) // _CHUNK) * _CHUNK, d + 1), dtype=dtype)
            columns[:m, :d] = self.places
            columns[:m, d] = np.einsum("ij,ij->i", columns[:m, :d], columns[:m, :d])
            columns[m:, d] = _FAR
            self._columns[dtype] = columns
        return self._columns[dtype]


def scan_pairs(
    places: FloatArray, prefix: IntArray, candidates: FallingLoss, *, block_bytes: int = 2**25
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the pairs (row, candidate) that may be undominated, block by block of rows."""
    order = np.argsort(-prefix, kind="stable")[: int(np.count_nonzero(prefix))]
    start = 0
    while start < len(order):
        width = -(-int(prefix[order[start]]) // _CHUNK) * _CHUNK
        size = int(np.clip(block_bytes // (4 * width), 1, _MAX_ROWS))
        rows = order[start : start + size]
        start += size
        found, which = _scan_block(places[rows], candidates, width, np.float32)
        if len(found) > _TOO_MANY * len(rows):
            # Clusters far apart leave float32 blind inside them. Half the rows fit in a block of float64.
            for part in np.array_split(np.arange(len(rows)), 2):
                if len(part):
                    found, which = _scan_block(places[rows[part]], candidates, width, np.float64)
                    yield rows[part[found]], which
        else:
            yield rows[found], which


def _scan_block(
    places: FloatArray, candidates: FallingLoss, width: int, dtype: Any
) -> tuple[IntArray, IntArray]:
    n, d = places.shape
    left = np.empty((n, d + 1), dtype=dtype)
    left[:, :d] = places
    norm = np.einsum("ij,ij->i", left[:, :d], left[:, :d], dtype=np.float64)
    left[:, :d] *= -2.0
    left[:, d] = 1.0
    block = left @ candidates.columns(dtype)[:width].T
    # Rounding of a product of d + 1 terms and of its factors, relative to (‖a‖ + ‖b‖)²: Higham, Accuracy and
    # Stability of Numerical Algorithms, section 3.1.
    gamma = (d + 8) * float(np.finfo(dtype).eps)
    found, which = _falls_below(block, norm, gamma)
    real = which < candidates.size
    return found[real], which[real]


def _falls_below(block: Any, norm: FloatArray, gamma: float) -> tuple[IntArray, IntArray]:
    """Entries of each row that are not certain to be above the smallest entry before them."""
    n, width = block.shape
    lowest = np.minimum.reduceat(block, np.arange(0, width, _CHUNK), axis=1)
    before = np.full(lowest.shape, np.inf, dtype=block.dtype)
    np.minimum.accumulate(lowest[:, :-1], axis=1, out=before[:, 1:])
    row, chunk = np.nonzero(lowest <= _limit(before, norm[:, None], gamma))
    part = block.reshape(n, -1, _CHUNK)[row, chunk]
    smallest = np.empty_like(part)
    smallest[:, 0] = before[row, chunk]
    smallest[:, 1:] = part[:, :-1]
    np.minimum.accumulate(smallest, axis=1, out=smallest)
    hit, place = np.nonzero(part <= _limit(smallest, norm[row, None], gamma))
    return row[hit], chunk[hit] * _CHUNK + place


def _limit(smallest: Any, norm: FloatArray, gamma: float) -> Any:
    """Upper bound of a computed entry whose true distance is below the true distance behind `smallest`.

    Both entries are off by at most γ(‖a‖ + ‖b‖)², and ‖b‖ ≤ ‖a‖ + d(a, b).
    """
    distance = np.sqrt(np.maximum(smallest + norm, 0.0))
    return smallest + (2.0 * gamma) * (2.0 * np.sqrt(norm) + distance) ** 2


@dataclass(frozen=True, eq=False)
class CandidateFrontier:
    """What the search found: the frontier of every audited row, and the candidates its corners name."""

    frontier: Frontier
    candidates: Candidates
    outside: IntArray
    places: int
    changed: np.ndarray[Any, np.dtype[np.bool_]]

    def twins(self, corner: Any) -> Any:
        """Return the worst case of each row, as the kind of table the audited rows are."""
        number = self.frontier.candidate[corner]
        return self.candidates.take(np.where(number < 0, np.arange(len(number)), number))


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
    use_rows : bool or "pool", default=True
        Compare each row with everybody's rows and twins. False: with its own twins only. "pool": with its own
        twins and those of a pool of people only, so that the outcome of a row does not depend on the rows beside it.
    max_candidates : int, default=500_000
        Of the candidates shared by all, keep at most so many, spread evenly. A row's own twins are always
        kept. Bounds the memory to about 20 bytes per candidate and encoded column.
    pool_rows : int, default=2000
        Size of the pool: people, drawn at random, whom everybody is compared with.

    Examples
    --------
    A score that adds one for sex, in the second column, where the metric sees the first column only:

    >>> from likewise.auditing.dual.finite_dual import solve_dual
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
    use_rows: bool | Literal["pool"] = True
    max_candidates: int = 500_000
    pool_rows: int = 2_000

    def __post_init__(self) -> None:
        for name in ("max_candidates", "pool_rows"):
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
        return replace(self, use_rows=False)

    @property
    def pool_size(self) -> int:
        """How many people of the table everybody is to be compared with, apart from themselves."""
        return self.pool_rows if self.use_rows == "pool" else 0

    def prepare(self, problem: AuditProblem) -> CandidateSearch:
        """Return the same choices with the values of these people, so that others cannot change them."""
        if self.use_rows is True:  # everybody is here
            return self
        return replace(self, edits=self.plan(problem).settled_edits(self._edits(problem)))

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say who may be a twin."""
        said: list[str] = []
        names = edited_columns(self._edits(problem))
        if names:
            listed = ", ".join(str(name) for name in names)
            said.append(Message("assumption.exchange", columns=listed))
        if self.use_rows == "pool":
            said.append(Message("assumption.pool"))
        elif self.use_rows:
            said.append(Message("assumption.rows"))
        return tuple(said)

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add every candidate that treats somebody worse; the outcome is exact for this finite set."""
        pool = problem.pool if self.use_rows == "pool" else None
        for start in range(0, 1 if pool is None else len(pool), SHARD):
            shard, part = None, slice(start, start + SHARD)
            if pool is not None:
                shard = pool.iloc[part].reset_index(drop=True) if is_frame(pool) else pool[part]
            found = self.search(problem, shard, budget)
            support = support.with_source(found.candidates, found.frontier, found.changed)
            if budget.spent:
                return unfinished(support, Message("reason.candidates_time"))
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
        if domain is None and not hasattr(getattr(metric, "feature_map", None), "encoding_"):
            domain = Unbounded()
        problem = AuditProblem.build(model, X, y, metric=metric, domain=domain, random_state=0)
        own = () if self.edits is None else read_edits(self.edits, owner="CandidateSearch")
        problem = replace(problem, edits=own)
        return self.search(problem, None if pool is None else rows_of(pool, problem.coordinates))

    def search(
        self, problem: AuditProblem, pool: Any = None, budget: Budget | None = None
    ) -> CandidateFrontier:
        """Build the frontier of everybody over their own twins and those of the pool, or of each other.

        When the time is up, what was compared until then counts.
        """
        budget = budget or Budget()
        n, candidates = problem.n, self.plan(problem, pool)
        own = candidates.source < n
        shared = np.zeros(len(candidates), dtype=bool)
        if self.use_rows:
            open_to_all = np.flatnonzero(~own) if self.use_rows == "pool" else np.arange(len(candidates))
            spread = np.linspace(0, len(open_to_all) - 1, min(self.max_candidates, len(open_to_all)))
            shared[open_to_all[np.unique(spread.astype(np.int64))]] = True
        wanted = np.flatnonzero(own | shared)
        asked = _Asked.about(problem, candidates, wanted, budget)
        possible = ~np.isin(asked.number, asked.outside)
        mine = np.flatnonzero(possible & own[asked.number] & (asked.number >= n))
        parts = [asked.corners(candidates.source[asked.number[mine]], mine)]
        everyone = np.flatnonzero(possible & shared[asked.number])
        for rows, order, prefix in asked.tasks(everyone):
            # Candidates beyond the longest prefix have no row to matter to.
            falling = FallingLoss(asked.places[order[: int(prefix.max())]])
            for row, which in scan_pairs(asked.places[rows], prefix, falling):
                parts.append(asked.corners(rows[row], order[which]))
                if budget.spent:
                    break
            if budget.spent:
                break
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if problem.coordinates.model.loss.wants == "decisions":
            sure = asked.decided_otherwise(columns[0], columns[3])
            columns = [column[sure] for column in columns]
        frontier = Frontier.from_points(
            base_loss=problem.base_loss,
            row=columns[0],
            squared_distance=columns[1],
            loss=columns[2],
            candidate=asked.number[columns[3].astype(np.int64)],
        )
        changed = asked.changed(mine, everyone, budget)
        places = len(np.unique(asked.place[everyone]))
        return CandidateFrontier(frontier, candidates, asked.outside, places, changed)

    def plan(self, problem: AuditProblem, pool: Any = None) -> Candidates:
        """List the candidates that `search` compares the people with; nothing is asked of the model."""
        people = problem.editable()
        if pool is not None:
            people = people.below(problem.editable(pool))
        fixed = problem.coordinates.fixed_names()
        return plan_candidates(
            people,
            self._edits(problem),
            fixed=fixed,
            owner="CandidateSearch",
            carry=True,
        )

    def _edits(self, problem: AuditProblem) -> EditParts:
        return problem.edits if self.edits is None else read_edits(self.edits, owner="CandidateSearch")


def _not_unanimous(
    room: IntArray, decided: np.ndarray[Any, Any], n: int, shared: IntArray
) -> tuple[IntArray, IntArray]:
    """Rows in whose room somebody among `shared` is decided differently, and one such for each, or two."""
    if not len(shared):
        return shared, shared
    codes = np.unique(decided[np.concatenate([np.arange(n), shared])].astype(str), return_inverse=True)[1]
    order = np.lexsort((codes[n:], room[shared]))
    rooms = room[shared[order]]
    low = np.searchsorted(rooms, room[:n])
    high = np.searchsorted(rooms, room[:n], side="right")
    met = np.flatnonzero(high > low)
    row, place = np.tile(met, 2), order[np.concatenate([low[met], high[met] - 1])]
    differs = codes[n + place] != codes[row]
    return row[differs], shared[place[differs]]


Corners = tuple[IntArray, FloatArray, FloatArray, IntArray]
# Rows for which one order of candidates (positions) is that of falling loss, and how many of these exceed each row's own.
_Task = tuple[IntArray, IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Candidates that may serve, with all that is needed to compare people with them; the first n are the people.

    Candidates are given by their position among those that were asked about.
    """

    problem: AuditProblem
    candidates: Candidates
    outside: IntArray
    resolution: float
    number: IntArray
    scores: FloatArray
    features: FloatArray
    places: FloatArray
    place: IntArray
    group: IntArray

    @classmethod
    def about(cls, problem: AuditProblem, candidates: Candidates, wanted: IntArray, budget: Budget) -> _Asked:
        """Ask in batches: about the people themselves, and about as many others as there is time for."""
        place, n_rows = problem.coordinates, problem.n
        plain, model = place.metric.without_feature_map(), place.model
        fixed = place.fixed_positions()
        parts: list[tuple[Any, ...]] = []
        centre, resolution, outside = None, 0.0, [np.zeros(0, dtype=np.int64)]
        for start in range(0, len(wanted), BATCH):
            number = wanted[start : start + BATCH]
            if budget.spent and number[0] >= n_rows:
                break
            table = candidates.take(number)
            shown = place.for_model(table)
            scores: Any = model.outputs(shown) if model.loss.regression else model.loss_table(shown)
            rows = place.encoded(table)
            features, eps = place.features(table, rows)
            embedded = plain.embed(features)
            # Distances do not see the centre; rounding is relative to what is left without it.
            centre = embedded.mean(axis=0) if centre is None else centre
            possible = place.possible(rows)
            outside.append(number[~possible])
            keep = possible | (number < n_rows)
            # Places rounded by what two computations of one place may differ; the unit is a power of two that depends on the
            # row alone. Where rounding parts two candidates at one place both are kept, which costs time and changes nothing.
            here = embedded[keep]
            norm = np.sqrt((here**2).sum(axis=1, keepdims=True))
            unit = np.exp2(np.floor(np.log2(np.where(norm > 0, norm, 1.0)))) * _SAME_PLACE
            key, kept = _fingerprint(np.rint(here / unit) * unit), rows[keep][:, fixed]
            answers = np.asarray(scores, dtype=np.float64)[keep]
            parts.append((number[keep], answers, features[keep], here - centre, key, kept))
            resolution = max(resolution, eps)
        number, scores, features, places, key, kept = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        group = _numbered(_fingerprint(kept)) if len(fixed) else np.zeros(len(number), dtype=np.int64)
        about = number, scores, features, places, _numbered(key), group
        return cls(problem, candidates, np.concatenate(outside), resolution, *about)

    def losses(self, rows: IntArray, positions: IntArray) -> FloatArray:
        """Loss of candidates under the labels of rows, pair by pair."""
        loss, target = self.problem.coordinates.model.loss, self.problem.target[rows]
        if not loss.regression:
            return np.asarray(self.scores[positions, target])
        return np.asarray(loss.losses(self.scores[positions], target))

    def squared_distance(self, rows: IntArray, positions: IntArray) -> FloatArray:
        """Exact squared fair distance pair by pair, 0 if it is rounding."""
        out = np.empty(len(rows))
        features, place = self.features, self.problem.coordinates
        metric, exact = place.metric.without_feature_map(), place.metric.feature_map is None
        for start in range(0, len(rows), 2**14):
            part = slice(start, start + 2**14)
            out[part] = priced_distance(
                metric,
                features[rows[part]],
                features[positions[part]],
                resolution=self.resolution,
                exact=exact,
            )
        return out

    def changed(
        self, mine: IntArray, everyone: IntArray, budget: Budget
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether any candidate at no distance from a row is decided differently, row by row."""
        problem, candidates, n = self.problem, self.candidates, self.problem.n
        found = np.zeros(n, dtype=bool)
        if not problem.decides or budget.spent:
            return found
        source = candidates.source[self.number[mine]]
        free = np.flatnonzero(self.squared_distance(source, mine) == 0)
        # Candidates at one place, which agree in what may not change, are at no distance from each other.
        room = self.place * (int(self.group.max(initial=0)) + 1) + self.group
        beside = everyone[np.isin(room[everyone], room[:n]) & (self.number[everyone] >= n)]
        asked = np.unique(np.concatenate([mine[free], beside]))
        decided = np.empty(len(self.number), dtype=object)
        decided[:n] = problem.decisions
        place = problem.coordinates
        for start in range(0, len(asked), BATCH):
            part = asked[start : start + BATCH]
            table = candidates.take(self.number[part])
            decided[part] = place.model.predict(place.for_model(table))
        shared = np.concatenate([everyone[self.number[everyone] < n], beside])
        row, other = _not_unanimous(room, decided, n, shared)
        person, other = np.concatenate([source[free], row]), np.concatenate([mine[free], other])
        found[person[self.decided_otherwise(person, other, decided[other])]] = True
        return found

    def decided_otherwise(
        self, person: IntArray, other: IntArray, decided: Any = None
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether candidates are decided otherwise than people, one for each."""
        place, number = self.problem.coordinates, self.number[other]

        def shown(at: Any) -> Any:
            return place.for_model(self.candidates.take(number[at]))

        if not len(person):
            return np.zeros(0, dtype=bool)
        if decided is None:
            decided = place.model.predict(shown(slice(None)))
        return self.problem.decided_otherwise(decided, person, shown)

    def corners(self, rows: IntArray, positions: IntArray) -> Corners:
        """Corners of the frontiers of some rows over some candidates: row, d², loss, position."""
        which, local = np.unique(rows, return_inverse=True)
        if not len(which):
            return rows, np.zeros(0), np.zeros(0), positions
        frontier = Frontier.from_points(
            base_loss=self.problem.base_loss[which],
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

    def tasks(self, everyone: IntArray) -> Iterator[_Task]:
        """Rows and candidates by what may not change and by label, each candidate where it may matter."""
        problem, n = self.problem, self.problem.n
        # Sorted once: there may be as many groups as rows where a number may not change.
        rows_of = np.argsort(self.group[:n], kind="stable")
        pool_of = everyone[np.argsort(self.group[everyone], kind="stable")]
        rows_in, pool_in = self.group[rows_of], self.group[pool_of]
        for group in np.unique(rows_in):
            rows = rows_of[np.searchsorted(rows_in, group) : np.searchsorted(rows_in, group, side="right")]
            pool = pool_of[np.searchsorted(pool_in, group) : np.searchsorted(pool_in, group, side="right")]
            if not len(pool):
                continue
            if problem.coordinates.model.loss.regression:
                prediction, target = self.scores[:, 0], problem.target
                if problem.coordinates.model.loss.name == "squared":
                    # (f − y)² rises with f above y and with −f below: two orders serve all targets.
                    error = np.abs(prediction[rows] - target[rows])
                    yield self._task(rows, pool, prediction[pool], target[rows] + error)
                    yield self._task(rows, pool, -prediction[pool], -(target[rows] - error))
                    continue
                for value in np.unique(target[rows]):
                    mine = rows[target[rows] == value]
                    loss = self.losses(np.full(len(pool), mine[0]), pool)
                    yield self._task(mine, pool, loss, problem.base_loss[mine])
                continue
            for label in np.unique(problem.target[rows]):
                mine = rows[problem.target[rows] == label]
                loss = self.scores[pool, label]
                yield self._task(mine, pool, loss, problem.base_loss[mine])

    def _task(self, rows: IntArray, pool: IntArray, height: FloatArray, own: FloatArray) -> _Task:
        """Order candidates by falling height, the highest of each place only."""
        place = self.place[pool]
        best = np.lexsort((pool, -height, place))
        best = best[np.concatenate([[True], place[best][1:] != place[best][:-1]])]
        best = best[np.lexsort((pool[best], -height[best]))]
        prefix = np.searchsorted(-height[best], -own, side="left").astype(np.int64)
        return rows, pool[best], prefix
