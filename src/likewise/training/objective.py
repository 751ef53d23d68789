"""The contract of training objectives, and the explicit state that is passed from step to step."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from likewise.core.errors import InputError
from likewise.core.plain import plain_settings
from likewise.models.losses import Loss, LossLike, as_loss
from likewise.models.network import torch_output
from likewise.models.oracle import class_scores, differentiable_loss, evaluating
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.distributed import current_share, total


@dataclass(frozen=True, eq=False)
class State:
    """Everything an objective remembers between steps.

    Attributes
    ----------
    step : int
        Steps done.
    lambda_ : float
        The λ of the dual; 0 for objectives that have none.
    warm : Tensor of shape (n, d) or None
        Where the search of each row of the data ended last time, as a displacement. The one part that is
        written in place (it is as large as the data).
    last : mapping of str to float
        What happened in the last step: for the history.
    counters : mapping of str to float
        Sums over all steps: for the diagnosis.
    tensors : mapping of str to Tensor
        Anything else, such as an adversary's weights and the moments of its optimiser.

    Examples
    --------
    >>> state = State(step=3, lambda_=0.5)
    >>> State.from_tensors(*state.to_tensors()).lambda_
    0.5
    """

    step: int = 0
    lambda_: float = 0.0
    warm: torch.Tensor | None = None
    last: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def after(self, *, count: Mapping[str, float] | None = None, **changes: Any) -> State:
        """Return the state one step later, with `count` added to the counters.

        Examples
        --------
        >>> State().after(count={"rows": 2}).after(count={"rows": 3}).counters["rows"]
        5
        """
        added = {key: self.counters.get(key, 0) + value for key, value in (count or {}).items()}
        return dataclasses.replace(self, step=self.step + 1, counters={**self.counters, **added}, **changes)

    def to_tensors(self) -> tuple[dict[str, torch.Tensor], str]:
        """Return the tensors by name, and the numbers as JSON, from which `from_tensors` makes it again."""
        tensors = {f"tensors.{name}": tensor for name, tensor in self.tensors.items()}
        if self.warm is not None:
            tensors["warm"] = self.warm
        numbers = {
            "step": self.step,
            "lambda_": self.lambda_,
            "last": dict(self.last),
            "counters": dict(self.counters),
        }
        return tensors, json.dumps(numbers)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, torch.Tensor], numbers: str) -> State:
        """Make the state that `to_tensors` described."""
        read = json.loads(numbers)
        start = len("tensors.")
        return cls(
            step=read["step"],
            lambda_=read["lambda_"],
            warm=tensors.get("warm"),
            last=read["last"],
            counters=read["counters"],
            tensors={k[start:]: v for k, v in tensors.items() if k.startswith("tensors.")},
        )

    def to(self, device: str | torch.device) -> State:
        """Return the state with its tensors on a device."""
        return dataclasses.replace(
            self,
            warm=None if self.warm is None else self.warm.to(device),
            tensors={name: tensor.to(device) for name, tensor in self.tensors.items()},
        )


class Objective(ABC):
    """What a training minimises. Subclasses are frozen dataclasses of choices; what changes is in a `State`.

    The loop is the user's (or `train`)::

        state = objective.init(net)
        for batch in loader:
            loss, state = objective.step(net, batch, state)
            optimizer.zero_grad(); loss.backward(); optimizer.step()

    Attributes
    ----------
    sums_over_ranks : bool
        Whether `step` and `robust_loss` may get a share of a batch in a distributed training, because all that they
        add up over rows goes through `weighted_mean` or `likewise.training.distributed.total`. If it is not set,
        every rank gets the whole batch: always right, but no faster than one process. A subclass with a
        `step` of its own sets it again.

    Examples
    --------
    >>> import torch
    >>> from likewise.training import ERM, mlp
    >>> net, objective = mlp(1, (), 2), ERM()
    >>> state = objective.init(net)
    >>> loss, state = objective.step(net, (torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])), state)
    >>> loss.requires_grad, objective.sums_over_ranks
    (True, True)
    """

    loss: LossLike = "cross_entropy"
    sums_over_ranks: ClassVar[bool] = False

    def __init_subclass__(cls, **choices: Any) -> None:
        super().__init_subclass__(**choices)
        own = vars(cls)
        if "sums_over_ranks" not in own and ("step" in own or "robust_loss" in own):
            cls.sums_over_ranks = False

    @property
    def parts(self) -> tuple[Objective, ...]:
        """Objectives that this one is made of: batches are shared between ranks only if all of them can be."""
        return ()

    @abstractmethod
    def init(self, net: nn.Module) -> State:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Return the loss to call ``backward()`` on, and the next state.

        Parameters
        ----------
        net : torch.nn.Module
            Maps (n, d) to (n, C) logits.
        batch : Batch, (x, y), (x, y, sensitive_features) or mapping
        state : State
            What `init` or the step before returned.

        Returns
        -------
        loss : scalar Tensor
            Its gradient by the network's parameters is the direction to descend.
        state : State
        """

    @abstractmethod
    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return what is minimised on held-out rows, at the state as it is; nothing changes."""

    def check(self, batch: Batch) -> None:  # noqa: B027 - most objectives take any batch
        """Raise an error, before training starts, when the data does not fit the objective."""

    def describe(self) -> dict[str, Any]:
        """Return the choices as a plain dict, for history, checkpoints and reports.

        Examples
        --------
        >>> from likewise.training import ERM
        >>> ERM().describe()
        {'objective': 'ERM', 'loss': 'cross_entropy'}
        """
        choices = {f.name: plain_settings(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"objective": type(self).__name__, **choices}

    @property
    def row_loss(self) -> Loss:
        """The loss of one row, as the `Loss` it is."""
        return differentiable_loss(as_loss(self.loss, owner=type(self).__name__), owner=type(self).__name__)


def network_scores(net: nn.Module, x: torch.Tensor, loss: Loss) -> torch.Tensor:
    """Return class scores (n, C) of a network in the mode it is in, with the graph to its parameters.

    One output z becomes the scores (−z/2, z/2); probabilities become their logarithms.
    """
    return class_scores(net(x), n=len(x), loss=loss, output=torch_output(net, loss))


def try_network(net: nn.Module, x: torch.Tensor, loss: Loss, *, owner: str, name: str) -> int:
    """Return how many outputs a network gives for the first rows, or raise an error if they do not fit it."""
    try:
        with evaluating(net), torch.no_grad():
            return network_scores(net, x[:2], loss).shape[1]
    except RuntimeError as error:
        raise InputError(
            f"{owner}: {name} cannot be applied to rows of {x.shape[1]} columns: {error}. "
            "Its first layer must take as many."
        ) from error


def weighted_mean(values: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """Return the mean of one value per row, weighted if there are weights; over all ranks if they share."""
    if current_share() is None:
        return values.mean() if weight is None else (values * weight).sum() / weight.sum()
    counts = torch.ones_like(values) if weight is None else weight
    both = total(torch.stack([(values * counts).sum(), counts.sum().to(values)]))
    return both[0] / both[1]


# Empirical risk minimisation: the mean loss, and nothing else.


@dataclass(frozen=True)
class ERM(Objective):
    """The mean loss of the batch: the paper's "Baseline", and "Project" behind a projection.

    Parameters
    ----------
    loss : {"cross_entropy", "hinge", "squared"}, Loss or callable, default="cross_entropy"

    Examples
    --------
    >>> net, objective = nn.Linear(2, 2), ERM()
    >>> loss, state = objective.step(net, (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])), objective.init(net))
    >>> loss.requires_grad, state.step
    (True, 1)
    """

    loss: LossLike = "cross_entropy"
    sums_over_ranks: ClassVar[bool] = True

    def init(self, net: nn.Module) -> State:
        """Return an empty state."""
        return State()

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Return the mean loss and the next state; see `Objective.step`."""
        return self._mean_loss(net, batch), state.after()

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the mean loss."""
        with evaluating(net, keep_tensors=False), torch.no_grad():
            return float(self._mean_loss(net, batch))

    def _mean_loss(self, net: nn.Module, batch: BatchLike) -> torch.Tensor:
        rows, loss = as_batch(batch), self.row_loss
        return weighted_mean(loss.torch_losses(network_scores(net, rows.x, loss), rows.y), rows.weight)
