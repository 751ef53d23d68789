"""The auditor's dual (paper, equation 4) on a finite support, solved exactly and for every ε at once.

On a `Frontier` the dual ``V(ε) = min_λ λε + mean_i max_j (loss_ij − λ d²_ij)`` is piecewise linear and convex
in λ. Its primal is a fractional knapsack: every step from one corner of a row to the next costs transport and
gains loss, the gain per transport falls along a row, and the best use of the budget ε takes the steps by
falling gain per transport. One sort therefore gives V(ε) for all ε, the λ* of each and the worst-case map.

For one row the inner problem of the paper's equation 5 over a finite set of candidates is ``max_j loss_j − λ d²_j``. Whatever
λ ≥ 0 is, only corners of the upper concave frontier of the points (d²_j, loss_j) can attain it, so keeping those few corners
solves the inner problem for every λ at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.core.exact_sum import Moments


@dataclass(frozen=True, eq=False)
class Frontier:
    """The frontier of every row, in compressed rows: the corners of the upper concave envelope of its (d², ℓ).

    Make one with `from_points`; the constructor takes arrays that are in order already.

    Parameters
    ----------
    indptr : int array of shape (n + 1,)
        The corners of row i are ``indptr[i]:indptr[i + 1]``, by rising distance and rising loss.
    squared_distance, loss : float arrays of shape (k,)
        Where each corner lies. The first corner of a row is the row itself: distance 0 and its own loss. A
        second corner at distance 0 is a twin that costs nothing.
    candidate : int array of shape (k,)
        Which candidate attains the corner; -1 is the row itself.

    Examples
    --------
    Two people: the second can be moved for nothing, and further at a price.

    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.5, 0.2], row=[1, 1, 1], squared_distance=[0.0, 1.0, 2.0], loss=[0.3, 0.4, 0.9],
    ...     candidate=[7, 8, 9],
    ... )
    >>> frontier.indptr.tolist(), frontier.candidate.tolist()
    ([0, 1, 4], [-1, -1, 7, 9])
    >>> frontier.conjugate(0.1)
    array([0.5, 0.7])
    """

    indptr: IntArray
    squared_distance: FloatArray
    loss: FloatArray
    candidate: IntArray

    @classmethod
    def from_points(
        cls, *, base_loss: Any, row: Any, squared_distance: Any, loss: Any, candidate: Any
    ) -> Frontier:
        """Keep the corners among any number of points per row, in any order.

        Parameters
        ----------
        base_loss : array of shape (n,)
            The loss of each row where it stands.
        row : int array of shape (k,)
            The row each point belongs to. A row may have no point.
        squared_distance, loss, candidate : arrays of shape (k,)
            The points. Between points that are equal the one that came first is kept.

        Returns
        -------
        Frontier

        Examples
        --------
        >>> Frontier.from_points(
        ...     base_loss=[1.0], row=[0], squared_distance=[1.0], loss=[0.5], candidate=[0]
        ... ).loss
        array([1.])
        """
        base = np.asarray(base_loss, dtype=np.float64)
        rows = np.asarray(row, dtype=np.int64)
        distance = np.asarray(squared_distance, dtype=np.float64)
        losses = np.asarray(loss, dtype=np.float64)
        names = np.asarray(candidate, dtype=np.int64)
        _check_points(base, rows, distance, losses, names)
        worse = np.flatnonzero(losses > base[rows])
        rows, distance, losses, names = rows[worse], distance[worse], losses[worse], names[worse]
        keep = _undominated(rows, distance, losses)
        rows = np.concatenate([np.arange(len(base)), rows[keep]])
        distance = np.concatenate([np.zeros(len(base)), distance[keep]])
        losses = np.concatenate([base, losses[keep]])
        names = np.concatenate([np.full(len(base), -1), names[keep]])
        # Stable: a row's own point goes before a twin at no distance, whose loss is higher.
        order = np.lexsort((losses, distance, rows))
        corners = order[_concave_corners(rows[order], distance[order], losses[order])]
        indptr = np.searchsorted(rows[corners], np.arange(len(base) + 1)).astype(np.int64)
        return cls(indptr, distance[corners], losses[corners], names[corners])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def base_loss(self) -> FloatArray:
        """Loss of each row where it stands, shape (n,)."""
        return np.asarray(self.loss[self.indptr[:-1]])

    @property
    def row(self) -> IntArray:
        """The row each corner belongs to, shape (k,)."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def conjugate(self, lam: float) -> FloatArray:
        """Return ``max_j loss_j − λ d²_j`` of each row, shape (n,): the paper's ℓ^c_λ on this support.

        Examples
        --------
        >>> f = Frontier.from_points(
        ...     base_loss=[0.0], row=[0], squared_distance=[2.0], loss=[3.0], candidate=[0]
        ... )
        >>> f.conjugate(1.0), f.conjugate(9.0)
        (array([1.]), array([0.]))
        """
        return np.asarray(np.maximum.reduceat(self.loss - lam * self.squared_distance, self.indptr[:-1]))

    def worst_at_no_distance(self) -> FloatArray:
        """Return the highest loss of each row at distance 0, its own included, shape (n,).

        Examples
        --------
        >>> f = Frontier.from_points(
        ...     base_loss=[0.0], row=[0, 0], squared_distance=[0.0, 2.0], loss=[1.0, 3.0], candidate=[0, 1]
        ... )
        >>> f.worst_at_no_distance()
        array([1.])
        """
        here = np.where(self.squared_distance == 0, self.loss, -np.inf)
        return np.asarray(np.maximum.reduceat(here, self.indptr[:-1]))

    def gains(self, lam: float) -> FloatArray:
        """Return ℓ^c_λ − ℓ of each row, shape (n,); λ = inf leaves the moves that cost nothing."""
        top = self.worst_at_no_distance() if lam == np.inf else self.conjugate(lam)
        return np.asarray(top - self.base_loss)

    def best(self, lam: float) -> IntArray:
        """Return the corner where each row attains its `conjugate`, shape (n,); of equals the nearest.

        This is the unfair map T_λ (paper, equation 6): use it on `candidate`, `loss`, `squared_distance`.

        Examples
        --------
        >>> f = Frontier.from_points(
        ...     base_loss=[0.0], row=[0], squared_distance=[2.0], loss=[3.0], candidate=[4]
        ... )
        >>> f.candidate[f.best(1.0)], f.candidate[f.best(9.0)]
        (array([4]), array([-1]))
        """
        top = self.conjugate(lam)
        hits = np.flatnonzero(self.loss - lam * self.squared_distance == np.repeat(top, np.diff(self.indptr)))
        # Corners rise strictly, so the first corner that attains the top is the nearest of the equals.
        return np.asarray(hits[np.searchsorted(hits, self.indptr[:-1])], dtype=np.int64)

    def corners(self, taken: IntArray) -> IntArray:
        """Return the corner of each row after so many steps; its last one if rounding took a step away."""
        return np.asarray(np.minimum(self.indptr[:-1] + taken, self.indptr[1:] - 1))

    def take(self, rows: Any) -> Frontier:
        """Return the frontier of some rows (numbers, a mask or a slice), in the order asked for.

        Examples
        --------
        >>> f = Frontier.from_points(
        ...     base_loss=[0.0, 1.0], row=[], squared_distance=[], loss=[], candidate=[]
        ... )
        >>> f.take([1]).base_loss
        array([1.])
        """
        chosen = np.arange(self.n_rows)[rows if isinstance(rows, slice) else np.asarray(rows)]
        counts = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        points = np.repeat(self.indptr[:-1][chosen] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Frontier(indptr, self.squared_distance[points], self.loss[points], self.candidate[points])

    @staticmethod
    def stack(parts: Sequence[Frontier]) -> Frontier:
        """Put frontiers of different rows one below the other, for audits that go chunk by chunk."""
        if not parts:
            raise InputError("Frontier.stack: 'parts' is empty. Pass at least one frontier.")
        sizes = np.cumsum([0, *(part.indptr[-1] for part in parts)])
        indptr = [part.indptr[1:] + start for part, start in zip(parts, sizes, strict=False)]
        return Frontier(
            np.concatenate([np.zeros(1, dtype=np.int64), *indptr]),
            np.concatenate([part.squared_distance for part in parts]),
            np.concatenate([part.loss for part in parts]),
            np.concatenate([part.candidate for part in parts]),
        )

    def merge(self, other: Frontier, *, offset: int = 0) -> Frontier:
        """Return the frontier over the candidates of both, for the same rows.

        Parameters
        ----------
        other : Frontier
            Of the same rows with the same own losses, over other candidates.
        offset : int, default=0
            Added to the other's candidate numbers, where it counts from a table of its own.

        Returns
        -------
        Frontier

        Examples
        --------
        >>> a, b = (
        ...     Frontier.from_points(base_loss=[0.0], row=[0], squared_distance=[1.0], loss=[l], candidate=[0])
        ...     for l in (2.0, 3.0)
        ... )
        >>> a.merge(b, offset=10).candidate
        array([-1, 10])
        """
        if self.n_rows != other.n_rows or not np.array_equal(self.base_loss, other.base_loss):
            raise InputError(
                "Frontier.merge: the two frontiers are not of the same rows (their own losses differ). "
                "Build both from the same rows, labels and model."
            )
        moves = [self.candidate >= 0, other.candidate >= 0]
        pairs = list(zip((self, other), moves, strict=True))
        return Frontier.from_points(
            base_loss=self.base_loss,
            row=np.concatenate([part.row[move] for part, move in pairs]),
            squared_distance=np.concatenate([part.squared_distance[move] for part, move in pairs]),
            loss=np.concatenate([part.loss[move] for part, move in pairs]),
            candidate=np.concatenate([self.candidate[moves[0]], other.candidate[moves[1]] + offset]),
        )


def _check_points(
    base: FloatArray, rows: IntArray, distance: FloatArray, losses: FloatArray, names: IntArray
) -> None:
    if base.ndim != 1 or not base.size:
        raise InputError("Frontier: 'base_loss' is empty. Pass at least one row.")
    if not (rows.shape == distance.shape == losses.shape == names.shape and rows.ndim == 1):
        raise InputError(
            "Frontier: 'row', 'squared_distance', 'loss' and 'candidate' must be one-dimensional and equally "
            f"long, got shapes {rows.shape}, {distance.shape}, {losses.shape}, {names.shape}."
        )
    if rows.size and (rows.min() < 0 or rows.max() >= len(base)):
        raise InputError(f"Frontier: 'row' must be between 0 and {len(base) - 1}.")
    if not (np.isfinite(base).all() and np.isfinite(losses).all()):
        raise ModelError(
            "Frontier: some losses are not finite, so no worst case can be told from them. "
            "Check the model's outputs on the audited rows and their twins."
        )
    if distance.size and not (np.isfinite(distance).all() and distance.min() >= 0):
        raise InputError("Frontier: 'squared_distance' must be finite and not negative.")


def _undominated(rows: IntArray, distance: FloatArray, losses: FloatArray) -> IntArray:
    """Points that no other point of their row beats: none has at least the loss at no more distance."""
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((distance, -losses, rows))
    # Scanning from the highest loss down, a point stands out where the distance falls below all before it.
    # Ranks, shifted so that a later row ranks below every earlier one, make one pass over all rows exact.
    rank = np.unique(distance[order], return_inverse=True)[1].astype(np.int64)
    rank += (rows[order[-1]] - rows[order]) * (int(rank.max()) + 1)
    lowest = np.minimum.accumulate(rank)
    stands_out = np.concatenate([[True], rank[1:] < lowest[:-1]])
    return np.asarray(order[stands_out], dtype=np.int64)


def _concave_corners(rows: IntArray, distance: FloatArray, losses: FloatArray) -> IntArray:
    """Corners of the concave frontier of points sorted by row, distance and loss (both strictly rising).

    A point on or below the chord of any two others is not a corner, so all such points of all rows go at once;
    rows that lost none are done (what is concave at every point is concave), the others are looked at again.
    """
    active, done = np.arange(len(rows)), []
    while len(active):
        r, d, f = rows[active], distance[active], losses[active]
        inner = (r[:-2] == r[1:-1]) & (r[1:-1] == r[2:])
        below = (d[1:-1] - d[:-2]) * (f[2:] - f[:-2]) >= (f[1:-1] - f[:-2]) * (d[2:] - d[:-2])
        drop = np.zeros(len(active), dtype=bool)
        drop[1:-1] = inner & below
        again = np.isin(r, r[drop])
        done.append(active[~again])
        active = active[again & ~drop]
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *done]))


# Steps from corner to corner of everybody's frontier: what each costs, and what it gains per transport.


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps, whose they are, and what they gain per transport (inf: they cost nothing)."""

    row: IntArray
    transport: FloatArray
    gain: FloatArray
    slope: FloatArray

    def goes(self, lam: float, before: int = 0) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each step is taken at λ: those that gain more than λ per transport, and the free ones always.

        Steps that gain just λ are taken by the rows before number `before`.
        """
        tied = (self.slope == lam) & (self.row < before)
        return np.asarray((self.slope > lam) | np.isinf(self.slope) | tied)

    def taken(self, lam: float, n_rows: int, before: int = 0) -> IntArray:
        """How many steps each row takes at λ."""
        return np.bincount(self.row[self.goes(lam, before)], minlength=n_rows)

    def until(self, lam: float, room: float) -> tuple[int, float]:
        """Take the steps that gain just λ in the order of the rows, until their transport is more than `room`.

        Return the row at which that happens, one beyond the last if it does not, and the transport of them all.
        """
        tied = np.flatnonzero(self.slope == lam)
        cost = np.cumsum(self.transport[tied])
        over = tied[np.searchsorted(cost, room, side="right") :]
        if len(over):
            return int(self.row[over[0]]), float(cost[-1])
        return int(self.row.max(initial=-1)) + 1, float(cost[-1]) if len(cost) else 0.0


def steps_of(frontier: Frontier) -> Steps:
    """Return the steps of all rows."""
    row = frontier.row
    step = np.flatnonzero(row[1:] == row[:-1]) if len(row) else np.zeros(0, dtype=np.int64)
    transport = frontier.squared_distance[step + 1] - frontier.squared_distance[step]
    gain = frontier.loss[step + 1] - frontier.loss[step]
    free = transport <= 0
    with np.errstate(divide="ignore", over="ignore"):
        slope = gain / np.where(free, 1.0, transport)
    # Infinite is the slope of what costs nothing, and of nothing else.
    slope = np.where(free, np.inf, np.minimum(slope, np.finfo(float).max))
    return Steps(row[step], transport, gain, slope)


# The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints.


@dataclass(frozen=True, eq=False)
class DualCurve:
    """The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints."""

    base_loss: float
    eps: FloatArray
    values: FloatArray
    slopes: FloatArray

    def value(self, eps: Any) -> Any:
        """Return V(ε) of one ε or of an array of them; ε = inf is allowed."""
        budget = check_eps(eps, "DualCurve.value")
        return _like_input(np.interp(budget, self.eps, self.values), eps)

    def gap(self, eps: Any) -> Any:
        """Return V(ε) − mean loss: what the worst case adds at budget ε."""
        budget = check_eps(eps, "DualCurve.gap")
        return _like_input(np.interp(budget, self.eps, self.values) - self.base_loss, eps)

    def lambda_(self, eps: Any) -> Any:
        """Return λ*: the smallest minimiser of the dual at ε, which is the slope of V to the right of ε."""
        budget = check_eps(eps, "DualCurve.lambda_")
        index = np.searchsorted(self.eps, budget, side="right") - 1
        return _like_input(np.append(self.slopes, 0.0)[index], eps)

    def eps_for_gap(self, delta: float) -> float:
        """Return the smallest budget ε whose gap reaches `delta`; inf if no budget does."""
        gaps = self.values - self.base_loss
        if not np.isfinite(delta):
            raise bad_parameter("DualCurve.eps_for_gap", "delta", allowed="a finite number", got=delta)
        k = int(np.searchsorted(gaps, delta, side="left"))
        if k == 0:
            return 0.0
        if k == len(gaps):
            return float("inf")
        return float(min(self.eps[k - 1] + (delta - gaps[k - 1]) / self.slopes[k - 1], self.eps[k]))

    def thin(self, n_points: int = 200) -> DualCurve:
        """Return a curve through at most `n_points` of the breakpoints, for plots and files.

        The points are spread evenly along the curve, and the first and the last are kept. Between them the
        thinned curve is a chord, so it never lies above V.
        """
        if n_points < 2:
            raise bad_parameter("DualCurve.thin", "n_points", allowed="at least 2", got=n_points)
        if len(self.eps) <= n_points:
            return self
        length = self.eps / self.eps[-1] + (self.values - self.values[0]) / np.ptp(self.values)
        marks = np.linspace(0.0, length[-1], n_points)
        index = np.unique(np.clip(np.searchsorted(length, marks), 0, len(length) - 1))
        eps, values = self.eps[index], self.values[index]
        return DualCurve(self.base_loss, eps, values, np.diff(values) / np.diff(eps))


def check_eps(eps: Any, owner: str) -> FloatArray:
    """Return budgets as an array, or raise an error where one is negative or no number."""
    try:
        budget = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad_parameter(owner, "eps", allowed="a number >= 0", got=eps) from error
    if not (budget >= 0).all():
        raise bad_parameter(owner, "eps", allowed="a number >= 0 (inf is allowed)", got=eps)
    return budget


def _like_input(result: Any, given: Any) -> Any:
    return float(result) if np.ndim(given) == 0 else np.asarray(result)


# The steps of all people by their gain per transport, in bins where there are too many: what V(ε) needs.


# Bits of a float64's mantissa: with all of them every slope has a bin of its own.
ALL_BITS = 52
_CRUMB = 1e-9
_FIELDS = ("low", "high", "transport", "gain", "count")


@dataclass(frozen=True, eq=False)
class BinnedSteps:
    """Steps that cost something, or their sums in bins of their slope."""

    bits: int
    low: FloatArray
    high: FloatArray
    transport: FloatArray
    gain: FloatArray
    count: IntArray

    @classmethod
    def of(cls, steps: Steps, *, bits: int = ALL_BITS, low: float = 0.0, high: float = np.inf) -> BinnedSteps:
        """Take the steps that cost something and whose slope lies between `low` and `high`, both included."""
        priced = np.isfinite(steps.slope) & (steps.transport > 0)
        chosen = np.flatnonzero(priced & (steps.slope >= low) & (steps.slope <= high))
        slope = steps.slope[chosen]
        ones = np.ones(len(chosen), dtype=np.int64)
        listed = cls(bits, slope, slope, steps.transport[chosen], steps.gain[chosen], ones)
        return listed if bits == ALL_BITS else listed.summed()

    def summed(self) -> BinnedSteps:
        """Return the bins by falling slope, each once."""
        # The bits of positive floats are ordered as the floats are.
        key = self.high.view(np.int64) >> (ALL_BITS - self.bits)
        order = np.argsort(-key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] + 1)) if len(key) else order

        def added(values: Any, how: Any = np.add) -> Any:
            return how.reduceat(values[order], first) if len(first) else values

        return BinnedSteps(
            self.bits,
            added(self.low, np.minimum),
            added(self.high, np.maximum),
            added(self.transport),
            added(self.gain),
            added(self.count),
        )

    def __len__(self) -> int:
        return len(self.high)

    def merge(self, other: BinnedSteps) -> BinnedSteps:
        """Return the steps of both, which must have the same bits."""
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in _FIELDS)
        listed = BinnedSteps(self.bits, *both)
        return listed if self.bits == ALL_BITS else listed.summed()

    def refined(self, k: int, finer: BinnedSteps) -> BinnedSteps:
        """Return the bins with bin k replaced by the finer bins of the same steps; none is added up any more."""
        fine = finer.summed()
        columns = [
            np.concatenate([getattr(self, name)[:k], getattr(fine, name), getattr(self, name)[k + 1 :]])
            for name in _FIELDS
        ]
        return BinnedSteps(ALL_BITS, *columns)

    def bin_at(self, eps: float, n: float) -> int | None:
        """Return the bin in which the budget of n rows ends, None if it is more than all of them need."""
        k = int(np.searchsorted(np.cumsum(self.transport) / n, eps, side="right"))
        return k if k < len(self) else None

    def room(self, eps: float, n: float) -> tuple[float, bool]:
        """Return the budget left when everything worth more than λ* is taken, and whether a step worth λ* may fit in it."""
        bins = self.summed()
        at = bins.bin_at(eps, n)
        if at is None or eps == 0:
            return 0.0, False
        # Sums in another order differ in their last digits; a step that just fits must fit whatever the order.
        room = eps * n * (1.0 + _CRUMB) - float(np.sum(bins.transport[:at]))
        return room, bool(bins.count[at] > 1 or bins.transport[at] <= room)

    def curve(self, *, n: float, base: float, free: float) -> DualCurve:
        """Return ε ↦ V(ε) of people whose mass is n."""
        bins = self.summed()
        eps = np.concatenate([[0.0], np.cumsum(bins.transport) / n])
        values = base + free + np.concatenate([[0.0], np.cumsum(bins.gain) / n])
        with np.errstate(over="ignore"):
            slopes = np.clip(bins.gain / bins.transport, bins.low, bins.high)
        return DualCurve(base, eps, values, slopes)


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The worst case at one budget ε: its value, λ*, and the corner of its frontier where every row goes.

    Steps that are worth just λ* are taken in the order of the rows. Of the first row whose step does not fit any more a
    fraction takes it: `value` and `transport` include that fraction, `corner` does not.
    """

    eps: float
    value: float
    base_loss: float
    lambda_: float
    transport: float
    corner: IntArray

    @property
    def gap(self) -> float:
        """V(ε) − mean loss."""
        return self.value - self.base_loss


def dual_curve(frontier: Frontier, steps: BinnedSteps | None = None) -> DualCurve:
    """Return the exact curve ε ↦ V(ε) over the frontier's support; its steps may be known already.

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[1.0], row=[0, 0], squared_distance=[0.0, 4.0], loss=[2.0, 3.0], candidate=[0, 1]
    ... )
    >>> dual_curve(frontier).gap([0.0, 2.0, np.inf])
    array([1. , 1.5, 2. ])
    """
    base, free = (Moments.of(part).mean for part in (frontier.base_loss, frontier.gains(np.inf)))
    steps = BinnedSteps.of(steps_of(frontier)) if steps is None else steps
    return steps.curve(n=frontier.n_rows, base=base, free=free)


def solve_dual(frontier: Frontier, eps: float) -> DualSolution:
    """Solve the auditor's problem exactly at one budget (paper, equations 3–6).

    Parameters
    ----------
    frontier : Frontier
        Of n rows.
    eps : float
        Budget ε ≥ 0 of mean squared fair distance; 0 allows only moves that cost nothing, inf any move.

    Returns
    -------
    DualSolution

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[1.0], row=[0, 0], squared_distance=[0.0, 4.0], loss=[2.0, 3.0], candidate=[0, 1]
    ... )
    >>> solve_dual(frontier, 0.0).gap, solve_dual(frontier, float("inf")).transport
    (1.0, 4.0)
    """
    budget, steps = float(check_eps(eps, "solve_dual")), steps_of(frontier)
    priced = BinnedSteps.of(steps)
    curve = dual_curve(frontier, priced)
    lam = float(curve.lambda_(budget))
    before, _ = steps.until(lam, priced.room(budget, frontier.n_rows)[0])
    return DualSolution(
        eps=budget,
        value=float(curve.value(budget)),
        base_loss=curve.base_loss,
        lambda_=lam,
        transport=min(budget, float(curve.eps[-1])),
        corner=frontier.corners(steps.taken(lam, frontier.n_rows, before)),
    )
