"""The damped fixed-point ascent: one step size per row, nothing accepted that does not raise the objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch

from likewise.auditing.search.gradient.spaces import Point, Space, row_dot

# How the search of one row ended, and what a search hands back.


class RowStatus(IntEnum):
    """How the search of one row ended."""

    CONVERGED = 0
    """The value can no longer be raised by more than the tolerance from where the search stands."""
    MAX_STEPS = 1
    """The steps ran out while the value was still rising: more steps may find a worse case."""
    NON_FINITE = 2
    """A loss or a gradient was not finite. What was found until then is no evidence of fairness."""


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
    move = space.move(v, point, reach)
    objective = space.objective(point.loss, point.squared)
    sound = torch.isfinite(objective + move.rise)
    status = torch.where(sound, RowStatus.MAX_STEPS.value, RowStatus.NON_FINITE.value).to(torch.int8)
    state = _State(
        v=v,
        loss=point.loss,
        objective=objective,
        step=move.step,
        size=move.size,
        rise=move.rise,
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
    factor = _secant(state.rise, end_rise, taken)
    reach = state.reach * factor
    reach = torch.where(taken, reach.clamp(min=_SHORTEST, max=space.longest), reach)
    move = space.move(trial, point, reach)

    share = taken.to(trial.dtype)
    state.steps += state.climbing
    state.v.addcmul_(state.step, (state.size * share)[:, None])
    state.step.lerp_(move.step, share[:, None])
    state.loss = torch.where(taken, point.loss, state.loss)
    state.objective = torch.where(taken, objective, state.objective)
    state.size = torch.where(taken, move.size, state.size * factor)
    state.rise = torch.where(taken, move.rise, state.rise)
    state.reach = reach
    if lost is not None:
        state.status.masked_fill_(lost & state.climbing, RowStatus.NON_FINITE.value)
        state.climbing = state.climbing & ~lost
        _hold(state, lost)
    _retire(space, state, gain=gain, taken=taken, tol=tol)


def _secant(rise: torch.Tensor, end_rise: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
    """How much longer or shorter the next step should be, from the slopes at both ends of the trial.

    The slope along a trial falls from `rise` to `end_rise`, so it is zero at rise/(rise − end_rise) of it. Where
    it does not fall the objective curves upward there, and the step may grow.
    """
    falls = rise - end_rise
    root = torch.where(falls > 0.25 * rise, rise / falls, 4.0)
    return torch.where(taken, root.clamp(0.25, 4.0), root.clamp(0.1, 0.5))


def _retire(space: Space, state: _State, *, gain: torch.Tensor, taken: torch.Tensor, tol: float) -> None:
    """Let rows leave that have converged."""
    enough = state.objective.abs().clamp_(min=1.0).mul_(tol)
    promised = state.size * state.rise * space.gradient_scale
    risen = taken & (gain > enough)
    state.idle = (state.idle + 1).masked_fill_(risen, 0)
    flat = promised <= torch.where(taken, 4 * enough, enough)
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
        return [space.away(base, space.point(delta).index_select(0, at)) for delta in self.deltas]


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
