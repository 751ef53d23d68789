"""The two phases of the search (paper, Appendix C) on one block of rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from likewise.auditing.search.gradient.ascent import Track, ascend
from likewise.auditing.search.gradient.fast_adam import fast_adam
from likewise.auditing.search.gradient.free_moves import CoefficientBox, FreeMoves, free_moves
from likewise.auditing.search.gradient.free_space import FreeSpace
from likewise.auditing.search.gradient.row_status import RowStatus
from likewise.auditing.search.gradient.search_task import SearchTask
from likewise.auditing.search.gradient.spaces import Point, Space
from likewise.auditing.search.gradient.starts import better_of, bold_end, lines_to, pick_start

__all__ = ["Outcome", "search_block"]

_RESTART_COST = 10.0
_RESTART_FARTHEST = 1e3
# Vertices of the domain that a free phase goes through before it climbs.
_VERTICES = 4
# Rows that climb in one batch when each has several starts.
_TOGETHER = 65536


@dataclass(frozen=True)
class Outcome:
    """The result of one block; as `SearchResult`."""

    x: torch.Tensor
    loss: torch.Tensor
    squared: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor


@dataclass(frozen=True)
class _Found:
    """What a phase found: rows (n, d), status and steps (n,), and the loss of the rows themselves if it met it."""

    x: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor
    own: torch.Tensor | None = None


def search_block(
    task: SearchTask, x: torch.Tensor, y: torch.Tensor, lam: torch.Tensor, start: torch.Tensor | None
) -> Outcome:
    """Search the worst case of a block whose λ are all zero, all infinite, or all in between.

    Parameters
    ----------
    task : SearchTask
    x, y, lam : Tensors of shapes (n, d), (n,) and (n,)
    start : Tensor of shape (n, d), optional

    Returns
    -------
    Outcome
    """
    only_free = bool(torch.isinf(lam).all())
    status = torch.full_like(y, RowStatus.MAX_STEPS.value, dtype=torch.int8)
    found = _Found(x, status, torch.zeros_like(status, dtype=torch.int32))
    if task.choices.subspace_steps and task.free.shape[1]:
        found = _free_phase(task, found, y, start, all_directions=only_free)
    elif only_free:
        found = _Found(x, torch.full_like(status, RowStatus.CONVERGED.value), found.steps)
    if task.choices.full_steps and not only_free:
        found = _full_phase(task, x, y, lam, found, start)
    return _finish(task, x, y, torch.zeros_like(lam) if only_free else lam, found)


def _finish(task: SearchTask, x: torch.Tensor, y: torch.Tensor, lam: torch.Tensor, found: _Found) -> Outcome:
    """Evaluate what was found as anyone else would, and keep the row itself where that is no better."""
    own = task.oracle.loss(x, y) if found.own is None else found.own
    if found.x is x:
        return Outcome(
            x, own, torch.zeros_like(own), _with_lost(found.status, ~torch.isfinite(own)), found.steps
        )
    loss, squared = task.oracle.loss(found.x, y), task.metric.squared_norm(found.x - x)
    kept = ~(loss - lam * squared > own)
    rows = kept.nonzero()[:, 0]
    return Outcome(
        found.x.index_copy(0, rows, x.index_select(0, rows)),
        torch.where(kept, own, loss),
        torch.where(kept, 0.0, squared),
        _with_lost(found.status, ~torch.isfinite(own)),
        found.steps,
    )


def _with_lost(status: torch.Tensor, lost: torch.Tensor) -> torch.Tensor:
    return status.masked_fill(lost, RowStatus.NON_FINITE.value)


def _free_phase(
    task: SearchTask, begin: _Found, y: torch.Tensor, start: torch.Tensor | None, *, all_directions: bool
) -> _Found:
    """Phase 1: raise ℓ(x + Qz) inside the domain.

    Directions that the domain bounds one by one come first, with their corners. Where all are asked for (λ = ∞)
    the others follow from there; at a finite λ they are left to phase 2, where leaving the free directions to
    stay in the domain has its price.
    """
    found = begin
    x = begin.x
    if task.moves is not None:
        found = _climb_free(task, x, y, task.moves, start if all_directions else None)
    if all_directions and (task.moves is None or task.moves.basis.shape != task.free.shape):
        moves = free_moves(task.domain, task.free, exact=True)
        if moves is not None:
            before = start if task.moves is None else found.x
            more = _climb_free(task, x, y, moves, before)
            lost = found.status == RowStatus.NON_FINITE.value
            found = _Found(more.x, _with_lost(more.status, lost), found.steps + more.steps)
    return found


def _climb_free(
    task: SearchTask, x: torch.Tensor, y: torch.Tensor, moves: FreeMoves, start: torch.Tensor | None
) -> _Found:
    choices = task.choices
    space = FreeSpace.of(task.oracle, x, y, moves, choices.subspace_step_size)
    v = space.zero()
    if start is not None:
        v = _higher(space, v, space.limit(space.point(start - x)))
    if choices.method == "adam":
        size = choices.subspace_step_size
        track = fast_adam(space, v, steps=choices.subspace_steps, step_size=size, tol=choices.tol)
    else:
        if isinstance(moves.limit, CoefficientBox):
            for corner in moves.limit.corners(x):
                v = _higher(space, v, corner)
        if moves.limit is not None:
            v = _higher(space, v, v + space.leap(v, space.look(v)))
            v = _from_vertex_to_vertex(space, v)
        track = ascend(space, v, space.look(v), steps=choices.subspace_steps, damping=1.0, tol=choices.tol)
        if moves.limit is not None and task.restarts:
            track = _free_restart(task, space, track)
    # What is in the domain up to rounding must be in it.
    return _Found(task.domain.project(space.rows(track.v), x), track.status, track.steps)


def _free_restart(task: SearchTask, space: FreeSpace, track: Track) -> Track:
    """Climb again from random places between the row and the edge of the domain."""
    starts, here = [], space.zero()
    for noise, share in task.restarts:
        way = space.point(noise[None]).expand_as(here)
        point = Point(track.loss, space.squared(here), way, way)
        edge = space.vertex(point)
        starts.append(share * (space.leap(here, point) if edge is None else edge))
    return _climb_again(task, space, track, starts, steps=task.choices.subspace_steps)


def _from_vertex_to_vertex(space: FreeSpace, v: torch.Tensor) -> torch.Tensor:
    """Go to the vertex of the domain that the gradient points at, while that is better.

    A loss that is convex along the free directions, as that of a linear model is, has its maximum at a vertex, and
    each of these steps raises it (Frank & Wolfe 1956, with steps of length 1).
    """
    for _ in range(_VERTICES):
        point = space.look(v)
        corner = space.vertex(point)
        if corner is None:
            break
        value = space.loss(corner)
        better = (value > point.loss) & torch.isfinite(value)
        if not bool(better.any()):
            break
        v = torch.where(better[:, None], corner, v)
    return v


def _full_phase(
    task: SearchTask,
    x: torch.Tensor,
    y: torch.Tensor,
    lam: torch.Tensor,
    begin: _Found,
    start: torch.Tensor | None,
) -> _Found:
    """Phase 2: raise ℓ − λ d² over all coordinates."""
    choices = task.choices
    own = None
    space = task.full_space(x, y, lam)
    v = space.zero() if begin.x is x else space.point(begin.x - x)
    extra = None if start is None else space.limit(space.point(start - x))
    if choices.method == "adam":
        v = v if extra is None else _higher(space, v, extra)
        track = fast_adam(
            space, v, steps=choices.full_steps, step_size=choices.full_step_size, tol=choices.tol
        )
    else:
        v, point, base_loss = _start(task, space, v, y, extra)
        own = base_loss if begin.x is x else None
        track = ascend(space, v, point, steps=choices.full_steps, damping=choices.damping, tol=choices.tol)
    if task.restarts:
        track = _restart(task, space, track)
    lost = begin.status == RowStatus.NON_FINITE.value
    return _Found(space.rows(track.v), _with_lost(track.status, lost), begin.steps + track.steps, own)


def _higher(space: Space, v: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the better point of the two for each row; the first where the second is not finite."""
    value, new = (space.objective(space.loss(u), space.squared(u)) for u in (v, other))
    return torch.where(((new > value) & torch.isfinite(new))[:, None], other, v)


def _start(
    task: SearchTask, space: Space, v: torch.Tensor, y: torch.Tensor, extra: torch.Tensor | None
) -> tuple[torch.Tensor, Point, torch.Tensor | None]:
    """Return where phase 2 starts, what is seen there, and the loss at `v`.

    It starts at `v` (the row or what phase 1 found), far along a line from there, or where the caller says.
    """
    if extra is not None and task.probes is None:
        return _begin_at(space, v, extra)
    point = space.look(v)
    ends = [bold_end(space, v, point, log_odds=task.log_odds)]
    if task.probes is not None:
        ends += task.probes.ends(space, v, y)
    lines = lines_to(space, v, point, ends, log_odds=task.log_odds)
    begun = pick_start(space, v, point, lines, log_odds=task.log_odds)
    if extra is not None:
        begun = better_of(space, begun, (extra, space.look(extra)))
    return *begun, point.loss


def _begin_at(space: Space, v: torch.Tensor, extra: torch.Tensor) -> tuple[torch.Tensor, Point, torch.Tensor]:
    """Return the better of `v` and `extra` for each row, what is seen there, and the loss at `v`.

    A start from before is better for most rows, so only the others are looked at where they were.
    """
    loss, seen = space.loss(v), space.look(extra)
    value = space.objective(seen.loss, seen.squared)
    kept = ~((value >= space.objective(loss, space.squared(v))) & torch.isfinite(value))
    rows = kept.nonzero()[:, 0]
    if len(rows) == 0:
        return extra, seen, loss
    at = v.index_select(0, rows)
    point = space.take(rows).look(at)
    gradient = seen.gradient.index_copy(0, rows, point.gradient)
    both = seen.slope is seen.gradient
    begun = Point(
        seen.loss.index_copy(0, rows, point.loss),
        seen.squared.index_copy(0, rows, point.squared),
        gradient,
        gradient if both else seen.slope.index_copy(0, rows, point.slope),
    )
    return extra.index_copy(0, rows, at), begun, loss


def _restart(task: SearchTask, space: Space, track: Track) -> Track:
    """Climb again from random displacements and keep the best for each row."""
    starts = []
    for noise, share in task.restarts:
        cost = (task.penalty.squared(noise[None]) * space.lam).clamp(min=torch.finfo(noise.dtype).tiny)
        size = torch.where(space.lam > 0, (_RESTART_COST / cost).sqrt().clamp(max=_RESTART_FARTHEST), 1.0)
        starts.append(space.limit(space.point(noise * (share * size)[:, None])))
    return _climb_again(task, space, track, starts, steps=task.choices.full_steps)


def _climb_again(
    task: SearchTask, space: Space, track: Track, starts: list[torch.Tensor], *, steps: int
) -> Track:
    """Climb from more starts of every row, several of them in one batch, and keep the best."""
    choices, n = task.choices, len(track.v)
    free = isinstance(space, FreeSpace)
    together = max(1, _TOGETHER // max(n, 1))
    for first in range(0, len(starts), together):
        some = starts[first : first + together]
        many = space.take(torch.arange(n, device=track.v.device).repeat(len(some)))
        v = torch.cat(some)
        if choices.method == "adam":
            size = choices.subspace_step_size if free else choices.full_step_size
            other = fast_adam(many, v, steps=steps, step_size=size, tol=choices.tol)
        else:
            damping = 1.0 if free else choices.damping
            other = ascend(many, v, many.look(v), steps=steps, damping=damping, tol=choices.tol)
        for k in range(len(some)):
            part = (getattr(other, name)[k * n : (k + 1) * n] for name in Track.__dataclass_fields__)
            track = _better_track(track, Track(*part))
    return track


def _better_track(track: Track, other: Track) -> Track:
    """Return the better of two climbs for each row."""
    better = (other.objective > track.objective) & torch.isfinite(other.objective)
    lost = (other.status == RowStatus.NON_FINITE.value) | (track.status == RowStatus.NON_FINITE.value)
    return Track(
        torch.where(better[:, None], other.v, track.v),
        torch.where(better, other.loss, track.loss),
        torch.where(better, other.objective, track.objective),
        _with_lost(torch.where(better, other.status, track.status), lost),
        track.steps + other.steps,
    )
