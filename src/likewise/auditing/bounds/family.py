"""What a family of models says of regions: how high the loss can be, and where to cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import Arrays, Regions, Split, TableLayout
from likewise.auditing.search.person_moves import (
    COUNT,
    DECISIONS,
    HINGE,
    HOT,
    PROBABILITIES,
    SCORES,
    SQUARED,
    START,
)
from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.models.losses import CrossEntropy, Hinge, Loss, Squared, ZeroOne


@dataclass(frozen=True, eq=False)
class LossBound(Arrays):
    """What a family says of regions: loss(x) ≤ upper + slopeᵀ(x − x₀) for every row x of the region."""

    upper: FloatArray
    slope: FloatArray | None
    state: Any
    extra: tuple[Any, ...]
    same: BoolArray | None = None


# The worst loss that scores can have when only upper bounds of them are known.


@dataclass(frozen=True, eq=False)
class Components:
    """How outputs become components for every label, and components a loss."""

    mixing: FloatArray
    loss: Loss
    probabilities: bool
    ties: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def of(cls, loss: Loss, n_outputs: int, *, probabilities: bool) -> Components:
        """Work out the components of a loss."""
        if isinstance(loss, Squared):
            return cls(np.array([[[1.0, -1.0]]]), loss, False, np.zeros((1, 2), dtype=bool))
        if not isinstance(loss, (CrossEntropy, Hinge, ZeroOne)):
            raise InputError(
                f"bounds: the loss {loss.name!r} is not known to rise with the scores of the other classes. "
                "Use 'cross_entropy', 'hinge', 'zero_one' or 'squared'."
            )
        if n_outputs == 1 and not probabilities:
            mixing = np.array([[[1.0]], [[-1.0]]])
            return cls(mixing, loss, False, np.array([[False], [True]]))
        if probabilities and isinstance(loss, CrossEntropy):
            mixing = -np.eye(n_outputs)[:, :, None]
            return cls(mixing, loss, True, np.zeros((n_outputs, 1), dtype=bool))
        if probabilities and isinstance(loss, Hinge):
            raise InputError("bounds: hinge needs class scores, and this model gives probabilities.")
        mixing = np.zeros((n_outputs, n_outputs, n_outputs - 1))
        ties = np.zeros((n_outputs, n_outputs - 1), dtype=bool)
        for y in range(n_outputs):
            for k, other in enumerate(j for j in range(n_outputs) if j != y):
                mixing[y, other, k], mixing[y, y, k] = 1.0, -1.0
                ties[y, k] = other < y
        return cls(mixing, loss, probabilities, ties)

    @property
    def n_components(self) -> int:
        """Number of components K."""
        return int(self.mixing.shape[2])

    def labels(self, targets: Any) -> IntArray:
        """Return which label's components each target uses."""
        if isinstance(self.loss, Squared):
            return np.zeros(len(targets), dtype=np.int64)
        return np.asarray(targets, dtype=np.int64)

    def losses(self, components: FloatArray, targets: Any) -> FloatArray:
        """Loss of components (n, K); it never falls when one of them rises."""
        if isinstance(self.loss, Squared):
            y = np.asarray(targets, dtype=np.float64)
            over = np.maximum(components[:, 0] - y, components[:, 1] + y)
            return np.asarray(np.maximum(over, 0.0) ** 2)
        if isinstance(self.loss, CrossEntropy):
            if self.probabilities:
                with np.errstate(divide="ignore"):
                    table = -np.log(np.maximum(-components[:, 0], self.loss.floor))
            else:
                top = np.maximum(components.max(axis=1), 0.0)
                rest = np.exp(components - top[:, None]).sum(axis=1) + np.exp(-top)
                table = top + np.log(rest)
            return np.asarray(np.clip(table, 0.0, self.loss.upper_bound))
        if isinstance(self.loss, Hinge):
            return np.asarray(np.maximum(0.0, 1.0 + components.max(axis=1)))
        ties = self.ties[self.labels(targets)]
        wrong = (components > 0.0) | (ties & (components == 0.0))
        return np.asarray(wrong.any(axis=1), dtype=np.float64)

    def least_component(self, losses: FloatArray, error: float = 0.0) -> FloatArray:
        """The single component at which the loss reaches a value, (n,): below it the loss is no higher."""
        if isinstance(self.loss, Hinge):
            return np.asarray(losses - 1.0)
        p = np.exp(-losses) + error
        if self.probabilities:
            return np.asarray(-p)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(1.0 / p - 1.0, 1e-17)))

    def weights(self, components: FloatArray, targets: Any) -> FloatArray:
        """How much each component counts at these values, (n, K), for choosing where to split."""
        if self.n_components == 1:
            return np.ones_like(components)
        if isinstance(self.loss, Squared):
            y = np.asarray(targets, dtype=np.float64)
            return np.maximum(np.stack([components[:, 0] - y, components[:, 1] + y], axis=1), 0.0) + 1e-9
        raised = np.exp(components - components.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def raised_by_answers(losses: FloatArray, error: float, loss: Loss) -> FloatArray:
    """Cross-entropies as high as probabilities that are answered with an error make them: −log(p − error)."""
    left = np.maximum(np.exp(-losses) - error, np.exp(-loss.upper_bound))
    return np.asarray(np.maximum(-np.log(left), losses))


def sure_decisions(outputs: FloatArray, parts: Components, slack: FloatArray | float) -> IntArray:
    """Return the class whose every component is below 0 by more than the slack, (n,); −1 if there is none."""
    label = np.full(len(outputs), -1, dtype=np.int64)
    least = np.broadcast_to(-np.asarray(slack), (len(outputs),))[:, None]
    for y, mixing in enumerate(parts.mixing):
        label[(outputs @ mixing < least).all(axis=1)] = y
    return label


_NO_INTEGERS = np.zeros(0, dtype=np.int64)
_NO_TREES = (
    _NO_INTEGERS,
    np.zeros((0, 4), dtype=np.int32),
    np.zeros((0, 1), dtype=np.uint64),
    np.zeros((0, 0, 0)),
    0,
    np.zeros(0, dtype=np.int32),
    np.zeros(1, dtype=np.int64),
)
_NO_LAYERS = np.zeros((0, 0)), np.zeros(0), _NO_INTEGERS, np.zeros((0, 0, 0))


@dataclass(frozen=True, eq=False)
class MoveArrays:
    """A model as the compiled search around a person takes it (`search.person_moves`): its trees or its layers.

    Few arrays go through the compiled functions: with many of them compiling takes minutes.
    """

    is_tree: bool
    trees: tuple[Any, ...]
    layers: tuple[Any, ...]
    # How components become a loss.
    loss: tuple[Any, ...]
    cuts: FloatArray
    # What is known of columns, (P + 1, 7); the last row closes what begins with a column.
    columns: IntArray
    n_components: int


class Family(ABC):
    """What was read off a model, as functions of rows of values, and what follows for regions.

    `error` is how far the model's own components may lie from those that were read, `answered` how far an answered
    probability from that of the score.
    """

    # All numbers that were read: another model has others.
    numbers: tuple[Any, ...]

    def __init__(
        self, layout: TableLayout, kind: str, parts: Components, error: float, answered: float
    ) -> None:
        self.layout, self.kind, self.parts, loss = layout, kind, parts, parts.loss
        self._answered = answered if isinstance(loss, CrossEntropy) and not parts.probabilities else 0.0
        # Cross-entropy and hinge of scores rise no faster than their components; elsewhere the slack goes into them.
        smooth = isinstance(loss, (CrossEntropy, Hinge)) and not parts.probabilities and not self._answered
        self.slack, self._within = (error, 0.0) if smooth else (0.0, error)

    @abstractmethod
    def outputs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outputs (n, C) at rows of values, and how far the model's own may lie from them by rounding, (n,)."""

    @abstractmethod
    def decisions(self, values: FloatArray) -> Any:
        """The decision of rows of values, (n,); −1 if rounding leaves it open."""

    @abstractmethod
    def split_rows(self, base: FloatArray, rng: np.random.Generator, most: int) -> FloatArray:
        """Rows on both sides of its splits, made of rows `base`, to compare what was read with the model."""

    @abstractmethod
    def reads(self, column: int) -> bool:
        """Whether the model's answers depend on a column at all."""

    @abstractmethod
    def state(self, n: int) -> Any:
        """State of n whole domains, an array of n rows."""

    @abstractmethod
    def bound(self, regions: Regions, origin: FloatArray, targets: Any, state: Any) -> LossBound:
        """Upper bound of the loss over each region."""

    @abstractmethod
    def look(
        self, regions: Regions, targets: Any, bound: LossBound, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, Split]:
        """Loss at a row of each region, how much the bound leaves open there, and where to cut."""

    @abstractmethod
    def decide(self, regions: Regions, state: Any) -> tuple[Any, FloatArray, Any]:
        """The one decision of each region or −1, how much each column matters, the state."""

    @abstractmethod
    def cuts(self, regions: Regions, column: IntArray, values: FloatArray) -> Split:
        """Where to cut a column of each region."""

    @abstractmethod
    def _components(self, values: FloatArray, label: IntArray) -> FloatArray:
        """Components (n, K) of rows of values under labels."""

    @abstractmethod
    def _rounding(self, values: FloatArray) -> Any:
        """How far the model's own components of rows of values may lie from these."""

    def losses(self, values: FloatArray, targets: Any) -> FloatArray:
        """Exact loss of rows of values."""
        return self.parts.losses(self._components(values, self.parts.labels(targets)), targets)

    def sure_losses(self, values: FloatArray, targets: Any) -> FloatArray:
        """At most the loss that the model itself gives rows of values, whatever its rounding."""
        found = self._components(values, self.parts.labels(targets))
        losses = self.parts.losses(found - self._rounding(values), targets)
        if not self._answered:
            return losses
        # As low as answered probabilities with an error can make them: −log(p + error).
        lowered = np.maximum(-np.log(np.exp(-losses) + self._answered), 0.0)
        return np.asarray(np.minimum(lowered, losses))

    def _move_arrays(self, *, trees: tuple[Any, ...] | None = None, layers: Any = None) -> MoveArrays:
        """What the compiled search takes of either; the other is empty, and so are the cuts."""
        parts, loss = self.parts, self.parts.loss
        columns = np.zeros((self.layout.n_columns + 1, 7), dtype=np.int64)
        for p, column in enumerate(self.layout.columns):
            columns[p, [START, HOT, COUNT]] = column.start, column.width > 1, len(column.categories)
        if isinstance(loss, CrossEntropy):
            code, least, most = PROBABILITIES if parts.probabilities else SCORES, loss.floor, loss.upper_bound
        else:
            code, least, most = {Hinge: HINGE, ZeroOne: DECISIONS, Squared: SQUARED}[type(loss)], 0.0, np.inf
        about = code, float(least), float(most), parts.ties
        given = trees or _NO_TREES, layers or _NO_LAYERS
        return MoveArrays(trees is not None, *given, about, np.zeros(0), columns, parts.n_components)

    def _highest_losses(self, components: FloatArray, targets: Any) -> FloatArray:
        """Loss of components, as high as the model's own answers may make it."""
        value = self.parts.losses(components, targets)
        return raised_by_answers(value, self._answered, self.parts.loss) if self._answered else value


# What a branch and bound may spend, and what it returns: for each person two numbers with the supremum
# between them.


INTERRUPTED = Message("reason.interrupted")


@dataclass(frozen=True)
class RegionBudget:
    """What a branch and bound may spend."""

    nodes: int = 10_000
    seconds: float | None = None
    tell: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class Brackets:
    """For each person what is attained and what cannot be exceeded."""

    lower: FloatArray
    upper: FloatArray
    rows: FloatArray
    loss: FloatArray
    cost: FloatArray
    nodes: IntArray
    tol: float
    slack: float = 0.0
    interrupted: bool = False

    @property
    def closed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whose bracket is closed, (n,)."""
        return np.asarray(self.upper - self.lower <= (self.tol + self.slack) * (1 + 1e-9))
