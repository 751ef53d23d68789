"""Accuracy against unfairness as one SVG per kind of unfairness: points, their intervals, the frontier, the choice."""

from __future__ import annotations

from html import escape

from likewise.evaluation.measures import Measure
from likewise.improving.figures import ACCURACY, GROUP_GAP
from likewise.improving.improvement import Alternative, Improvement
from likewise.texts import Texts

__all__ = ["frontier_svg"]

WIDTH, HEIGHT = 560, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 46


def frontier_svg(improvement: Improvement, unfairness: str, title: str, texts: Texts) -> str:
    """Return a chart that stands in the page: the fairer, the farther left; the more accurate, the higher.

    Parameters
    ----------
    improvement : Improvement
    unfairness : str
        "gap at ε", "pure gap", "changed decisions" or "group gap".
    title : str
        Of the axis.
    texts : Texts
        Of the page's language.

    Returns
    -------
    str
        SVG with every name escaped.
    """
    points = [(one, _measure(one, unfairness), _measure(one, ACCURACY)) for one in improvement.alternatives]
    across = _Axis.around([m for _, m, _ in points], LEFT, WIDTH - RIGHT, floor=0.0)
    up = _Axis.around([m for *_, m in points], HEIGHT - BOTTOM, TOP)
    parts = [_grid(across, up, title, texts)]
    best = max(m.value for *_, m in points) - improvement.rule.within
    if up.low < best < up.high:
        y, enough = up.place(best), escape(texts("improve.enough_above"))
        parts.append(f'<line class="delta" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT - 4}" y="{y - 5:.1f}" text-anchor="end" class="halo">{enough}</text>'
        )
    order = improvement.frontier(unfairness)
    by_name = {one.name: (across.place(m.value), up.place(a.value)) for one, m, a in points}
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in (by_name[name] for name in order))
    parts.append(f'<polyline class="frontier-line" points="{steps}"/>')
    drawn = [
        (
            one.name == improvement.chosen,
            _point(number, one, m, a, across, up, one.name == improvement.chosen, title, texts),
        )
        for number, (one, m, a) in enumerate(points, start=1)
    ]
    # The chosen one last, so that no other hides it.
    parts += [svg for _, svg in sorted(drawn, key=lambda pair: pair[0])]
    said = escape(texts("improve.chart", unfairness=title, chosen=improvement.chosen))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{said}">{"".join(parts)}</svg>'


class _Axis:
    """Numbers to places, with round ticks."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    @classmethod
    def around(cls, measures: list[Measure], start: float, end: float, floor: float | None = None) -> _Axis:
        low, high = min(m.low for m in measures), max(m.high for m in measures)
        if floor is not None:
            # A long upper part of an interval must not press all points together.
            high = min(high, 3.0 * max(m.value for m in measures) + 1e-3)
        room = max(0.04 * (high - low), 1e-3)
        low = low - room if floor is None else max(low - room, floor - room)
        return cls(low, high + room, start, end)

    def place(self, value: float) -> float:
        return self.start + (min(value, self.high) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )

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


def _grid(across: _Axis, up: _Axis, title: str, texts: Texts) -> str:
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{texts.number(round(value, 9), "general")}</text>'
        )
    for value in up.ticks():
        y = up.place(value)
        parts.append(f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{texts.number(round(value, 9), "general")}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="strong" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(texts("improve.axis", name=title))}</text>'
    )
    parts.append(
        f'<text class="strong" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(texts('measure.balanced_accuracy'))}</text>"
    )
    return "".join(parts)


def _point(
    number: int,
    one: Alternative,
    unfair: Measure,
    right: Measure,
    across: _Axis,
    up: _Axis,
    chosen: bool,
    title: str,
    texts: Texts,
) -> str:
    x, y = across.place(unfair.value), up.place(right.value)
    colour = "var(--ok)" if chosen else "var(--s0)" if one.accurate_enough else "var(--s5)"
    said = texts(
        "improve.point",
        name=one.name,
        accuracy=right.value,
        accuracy_low=right.low,
        accuracy_high=right.high,
        unfairness=title,
        value=unfair.value,
        low=unfair.low,
        high=unfair.high,
    )
    whiskers = (
        f'<line x1="{across.place(unfair.low):.1f}" x2="{across.place(unfair.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.place(right.low):.1f}" y2="{up.place(right.high):.1f}"/>'
    )
    return (
        f'<g tabindex="0" role="img" aria-label="{escape(said)}" class="point{" is-chosen" if chosen else ""}" style="color:{colour}"><title>{escape(said)}</title>'
        f'<g class="interval">{whiskers}</g><circle cx="{x:.1f}" cy="{y:.1f}" r="{9 if chosen else 8}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" class="number">{number}</text></g>'
    )
