"""Plain MLPs and linear models: loss and input gradient by hand, with no autograd graph.

For two classes and a loss of the margin t = ±(s₁ − s₀) only one number per row leaves the network, so the last
layer is one matrix–vector product, and the backward pass starts from the slopes of the last hidden layer times a
matrix with the head folded in: grad = ℓ′(t) · (a′ (w ⊙ W)) with one scaling of (n, d) at the end instead of one
of (n, hidden).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from likewise.core.checks import like
from likewise.core.errors import InputError
from likewise.models.layers import IDENTITY, Activation, as_activation
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.network import Network, Stage, activate_, network_of, slope_
from likewise.models.oracle import (
    FoldedOracle,
    Oracle,
    SingleLayer,
    TorchOutput,
    check_targets,
    differentiable_loss,
)

# Below this many columns BLAS is slow on (n, h) @ (h, k); measured with n = 1000, h = 100.
_FEW_COLUMNS = 16


class _Buffers(threading.local):
    """Memory for hidden layers that is used again, one set per thread; grows to the largest batch seen."""

    def __init__(self) -> None:
        self._held: dict[int, torch.Tensor] = {}

    def take(self, key: int, n: int, width: int, like: torch.Tensor) -> torch.Tensor:
        held = self._held.get(key)
        if held is None or held.numel() < n * width or held.dtype != like.dtype or held.device != like.device:
            held = self._held[key] = torch.empty(n * width, dtype=like.dtype, device=like.device)
        return held[: n * width].view(n, width)


class _Targets(threading.local):
    """Checks targets once, and keeps ±1 for those of two classes, since a search asks with the same ones again."""

    def __init__(self) -> None:
        self._last: tuple[torch.Tensor, int, torch.Tensor] | None = None

    def checked(
        self, y: torch.Tensor, n: int, n_classes: int | None, signs: torch.dtype | None = None
    ) -> torch.Tensor:
        """Return the targets of n rows, or as numbers of a dtype −1 for class 0 and 1 for class 1."""
        last = self._last
        if last is None or last[0] is not y or y.is_inference() or last[1] != y._version or len(last[2]) != n:
            check_targets(y, n=n, n_classes=n_classes)
            made = y if signs is None else y.to(signs).mul_(2.0).sub_(1.0)
            self._last = None if y.is_inference() else (y, y._version, made)
            return made
        return last[2]


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a (n, h) times b (h, k); with few columns the transposed product is several times faster in BLAS."""
    if b.shape[1] < _FEW_COLUMNS:
        return torch.mm(b.t().contiguous(), a.t()).t().contiguous()
    return torch.mm(a, b)


@dataclass(frozen=True, eq=False)
class _Pass:
    """One forward and backward pass over layers (weight (out, in), addend), ready to run.

    The addend of a layer is its bias (out,) or, folded, one row per row of the batch (n, out). With `margin` the
    last weight is the vector (in,) of the margin s₁ − s₀.
    """

    weights: tuple[torch.Tensor, ...]
    addends: tuple[torch.Tensor, ...]
    activations: tuple[Activation | None, ...]
    objective: Loss
    margin: bool
    buffers: _Buffers
    targets: _Targets

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden, _ = self._hidden(x)
        return self._head(hidden, y)[0]

    def loss_and_gradient(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, kept = self._hidden(x)
        loss, slope = self._head(hidden, y)
        last = len(self.weights) - 1
        if self.margin:
            gradient = self._margin_back(kept, last)
            # One row may be a view of the weights; several are always fresh.
            in_place = len(gradient) > 1
            return loss, gradient.mul_(slope[:, None]) if in_place else gradient * slope[:, None]
        return loss, self._back(slope @ self.weights[last], kept, last - 1)

    def single_layer(self, before: torch.Tensor, y: torch.Tensor) -> SingleLayer | None:
        """Return this as one hidden layer of ReLUs under a margin, if it is; `before` (n, H) is what enters it at 0."""
        activation = self.activations[0]
        if not self.margin or len(self.weights) != 2 or activation is None or activation.name != "leaky":
            return None
        return SingleLayer(
            before,
            self.weights[0].t(),
            self.weights[1],
            float(self.addends[1]),
            activation.number,
            self.targets.checked(y, len(before), 2, before.dtype),
            self.objective.name,
        )

    def _hidden(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
        kept: list[torch.Tensor | None] = []
        for i, (weight, addend, activation) in enumerate(
            zip(self.weights[:-1], self.addends[:-1], self.activations[:-1], strict=True)
        ):
            out = self.buffers.take(i, len(x), len(weight), x)
            x = torch.addmm(addend, x, weight.t(), out=out)
            if activation is None:
                kept.append(None)
            else:
                x, needed = activate_(activation, x)
                kept.append(needed)
        return x, kept

    def _head(self, hidden: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and its derivative by s₁ − s₀ (n,), or by the scores (n, C)."""
        weight, addend = self.weights[-1], self.addends[-1]
        if self.margin:
            signs = self.targets.checked(y, len(hidden), 2, hidden.dtype)
            found = self.objective.margin_value_and_slope(torch.addmv(addend, hidden, weight).mul_(signs))
            assert found is not None
            return found[0], found[1].mul_(signs)
        scores = torch.addmm(addend.t() if addend.ndim == 2 else addend[:, None], weight, hidden.t()).t()
        if not self.objective.row_targets:
            self.targets.checked(y, len(scores), None if self.objective.regression else scores.shape[1])
        return self.objective.value_and_slope(scores, y)

    def _margin_back(self, kept: list[torch.Tensor | None], last: int) -> torch.Tensor:
        """Return the gradient of s₁ − s₀ by the input, (n, d), or (1, d) if it is the same for all rows."""
        head = self.weights[last]
        if last == 0:
            return head[None, :]
        before, needed, activation = self.weights[last - 1], kept[last - 1], self.activations[last - 1]
        if activation is None or needed is None:
            return self._back((head @ before)[None, :], kept, last - 2)
        slopes = slope_(activation, needed)
        return self._back(_product(slopes, head[:, None] * before), kept, last - 2)

    def _back(self, delta: torch.Tensor, kept: list[torch.Tensor | None], layer: int) -> torch.Tensor:
        for i in range(layer, -1, -1):
            activation, needed = self.activations[i], kept[i]
            if activation is not None and needed is not None:
                delta = slope_(activation, needed).mul_(delta)
            delta = _product(delta, self.weights[i])
        return delta


class MLPOracle(Oracle):
    """Plain MLPs and linear models, by hand.

    Parameters
    ----------
    weights : sequence of tensors (out, in)
        One per layer, from input to output.
    biases : sequence of tensors (out,) or None
        One per layer.
    activations : str or sequence of str
        After each layer but the last ("relu", "tanh", "sigmoid", "leaky_relu", "gelu", "silu", "elu", "softplus",
        "identity"); one name for all.
    loss : str, Loss or callable, default="cross_entropy"

    Notes
    -----
    One output stands for two classes with the scores (−z/2, z/2), or for the value of a regression. Hidden layers
    are kept in memory that is used again; what is returned is always fresh.

    Examples
    --------
    >>> oracle = MLPOracle([torch.tensor([[1.0, 0.0]])], [torch.zeros(1)], "relu")   # logistic regression
    >>> loss, gradient = oracle(torch.zeros(1, 2), torch.tensor([1]))
    >>> loss, gradient
    (tensor([0.6931]), tensor([[-0.5000, -0.0000]]))
    """

    def __init__(
        self,
        weights: Sequence[torch.Tensor],
        biases: Sequence[torch.Tensor | None],
        activations: str | Sequence[str | Activation],
        loss: LossLike = "cross_entropy",
    ) -> None:
        names = [activations] * (len(weights) - 1) if isinstance(activations, str) else list(activations)
        if len(weights) == 0 or len(biases) != len(weights) or len(names) != len(weights) - 1:
            raise InputError(
                f"MLPOracle: {len(weights)} weights, {len(biases)} biases and {len(names)} activations do not fit. "
                "Pass one weight and one bias per layer and one activation between layers."
            )
        for before, after in itertools.pairwise(weights):
            if after.shape[1] != before.shape[0]:
                raise InputError(
                    f"MLPOracle: a layer of {before.shape[0]} outputs is followed by one of {after.shape[1]} inputs. "
                    "Weights have shape (out, in)."
                )
        units = [*map(as_activation, names), IDENTITY]
        stages = [
            Stage(((weight, bias),), None if unit == IDENTITY else unit)
            for weight, bias, unit in zip(weights, biases, units, strict=True)
        ]
        self._start(Network(tuple(stages)), as_loss(loss, owner="MLPOracle"))

    def _start(self, network: Network, objective: Loss) -> None:
        self.objective = differentiable_loss(objective, owner="MLPOracle")
        self.network = network
        n_classes = max(network.n_outputs, 2)
        probe = torch.zeros(1)
        self._margin = (
            not objective.regression
            and n_classes == 2
            and objective.margin_value_and_slope(probe) is not None
        )
        if objective.regression and network.n_outputs != 1:
            raise InputError(
                f"MLPOracle: a regression needs one output, the network has {network.n_outputs}."
            )
        self._buffers, self._targets = _Buffers(), _Targets()

    @classmethod
    def from_network(cls, network: Network, loss: LossLike = "cross_entropy") -> MLPOracle:
        """Return the oracle of a `Network` (its ending is not looked at)."""
        self = cls.__new__(cls)
        self._start(network, as_loss(loss, owner="MLPOracle"))
        return self

    @classmethod
    def try_module(cls, module: nn.Module, objective: Loss, *, output: TorchOutput) -> MLPOracle | None:
        """Return the oracle if the module is plain and its last layer says what `output` says, else None."""
        network = network_of(module)
        if network is None:
            return None
        expected = ("softmax", "sigmoid") if output == "probabilities" else (None, "log_softmax")
        if network.ending not in expected:
            return None
        # A regression or a user's own loss is a function of what really comes out at the end.
        if network.ending is not None and (objective.regression or objective.wants == "native"):
            return None
        return cls.from_network(network, objective)

    @property
    def dtype(self) -> torch.dtype:
        """Floating dtype of the weights."""
        return self.network.first.dtype

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.network.first.device

    def to(self, dtype: torch.dtype) -> MLPOracle:
        """Return a copy of the network as it is now in another precision; this one when it has it already."""
        if dtype == self.dtype:
            return self
        stages = []
        for stage in self.network.stages:
            weight, bias = stage.read()
            stages.append(Stage(((weight.detach().to(dtype), bias.detach().to(dtype)),), stage.activation))
        return MLPOracle.from_network(Network(tuple(stages)), self.objective)

    def after(self, matrix: Any, offset: Any) -> MLPOracle:
        """Return the oracle of rows that this one knows as Ax + b: W(Ax + b) + c = (WA)x + (Wb + c).

        The weights are read once, here.
        """
        with torch.no_grad():
            weight, bias = self.network.stages[0].read()
            # In double precision: the product stands for two maps that would each be rounded once.
            wide = weight.detach().double()
            first = (wide @ like(matrix, wide)).to(weight.dtype)
            moved = (wide @ like(offset, wide) + bias.detach().double()).to(weight.dtype)
            stage = Stage(((first, moved),), self.network.stages[0].activation)
        network = replace(self.network, stages=(stage, *self.network.stages[1:]))
        return MLPOracle.from_network(network, self.objective)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and its gradient by x (n, d)."""
        with torch.no_grad():
            self._check(x)
            return self._pass().loss_and_gradient(x, y)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss (n,)."""
        with torch.no_grad():
            self._check(x)
            return self._pass().loss(x, y)

    def fold(self, x: torch.Tensor, basis: Any) -> FoldedOracle:
        """Fold x and the basis into the first layer: W₁(x + Qz) + b = (W₁x + b) + (W₁Q)z.

        The weights are read once, here.
        """
        with torch.no_grad():
            self._check(x)
            columns = like(basis, x)
            now = self._pass()
            first, bias = now.weights[0], now.addends[0]
            # A linear model of two classes has the vector of its margin for a first layer.
            addend = torch.addmv(bias, x, first) if first.ndim == 1 else torch.addmm(bias, x, first.t())
            weights = (first @ columns, *now.weights[1:])
            folded = replace(now, weights=weights, addends=(addend, *now.addends[1:]))
        return _FoldedMLP(folded)

    def single_layer(self, x: torch.Tensor, y: torch.Tensor) -> SingleLayer | None:
        """Return the network as a function of displacements of x (n, d), if it has one hidden layer of ReLUs.

        The weights are read once, here.
        """
        if len(self.network.stages) != 2:
            return None
        with torch.no_grad():
            self._check(x)
            now = self._pass()
            return now.single_layer(torch.addmm(now.addends[0], x, now.weights[0].t()), y)

    def _check(self, x: torch.Tensor) -> None:
        if x.ndim != 2 or x.shape[1] != self.network.n_inputs or x.dtype != self.dtype:
            raise InputError(
                f"MLPOracle: 'x' must be {self.dtype} of shape (n, {self.network.n_inputs}), "
                f"got {x.dtype} of shape {tuple(x.shape)}."
            )

    def _pass(self) -> _Pass:
        weights, addends, activations = [], [], []
        for stage in self.network.stages:
            weight, addend = stage.read()
            weights.append(weight)
            addends.append(addend)
            activations.append(stage.activation)
        if self._margin:
            single = len(weights[-1]) == 1
            weights[-1] = weights[-1][0] if single else weights[-1][1] - weights[-1][0]
            addends[-1] = addends[-1][0] if single else addends[-1][1] - addends[-1][0]
        elif len(weights[-1]) == 1 and not self.objective.regression:
            weights[-1] = torch.cat([-weights[-1] / 2, weights[-1] / 2])
            addends[-1] = torch.cat([-addends[-1] / 2, addends[-1] / 2])
        return _Pass(
            tuple(weights),
            tuple(addends),
            tuple(activations),
            self.objective,
            self._margin,
            self._buffers,
            self._targets,
        )


class _FoldedMLP(FoldedOracle):
    """An MLP over subspace coefficients, with one row of first-layer values per row of the batch."""

    def __init__(self, folded: _Pass) -> None:
        self._pass = folded

    def __call__(self, z: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            return self._pass.loss_and_gradient(z, y)

    def loss(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self._pass.loss(z, y)

    def single_layer(self, y: torch.Tensor) -> SingleLayer | None:
        return self._pass.single_layer(self._pass.addends[0], y)

    def take(self, rows: torch.Tensor) -> FoldedOracle:
        addends = self._pass.addends
        return _FoldedMLP(replace(self._pass, addends=(addends[0][rows], *addends[1:])))
