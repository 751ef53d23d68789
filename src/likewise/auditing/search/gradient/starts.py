"""Where phase 2 begins: a far step that a confident row would never dare, or what the probes found.

The loss of a network has many local maxima, and the one next to the row is seldom the best. Each start is a
displacement from the row, judged by one evaluation of the loss at its end and a scalar model of the way there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from likewise.auditing.search.gradient.spaces import Point, Space

__all__ = ["Line", "better_of", "bold_end", "lines_to", "pick_start"]

_SCALAR_ROUNDS = 4


@dataclass(frozen=True)
class Line:
    """The way from a base along `end` (n, D), with the loss modelled as link⁻¹(link(ℓ) + t · rise), 0 ≤ t ≤ 1.

    `cost` (n,) is λ d² at the end; along the way it is cost · t².
    """

    end: torch.Tensor
    rise: torch.Tensor
    cost: torch.Tensor


def _link(loss: torch.Tensor, log_odds: bool) -> torch.Tensor:
    """What is nearly linear along a line: the log-odds m against the label, or the loss itself.

    Cross-entropy is ℓ = log(1 + exp m), so m = log(exp ℓ − 1).
    """
    if not log_odds:
        return loss
    return loss + torch.log(-torch.expm1(-loss.clamp(min=torch.finfo(loss.dtype).eps ** 2)))


def bold_end(space: Space, base: torch.Tensor, point: Point, *, log_odds: bool) -> torch.Tensor:
    """Return the way from `base` to the fixed point of the log-odds instead of the loss, (n, D).

    A row that the model is sure about has a loss whose slope all but vanishes, ∇ℓ = (1 − p)∇m, while the
    log-odds m keep theirs. Dividing by 1 − p = 1 − exp(−ℓ) gives the step that a row with nothing to lose takes.
    """
    bold = point
    if log_odds:
        against = -torch.expm1(-point.loss)
        bold = space.steeper(point, against.clamp(min=torch.finfo(against.dtype).eps).reciprocal())
    return space.leap(base, bold)


def lines_to(
    space: Space, base: torch.Tensor, point: Point, ends: list[torch.Tensor], *, log_odds: bool
) -> list[Line]:
    """Return lines from `base` along given displacements, judged by the loss at their ends."""
    now = _link(point.loss, log_odds)
    return [
        Line(end, _link(space.loss(space.shifted(base, end)), log_odds) - now, space.lam * space.squared(end))
        for end in ends
    ]


def pick_start(
    space: Space, base: torch.Tensor, point: Point, lines: list[Line], *, log_odds: bool
) -> tuple[torch.Tensor, Point]:
    """Return the most promising point of all lines and what is seen there; `base` where it turns out no better.

    `base` must have d² = 0: then d² grows with t² along each line.
    """
    now, best = _link(point.loss, log_odds), point.loss
    shares: list[torch.Tensor] = []
    for line in lines:
        t = _best_on(line, now, log_odds)
        value = now + t * line.rise
        value = (torch.nn.functional.softplus(value) if log_odds else value) - line.cost * t * t
        better = value > best
        best = torch.where(better, value, best)
        shares = [torch.where(better, 0.0, share) for share in shares] + [torch.where(better, t, 0.0)]
    v = base
    for line, share in zip(lines, shares, strict=True):
        v = torch.addcmul(v, line.end, share[:, None])
    return better_of(space, (base, point), (v, space.look(v)))


def _best_on(line: Line, now: torch.Tensor, log_odds: bool) -> torch.Tensor:
    """Best t of link⁻¹(now + t·rise) − cost·t², reached from t = 1 by its own fixed point."""
    pull = line.rise / (2 * line.cost).clamp(min=torch.finfo(now.dtype).tiny)
    if not log_odds:
        return pull.clamp(0.0, 1.0)
    t = torch.ones_like(now)
    for _ in range(_SCALAR_ROUNDS):
        t = (pull * torch.sigmoid(torch.addcmul(now, t, line.rise))).clamp(0.0, 1.0)
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

    def merge(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        return new.index_copy(0, rows, old.index_select(0, rows))

    gradient = merge(seen.gradient, point.gradient)
    slope = gradient if seen.slope is seen.gradient else merge(seen.slope, point.slope)
    return merge(other, v), Point(
        merge(seen.loss, point.loss), merge(seen.squared, point.squared), gradient, slope
    )
