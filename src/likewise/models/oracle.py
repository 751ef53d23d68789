"""Loss and input gradient of a torch module, row by row, without leaving a trace in the module."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from likewise.core.checks import like
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.models.losses import Loss, LossLike, as_loss

# A torch module leaves a computation exactly as it came: modes, weights, buffers, random state.


_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass
class GuardedCall:
    """What happened inside `evaluating`: whether the module wrote to its own weights or buffers."""

    wrote: bool = False


@contextmanager
def evaluating(module: nn.Module, *, keep_tensors: bool = True) -> Iterator[GuardedCall]:
    """Run a block with the module in evaluation mode, then put everything back, also when the block raises."""
    training = [part for part in module.modules() if part.training]
    tensors = [*module.parameters(), *module.buffers()] if keep_tensors else []
    copies = [tensor.detach().clone() for tensor in tensors]
    cpu_state = torch.get_rng_state()
    device = module_device(module)
    cuda_state = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    for part in training:
        part.training = False
    happened = GuardedCall()
    try:
        yield happened
    finally:
        for part in training:
            part.training = True
        torch.set_rng_state(cpu_state)
        if cuda_state is not None:
            torch.cuda.set_rng_state(cuda_state, device)
        for tensor, copy in zip(tensors, copies, strict=True):
            if not torch.equal(tensor, copy):
                # Through .data, so that a graph of the caller that holds this tensor stays valid.
                tensor.data.copy_(copy)
                happened.wrote = True


def module_dtype(module: nn.Module) -> torch.dtype:
    """Floating dtype of the module's parameters; torch's default when it has none."""
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype
    return torch.get_default_dtype()


def is_half_precision(module: nn.Module) -> bool:
    """Whether the module computes in fewer than 32 bits, where rounding is too coarse to prove anything."""
    return torch.finfo(module_dtype(module)).bits < 32


def module_device(module: nn.Module) -> torch.device:
    """Device of the module's first parameter or buffer; the CPU when it has none."""
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        return tensor.device
    return torch.device("cpu")


def check_rows_independent(module: nn.Module, *, owner: str) -> None:
    """Raise when the module mixes rows of a batch even in evaluation mode."""
    for name, part in module.named_modules():
        if isinstance(part, _BATCH_NORMS) and part.running_mean is None:
            raise InputError(
                f"{owner}: the module's {name!r} ({type(part).__name__}) has no running statistics, so its answer "
                "for a row depends on the other rows of the batch. Use track_running_stats=True."
            )


# A network with one hidden layer of ReLUs and one margin, as plain tensors for a compiled loop.


@dataclass(frozen=True, eq=False)
class SingleLayer:
    """The margin s₁ − s₀ = head · a(before + v directions) + offset of each row, by displacements v (n, D)."""

    before: torch.Tensor
    directions: torch.Tensor
    head: torch.Tensor
    offset: float
    leak: float
    signs: torch.Tensor
    loss: str


TorchOutput: TypeAlias = Literal["logits", "probabilities"]


class Oracle(ABC):
    """Loss and input gradient of every row of a batch.

    ``oracle(x, y)`` returns the loss (n,) and its gradient by x (n, d); ``oracle.loss(x, y)`` the loss alone;
    ``oracle.fold(x, basis)`` the same as a function of subspace coefficients. Targets are class indices
    (int64), or numbers for regression. Rows do not influence each other. A value that is not finite is returned
    as it is: the search reports it row by row.

    Attributes
    ----------
    objective : Loss
        What is differentiated. Cross-entropy is not clipped here.
    dtype : torch.dtype
        What x must have.

    Examples
    --------
    >>> import likewise as lw
    >>> net = torch.nn.Linear(2, 2)
    >>> oracle = lw.as_model(net).gradient_oracle()
    >>> loss, gradient = oracle(torch.zeros(3, 2), torch.tensor([0, 1, 1]))
    >>> loss.shape, gradient.shape, gradient.requires_grad
    (torch.Size([3]), torch.Size([3, 2]), False)
    """

    objective: Loss

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """Floating dtype of the rows it takes."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Device of the rows it takes."""

    @abstractmethod
    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and its gradient by x (n, d); both fresh tensors outside any graph."""

    @abstractmethod
    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss (n,)."""

    def fold(self, x: torch.Tensor, basis: Any) -> FoldedOracle:
        """Return the oracle as a function of coefficients z (n, K) of x + z Qᵀ.

        Parameters
        ----------
        x : Tensor of shape (n, d)
            The rows to start from.
        basis : array or Tensor of shape (d, K)
            The columns of Q.

        Returns
        -------
        FoldedOracle
            If the first layer is linear, a call costs K and not d per row and unit of that layer.
        """
        return _PlainFold(self, x, like(basis, x))

    def single_layer(self, x: torch.Tensor, y: torch.Tensor) -> SingleLayer | None:
        """Return the model as a function of displacements of x (n, d) if it is a `SingleLayer`, else None."""
        return None

    def after(self, matrix: Any, offset: Any) -> Oracle:
        """Return the oracle of rows x that this one knows as Ax + b.

        Parameters
        ----------
        matrix : array or Tensor of shape (d_own, d)
            A.
        offset : array or Tensor of shape (d_own,)
            b.
        """
        like_rows = torch.zeros(0, dtype=self.dtype, device=self.device)
        return _AffineOracle(self, like(matrix, like_rows), like(offset, like_rows))


class FoldedOracle(ABC):
    """An oracle over subspace coefficients: ``folded(z, y)`` → loss (n,) and gradient by z (n, K)."""

    @abstractmethod
    def __call__(self, z: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and its gradient by z (n, K)."""

    @abstractmethod
    def loss(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss (n,)."""

    def single_layer(self, y: torch.Tensor) -> SingleLayer | None:
        """Return the model as a function of z if it is a `SingleLayer`, else None."""
        return None

    @abstractmethod
    def take(self, rows: torch.Tensor) -> FoldedOracle:
        """Return the same for some of the rows (indices or a mask), for when the others have converged."""


class _PlainFold(FoldedOracle):
    """The fold by the chain rule: x + z Qᵀ forward, the gradient times Q back."""

    def __init__(self, oracle: Oracle, x: torch.Tensor, basis: torch.Tensor) -> None:
        self._oracle, self._x, self._basis = oracle, x, basis

    def __call__(self, z: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss, gradient = self._oracle(torch.addmm(self._x, z, self._basis.t()), y)
        return loss, gradient @ self._basis

    def loss(self, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._oracle.loss(torch.addmm(self._x, z, self._basis.t()), y)

    def take(self, rows: torch.Tensor) -> FoldedOracle:
        return _PlainFold(self._oracle, self._x[rows], self._basis)


class _AffineOracle(Oracle):
    """An oracle behind an affine map, by the chain rule."""

    def __init__(self, inner: Oracle, matrix: torch.Tensor, offset: torch.Tensor) -> None:
        self._inner, self._matrix, self._offset = inner, matrix, offset
        self.objective = inner.objective

    @property
    def dtype(self) -> torch.dtype:
        return self._inner.dtype

    @property
    def device(self) -> torch.device:
        return self._inner.device

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss, gradient = self._inner(self._mapped(x), y)
        return loss, gradient @ self._matrix

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._inner.loss(self._mapped(x), y)

    def fold(self, x: torch.Tensor, basis: Any) -> FoldedOracle:
        return self._inner.fold(self._mapped(x), self._matrix @ like(basis, x))

    def _mapped(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self._offset, x, self._matrix.t())


class AutogradOracle(Oracle):
    """Any `nn.Module`, by `torch.autograd.grad` on x alone.

    The module is evaluated in eval mode and left exactly as it came: modes, requires_grad, gradients, weights,
    buffers and torch's random state, also when it raises.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (n, d) to (n, C) logits, or to (n,) or (n, 1) for two classes or regression.
    loss : str, Loss or callable, default="cross_entropy"
    output : {"logits", "probabilities"}, default="logits"
        What the module returns.

    Examples
    --------
    >>> net = nn.Linear(2, 2)
    >>> oracle = AutogradOracle(net)
    >>> loss, gradient = oracle(torch.zeros(3, 2), torch.tensor([0, 1, 1]))
    >>> loss.shape, gradient.shape, net.weight.grad is None
    (torch.Size([3]), torch.Size([3, 2]), True)
    """

    def __init__(
        self, module: nn.Module, loss: LossLike = "cross_entropy", *, output: TorchOutput = "logits"
    ) -> None:
        self.objective = differentiable_loss(as_loss(loss, owner="AutogradOracle"), owner="AutogradOracle")
        check_rows_independent(module, owner="AutogradOracle")
        self._module = module
        self._output: TorchOutput = output
        # Copying the weights on every step costs; a module that did not write to them once will not.
        self._careful = True

    @property
    def dtype(self) -> torch.dtype:
        """Floating dtype of the module's parameters."""
        return module_dtype(self._module)

    @property
    def device(self) -> torch.device:
        """Device of the module's parameters."""
        return module_device(self._module)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and its gradient by x (n, d)."""
        with self._guarded(), torch.inference_mode(False), torch.enable_grad():
            leaf = (x.clone() if x.is_inference() else x.detach()).requires_grad_(True)
            loss = self._losses(leaf, y.clone() if y.is_inference() else y)
            if not loss.requires_grad:
                raise ModelError(
                    "AutogradOracle: the module's output does not depend on its input by anything that torch can "
                    "differentiate (detached, rounded, or computed outside torch). Use the candidate search."
                )
            (gradient,) = torch.autograd.grad(loss.sum(), leaf, allow_unused=True)
            gradient = torch.zeros_like(leaf) if gradient is None else gradient
        return loss.detach(), gradient

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the loss (n,)."""
        with self._guarded(), torch.no_grad():
            return self._losses(x, y)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with evaluating(self._module, keep_tensors=self._careful) as happened:
            yield
        self._careful = happened.wrote

    def _losses(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # A clone, because a module may begin with an operation in place.
        raw = self._module(x.clone())
        scores = class_scores(raw, n=len(x), loss=self.objective, output=self._output)
        if not self.objective.row_targets:
            check_targets(y, n=len(x), n_classes=None if self.objective.regression else scores.shape[1])
        return self.objective.torch_losses(scores, y)


def class_scores(raw: object, *, n: int, loss: Loss, output: TorchOutput) -> torch.Tensor:
    """Turn what a module returned for n rows into class scores (n, C), or values (n, 1) for regression.

    A single logit z becomes (−z/2, z/2); probabilities become their logarithms, which are logits of the same
    probabilities, unless the loss is a user's own, which gets what the module gives.
    """
    if not isinstance(raw, torch.Tensor):
        raise ModelError(
            f"The module returned {type(raw).__name__}, expected a tensor of shape (n, C). "
            "Wrap it in a module that returns the logits."
        )
    scores = raw[:, None] if raw.ndim == 1 else raw
    if scores.ndim != 2 or len(scores) != n:
        raise ModelError(
            f"The module returned shape {tuple(raw.shape)} for {n} rows, expected ({n}, number of classes)."
        )
    if loss.regression:
        if scores.shape[1] != 1:
            raise ModelError(f"A regression needs one value per row, the module returned {scores.shape[1]}.")
        return scores
    if output == "logits":
        return torch.cat([-scores / 2, scores / 2], dim=1) if scores.shape[1] == 1 else scores
    if scores.shape[1] == 1:
        scores = torch.cat([1 - scores, scores], dim=1)
    if loss.wants == "native":
        return scores
    return scores.clamp(min=torch.finfo(scores.dtype).tiny).log()


def check_targets(y: torch.Tensor, *, n: int, n_classes: int | None) -> None:
    """Raise unless y has one target per row: int64 class indices below `n_classes`, or floating numbers."""
    if y.shape != (n,):
        raise InputError(f"oracle: 'y' must have shape ({n},), one target per row, got {tuple(y.shape)}.")
    if n_classes is None:
        if not y.is_floating_point():
            raise bad_parameter("oracle", "y", "floating numbers for a regression", str(y.dtype))
        return
    if y.dtype != torch.int64:
        raise bad_parameter("oracle", "y", "class indices (int64)", str(y.dtype), "Use model.targets(y).")
    if n and not bool(((y >= 0) & (y < n_classes)).all()):
        raise InputError(
            f"oracle: 'y' must be class indices from 0 to {n_classes - 1}, got {int(y.min())} to {int(y.max())}."
        )


def differentiable_loss(loss: Loss, *, owner: str) -> Loss:
    """Return the loss if it has a slope; raise an error that says what to use otherwise."""
    if loss.differentiable:
        return loss
    raise InputError(
        f"{owner}: the loss {loss.name!r} has no slope to climb. Use the candidate search, which needs none, "
        "or loss='cross_entropy' or 'hinge'."
    )


def make_oracle(
    module: nn.Module,
    loss: LossLike = "cross_entropy",
    *,
    fast: bool = True,
    output: Literal["auto", "logits", "probabilities"] = "auto",
) -> Oracle:
    """Return the fastest oracle that fits a module.

    Parameters
    ----------
    module : torch.nn.Module
    loss : str, Loss or callable, default="cross_entropy"
    fast : bool, default=True
        Whether plain MLPs and linear models may use hand-written gradients (`MLPOracle`), which agree with
        autograd to float tolerance.
    output : {"auto", "logits", "probabilities"}, default="auto"
        What the module returns. "auto" sees a last layer that is a softmax or, for one output, a sigmoid;
        anything else counts as logits.

    Examples
    --------
    >>> type(make_oracle(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))).__name__
    'MLPOracle'
    """
    from likewise.models.mlp import MLPOracle
    from likewise.models.network import torch_output

    objective = differentiable_loss(as_loss(loss, owner="make_oracle"), owner="make_oracle")
    kind = torch_output(module) if output == "auto" else output
    found = MLPOracle.try_module(module, objective, output=kind) if fast else None
    return AutogradOracle(module, objective, output=kind) if found is None else found
