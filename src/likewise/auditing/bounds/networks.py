"""ReLU networks for the branch and bound: a line above the loss over each region, cuts of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.family import (
    Components,
    Family,
    LossBound,
    MoveArrays,
    sure_decisions,
)
from likewise.auditing.bounds.linear_bounds import Hidden, Lines, hidden_bounds, output_lines
from likewise.auditing.bounds.regions import Regions, Split, TableLayout, encoded_box, everything, halves
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.models.layers import Layers
from likewise.models.losses import CrossEntropy, Hinge, Loss, Squared


@dataclass(frozen=True, eq=False)
class DecisionLines:
    """A row x of the region is decided as class y wherever slope[y, k]ᵀx + offset[y, k] < 0 for every k."""

    label: IntArray
    importance: FloatArray
    slope: FloatArray
    offset: FloatArray
    off: Any


# What the straight part of a line leaves open where its rows are counted: a little, by the grid they are counted on.
_STRAIGHT = 0.01


class NetworkFamily(Family):
    """Bounds of a ReLU network's loss over regions of a table.

    The network sees encoded rows. With two classes or a regression the loss is convex in one number f: over a region
    where f lies in [f₀, f₁] it lies below its chord there, and the chord of a line above (or below) f is a line above
    the loss.
    """

    def __init__(self, net: Layers, layout: TableLayout, loss: Loss, answered: float = 0.0) -> None:
        if net.n_inputs != layout.width:
            raise InputError(
                f"bounds: the network takes {net.n_inputs} columns, the domain encodes {layout.width}. "
                "Pass the domain whose encoding the network was trained on."
            )
        self.net, self.numbers = net, (*net.weights, *net.biases)
        # Two scores are one: their difference.
        outputs = 1 if net.n_outputs == 2 else net.n_outputs
        self._head = np.array([[-1.0, 1.0]]) if net.n_outputs == 2 else np.eye(outputs)
        parts = Components.of(loss, outputs, probabilities=False)
        self._convex = outputs == 1 and isinstance(loss, (CrossEntropy, Hinge, Squared))
        lower, upper = encoded_box(layout, everything(layout))
        # One component is a difference of at most two outputs.
        self._spread = float(np.abs(self._head).sum(axis=1).max())
        self._spread *= float(np.abs(parts.mixing).sum(axis=1).max())
        error = float(net.rounding(np.maximum(np.abs(lower), np.abs(upper)))[0]) * self._spread
        if not np.isfinite(error):
            raise InputError(
                "bounds: a network is bounded over a bounded domain only. Give every number a range."
            )
        super().__init__(layout, "values" if loss.regression else "scores", parts, error, answered)
        self.n_units = sum(len(weight) for weight in net.weights[:-1])

    @cached_property
    def moves(self) -> MoveArrays:
        """The layers for a search by moves, with what the last adds to the components of every label; biases come last."""
        net, head, mixing = self.net, self._head, self.parts.mixing
        last = np.einsum("lck,cj->lkj", mixing, head @ net.weights[-1])
        offset = np.einsum("lck,c->lk", mixing, head @ net.biases[-1])
        hidden = [
            np.column_stack([weight, bias])
            for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True)
        ]
        return self._move_arrays(
            layers=(
                np.ascontiguousarray(hidden[0] if hidden else np.zeros((0, self.layout.width + 1))),
                np.concatenate([np.zeros(0), *(layer.ravel() for layer in hidden[1:])]),
                np.array([len(layer) for layer in hidden], dtype=np.int64),
                np.ascontiguousarray(np.concatenate([last, offset[:, :, None]], axis=2)),
            )
        )

    def state(self, n: int) -> FloatArray:
        """Nothing is known of any hidden unit, (n, 2, U)."""
        bounds = np.empty((n, 2, self.n_units))
        bounds[:, 0], bounds[:, 1] = -np.inf, np.inf
        return bounds

    def bound(self, regions: Regions, origin: FloatArray, targets: Any, state: FloatArray) -> LossBound:
        """Line above the loss over each region, and bounds of all hidden units there."""
        lower, upper = encoded_box(self.layout, regions)
        hidden = hidden_bounds(self.net, lower, upper, self.layout.blocks, state)
        if not self._convex:
            return self._flat(targets, hidden, lower, upper)
        lines = self._lines(np.concatenate([self._head, -self._head]), hidden, lower, upper)
        top = lines.highest[:, 0] + self._within
        bottom = np.minimum(-lines.highest[:, 1] - self._within, top)
        ends = [self._unclipped(f, targets) for f in (bottom, top)]
        width = top - bottom
        # Where the loss is clipped a constant lies lower than any chord.
        clipped = np.maximum(*ends) > self.parts.loss.upper_bound
        ends = [np.minimum(end, self.parts.loss.upper_bound) for end in ends]
        with np.errstate(invalid="ignore", divide="ignore"):
            rise = np.where((width > 1e-12) & ~clipped, (ends[1] - ends[0]) / width, 0.0)
        # A falling chord takes the line below f, which is minus the line above −f.
        at = np.where(rise >= 0, 0, 1)
        sign = np.where(rise >= 0, 1.0, -1.0)
        rows = np.arange(len(regions))
        slope = (rise * sign)[:, None] * lines.slope[rows, at]
        offset = sign * lines.offset[rows, at] + np.where(at == 0, self._within, -self._within)
        base = np.where((width > 1e-12) & ~clipped, ends[0] + rise * (offset - bottom), np.maximum(*ends))
        upper_value = base + (slope * origin).sum(axis=1)
        importance = self._importance(lines, hidden, upper - lower, np.abs(lines.slope).sum(axis=1))
        return LossBound(upper_value, slope, hidden.bounds, (slope, base, importance))

    def _flat(self, targets: Any, hidden: Hidden, lower: FloatArray, upper: FloatArray) -> LossBound:
        """A constant above the loss, from upper bounds of its components."""
        label = self.parts.labels(targets)
        labels, n = len(self.parts.mixing), len(lower)
        # The components of every label; each row keeps those of its own.
        heads = np.concatenate([self.parts.mixing[y].T @ self._head for y in range(labels)])
        lines = self._lines(heads, hidden, lower, upper)
        own = (np.arange(labels)[None, :] == label[:, None]).repeat(self.parts.n_components, axis=1)
        highest = lines.highest[own].reshape(n, -1) + self._within
        kept = Lines(
            lines.slope * own[:, :, None], lines.offset, lines.highest, lines.effect * own[:, :, None]
        )
        importance = self._importance(kept, hidden, upper - lower, np.abs(kept.slope).sum(axis=1))
        value = self._highest_losses(highest, targets)
        return LossBound(value, None, hidden.bounds, (np.zeros((n, self.layout.width)), value, importance))

    def _lines(
        self, head: FloatArray, hidden: Hidden, lower: FloatArray, upper: FloatArray, **choice: Any
    ) -> Lines:
        return output_lines(self.net, head, hidden, lower, upper, self.layout.blocks, **choice)

    def _importance(
        self, lines: Lines, hidden: Hidden, spread: FloatArray, straight: FloatArray
    ) -> FloatArray:
        """How much of what is open each column is responsible for, (n, P); 0 if it is one value already.

        A hidden unit that may be on or off leaves open |effect| · min(−l, u) / (u − l) for each unit of width of what
        enters it, and a column is responsible for as much of that width as it moves the unit.
        """
        low, high = hidden.bounds[:, 0], hidden.bounds[:, 1]
        with np.errstate(invalid="ignore"):
            even = np.minimum(-low, high) / (high - low)
        loose = np.where((low < 0) & (high > 0), even, 0.0) * np.abs(lines.effect).sum(axis=1)
        score = straight.copy()
        if loose.shape[1]:
            first = len(self.net.weights[0])
            score += loose[:, :first] @ np.abs(self.net.weights[0])
            if hidden.reach.shape[1]:
                score += (loose[:, None, first:] @ hidden.reach)[:, 0]
        score = np.maximum(score * spread, 1e-12 * (spread > 0))
        return np.asarray(np.add.reduceat(score, self.layout.start, axis=1))

    def decide_by_lines(self, regions: Regions, off: Any) -> DecisionLines:
        """Decide regions as far as lines do: what is straight is decided on both sides of where it crosses 0."""
        lower, upper = encoded_box(self.layout, regions)
        state = self.state(len(regions))
        state[:, 1][off] = 0.0
        hidden = hidden_bounds(self.net, lower, upper, self.layout.blocks, state)
        n, labels = len(regions), len(self.parts.mixing)
        heads = np.concatenate([self.parts.mixing[y].T @ self._head for y in range(labels)])
        lines = self._lines(heads, hidden, lower, upper, best_at="mean")
        error = max(self.slack, self._within)
        sure = np.all(lines.highest.reshape(n, labels, -1) + error < 0, axis=2)
        label = np.where(np.any(sure, axis=1), np.argmax(sure, axis=1), -1)
        straight = _STRAIGHT * np.abs(lines.slope).max(axis=1)
        importance = self._importance(lines, hidden, upper - lower, straight)
        slope = lines.slope.reshape(n, labels, -1, self.layout.width)
        offset = lines.offset.reshape(n, labels, -1) + error
        return DecisionLines(label, importance, slope, offset, hidden.bounds[:, 1] <= 0.0)

    def decide(self, regions: Regions, state: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
        """The one decision of all rows of each region or −1, how much each column matters, and the state."""
        found = self.decide_by_lines(regions, np.zeros((len(regions), self.n_units), dtype=bool))
        return found.label, found.importance, state

    def decisions(self, values: FloatArray) -> Any:
        """The decision of rows of values, (n,); −1 if the model's rounding leaves it open."""
        x = self.layout.encode(values)
        return sure_decisions(
            self.net.outputs(x) @ self._head.T, self.parts, self.net.rounding(x) * self._spread
        )

    def outputs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the network answers to rows of values, (n, C), and how far the model's own answer may lie from it, (n,)."""
        x = self.layout.encode(values)
        return self.net.outputs(x), self.net.rounding(x)

    def split_rows(self, base: FloatArray, rng: np.random.Generator, most: int) -> FloatArray:
        """Rows with every number at one of its ends: where units switch and answers saturate."""
        rows = base[: min(most, len(base))].copy()
        for i in np.flatnonzero(~self.layout.is_category):
            column = self.layout.columns[i]
            ends = np.array([column.lower, column.upper])
            ends = np.array([np.ceil(ends[0]), np.floor(ends[1])]) if self.layout.is_integer[i] else ends
            rows[:, i] = ends[rng.integers(2, size=len(rows))]
        return rows

    def cuts(self, regions: Regions, column: Any, values: FloatArray) -> Split:
        """Cut numbers in the middle, and the categories that are left into those that the network takes for alike."""
        split = halves(self.layout, regions, column, values)
        for i in np.unique(np.asarray(column)[self.layout.is_category[column]]):
            at, order = np.flatnonzero(column == i), self._order[i]
            first = int(self.layout.offset[i])
            left = regions.allowed[at][:, first + order] != 0
            # The lower half of what is left, in the order of the categories' effects.
            lower = left & (np.cumsum(left, axis=1) * 2 <= left.sum(axis=1, keepdims=True))
            split.left[at] = 0
            split.left[at[:, None], first + order[None, :]] = lower
        return split

    @cached_property
    def _order(self) -> dict[int, Any]:
        """Categories of each column by their main effect on what enters the first layer."""
        order = {}
        for i in np.flatnonzero(self.layout.is_category):
            column = self.layout.columns[i]
            if column.is_binary:
                order[int(i)] = np.arange(2)
                continue
            effect = self.net.weights[0][:, column.slice]
            effect = effect - effect.mean(axis=1, keepdims=True)
            order[int(i)] = np.argsort(np.linalg.svd(effect, full_matrices=False)[2][0], kind="stable")
        return order

    def reads(self, column: int) -> bool:
        """Whether any unit of the first layer weighs a column: 0 · x adds nothing, to the last bit."""
        return bool((self.net.weights[0][:, self.layout.columns[column].slice] != 0).any())

    def _components(self, values: FloatArray, label: IntArray) -> FloatArray:
        outputs = self.net.outputs(self.layout.encode(values)) @ self._head.T
        return np.asarray(np.einsum("nc,nck->nk", outputs, self.parts.mixing[label]))

    def _rounding(self, values: FloatArray) -> FloatArray:
        return (self.net.rounding(self.layout.encode(values)) * self._spread)[:, None]

    def look(
        self, regions: Regions, targets: Any, bound: LossBound, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, Split]:
        """Loss at a row of each region, how far the line lies above it there, and where to cut."""
        losses = self.losses(values, targets)
        slope, base, importance = bound.extra
        line = base + (slope * self.layout.encode(values)).sum(axis=1)
        column = importance.argmax(axis=1)
        rows = np.arange(len(column))
        column = np.where(importance[rows, column] > 0, column, -1)
        return losses, line - losses, halves(self.layout, regions, column, values)

    def _unclipped(self, f: FloatArray, targets: Any) -> FloatArray:
        """The loss as a convex function of f: cross-entropy that is clipped at its bound would be none."""
        components = f[:, None] * self.parts.mixing[self.parts.labels(targets)][:, 0]
        if isinstance(self.parts.loss, CrossEntropy):
            exact = np.logaddexp(0.0, components[:, 0])
            if not self._answered:
                return exact
            # −log(p − error) is convex in the score, and endless where nothing of p is left.
            left = np.exp(-exact) - self._answered
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(left > 0, -np.log(np.maximum(left, 0.0)), np.inf)
        return self.parts.losses(components, targets)
