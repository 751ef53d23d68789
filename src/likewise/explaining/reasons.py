"""Which columns set a person apart from comparable people with the favourable decision: Shapley values of the score.

The reference is a list of people. A coalition of columns has the person's values there and the reference's elsewhere; its
worth is the score, averaged over the reference (interventional Shapley values). They add up to the person's score less the
reference's mean score. For trees and linear models they are exact; so are those of any other model if the people differ in
at most 12 columns. Otherwise they are averages over random orders of the columns, with a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.auditing.bounds.trees import TreeFamily
from likewise.core.checks import FloatArray
from likewise.core.compiled import compiled
from likewise.core.errors import bad_parameter
from likewise.core.files import read_toml

if TYPE_CHECKING:
    from likewise.auditing.bounds.networks import NetworkFamily
    from likewise.explaining.situation import Situation

Score = Callable[[FloatArray], FloatArray]
MOST_ENUMERATED = 12
# Rows that an enumeration or a sample asks about, at most.
_ROWS = 2**18


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to a person's score, (P,), with a standard error, 0 if exact."""

    values: FloatArray
    errors: FloatArray
    base: float
    method: Literal["trees", "linear", "enumerated", "sampled"]

    @property
    def exact(self) -> bool:
        """Whether they are not estimates."""
        return self.method != "sampled"


@compiled
def _goes(node, row, column, cut, group, goes_left, offset):  # type: ignore[no-untyped-def]
    p = column[node]
    if group[node] < 0:
        return row[p] <= cut[node]
    return goes_left[group[node], offset[p] + int(row[p])] != 0


@compiled
def _tree_shapley(roots, trees, offset, leaf, own, others, weights, found):  # type: ignore[no-untyped-def]
    """Add every tree's Shapley values against every other row to found (P,)."""
    left, right, column, cut, group, goes_left = trees
    n_columns = own.shape[0]
    # By column: 0 not met on the way, 1 the person's value is needed, 2 the other's is.
    needs = np.zeros(n_columns, dtype=np.int8)
    room = left.shape[0] + 2
    stack = np.zeros((room, 4), dtype=np.int64)
    undo = np.full(room, -1, dtype=np.int64)
    for r in range(others.shape[0]):
        for t in range(roots.shape[0]):
            needs[:] = 0
            mine = 0
            theirs = 0
            depth = 0
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = roots[t], 0, -1, 0
            size = 1
            while size:
                size -= 1
                node, at, p, side = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
                while depth > at:
                    depth -= 1
                    if undo[depth] >= 0:
                        if needs[undo[depth]] == 1:
                            mine -= 1
                        else:
                            theirs -= 1
                        needs[undo[depth]] = 0
                undo[depth] = p
                if p >= 0:
                    needs[p] = side
                    if side == 1:
                        mine += 1
                    else:
                        theirs += 1
                depth += 1
                if left[node] < 0:
                    for q in range(n_columns):
                        if needs[q] == 1:
                            found[q] += leaf[node] * weights[mine - 1, theirs]
                        elif needs[q] == 2:
                            found[q] -= leaf[node] * weights[theirs - 1, mine]
                    continue
                x = _goes(node, own, column, cut, group, goes_left, offset)
                o = _goes(node, others[r], column, cut, group, goes_left, offset)
                c = column[node]
                if x == o or needs[c] == 1:
                    child = left[node] if x else right[node]
                    stack[size, 0], stack[size, 1], stack[size, 2] = child, depth, -1
                    size += 1
                elif needs[c] == 2:
                    child = left[node] if o else right[node]
                    stack[size, 0], stack[size, 1], stack[size, 2] = child, depth, -1
                    size += 1
                else:
                    for k in range(2):
                        goes = x if k == 0 else o
                        stack[size, 0] = left[node] if goes else right[node]
                        stack[size, 1], stack[size, 2], stack[size, 3] = depth, c, k + 1
                        size += 1


def of_trees(family: TreeFamily, favourable: int, own: FloatArray, others: FloatArray) -> Contributions:
    """Exact values for trees that average probabilities, of the favourable one; else of its score less the others' mean."""
    trees = family.trees
    leaf, base = -trees.values[favourable].mean(axis=1), -float(trees.base[favourable].mean())
    if family.kind == "probabilities":
        # p less the mean of the k others' is p − (1 − p) / k.
        k = trees.values[favourable].shape[1]
        leaf, base = leaf * k / (k + 1), (base * k + 1.0) / (k + 1)
    n = len(own)
    weights = np.zeros((n + 1, n + 1))
    for a in range(n + 1):
        for b in range(n + 1 - a):
            # One of a + 1 columns that must be in, with b that must be out.
            if a + b < n:
                weights[a, b] = factorial(a) * factorial(b) / factorial(a + b + 1)
    found = np.zeros(n)
    arrays = (trees.left, trees.right, trees.column, trees.cut, trees.group, trees.goes_left)
    _tree_shapley(trees.roots, arrays, family.layout.offset, leaf, own, others, weights, found)
    state = family.state(len(others))
    reached = family._leaves(others, state)
    mean = float(leaf[reached].sum(axis=1).mean()) + base
    return Contributions(found / len(others), np.zeros(n), mean, "trees")


def of_linear(family: NetworkFamily, favourable: int, own: FloatArray, others: FloatArray) -> Contributions:
    """Exact values for a linear model: each column's own difference."""
    form = family.net.linear_form(regression=False)
    assert form is not None
    coef, intercept = form
    rest = [k for k in range(len(coef)) if k != favourable]
    weights, bias = coef[favourable] - coef[rest].mean(axis=0), intercept[favourable] - intercept[rest].mean()
    x, z = family.layout.encode(own[None, :]), family.layout.encode(others)
    parts = (x - z).mean(axis=0) * weights
    values = np.add.reduceat(parts, family.layout.start)
    return Contributions(values, np.zeros(len(own)), float((z @ weights).mean() + bias), "linear")


def of_score(
    score: Score, own: FloatArray, others: FloatArray, *, random_state: int = 0, most_rows: int = _ROWS
) -> Contributions:
    """Values for any score: enumerated if every one of the others differs in at most 12 columns, else sampled."""
    differs = others != own
    counts = differs.sum(axis=1)
    if len(others) and counts.max() <= MOST_ENUMERATED:
        kept = int(np.searchsorted(np.cumsum(2.0**counts), most_rows, side="right"))
        return _enumerated(score, own, others[: max(kept, 1)])
    return _sampled(score, own, others, random_state, most_rows)


def _enumerated(score: Score, own: FloatArray, others: FloatArray) -> Contributions:
    n = len(own)
    total, base = np.zeros(n), 0.0
    for other in others:
        columns = np.flatnonzero(other != own)
        m = len(columns)
        inside = (np.arange(2**m)[:, None] >> np.arange(m)[None, :]) & 1
        rows = np.tile(other, (2**m, 1))
        rows[:, columns] = np.where(inside == 1, own[columns], other[columns])
        worth = score(rows)
        base += float(worth[0])
        sizes = inside.sum(axis=1)
        for i, p in enumerate(columns):
            without = np.flatnonzero(inside[:, i] == 0)
            weight = np.array([factorial(s) * factorial(m - s - 1) / factorial(m) for s in range(m)])[
                sizes[without]
            ]
            total[p] += float((weight * (worth[without | (1 << i)] - worth[without])).sum())
    return Contributions(total / len(others), np.zeros(n), base / len(others), "enumerated")


def _sampled(
    score: Score, own: FloatArray, others: FloatArray, random_state: int, most_rows: int
) -> Contributions:
    """Random orders of the columns, each with its reverse, against random others."""
    n = len(own)
    rng = np.random.default_rng(random_state)
    pairs = max(2, min(2_000, most_rows // (2 * (n + 1))))
    found = np.zeros((pairs, n))
    whose = rng.integers(len(others), size=pairs)
    for first in range(0, pairs, 64):
        some = range(first, min(first + 64, pairs))
        drawn = [rng.permutation(n) for _ in some]
        orders = [order for one in drawn for order in (one, one[::-1])]
        rows = np.concatenate(
            [_path(own, others[whose[s]], orders[2 * k + h]) for k, s in enumerate(some) for h in (0, 1)]
        )
        worth = score(rows).reshape(len(some), 2, n + 1)
        for k, s in enumerate(some):
            for h in (0, 1):
                found[s, orders[2 * k + h]] += np.diff(worth[k, h]) / 2.0
    error = found.std(axis=0, ddof=1) / np.sqrt(pairs)
    return Contributions(found.mean(axis=0), error, float(score(others).mean()), "sampled")


def _path(own: FloatArray, other: FloatArray, order: Any) -> FloatArray:
    """From the other to the person, one column after the other."""
    rows = np.tile(other, (len(own) + 1, 1))
    for k, p in enumerate(order):
        rows[k + 1 :, p] = own[p]
    return rows


# The reasons of a person of the table, in words if there are some.


@dataclass(frozen=True)
class Reason:
    """What one column adds to the person's score, compared with people who have the favourable decision."""

    column: str
    value: Any
    contribution: float
    error: float
    text: str = ""


def principal(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """The columns that count most against a person, at most four."""
    return tuple(one for one in reasons if one.contribution < -2.0 * one.error)[:4]


def read_reason_codes(codes: Any, *, owner: str) -> dict[str, str]:
    """Read words for columns: a mapping, or the path of a TOML file."""
    if codes is None:
        return {}
    if isinstance(codes, (str, Path)):
        codes = read_toml(codes, owner=owner)
    if not isinstance(codes, Mapping) or not all(isinstance(text, str) for text in codes.values()):
        allowed = 'column = "words", as a dict or a TOML file'
        raise bad_parameter(owner, "reason_codes", allowed, type(codes).__name__)
    return {str(name): text for name, text in codes.items()}


def contributions(situation: Situation, own: FloatArray, others: FloatArray) -> Contributions:
    """Shapley values of a person's score against others: of the reading if there is one, else by asking."""
    family, n = situation.family[0], situation.plain.layout.n_columns
    if family is not None and situation.reader is not None and n == len(own):
        if isinstance(family, TreeFamily):
            return of_trees(family, situation.favourable, own, others)
        if family.net.linear_form(regression=False) is not None:
            return of_linear(family, situation.favourable, own, others)
    return of_score(situation.scores, own, others, random_state=situation.request.random_state)


def find_reasons(
    situation: Situation, own: FloatArray, near: Any, codes: Mapping[str, str]
) -> tuple[tuple[Reason, ...], Contributions]:
    n = situation.layout.n_columns
    if not len(near):
        return (), Contributions(np.zeros(n), np.zeros(n), 0.0, "enumerated")
    found = contributions(situation, own, situation.people[near])
    cells = situation.cells(own[None, :])[0]
    listed = [
        Reason(column.name, cells[column.name], float(value), float(error), codes.get(column.name, ""))
        for column, value, error in zip(situation.layout.columns, found.values, found.errors, strict=True)
        if column.name in cells and (value != 0.0 or error != 0.0)
    ]
    return tuple(sorted(listed, key=lambda one: (one.contribution, one.column))), found
