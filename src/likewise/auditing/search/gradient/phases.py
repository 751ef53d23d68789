"""The two phases of the search (paper, Appendix C) on one block of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import torch

from likewise.auditing.search.gradient.ascent import (
    Probes,
    RowStatus,
    SearchResult,
    Track,
    ascend,
    fast_adam,
    find_probes,
)
from likewise.auditing.search.gradient.spaces import (
    CoefficientBox,
    FreeMoves,
    FreeSpace,
    Point,
    Quadratic,
    RowSpace,
    Space,
    free_moves,
)
from likewise.core.checks import check_matrix
from likewise.core.errors import InputError, bad_parameter
from likewise.data.domain import Domain
from likewise.fair_metrics.metric import FairMetric
from likewise.models.oracle import Oracle

if TYPE_CHECKING:
    from likewise.auditing.search.gradient.search import GradientSearch

# Where phase 2 begins: a far step that a confident row would never dare, or what the probes found.


_SCALAR_ROUNDS = 4


def _link(loss: torch.Tensor, log_odds: bool) -> torch.Tensor:
    """What is nearly linear along a line: the log-odds m against the label, or the loss itself.

    Cross-entropy is ℓ = log(1 + exp m), so m = log(exp ℓ − 1).
    """
    if not log_odds:
        return loss
    return loss + torch.log(-torch.expm1(-loss.clamp(min=torch.finfo(loss.dtype).eps ** 2)))


def pick_start(
    space: Space, base: torch.Tensor, point: Point, ends: list[torch.Tensor], *, log_odds: bool
) -> tuple[torch.Tensor, Point]:
    """Return the most promising point of the ways from `base` to given displacements, and what is seen there.

    Along each way the loss is modelled as link⁻¹(link(ℓ) + t · rise), 0 ≤ t ≤ 1, with the rise seen at its end, and the
    price as cost · t²: `base` must have d² = 0. `base` is returned for rows for which the point turns out no better.
    """
    now, best = _link(point.loss, log_odds), point.loss
    shares: list[torch.Tensor] = []
    for end in ends:
        rise = _link(space.loss(base + end), log_odds) - now
        cost = space.lam * space.squared(end)
        t = _best_share(rise, cost, now, log_odds)
        value = now + t * rise
        value = (torch.nn.functional.softplus(value) if log_odds else value) - cost * t * t
        better = value > best
        best = torch.where(better, value, best)
        shares = [torch.where(better, 0.0, share) for share in shares] + [torch.where(better, t, 0.0)]
    v = base
    for end, share in zip(ends, shares, strict=True):
        v = torch.addcmul(v, end, share[:, None])
    return better_of(space, (base, point), (v, space.look(v)))


def _best_share(rise: torch.Tensor, cost: torch.Tensor, now: torch.Tensor, log_odds: bool) -> torch.Tensor:
    """Best t of link⁻¹(now + t·rise) − cost·t², reached from t = 1 by its own fixed point."""
    pull = rise / (2 * cost).clamp(min=torch.finfo(now.dtype).tiny)
    if not log_odds:
        return pull.clamp(0.0, 1.0)
    t = torch.ones_like(now)
    for _ in range(_SCALAR_ROUNDS):
        t = (pull * torch.sigmoid(torch.addcmul(now, t, rise))).clamp(0.0, 1.0)
    return t


def better_of(
    space: Space, first: tuple[torch.Tensor, Point], second: tuple[torch.Tensor, Point]
) -> tuple[torch.Tensor, Point]:
    """Return for each row the point of the two with the higher objective; the first where one is not finite."""
    (v, point), (other, seen) = first, second
    value = space.objective(seen.loss, seen.squared)
    sound = torch.isfinite(value + seen.gradient.sum(1))
    worse = ~((value > space.objective(point.loss, point.squared)) & sound)
    rows = worse.nonzero()[:, 0]
    if len(rows) == 0:
        return second
    return other.index_copy(0, rows, v.index_select(0, rows)), seen.put(rows, point.take(rows))


# What a gradient search needs besides the rows: read once, used for every block of them.


_PROBE_STARTS = 12


@dataclass(frozen=True)
class SearchTask:
    """Everything that does not depend on the block of rows."""

    choices: GradientSearch
    oracle: Oracle
    metric: FairMetric
    domain: Domain
    penalty: Quadratic
    free: torch.Tensor
    moves: FreeMoves | None
    log_odds: bool
    probes: Probes | None
    restarts: list[tuple[torch.Tensor, float]]

    def full_space(self, x: torch.Tensor, y: torch.Tensor, lam: float) -> Space:
        """Return the coordinates of phase 2; at λ = 0 every direction is free."""
        penalty = self.penalty if lam > 0 else Quadratic.nothing(x)
        prices = x.new_full((len(x),), lam)
        radius = self.choices.subspace_step_size
        return RowSpace(self.oracle, x, y, prices, penalty=penalty, domain=self.domain, radius=radius)


def prepare(
    choices: GradientSearch,
    oracle: Oracle,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    metric: FairMetric,
    domain: Domain,
    lam: float,
    generator: torch.Generator | None,
) -> SearchTask:
    """Read the metric, draw the random directions and find the probes."""
    from likewise.data.tabular import TabularDomain

    if metric.feature_map is not None and not isinstance(metric.feature_map, TabularDomain):
        raise InputError(
            "GradientSearch.run: 'metric' measures a feature map of the rows, which this search does not "
            "differentiate. Search in the space of the features with metric.without_feature_map(), or use the "
            "candidate search."
        )
    if metric.n_features not in (None, x.shape[1]):
        raise InputError(
            f"GradientSearch.run: 'x' has {x.shape[1]} columns, the metric has {metric.n_features}. "
            "Pass rows in the encoding that the metric was made on."
        )
    metric = metric.without_feature_map()
    penalty = Quadratic.of(metric, x)
    free = x.new_zeros(x.shape[1], 0)
    if metric.n_features and penalty.has_free:
        free = torch.as_tensor(metric.null_space.basis, dtype=x.dtype, device=x.device)
    fixed = choices.method == "fixed_point"
    if generator is None:
        generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device).to(x)

    start_noise = noise(_PROBE_STARTS, x.shape[1])
    task = SearchTask(
        choices=choices,
        oracle=oracle,
        metric=metric,
        domain=domain,
        penalty=penalty,
        free=free,
        moves=free_moves(domain, free, exact=False),
        log_odds=oracle.objective.name == "cross_entropy",
        probes=None,
        # One at a time: more of them must begin with the same ones. A direction and, from the last number drawn, a share
        # between 0.03 and 1: near starts as well as far ones.
        restarts=[
            (drawn[:-1], float(10 ** (-1.5 * torch.special.ndtr(drawn[-1]))))
            for drawn in (noise(x.shape[1] + 1) for _ in range(choices.restarts))
        ],
    )
    if not 0 < lam < float("inf") or y.is_floating_point():
        return task
    if not (fixed and choices.probes and choices.full_steps):
        return task
    # Displacements are found at the point of the domain next to 0, where standardised data has its middle.
    origin: torch.Tensor = domain.project(torch.zeros_like(start_noise[:1]))
    found = find_probes(
        lambda targets: task.full_space(origin.expand(len(targets), -1).contiguous(), targets, lam),
        torch.unique(y),
        start_noise,
        origin,
        count=choices.probes,
        cost=lambda deltas: lam * penalty.squared(deltas),
    )
    return replace(task, probes=found)


_RESTART_COST = 10.0
_RESTART_FARTHEST = 1e3
# Rows that climb in one batch when each has several starts.
_TOGETHER = 65536


@dataclass(frozen=True)
class _Found:
    """What a phase found: rows (n, d), status and steps (n,), and the loss of the rows themselves if it met it."""

    x: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor
    own: torch.Tensor | None = None


def search_block(
    task: SearchTask, x: torch.Tensor, y: torch.Tensor, lam: float, start: torch.Tensor | None
) -> SearchResult:
    """Search the worst case of a block."""
    only_free = lam == float("inf")
    status = torch.full_like(y, RowStatus.MAX_STEPS.value, dtype=torch.int8)
    found = _Found(x, status, torch.zeros_like(status, dtype=torch.int32))
    if task.choices.subspace_steps and task.free.shape[1]:
        found = _free_phase(task, found, y, start, all_directions=only_free)
    elif only_free:
        found = _Found(x, torch.full_like(status, RowStatus.CONVERGED.value), found.steps)
    if task.choices.full_steps and not only_free:
        found = _full_phase(task, x, y, lam, found, start)
    return _finish(task, x, y, 0.0 if only_free else lam, found)


def _finish(task: SearchTask, x: torch.Tensor, y: torch.Tensor, lam: float, found: _Found) -> SearchResult:
    """Evaluate what was found as anyone else would, and keep the row itself where that is no better."""
    own = task.oracle.loss(x, y) if found.own is None else found.own
    if found.x is x:
        return SearchResult(
            x, own, torch.zeros_like(own), _with_lost(found.status, ~torch.isfinite(own)), found.steps
        )
    loss, squared = task.oracle.loss(found.x, y), task.metric.squared_norm(found.x - x)
    kept = ~(loss - lam * squared > own)
    rows = kept.nonzero()[:, 0]
    return SearchResult(
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
    bounded = moves.limit is not None and choices.method != "adam"
    if bounded:
        # Where the gradient is 0, as that of SenSeI is at the row itself, a step along it leads nowhere.
        if isinstance(moves.limit, CoefficientBox):
            for corner in moves.limit.corners(x):
                v = _higher(space, v, corner)
        v = _higher(space, v, v + space.leap(v, space.look(v)))
    track = _climb(task, space, v)
    if bounded and task.restarts:
        track = _free_restart(task, space, track)
    # What is in the domain up to rounding must be in it.
    return _Found(task.domain.project(space.rows(track.v), x), track.status, track.steps)


def _free_restart(task: SearchTask, space: FreeSpace, track: Track) -> Track:
    """Climb again from random places between the row and the edge of the domain."""
    starts, here = [], space.zero()
    for noise, share in task.restarts:
        way = space.point(noise[None]).expand_as(here)
        starts.append(share * space.leap(here, Point(track.loss, space.squared(here), way, way)))
    return _climb_again(task, space, track, starts)


def _full_phase(
    task: SearchTask,
    x: torch.Tensor,
    y: torch.Tensor,
    lam: float,
    begin: _Found,
    start: torch.Tensor | None,
) -> _Found:
    """Phase 2: raise ℓ − λ d² over all coordinates."""
    own = None
    space = task.full_space(x, y, lam)
    v = space.zero() if begin.x is x else space.point(begin.x - x)
    extra = None if start is None else space.limit(space.point(start - x))
    point = None
    if task.choices.method == "adam":
        v = v if extra is None else _higher(space, v, extra)
    else:
        v, point, base_loss = _start(task, space, v, y, extra)
        own = base_loss if begin.x is x else None
    track = _climb(task, space, v, point)
    if task.restarts:
        track = _restarted(task, space, track)
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
        # A start from before is better for most rows, so only the others are looked at where they were.
        loss, seen = space.loss(v), space.look(extra)
        value = space.objective(seen.loss, seen.squared)
        kept = ~((value >= space.objective(loss, space.squared(v))) & torch.isfinite(value))
        rows = kept.nonzero()[:, 0]
        if len(rows) == 0:
            return extra, seen, loss
        at = v.index_select(0, rows)
        return extra.index_copy(0, rows, at), seen.put(rows, space.take(rows).look(at)), loss
    point = space.look(v)
    bold = point
    if task.log_odds:
        # A row that the model is sure about has a loss whose slope all but vanishes, ∇ℓ = (1 − p)∇m, while the log-odds m
        # keep theirs. Dividing by 1 − p = 1 − exp(−ℓ) gives the step that a row with nothing to lose takes.
        against = -torch.expm1(-point.loss)
        slope = point.slope * against.clamp(min=torch.finfo(against.dtype).eps).reciprocal()[:, None]
        bold = Point(point.loss, point.squared, slope, slope)
    ends = [space.leap(v, bold)]
    if task.probes is not None:
        ends += task.probes.ends(space, v, y)
    begun = pick_start(space, v, point, ends, log_odds=task.log_odds)
    if extra is not None:
        begun = better_of(space, begun, (extra, space.look(extra)))
    return *begun, point.loss


def _restarted(task: SearchTask, space: Space, track: Track) -> Track:
    """Climb again from random displacements and keep the best for each row."""
    starts = []
    for noise, share in task.restarts:
        cost = (task.penalty.squared(noise[None]) * space.lam).clamp(min=torch.finfo(noise.dtype).tiny)
        size = torch.where(space.lam > 0, (_RESTART_COST / cost).sqrt().clamp(max=_RESTART_FARTHEST), 1.0)
        starts.append(space.limit(space.point(noise * (share * size)[:, None])))
    return _climb_again(task, space, track, starts)


def _climb(task: SearchTask, space: Space, v: torch.Tensor, point: Point | None = None) -> Track:
    """Climb from `v`, where `point` was seen, by the steps of the space's own phase."""
    choices, free = task.choices, isinstance(space, FreeSpace)
    steps = choices.subspace_steps if free else choices.full_steps
    if choices.method == "adam":
        size = choices.subspace_step_size if free else choices.full_step_size
        return fast_adam(space, v, steps=steps, step_size=size, tol=choices.tol)
    damping = 1.0 if free else choices.damping
    return ascend(space, v, point or space.look(v), steps=steps, damping=damping, tol=choices.tol)


def _climb_again(task: SearchTask, space: Space, track: Track, starts: list[torch.Tensor]) -> Track:
    """Climb from more starts of every row, several of them in one batch, and keep the best."""
    n = len(track.v)
    together = max(1, _TOGETHER // max(n, 1))
    for first in range(0, len(starts), together):
        some = starts[first : first + together]
        many = space.take(torch.arange(n, device=track.v.device).repeat(len(some)))
        other = _climb(task, many, torch.cat(some))
        for k in range(len(some)):
            one = Track(*(getattr(other, name)[k * n : (k + 1) * n] for name in Track.__dataclass_fields__))
            # The better of two climbs for each row.
            better = (one.objective > track.objective) & torch.isfinite(one.objective)
            lost = (one.status == RowStatus.NON_FINITE.value) | (track.status == RowStatus.NON_FINITE.value)
            track = Track(
                torch.where(better[:, None], one.v, track.v),
                torch.where(better, one.loss, track.loss),
                torch.where(better, one.objective, track.objective),
                _with_lost(torch.where(better, one.status, track.status), lost),
                track.steps + one.steps,
            )
    return track


# What came is checked; rows go in blocks, and results keep their order.


def checked_rows(
    x: torch.Tensor, y: torch.Tensor, start: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        raise bad_parameter(
            "GradientSearch.run", "x and y", allowed="tensors", got=f"{type(x).__name__}, {type(y).__name__}"
        )
    x = check_matrix(x, owner="GradientSearch.run", name="x").detach()
    if y.shape != (len(x),):
        raise bad_parameter(
            "GradientSearch.run", "y", allowed=f"of shape ({len(x)},), one per row", got=str(tuple(y.shape))
        )
    if start is not None:
        start = check_matrix(start, owner="GradientSearch.run", name="start", n_features=x.shape[1]).detach()
        if len(start) != len(x):
            raise bad_parameter(
                "GradientSearch.run",
                "start",
                allowed=f"one row for each of the {len(x)} rows",
                got=f"{len(start)}",
            )
        start = start.to(x)
    return x, y, start


def joined(parts: list[SearchResult]) -> SearchResult:
    """Return the results of all blocks."""
    if len(parts) == 1:
        return parts[0]
    names = [field.name for field in fields(SearchResult)]
    return SearchResult(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
