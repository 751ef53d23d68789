"""The two climbs: the damped fixed point, which accepts nothing that does not raise the objective, and the paper's Adam."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import torch

from likewise.auditing.search.gradient.spaces import Point, Quadratic, RowSpace, Space, row_dot

# How the search of one row ended, and what a search hands back.


class RowStatus(IntEnum):
    """How the search of one row ended."""

    CONVERGED = 0
    """The value can no longer be raised by more than the tolerance from where the search stands."""
    MAX_STEPS = 1
    """The steps ran out while the value was still rising: more steps may find a worse case."""
    NON_FINITE = 2
    """A loss or a gradient was not finite. What was found until then is not evidence of fairness."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The worst case found for each row."""

    x: torch.Tensor
    loss: torch.Tensor
    squared_distance: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor

    def objective(self, lam: Any) -> torch.Tensor:
        """Return ℓ − λ d² of each row, (n,); for λ = ∞ the loss, since only free moves were made."""
        weight = torch.as_tensor(lam, dtype=self.loss.dtype, device=self.loss.device)
        paid = torch.where(torch.isinf(weight), torch.zeros_like(weight), weight) * self.squared_distance
        return self.loss - paid

    def counts(self) -> dict[str, int]:
        """Return how many rows ended in each way."""
        return {status.name: int((self.status == status.value).sum()) for status in RowStatus}

    @property
    def finite(self) -> torch.Tensor:
        """Rows whose search never met a value that is not finite, bool (n,)."""
        return self.status != RowStatus.NON_FINITE.value


# A row that was turned back many times still tries steps of a tenth after its next success.
_SHORTEST = 0.1
# A row that rose by no more than the tolerance in so many steps in a row has converged: at a kink of a network
# the slope never vanishes, only the rise does.
_PATIENCE = 3
# Rows are moved together in memory once this share of the batch still climbs.
_COMPACT_AT = 0.75


@dataclass(frozen=True)
class Track:
    """Where the ascent of each row ended."""

    v: torch.Tensor
    loss: torch.Tensor
    objective: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor


@dataclass
class _State:
    """The rows that still climb: where they are, what they try next, and how far they reach."""

    v: torch.Tensor
    loss: torch.Tensor
    objective: torch.Tensor
    step: torch.Tensor
    size: torch.Tensor
    rise: torch.Tensor
    reach: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor
    climbing: torch.Tensor
    idle: torch.Tensor

    def take(self, keep: torch.Tensor) -> _State:
        return _State(**{name: value.index_select(0, keep) for name, value in self.__dict__.items()})


def ascend(space: Space, v: torch.Tensor, point: Point, *, steps: int, damping: float, tol: float) -> Track:
    """Raise ℓ − λ d² of every row from `v`, where `point` was seen.

    Each step tries x + s (T(x) − x) with T the fixed point of the stationarity condition (in rows:
    x_i + Σ⁺∇ℓ(x)/(2λ)) and s the row's own reach. The slopes at both ends of the trial give the next reach by the
    secant rule; a trial that does not raise the objective is taken back and shortened. So the value of a row
    never falls, its path does not depend on who is in the batch, and fewer steps give the beginning of the same
    path.
    """
    state = _begin(space, v, point, damping)
    ended = _Ended(state)
    for k in range(steps):
        _step(space, state, tol)
        left = int(state.climbing.sum())
        if left == 0 or k + 1 == steps:
            break
        if left <= _COMPACT_AT * len(state.climbing):
            ended.add(state, (~state.climbing).nonzero()[:, 0])
            keep = state.climbing.nonzero()[:, 0]
            space, state = space.take(keep), state.take(keep)
            ended.index = ended.index.index_select(0, keep)
    return ended.track(state)


class _Ended:
    """The rows that have left the batch, in their original places."""

    def __init__(self, state: _State) -> None:
        self.index = torch.arange(len(state.v), device=state.v.device)
        self._whole: dict[str, torch.Tensor] = {}

    def add(self, state: _State, rows: torch.Tensor) -> None:
        """Note down some of the rows of a state, whose places in the batch are `index`."""
        places = self.index.index_select(0, rows)
        for name in ("v", "loss", "objective", "status", "steps"):
            values = getattr(state, name)
            if name not in self._whole:
                self._whole[name] = values.new_empty(len(self.index), *values.shape[1:])
            self._whole[name].index_copy_(0, places, values.index_select(0, rows))

    def track(self, state: _State) -> Track:
        """Return all rows, those that have not left from the last state."""
        if not self._whole:
            return Track(state.v, state.loss, state.objective, state.status, state.steps)
        self.add(state, torch.arange(len(state.v), device=state.v.device))
        return Track(**self._whole)


def _begin(space: Space, v: torch.Tensor, point: Point, damping: float) -> _State:
    reach = torch.full_like(point.loss, damping)
    step, rise = space.move(v, point, reach)
    objective = space.objective(point.loss, point.squared)
    sound = torch.isfinite(objective + rise)
    status = torch.where(sound, RowStatus.MAX_STEPS.value, RowStatus.NON_FINITE.value).to(torch.int8)
    state = _State(
        v=v,
        loss=point.loss,
        objective=objective,
        step=step,
        size=torch.ones_like(reach),
        rise=rise,
        reach=reach,
        status=status,
        steps=torch.zeros_like(status, dtype=torch.int32),
        climbing=sound,
        idle=torch.zeros_like(status),
    )
    if not bool(sound.all()):
        _hold(state, ~sound)
    return state


def _step(space: Space, state: _State, tol: float) -> None:
    """Try one step of every row and take it where it raises the objective; in place."""
    trial = torch.addcmul(state.v, state.step, state.size[:, None])
    point = space.look(trial)
    objective = space.objective(point.loss, point.squared)
    end_rise = row_dot(state.step, point.gradient)
    taken = (objective > state.objective) & state.climbing
    values = objective + end_rise
    # One sum tells whether everything is finite, which is cheaper than asking every row.
    lost = None if math.isfinite(float(values.sum())) else ~torch.isfinite(values)
    if lost is not None:
        taken &= ~lost
    gain = objective - state.objective
    # The slope along a trial falls from `rise` to `end_rise`, so it is zero at rise/(rise − end_rise) of it. Where it does
    # not fall the objective curves upward there, and the step may grow.
    falls = state.rise - end_rise
    root = torch.where(falls > 0.25 * state.rise, state.rise / falls, 4.0)
    factor = torch.where(taken, root.clamp(0.25, 4.0), root.clamp(0.1, 0.5))
    reach = state.reach * factor
    reach = torch.where(taken, reach.clamp(min=_SHORTEST, max=space.longest), reach)
    step, rise = space.move(trial, point, reach)

    share = taken.to(trial.dtype)
    state.steps += state.climbing
    state.v.addcmul_(state.step, (state.size * share)[:, None])
    state.step.lerp_(step, share[:, None])
    state.loss = torch.where(taken, point.loss, state.loss)
    state.objective = torch.where(taken, objective, state.objective)
    state.size = torch.where(taken, 1.0, state.size * factor)
    state.rise = torch.where(taken, rise, state.rise)
    state.reach = reach
    if lost is not None:
        state.status.masked_fill_(lost & state.climbing, RowStatus.NON_FINITE.value)
        state.climbing = state.climbing & ~lost
        _hold(state, lost)
    # Rows that have converged leave.
    enough = state.objective.abs().clamp_(min=1.0).mul_(tol)
    risen = taken & (gain > enough)
    state.idle = (state.idle + 1).masked_fill_(risen, 0)
    flat = state.size * state.rise <= torch.where(taken, 4 * enough, enough)
    done = (flat | (state.idle >= _PATIENCE)) & ~risen & state.climbing
    state.status.masked_fill_(done, RowStatus.CONVERGED.value)
    state.climbing = state.climbing & ~done


def _hold(state: _State, rows: torch.Tensor) -> None:
    """Keep rows where they are: a step that is not finite would spoil the best point even with size 0."""
    state.step.masked_fill_(rows[:, None], 0.0)
    for name, value in (("size", 0.0), ("rise", 0.0), ("reach", 1.0)):
        setattr(state, name, getattr(state, name).masked_fill(rows, value))


# Displacements that make a model fail whatever the row: found once, tried on every row.


_STEPS = 8
# A probe begins where the penalty is of this size, far outside what a loss of a few nats can pay for.
_COST = 100.0
_FARTHEST = 1e6


@dataclass(frozen=True)
class Probes:
    """Displacements found at one fixed row, for every row with the same label."""

    labels: torch.Tensor
    deltas: torch.Tensor

    def ends(self, space: Space, base: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        """Each displacement from `base` as far as the domain lets it, m tensors (n, D)."""
        at = torch.searchsorted(self.labels, y)
        return [space.limit(base + space.point(d).index_select(0, at)) - base for d in self.deltas]


def find_probes(
    make_space: Callable[[torch.Tensor], Space],
    labels: torch.Tensor,
    noise: torch.Tensor,
    origin: torch.Tensor,
    *,
    count: int,
    cost: Callable[[torch.Tensor], torch.Tensor],
) -> Probes:
    """Search from random displacements of one fixed row, and keep the best distinct ones of each label.

    Far from the data a network is nearly linear along rays, so where it is worst hardly depends on the row. What
    is found here depends on the model, the metric, the domain, λ and the label alone, not on the rows audited:
    so it may be tried on each of them without making one row's result depend on another's.
    """
    targets = labels.repeat_interleave(len(noise))
    space = make_space(targets)
    paid = cost(noise).clamp(min=torch.finfo(noise.dtype).tiny)
    far = noise * (_COST / paid).sqrt().clamp(max=_FARTHEST)[:, None]
    v = space.limit(space.point(far.repeat(len(labels), 1)))
    track = ascend(space, v, space.look(v), steps=_STEPS, damping=0.5, tol=1e-4)
    deltas = space.rows(track.v) - origin
    chosen = [
        _distinct(deltas[targets == label], track.objective[targets == label], count) for label in labels
    ]
    return Probes(labels, torch.stack(chosen, dim=1))


def _distinct(deltas: torch.Tensor, values: torch.Tensor, count: int) -> torch.Tensor:
    """Best `count` displacements that differ by a tenth of their length; the best again where there are fewer."""
    sound = torch.isfinite(values) & torch.isfinite(deltas).all(1)
    deltas, values = deltas[sound], values[sound]
    if len(values) == 0:
        return deltas.new_zeros(count, deltas.shape[1])
    away = torch.cdist(deltas, deltas) / deltas.norm(dim=1).clamp(min=torch.finfo(deltas.dtype).tiny)
    kept: list[int] = []
    for i in values.argsort(descending=True, stable=True).tolist():
        if all(float(away[i, j]) > 0.1 for j in kept):
            kept.append(i)
        if len(kept) == count:
            break
    return deltas[kept + [kept[0]] * (count - len(kept))]


# Per-row Adam, the optimiser of the paper's Appendix C, with the best iterate kept.


_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


def adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb ℓ − λ d² with Adam (Kingma & Ba 2015), brought back into the domain after each step.

    The moments belong to the coordinates of each row, so rows do not influence each other. A row counts as
    converged when the last quarter of its steps raised the best value by no more than ``tol · max(1, |value|)``.
    """
    first, second = torch.zeros_like(v), torch.zeros_like(v)
    best, loss = v, space.loss(v)
    objective = space.objective(loss, space.squared(v))
    sound = torch.isfinite(objective)
    late, threshold = objective, 3 * steps // 4
    for k in range(1, steps + 1):
        point = space.look(v)
        if k > 1:
            best, loss, objective = _keep(space, best, loss, objective, v, point.loss, point.squared)
        gradient = point.gradient
        sound &= torch.isfinite(point.loss + gradient.sum(1))
        first = torch.lerp(first, gradient, 1 - _BETA1)
        second = torch.lerp(second, gradient.square(), 1 - _BETA2)
        size = step_size / (1 - _BETA1**k)
        v = space.limit(
            torch.addcdiv(v, first, (second / (1 - _BETA2**k)).sqrt_().add_(_EPSILON), value=size)
        )
        if k == threshold:
            late = objective
    if steps:
        last = space.loss(v)
        sound &= torch.isfinite(last)
        best, loss, objective = _keep(space, best, loss, objective, v, last, space.squared(v))
    status = settled_status(objective, late, sound, steps=steps, tol=tol)
    return Track(best, loss, objective, status, torch.full_like(status, steps, dtype=torch.int32))


def settled_status(
    objective: torch.Tensor, late: torch.Tensor, sound: torch.Tensor, *, steps: int, tol: float
) -> torch.Tensor:
    """RowStatus codes of rows, (n,), by their best value in the end, that after three quarters, and if all was finite."""
    settled = (objective - late <= tol * objective.abs().clamp(min=1.0)) & (steps > 0)
    status = torch.full_like(objective, RowStatus.MAX_STEPS.value, dtype=torch.int8)
    return status.masked_fill_(settled, RowStatus.CONVERGED.value).masked_fill_(
        ~sound, RowStatus.NON_FINITE.value
    )


def _keep(
    space: Space,
    best: torch.Tensor,
    loss: torch.Tensor,
    objective: torch.Tensor,
    v: torch.Tensor,
    new_loss: torch.Tensor,
    new_squared: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    value = space.objective(new_loss, new_squared)
    better = (value > objective) & torch.isfinite(value)
    return (
        torch.where(better[:, None], v, best),
        torch.where(better, new_loss, loss),
        torch.where(better, value, objective),
    )


# Adam for small networks by a compiled loop, where numba is installed; else by torch.


# Weights of the hidden layer that stay in a core's cache; beyond that BLAS is faster.
_LARGEST = 2**15


def fast_adam(space: Space, v: torch.Tensor, *, steps: int, step_size: float, tol: float) -> Track:
    """Climb as `adam` does, with the same result up to rounding.

    A network with one hidden layer of ReLUs, two classes and cross-entropy is climbed row by row by compiled code, if
    no domain stops the rows. Over all coordinates it is asked only where a hidden unit may have changed its sign: in
    between it is linear.
    """
    layer, kernel = space.single_layer(), None
    if layer is not None and layer.loss == "cross_entropy" and layer.before.device.type == "cpu":
        kernel = _kernel() if layer.directions.numel() <= _LARGEST else None
    if layer is None or kernel is None:
        return adam(space, v, steps=steps, step_size=step_size, tol=tol)
    penalty = space.penalty if isinstance(space, RowSpace) else Quadratic.nothing(v)
    directions, head = layer.directions.contiguous(), layer.head
    lengths = 1.0 / directions.square().sum(0)
    network = (
        *map(_array, (directions, directions.t(), directions * head, head, lengths)),
        *_like(v, layer.offset, layer.leak),
    )
    best, found = kernel(
        _array(layer.before),
        network,
        _array(layer.signs),
        _array(space.lam),
        (*_like(v, penalty.scale), _array(penalty.basis.t()), _array(penalty.costs)),
        steps,
        step_size,
        isinstance(space, RowSpace),
        _array(v).copy(),
    )
    loss, objective, late, sound = torch.from_numpy(found).to(v.dtype).unbind(1)
    status = settled_status(objective, late, sound > 0, steps=steps, tol=tol)
    return Track(
        torch.from_numpy(best), loss, objective, status, torch.full_like(status, steps, dtype=torch.int32)
    )


@cache
def _kernel() -> Any:
    try:
        from likewise.auditing.search.gradient.compiled_adam import climb
    except ImportError:
        return None
    return climb


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach().contiguous().numpy())


def _like(v: torch.Tensor, *numbers: float) -> tuple[Any, ...]:
    real = _array(v).dtype.type
    return tuple(real(number) for number in numbers)
