"""What each person can lose at which fair distance: the upper concave frontier of (d², loss), row by row.

For one row the inner problem of the paper's equation 5 over a finite set of candidates is
``max_j loss_j − λ d²_j``. Whatever λ ≥ 0 is, only corners of the upper concave frontier of the points
(d²_j, loss_j) can attain it, so keeping those few corners solves the inner problem for every λ at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import IntArray
from likewise.core.errors import InputError, ModelError

Floats = np.ndarray[Any, np.dtype[np.float64]]


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
    squared_distance: Floats
    loss: Floats
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
        return cls._sorted(len(base), rows[order], distance[order], losses[order], names[order])

    @classmethod
    def _sorted(cls, n: int, rows: IntArray, distance: Floats, losses: Floats, names: IntArray) -> Frontier:
        corners = _concave_corners(rows, distance, losses)
        indptr = np.searchsorted(rows[corners], np.arange(n + 1)).astype(np.int64)
        return cls(indptr, distance[corners], losses[corners], names[corners])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def base_loss(self) -> Floats:
        """Loss of each row where it stands, shape (n,)."""
        return np.asarray(self.loss[self.indptr[:-1]])

    @property
    def row(self) -> IntArray:
        """The row each corner belongs to, shape (k,)."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def conjugate(self, lam: float) -> Floats:
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

    def worst_at_no_distance(self) -> Floats:
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


def _check_points(base: Floats, rows: IntArray, distance: Floats, losses: Floats, names: IntArray) -> None:
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


def _undominated(rows: IntArray, distance: Floats, losses: Floats) -> IntArray:
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


def _concave_corners(rows: IntArray, distance: Floats, losses: Floats) -> IntArray:
    """Corners of the concave frontier of points sorted by row, distance and loss (both strictly rising).

    A point on or below the chord of any two others is no corner, so all such points of all rows go at once;
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
    transport: Floats
    gain: Floats
    slope: Floats

    def goes(self, lam: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each step is taken at λ: those that gain more than λ per transport, and the free ones always."""
        return np.asarray((self.slope > lam) | np.isinf(self.slope))

    def taken(self, lam: float, n_rows: int) -> IntArray:
        """How many steps each row takes at λ."""
        return np.bincount(self.row[self.goes(lam)], minlength=n_rows)


def steps_of(frontier: Frontier, weight: Floats | None = None) -> Steps:
    """Return the steps of all rows."""
    row = frontier.row
    step = np.flatnonzero(row[1:] == row[:-1]) if len(row) else np.zeros(0, dtype=np.int64)
    transport = frontier.squared_distance[step + 1] - frontier.squared_distance[step]
    gain = frontier.loss[step + 1] - frontier.loss[step]
    free = transport <= 0
    with np.errstate(divide="ignore", over="ignore"):
        slope = np.where(free, np.inf, gain / np.where(free, 1.0, transport))
    if weight is not None:
        transport, gain = weight[row[step]] * transport, weight[row[step]] * gain
    return Steps(row[step], transport, gain, slope)
