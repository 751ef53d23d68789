"""Per-row losses by name: from a model's outputs in numpy, and with a slope in torch if there is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from likewise.core.checks import FloatArray, check_number, to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter

if TYPE_CHECKING:
    import torch

TorchLoss: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"

Wanted: TypeAlias = Literal["probabilities", "scores", "decisions", "values", "native"]


class Loss(ABC):
    """What a prediction costs, row by row.

    Attributes
    ----------
    name : str
        How it is called in `as_loss`.
    wants : {"probabilities", "scores", "decisions", "values", "native"}
        What a model should be asked for: class probabilities (scores do as well), class scores, decisions
        (anything whose largest entry is the decision), one value per row (regression), or whatever the model
        gives.
    regression : bool
        Whether targets are numbers and not class indices.
    differentiable : bool
        Whether it has a slope that a gradient search can climb.
    upper_bound : float
        The largest value a row can have (the M of a finite-sample certificate); inf if there is none.
    row_targets : bool
        Whether targets are row numbers that the loss looks up by itself, so that oracles do not take them for
        classes.

    Notes
    -----
    In numpy (`table`, `losses`, `pairwise`) outputs are (n, C) class scores, or probabilities when
    ``probabilities=True``. In torch (`torch_losses`, `value_and_slope`) they are always scores.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Regret(Loss):
    ...     name = "regret"
    ...     wants = "probabilities"
    ...     upper_bound = 1.0
    ...     def table(self, outputs, *, probabilities=False):
    ...         return 1 - outputs
    ...     def torch_losses(self, scores, target):
    ...         return 1 - scores.softmax(-1).gather(1, target[:, None])[:, 0]
    >>> Regret().losses(np.array([[0.9, 0.1]]), [1], probabilities=True)
    array([0.9])
    """

    name: ClassVar[str]
    wants: ClassVar[Wanted]
    regression: bool = False
    differentiable: bool = True
    upper_bound: float = float("inf")
    row_targets: ClassVar[bool] = False

    @abstractmethod
    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Return the loss of each row under every class label, (n, C) float64."""

    @abstractmethod
    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of each row, (n,), as a differentiable function of the scores (n, C)."""

    def losses(self, outputs: FloatArray, target: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the loss of each row at its own target, (n,) float64.

        Parameters
        ----------
        outputs : ndarray of shape (n, C)
            Scores, or probabilities when said so; (n, 1) values for regression.
        target : ndarray of shape (n,)
            Class indices; numbers for regression.
        probabilities : bool, default=False
            Whether `outputs` are probabilities.
        """
        table = self.table(outputs, probabilities=probabilities)
        return np.take_along_axis(table, np.asarray(target)[:, None], axis=1)[:, 0]

    def pairwise(self, outputs: FloatArray, targets: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the loss of each of m rows of outputs under each of k targets, (m, k) float64.

        Examples
        --------
        >>> Squared().pairwise(np.array([[1.0], [3.0]]), [0.0, 1.0])
        array([[1., 0.],
               [9., 4.]])
        """
        return self.table(outputs, probabilities=probabilities)[:, np.asarray(targets)]

    def value_and_slope(
        self, scores: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of each row (n,) and its derivative by the scores (n, C), outside any graph."""
        import torch

        with torch.enable_grad():
            leaf = scores.detach().requires_grad_(True)
            loss = self.torch_losses(leaf, target)
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        return loss.detach(), slope

    def margin_value_and_slope(self, margin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """For two classes: loss and derivative by the margin (score of the label minus the other), or None.

        None says that the loss is not a function of that margin alone.
        """
        return None


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """−log of the probability of the label; the default.

    Parameters
    ----------
    floor : float in [0, 0.5), default=1e-12
        A probability below it counts as it, so a model that gives a label the probability 0 has a loss of
        −log(floor) ≈ 27.6 and not infinity. That is also the `upper_bound` of a row. With ``floor=0``
        nothing is clipped and there is no bound.

    Notes
    -----
    Clipping is part of the loss for every model, whether it answers with probabilities or with logits. The
    torch side is not clipped: a clipped loss has no slope left to climb. Up to the bound both are the same.

    Examples
    --------
    >>> CrossEntropy().table(np.array([[0.25, 0.75]]), probabilities=True).round(3)
    array([[1.386, 0.288]])
    >>> round(CrossEntropy().upper_bound, 2)
    27.63
    """

    floor: float = 1e-12
    name: ClassVar[str] = "cross_entropy"
    wants: ClassVar[Wanted] = "probabilities"
    upper_bound: float = field(init=False)

    def __post_init__(self) -> None:
        floor = check_number(self.floor, owner="CrossEntropy", name="floor", low=0, high=0.5, open_high=True)
        object.__setattr__(self, "upper_bound", float(-np.log(floor)) if floor > 0 else float("inf"))

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Return −log p of every class, (n, C), at most `upper_bound`."""
        outputs = np.asarray(outputs, dtype=np.float64)
        if probabilities:
            with np.errstate(divide="ignore"):
                table = -np.log(np.maximum(outputs, self.floor))
        else:
            shifted = outputs - outputs.max(axis=1, keepdims=True)
            table = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted
        # Probabilities a rounding above 1 would give a loss a rounding below 0.
        return np.clip(table, 0.0, self.upper_bound)

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return log Σ exp(s) − s_y, (n,), not clipped."""
        import torch

        return torch.nn.functional.cross_entropy(scores, target, reduction="none")

    def value_and_slope(
        self, scores: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and softmax(s) − onehot(y), (n, C)."""
        # Few classes and many rows: torch is several times faster along the first axis.
        log_p = scores.t().log_softmax(dim=0)
        index = target[None, :]
        loss = log_p.gather(0, index)[0].neg_()
        slope = log_p.exp_()
        slope.scatter_add_(0, index, slope.new_full((1, 1), -1.0).expand(index.shape))
        return loss, slope.t()

    def margin_value_and_slope(self, margin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log(1 + exp(−t)) and −σ(−t) for margins t, (n,)."""
        import torch

        return torch.nn.functional.softplus(-margin), torch.sigmoid(-margin).neg_()


@dataclass(frozen=True)
class Hinge(Loss):
    """Margin loss max(0, 1 + max_{j≠y} s_j − s_y); for two classes max(0, 1 − ±f) of the decision value f.

    A model that answers with one decision value f has the class scores (−f/2, f/2), so that their difference
    is f.

    Examples
    --------
    >>> Hinge().table(np.array([[0.0, 0.5, 3.0]]))
    array([[4. , 3.5, 0. ]])
    """

    name: ClassVar[str] = "hinge"
    wants: ClassVar[Wanted] = "scores"

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Return the margin loss under every class, (n, C)."""
        if probabilities:
            raise InputError(
                "Hinge: needs class scores, and this model gives probabilities. Use loss='cross_entropy'."
            )
        scores = np.asarray(outputs, dtype=np.float64)
        order = np.sort(scores, axis=1)
        best, second = order[:, -1:], order[:, -2:-1]
        is_best = np.zeros(scores.shape, dtype=bool)
        is_best[np.arange(len(scores)), scores.argmax(axis=1)] = True
        return np.maximum(0.0, 1.0 + np.where(is_best, second, best) - scores)

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the margin loss, (n,)."""
        index = target[:, None]
        rival = scores.scatter(1, index, float("-inf")).amax(dim=1)
        return (1.0 + rival - scores.gather(1, index)[:, 0]).clamp(min=0.0)

    def value_and_slope(
        self, scores: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss (n,) and a subgradient (n, C): +1 at the strongest rival, −1 at the label, 0 when met."""
        index = target[:, None]
        rival, where = scores.scatter(1, index, float("-inf")).max(dim=1, keepdim=True)
        loss = (1.0 + rival - scores.gather(1, index)).clamp_(min=0.0)
        active = (loss > 0).to(scores.dtype)
        slope = scores.new_zeros(scores.shape).scatter_(1, where, active).scatter_(1, index, -active)
        return loss[:, 0], slope

    def margin_value_and_slope(self, margin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return max(0, 1 − t) and its subgradient for margins t, (n,)."""
        loss = (1.0 - margin).clamp_(min=0.0)
        return loss, (loss > 0).to(margin.dtype).neg_()


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 if the decision is not the label, else 0. Bounded by 1, and without a slope.

    Ties go to the first class, as `argmax` has it.

    Examples
    --------
    >>> ZeroOne().table(np.array([[0.2, 0.8]]), probabilities=True)
    array([[1., 0.]])
    """

    name: ClassVar[str] = "zero_one"
    wants: ClassVar[Wanted] = "decisions"
    differentiable: bool = field(default=False, init=False)
    upper_bound: float = field(default=1.0, init=False)

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Return 0 at the decision of each row and 1 elsewhere, (n, C)."""
        table = np.ones(outputs.shape)
        table[np.arange(len(outputs)), np.argmax(outputs, axis=1)] = 0.0
        return table

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return 0 or 1 for each row, (n,); nothing flows back through it."""
        return (scores.argmax(dim=1) != target).to(scores.dtype)


@dataclass(frozen=True)
class Squared(Loss):
    """(prediction − target)², for regression.

    Examples
    --------
    >>> Squared().losses(np.array([[1.0], [3.0]]), np.array([1.5, 1.0]))
    array([0.25, 4.  ])
    """

    name: ClassVar[str] = "squared"
    wants: ClassVar[Wanted] = "values"
    regression: bool = field(default=True, init=False)

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Raise: a regression has no classes to tabulate; use `pairwise`."""
        raise _no_table(self.name)

    def losses(self, outputs: FloatArray, target: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the squared error of each row, (n,)."""
        values = np.asarray(outputs, dtype=np.float64)[:, 0]
        return np.asarray((values - np.asarray(target, dtype=np.float64)) ** 2)

    def pairwise(self, outputs: FloatArray, targets: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the squared error of each value against each target, (m, k)."""
        values = np.asarray(outputs, dtype=np.float64)
        return np.asarray((values - np.asarray(targets, dtype=np.float64)) ** 2)

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the squared error of each row, (n,)."""
        return (scores[:, 0] - target).square()


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A user's own per-row torch loss.

    Parameters
    ----------
    function : callable (outputs (n, C) tensor, target (n,) tensor) -> (n,) tensor
        Outputs are what the model gives (logits of a torch module, probabilities of a scikit-learn
        classifier; a single logit z comes as the class scores (−z/2, z/2)). Targets are class indices (int64),
        or numbers when ``regression=True``. It must return one loss per row: ``reduction="none"``.
    upper_bound : float, default=inf
        The largest value it can return, if there is one; certificates need it.
    regression : bool, default=False
        Whether targets are numbers.

    Examples
    --------
    >>> import torch
    >>> focal = CustomLoss(lambda s, y: (1 - s.softmax(1).gather(1, y[:, None])[:, 0]) ** 2, upper_bound=1.0)
    >>> focal.table(np.array([[0.0, 0.0]]))
    array([[0.25, 0.25]])
    """

    function: TorchLoss
    upper_bound: float = float("inf")
    regression: bool = False
    name: ClassVar[str] = "custom"
    wants: ClassVar[Wanted] = "native"

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Return the function's value under every class, (n, C)."""
        if self.regression:
            raise _no_table(self.name)
        return self.pairwise(outputs, np.arange(outputs.shape[1]))

    def losses(self, outputs: FloatArray, target: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the function's value at each row's target, (n,)."""
        import torch

        with torch.no_grad():
            scores = torch.tensor(np.asarray(outputs, dtype=np.float64))
            kind = torch.float64 if self.regression else torch.int64
            values = to_numpy(self.torch_losses(scores, torch.tensor(np.asarray(target)).to(kind)))
        return values.astype(np.float64)

    def pairwise(self, outputs: FloatArray, targets: Any, *, probabilities: bool = False) -> FloatArray:
        """Return the function's value of each row under each target, (m, k)."""
        columns = [self.losses(outputs, np.full(len(outputs), t)) for t in np.asarray(targets)]
        return np.stack(columns, axis=1) if columns else np.empty((len(outputs), 0))

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return what the function says, (n,), once it is one value per row."""
        loss = self.function(scores, target)
        shape = tuple(getattr(loss, "shape", ()))
        if shape != (len(scores),):
            hint = "Use reduction='none'." if shape == () else "Return one value per row."
            raise ModelError(
                f"CustomLoss: the function returned shape {shape} for {len(scores)} rows, "
                f"expected ({len(scores)},). {hint}"
            )
        return loss


LossLike: TypeAlias = "str | Loss | TorchLoss"

_NAMED: dict[str, type[CrossEntropy] | type[Hinge] | type[ZeroOne] | type[Squared]] = {
    loss.name: loss for loss in (CrossEntropy, Hinge, ZeroOne, Squared)
}


def _no_table(name: str) -> InputError:
    return InputError(
        f"loss_table: the loss {name!r} is a regression loss, its targets are numbers and not classes. "
        "Use losses(X, y), or loss.pairwise(outputs, targets) for many targets per row."
    )


@cache
def _named(name: str) -> Loss:
    """One for all: a training step asks for it several times."""
    return _NAMED[name]()


def as_loss(loss: LossLike, *, owner: str = "as_model") -> Loss:
    """Return a `Loss` for a name, a `Loss` (as it is) or a user's per-row torch function.

    Parameters
    ----------
    loss : {"cross_entropy", "hinge", "zero_one", "squared"}, Loss or callable
        A callable becomes a `CustomLoss`.
    owner : str
        For the error message.

    Examples
    --------
    >>> as_loss("zero_one")
    ZeroOne(differentiable=False, upper_bound=1.0)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _NAMED:
        return _named(loss)
    if callable(loss):
        return CustomLoss(loss)
    names = ", ".join(repr(name) for name in _NAMED)
    raise bad_parameter(owner, "loss", f"one of {names}, a Loss, or a per-row torch function", loss)
