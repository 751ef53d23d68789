"""Accuracy against unfairness as one SVG per kind of unfairness: points, their intervals, the frontier, the choice."""

from __future__ import annotations

from html import escape

from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY, GROUP_GAP
from likewise.improving.improvement import Alternative, Improvement

__all__ = ["frontier_svg"]

WIDTH, HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 46


def frontier_svg(improvement: Improvement, unfairness: str, title: str) -> str:
    """Return a chart that stands in the page: the fairer, the farther left; the more accurate, the higher.

    Parameters
    ----------
    improvement : Improvement
    unfairness : str
        "gap at ε", "pure gap", "changed decisions" or "group gap".
    title : str
        Of the axis.

    Returns
    -------
    str
        SVG with every name escaped.
    """
    points = [(one, _measure(one, unfairness), _measure(one, ACCURACY)) for one in improvement.alternatives]
    across = _Axis.around([m for _, m, _ in points], LEFT, WIDTH - RIGHT, floor=0.0)
    up = _Axis.around([m for *_, m in points], HEIGHT - BOTTOM, TOP)
    parts = [_grid(across, up, title)]
    best = max(m.value for *_, m in points) - improvement.rule.within
    if up.low < best < up.high:
        y = up.place(best)
        parts.append(f'<line class="delta" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT - 4}" y="{y - 5:.1f}" text-anchor="end" class="halo">accurate enough above</text>'
        )
    order = improvement.frontier(unfairness)
    by_name = {one.name: (across.place(m.value), up.place(a.value)) for one, m, a in points}
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in (by_name[name] for name in order))
    parts.append(f'<polyline class="frontier-line" points="{steps}"/>')
    drawn = [
        (
            one.name == improvement.chosen,
            _point(number, one, m, a, across, up, one.name == improvement.chosen),
        )
        for number, (one, m, a) in enumerate(points, start=1)
    ]
    # The chosen one last, so that no other hides it.
    parts += [svg for _, svg in sorted(drawn, key=lambda pair: pair[0])]
    said = escape(f"Balanced accuracy against {title}; the chosen model is {improvement.chosen}.")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


class _Axis:
    """Numbers to places, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    @classmethod
    def around(cls, measures: list[Measure], start: float, end: float, floor: float | None = None) -> _Axis:
        low, high = min(m.low for m in measures), max(m.high for m in measures)
        room = max(0.04 * (high - low), 1e-3)
        low = low - room if floor is None else max(low - room, floor - room)
        return cls(low, high + room, start, end)

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        step = next(s for s in _STEPS if (self.high - self.low) / s <= 6)
        first = int(-(-self.low // step))
        return [n * step for n in range(first, int(self.high // step) + 1)]


_STEPS = tuple(m * 10.0**e for e in range(-4, 3) for m in (1, 2, 5))


def _measure(one: Alternative, name: str) -> Measure:
    if name != GROUP_GAP:
        return next(m for m in one.figures if m.name == name)
    gaps = [m for m in one.figures if m.name.startswith("Gap_RMS ")]
    return max(gaps, key=lambda m: m.value)


def _grid(across: _Axis, up: _Axis, title: str) -> str:
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{value:.3g}</text>')
    for value in up.ticks():
        y = up.place(value)
        parts.append(f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="strong" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(title)} (left is fairer)</text>'
    )
    parts.append(
        f'<text class="strong" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        "balanced accuracy</text>"
    )
    return "".join(parts)


def _point(
    number: int, one: Alternative, unfair: Measure, right: Measure, across: _Axis, up: _Axis, chosen: bool
) -> str:
    x, y = across.place(unfair.value), up.place(right.value)
    colour = "var(--ok)" if chosen else "var(--s0)" if one.accurate_enough else "var(--s5)"
    said = (
        f"{one.name}: {right.name} {right.value:.3f} [{right.low:.3f}, {right.high:.3f}], "
        f"{unfair.name} {unfair.value:.3f} [{unfair.low:.3f}, {unfair.high:.3f}]"
    )
    whiskers = (
        f'<line x1="{across.place(unfair.low):.1f}" x2="{across.place(unfair.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.place(right.low):.1f}" y2="{up.place(right.high):.1f}"/>'
    )
    return (
        f'<g tabindex="0" class="point{" is-chosen" if chosen else ""}" style="color:{colour}"><title>{escape(said)}</title>'
        f'<g class="interval">{whiskers}</g><circle cx="{x:.1f}" cy="{y:.1f}" r="{9 if chosen else 8}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" class="number">{number}</text></g>'
    )
