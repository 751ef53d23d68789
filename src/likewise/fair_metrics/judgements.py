"""Pairs of rows and whether they were judged comparable: given one by one, or following from groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.fair_metrics.comparable_groups import Groups

__all__ = ["Judgements", "judge_groups", "read_judgements"]


@dataclass(frozen=True)
class Judgements:
    """Judged pairs.

    Parameters
    ----------
    first, second : ndarray of shape (m,)
        Row numbers.
    comparable : ndarray of shape (m,)
        In [0, 1].
    shares : ndarray of shape (m,)
        Weights, which add up to 1.
    """

    first: Any
    second: Any
    comparable: FloatArray
    shares: FloatArray


def read_judgements(owner: str, pairs: Any, comparable: Any, n: int) -> Judgements:
    """Read pairs of row numbers and what was judged of each.

    Examples
    --------
    >>> found = read_judgements("fit", [(0, 1), (0, -1)], [True, False], 3)
    >>> found.second.tolist(), found.comparable.tolist()
    ([1, 2], [1.0, 0.0])
    """
    if comparable is None:
        raise InputError(
            f"{owner}: 'pairs' were given without judgements. Pass comparable=, one value per pair: True where "
            "the two rows are comparable."
        )
    rows = to_numpy(pairs)
    if rows.ndim != 2 or rows.shape[1:] != (2,) or rows.dtype.kind not in "iu":
        raise bad_parameter(
            owner,
            "pairs",
            allowed="pairs of row numbers, shape (m, 2)",
            got=f"{rows.dtype} of shape {rows.shape}",
            remedy="For two tables of paired rows call fit_pairs(first, second, comparable).",
        )
    if not len(rows):
        raise InputError(f"{owner}: 'pairs' is empty. Pass pairs of both kinds, comparable and not.")
    outside = np.flatnonzero(((rows < -n) | (rows >= n)).any(1))
    if len(outside):
        i = int(outside[0])
        raise InputError(
            f"{owner}: pair {i} is {tuple(rows[i].tolist())}, but X has {n} rows (0 to {n - 1}). "
            "Pass positions of rows, not labels of an index."
        )
    values = read_comparable(owner, comparable, len(rows))
    rows = rows % n
    return Judgements(rows[:, 0], rows[:, 1], values, np.full(len(rows), 1.0 / len(rows)))


def read_comparable(owner: str, comparable: Any, m: int) -> FloatArray:
    """Return the judgements as numbers in [0, 1], of both kinds.

    Examples
    --------
    >>> read_comparable("fit", [True, False], 2)
    array([1., 0.])
    """
    name = "comparable"
    try:
        values = np.asarray(to_numpy(comparable), dtype=float)
    except (TypeError, ValueError) as error:
        raise bad_parameter(
            owner, name, allowed="True or False per pair, or a share in [0, 1]", got=str(error)
        ) from error
    if values.shape != (m,):
        raise bad_parameter(
            owner, name, allowed=f"one judgement per pair ({m})", got=f"an array of shape {values.shape}"
        )
    if not ((values >= 0) & (values <= 1)).all():
        i = int(np.argmin((values >= 0) & (values <= 1)))
        raise bad_parameter(
            owner,
            name,
            allowed="True or False, or the share of judges in [0, 1]",
            got=f"{values[i]:g} at pair {i}",
            remedy="Write −1/+1 as comparable > 0, and leave out pairs that nobody judged.",
        )
    if not ((values > 0).any() and (values < 1).any()):
        which = "comparable" if (values > 0).any() else "not comparable"
        raise InputError(
            f"{owner}: every pair was judged {which}, so one class of judgements is missing and no distance can "
            "be learned. Add pairs of the other kind."
        )
    return values


def judge_groups(owner: str, groups: Groups, max_pairs: int, rng: np.random.Generator) -> Judgements:
    """Judge rows of one group comparable and rows of different groups not, both kinds with half the weight.

    All pairs where there are at most `max_pairs` of them; else so many drawn at random, half of each kind.

    Examples
    --------
    >>> from likewise.fair_metrics.comparable_groups import read_groups
    >>> found = judge_groups("fit", read_groups("fit", ["a", "a", "b"], 3), 10, np.random.default_rng(0))
    >>> found.comparable, found.shares.round(6)
    (array([1., 0., 0.]), array([0.5 , 0.25, 0.25]))
    """
    sizes = groups.sizes
    rows = np.arange(groups.starts[-1]) if groups.order is None else groups.order
    if not (sizes >= 2).any():
        raise InputError(
            f"{owner}: every group has one row only, or one sample per class, so no two rows are comparable. "
            "Groups of two or more are needed."
        )
    if len(sizes) < 2:
        raise InputError(
            f"{owner}: there is one group only, one class, so no two rows are known not to be comparable. Pass "
            "two groups or more, or judged pairs."
        )
    m = len(rows)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if m * (m - 1) // 2 <= max_pairs:
        first, second = np.triu_indices(m, 1)
    else:
        first, second = _draw(groups.starts, codes, max_pairs, rng)
    comparable = (codes[first] == codes[second]).astype(float)
    together = comparable.mean()
    shares = np.where(comparable == 1, 0.5 / together, 0.5 / (1.0 - together)) / len(first)
    return Judgements(rows[first], rows[second], comparable, shares)


def _draw(starts: Any, codes: Any, count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw pairs inside groups, and as many across them, as positions in the grouped order."""
    sizes = np.diff(starts)
    half = max(1, count // 2)
    # Every comparable pair is equally likely, so a group is drawn by how many pairs it has.
    weights = sizes * (sizes - 1.0)
    group = rng.choice(len(sizes), size=half, p=weights / weights.sum())
    a = rng.integers(sizes[group])
    b = (a + 1 + rng.integers(sizes[group] - 1)) % sizes[group]
    # A row is drawn by how many rows the other groups have, then one of those.
    outside = (len(codes) - sizes).astype(float)[codes]
    left = rng.choice(len(codes), size=half, p=outside / outside.sum())
    own = codes[left]
    right = rng.integers(len(codes) - sizes[own])
    right = np.where(right < starts[:-1][own], right, right + sizes[own])
    return np.concatenate([starts[:-1][group] + a, left]), np.concatenate([starts[:-1][group] + b, right])
