"""Plots with matplotlib: the curve, the unfair map in two dimensions, box plots, the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter, require
from likewise.core.frames import check_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from likewise.report.comparison import Comparison

# Okabe and Ito's colours, which people with every kind of colour vision tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def plot_curve(
    results: AuditResult | Mapping[str, AuditResult], *, max_eps: float | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the curve ε ↦ V(ε) − mean loss, with the chosen ε and its interval.

    Parameters
    ----------
    results : AuditResult, or mapping of names to them
    max_eps : float, optional
        Right end of the plot; default four times the chosen ε, or the whole curve for ε = 0.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> plot_curve({})
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: plot_curve: 'results' must be an AuditResult or a mapping of names to them, got none.
    """
    several = results if isinstance(results, Mapping) else {"": results}
    if not several or not all(isinstance(result, AuditResult) for result in several.values()):
        got = "none" if not several else ", ".join(type(r).__name__ for r in several.values())
        allowed = "an AuditResult or a mapping of names to them"
        raise bad_parameter("plot_curve", "results", allowed, got)
    eps = max(result.eps for result in several.values())
    ends = [float(result.curve.eps[-1]) for result in several.values()]
    if max_eps is None:
        right = 4 * eps if eps > 0 else max(ends) or 1.0
    else:
        right = check_number(max_eps, owner="plot_curve", name="max_eps", low=0.0, open_low=True)
    axes = _axes(ax)
    for (name, result), colour in zip(several.items(), cycle(COLOURS), strict=False):
        curve = result.curve
        tolerances = np.unique(np.concatenate([curve.eps[curve.eps <= right], np.linspace(0.0, right, 200)]))
        axes.plot(tolerances, curve.gap(tolerances), color=colour, label=name or None)
        found = result.interval
        above = 0.0 if found.open else max(found.high - result.gap, 0.0)
        error = [[max(result.gap - found.low, 0.0)], [above]]
        axes.errorbar([result.eps], [result.gap], yerr=error, fmt="o", color=colour, capsize=3)
    if eps > 0:
        axes.axvline(eps, color="0.5", linestyle="--", linewidth=1)
    limits = {result.delta for result in several.values()} - {None}
    for delta in limits:
        axes.axhline(float(delta or 0.0), color="0.5", linestyle=":", linewidth=1)
    axes.set_xlim(0, right)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tolerance ε (mean squared fair distance)")
    axes.set_ylabel("gap: added mean loss")
    if len(several) > 1:
        axes.legend(frameon=False)
    return axes


def plot_effects(result: AuditResult, ax: Axes | None = None, *, most: int = 8) -> Axes:
    """Plot who would lose and who would gain the favourable decision, a bar to either side for each effect.

    Parameters
    ----------
    result : AuditResult
        With sensitive columns, and a favourable decision if the model decides.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    most : int, default=8
        How many effects to show, the largest first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> [text.get_text() for text in plot_effects(lw.audit(score, people, sensitive_features=["sex"])).get_yticklabels()]
    ['sex: F → M', 'sex: M → F']
    """
    table = result.effects
    sides = ("lower", "higher") if table is not None and "change" in table else ("lose", "gain")
    if table is None or not len(table) or table[sides[0]].isna().any():
        wanted = "an audit with sensitive features and a favourable outcome (favourable=…)"
        raise bad_parameter("plot_effects", "result", wanted, "none of them")
    shown = table.head(most)
    axes, place = _axes(ax), np.arange(len(shown))
    for side, sign, colour in zip(sides, (-1, 1), COLOURS[:2], strict=True):
        bars = axes.barh(
            place,
            sign * shown[side].to_numpy(),
            color=colour,
            label=f"would be predicted {side}" if sides[0] == "lower" else f"would {side} it",
        )
        axes.bar_label(bars, [f"{count:,}" for count in shown[side]], padding=3)
    names = [f"{row.attribute}: {row.recorded} → {row.instead}" for row in shown.itertuples()]
    axes.set_yticks(place, names)
    axes.invert_yaxis()
    axes.axvline(0, color="0.3", linewidth=1)
    reach = 1.2 * max(float(shown[list(sides)].to_numpy().max()), 1.0)
    axes.set_xlim(-reach, reach)
    axes.xaxis.set_major_formatter(lambda count, _: f"{abs(count):,.0f}")
    axes.set_xlabel(
        "people"
        if sides[0] == "lower"
        else f"people who would lose or gain the favourable decision ({result.favourable})"
    )
    axes.set_title(str(result.headline.title), loc="left")
    axes.legend(frameon=False)
    return axes


def plot_unfair_map(
    result: AuditResult | UnfairMap,
    columns: tuple[Any, Any] | None = None,
    *,
    pure: bool = False,
    max_people: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Plot the unfair map in two dimensions: an arrow from each person to their worst counterpart.

    Parameters
    ----------
    result : AuditResult or UnfairMap
    columns : pair of column names, optional
        The two axes: numbers, or categories at whole positions. Default: the two columns that move most often,
        or the first two if fewer than two move.
    pure : bool, default=False
        Counterparts at no fair distance instead of those within ε.
    max_people : int, default=200
        Arrows for the people with the most added loss only; everyone else is a faint point.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from likewise.auditing.results.unfair_map import make_unfair_map
    >>> people = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    >>> unfair = make_unfair_map(
    ...     people, people + 1, label=[1, 0], loss=[0.1, 0.2], twin_loss=[0.9, 0.4], decision=[1, 0],
    ...     twin_decision=[0, 0], squared_distance=[0.0, 0.0],
    ... )
    >>> plot_unfair_map(unfair).get_xlabel()
    'x'
    """
    unfair: Any = result
    if isinstance(result, AuditResult):
        unfair = result.pure_map if pure else result.unfair_map
    if not isinstance(unfair, UnfairMap):
        got = f"a {type(result).__name__}"
        raise bad_parameter("plot_unfair_map", "result", "an AuditResult or an UnfairMap", got)
    if unfair.people.shape[1] < 2:
        raise InputError("plot_unfair_map: two dimensions need two columns, and the people have one.")
    chosen = _two_columns(unfair) if columns is None else tuple(columns)
    if len(chosen) != 2:
        raise bad_parameter("plot_unfair_map", "columns", "two column names", columns)
    check_columns(unfair.people, chosen, owner="plot_unfair_map", name="columns")
    axes = _axes(ax)
    (x0, x1), (y0, y1) = (
        _positions(unfair, name, axis, axes) for name, axis in zip(chosen, "xy", strict=True)
    )
    most = np.argsort(-unfair.harm, kind="stable")[:max_people]
    most = most[unfair.harm[most] > 0]
    axes.scatter(x0, y0, s=8, color="0.75", linewidths=0)
    flipped = unfair.flipped[most]
    for colour, part, words in (
        (COLOURS[0], most[~flipped], "same decision"),
        (COLOURS[1], most[flipped], "another decision"),
    ):
        if len(part):
            axes.quiver(
                x0[part], y0[part], (x1 - x0)[part], (y1 - y0)[part],
                angles="xy", scale_units="xy", scale=1, width=0.003, color=colour, alpha=0.7, label=words,
            )  # fmt: skip
    axes.update_datalim(np.column_stack([x1[most], y1[most]]))
    axes.autoscale_view()
    axes.set_xlabel(str(chosen[0]))
    axes.set_ylabel(str(chosen[1]))
    if len(most):
        axes.legend(frameon=False, title="counterpart gets")
    return axes


def plot_box(
    groups: Mapping[str, Any] | pd.DataFrame, *, ylabel: str = "", points: bool = True, ax: Axes | None = None
) -> Axes:
    """Plot box plots: one per group, such as scores by name group or a measure over seeds by method.

    Parameters
    ----------
    groups : mapping of names to numbers, or DataFrame
        Numbers that are not finite are left out.
    ylabel : str, default=""
        What the numbers are.
    points : bool, default=True
        Draw each number beside its box if a group has at most 50.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> axes = plot_box({"baseline": [0.8, 0.82], "SenSR": [0.98, 0.97, 0.99]}, ylabel="consistency")
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['baseline', 'SenSR']
    """
    values = {str(name): np.asarray(group, dtype=float).ravel() for name, group in groups.items()}
    values = {name: group[np.isfinite(group)] for name, group in values.items()}
    empty = [name for name, group in values.items() if not len(group)]
    if not values or empty:
        got = f"no finite number in {empty[0]!r}" if empty else "none"
        raise bad_parameter("plot_box", "groups", "one group of numbers or more", got)
    axes = _axes(ax)
    places = np.arange(1, len(values) + 1)
    drawn = axes.boxplot(
        list(values.values()), positions=places, widths=0.55, patch_artist=True, showfliers=not points
    )
    for box, line, colour in zip(drawn["boxes"], drawn["medians"], cycle(COLOURS), strict=False):
        box.set(facecolor=colour, alpha=0.35, edgecolor=colour)
        line.set(color="black")
    if points:
        for place, group in zip(places, values.values(), strict=True):
            if len(group) <= 50:
                # Spread by rank, not by chance: the same numbers give the same picture.
                spread = np.linspace(-0.12, 0.12, len(group)) if len(group) > 1 else np.zeros(1)
                axes.scatter(place + spread, group, s=10, color="0.25", zorder=3, linewidths=0)
    axes.set_xticks(places, list(values))
    axes.set_ylabel(ylabel)
    return axes


def plot_frontier(comparison: Comparison, *, pure: bool = False, ax: Axes | None = None) -> Axes:
    """Plot balanced accuracy against the audited gap, with intervals and the line of the best.

    Parameters
    ----------
    comparison : Comparison
        With evaluations.
    pure : bool, default=False
        The gap at ε = 0 instead of the one at ε.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 0, 1, 1], metric=metric, eps=0.0)
    >>> from likewise.report import Comparison, ComparisonEntry
    >>> entry = ComparisonEntry("score", lw.evaluate(lambda frame: score(frame) > 0.6, people, [0, 0, 1, 1]), result)
    >>> plot_frontier(Comparison((entry,))).get_ylabel()
    'balanced accuracy'
    """
    from likewise.report.comparison import ACCURACY

    points = []
    for entry in comparison.entries:
        accuracy = entry.measures().get(ACCURACY)
        if accuracy is not None:
            points.append((entry.name, entry.pure_gap if pure else entry.gap, accuracy))
    if not points:
        raise InputError("plot_frontier: no entry of the comparison has an evaluation. Pass evaluate(...)'s.")
    axes = _axes(ax)
    for (name, gap, accuracy), colour, marker in zip(points, cycle(COLOURS), cycle(MARKERS), strict=False):
        across, up = ([[max(m.value - m.low, 0)], [max(m.high - m.value, 0)]] for m in (gap, accuracy))
        look: dict[str, Any] = {"fmt": marker, "color": colour, "label": name, "capsize": 2}
        axes.errorbar([gap.value], [accuracy.value], xerr=across, yerr=up, **look)
    best = comparison.frontier(pure=pure)
    line = sorted((gap.value, accuracy.value) for name, gap, accuracy in points if name in best)
    axes.step(*np.asarray(line).T, where="post", color="0.5", linestyle="--", linewidth=1, zorder=0)
    axes.set_xlabel("gap at ε = 0" if pure else f"gap at ε = {comparison.eps:g}")
    axes.set_ylabel(ACCURACY)
    axes.legend(frameon=False)
    return axes


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", extra="report", why="Plotting")
    axes: Axes = pyplot.subplots()[1]
    return axes


def _two_columns(unfair: UnfairMap) -> tuple[Any, Any]:
    moved = list(unfair.changes.loc[unfair.changes["people"] > 0, "column"])
    names = [*moved, *(name for name in unfair.people.columns if name not in moved)]
    return names[0], names[1]


def _positions(
    unfair: UnfairMap, name: Any, axis: str, axes: Axes
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Where persons and twins stand along one axis; categories get ticks with their names."""
    before, after = unfair.people[name], unfair.twins[name]
    if pd.api.types.is_numeric_dtype(before) and not pd.api.types.is_bool_dtype(before):
        return before.to_numpy(dtype=float), after.to_numpy(dtype=float)
    words = sorted({*before.astype(str), *after.astype(str)})
    place = {word: i for i, word in enumerate(words)}
    set_ticks = axes.set_xticks if axis == "x" else axes.set_yticks
    set_ticks(range(len(words)), words)
    return (
        before.astype(str).map(place).to_numpy(dtype=float),
        after.astype(str).map(place).to_numpy(dtype=float),
    )
