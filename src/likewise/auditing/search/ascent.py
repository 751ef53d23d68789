"""The damped fixed-point ascent: one step size per row, nothing accepted that does not raise the objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from likewise.auditing.search.spaces import Point, Space, row_dot
from likewise.auditing.search.status import Status

__all__ = ["Track", "ascend"]

# A row that was turned back many times still tries steps of a tenth after its next success.
_SHORTEST = 0.1
# A row that rose by no more than the tolerance in so many steps in a row has converged: at a kink of a network
# the slope never vanishes, only the rise does.
_PATIENCE = 3
# Rows are moved together in memory once this share of the batch still climbs.
_COMPACT_AT = 0.75


@dataclass(frozen=True)
class Track:
    """Where the ascent of each row ended.

    Attributes
    ----------
    v : Tensor of shape (n, D)
        The best point, in the coordinates of the space.
    loss, objective : Tensor of shape (n,)
        ℓ and ℓ − λ d² there.
    status : Tensor of shape (n,), int8
    steps : Tensor of shape (n,), int32
    """

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

    Parameters
    ----------
    space : Space
    v : Tensor of shape (n, D)
    point : Point
        `space.look(v)`.
    steps : int
    damping : float
        Reach of the first step.
    tol : float
        A row has converged when it can rise by no more than ``tol · max(1, |objective|)`` per step.

    Returns
    -------
    Track
    """
    state = _begin(space, v, point, damping)
    parts = _Parts(state)
    for k in range(steps):
        _step(space, state, tol)
        if k + 1 < steps:
            left = int(state.climbing.sum())
            if left == 0:
                break
            if left <= _COMPACT_AT * len(state.climbing):
                keep = state.climbing.nonzero()[:, 0]
                parts.write(state)
                parts.narrow(keep)
                space, state = space.take(keep), state.take(keep)
    parts.write(state)
    return parts.track()


class _Parts:
    """Collects the rows of all ages of a batch in their original order."""

    def __init__(self, state: _State) -> None:
        self._whole = state
        self._index: torch.Tensor | None = None

    def narrow(self, keep: torch.Tensor) -> None:
        self._index = keep if self._index is None else self._index[keep]

    def write(self, state: _State) -> None:
        if self._index is None:
            self._whole = state
            return
        for name in ("v", "loss", "objective", "status", "steps"):
            getattr(self._whole, name)[self._index] = getattr(state, name)

    def track(self) -> Track:
        whole = self._whole
        return Track(whole.v, whole.loss, whole.objective, whole.status, whole.steps)


def _begin(space: Space, v: torch.Tensor, point: Point, damping: float) -> _State:
    reach = torch.full_like(point.loss, damping)
    move = space.move(v, point, reach)
    objective = space.objective(point.loss, point.squared)
    sound = torch.isfinite(objective + move.rise)
    status = torch.where(sound, Status.MAX_STEPS.value, Status.NON_FINITE.value).to(torch.int8)
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
    sound = torch.isfinite(objective + end_rise)
    taken = (objective > state.objective) & sound & state.climbing
    gain = objective - state.objective
    factor = _secant(state.rise, end_rise, taken)
    reach = state.reach * factor
    reach = torch.where(taken, reach.clamp(min=_SHORTEST, max=space.longest), reach)
    move = space.move(trial, point, reach)

    steps = taken.to(trial.dtype)
    state.steps += state.climbing
    state.v = torch.addcmul(state.v, state.step, (state.size * steps)[:, None])
    state.loss = torch.where(taken, point.loss, state.loss)
    state.objective = torch.where(taken, objective, state.objective)
    state.size = torch.where(taken, move.size, state.size * factor)
    state.rise = torch.where(taken, move.rise, state.rise)
    state.reach = reach
    state.step = torch.lerp(state.step, move.step, steps[:, None])
    _retire(space, state, gain=gain, taken=taken, sound=sound, tol=tol)


def _secant(rise: torch.Tensor, end_rise: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
    """How much longer or shorter the next step should be, from the slopes at both ends of the trial.

    The slope along a trial falls from `rise` to `end_rise`, so it is zero at rise/(rise − end_rise) of it. Where
    it does not fall the objective curves upward there, and the step may grow.
    """
    falls = rise - end_rise
    root = torch.where(falls > 0.25 * rise, rise / falls, 4.0)
    return torch.where(taken, root.clamp(0.25, 4.0), root.clamp(0.1, 0.5))


def _retire(
    space: Space,
    state: _State,
    *,
    gain: torch.Tensor,
    taken: torch.Tensor,
    sound: torch.Tensor,
    tol: float,
) -> None:
    """Let rows leave that have converged or met a value that is not finite."""
    enough = tol * state.objective.abs().clamp(min=1.0)
    promised = state.size * state.rise * space.gradient_scale
    risen = taken & (gain > enough)
    state.idle = torch.where(risen, 0, state.idle + 1).to(torch.int8)
    still = (promised <= torch.where(taken, 4 * enough, enough)) & ~risen
    done = (still | (state.idle >= _PATIENCE)) & sound & state.climbing
    state.status.masked_fill_(done, Status.CONVERGED.value)
    state.climbing = state.climbing & ~done
    if not bool(sound.all()):
        state.status.masked_fill_(~sound & state.climbing, Status.NON_FINITE.value)
        state.climbing = state.climbing & sound
        _hold(state, ~sound)


def _hold(state: _State, rows: torch.Tensor) -> None:
    """Keep rows where they are: a step that is not finite would spoil the best point even with size 0."""
    state.step = state.step.masked_fill(rows[:, None], 0.0)
    for name, value in (("size", 0.0), ("rise", 0.0), ("reach", 1.0)):
        setattr(state, name, getattr(state, name).masked_fill(rows, value))
