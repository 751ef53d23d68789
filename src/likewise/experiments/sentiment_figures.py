"""Figure 2 of the paper: how each method rates names, by race and by gender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.extras import require
from likewise.experiments.study import Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from likewise.core.arrays import FloatArray

__all__ = ["draw_names", "name_sentiments"]

# Two of Okabe and Ito's colours, which people with every kind of colour vision tell apart.
COLOURS = ("#0072b2", "#d55e00")
PANELS = (("race", ("white", "black")), ("gender", ("female", "male")))


def name_sentiments(cells: Cells, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the sentiment of every name, its mean over the finished seeds, by method.

    Parameters
    ----------
    cells : mapping of (method, seed) to CellResult
        With the extra "sentiment": name to logit of positive minus logit of negative.
    methods : sequence of str
        The order to return them in; those without a finished cell are left out.

    Returns
    -------
    dict of method to dict of name to float

    Examples
    --------
    >>> from likewise.experiments.study import CellResult
    >>> cells = {("SenSR", i): CellResult({}, {"sentiment": {"anna": float(i)}}) for i in (0, 1)}
    >>> name_sentiments(cells, ["Baseline", "SenSR"])
    {'SenSR': {'anna': 0.5}}
    """
    found: dict[str, dict[str, float]] = {}
    for method in methods:
        kept = [
            cells[key].extras["sentiment"]
            for key in sorted(cells)
            if key[0] == method and "sentiment" in cells[key].extras
        ]
        if kept:
            found[method] = {name: float(np.mean([one[name] for one in kept])) for name in kept[0]}
    return found


def draw_names(cells: Cells, methods: Sequence[str]) -> Figure | None:
    """Draw box plots of the sentiment of the evaluation names: by race above, by gender below, methods side by side.

    Parameters
    ----------
    cells, methods
        As in `name_sentiments`.

    Returns
    -------
    matplotlib Figure, or None where no cell is finished
    """
    found = name_sentiments(cells, methods)
    if not found:
        return None
    from likewise.datasets.words import evaluation_names

    module: Any = require("matplotlib.figure", extra="report", why="Drawing figures")
    figure: Figure = module.Figure(figsize=(2.2 + 1.3 * len(found), 6.4), layout="constrained")
    people = evaluation_names().set_index("name")
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (column, groups) in zip(panels, PANELS, strict=True):
        group_of = people[column].to_dict()
        boxes = {
            group: [
                np.array([score for name, score in scores.items() if group_of[name] == group])
                for scores in found.values()
            ]
            for group in groups
        }
        _panel(axes, boxes)
        axes.legend(frameon=False, title=column, loc="center left", bbox_to_anchor=(1.0, 0.5))
    panels[-1].set_xticks(range(len(found)), list(found))
    seeds = len({seed for _, seed in cells})
    figure.suptitle(f"Sentiment of names (mean of {seeds} split{'s' * (seeds > 1)})")
    return figure


def _panel(axes: Axes, boxes: dict[str, list[FloatArray]]) -> None:
    """One pair of boxes per method."""
    for (group, values), colour, shift in zip(boxes.items(), COLOURS, (-0.19, 0.19), strict=True):
        drawn = axes.boxplot(
            values,
            positions=np.arange(len(values)) + shift,
            widths=0.32,
            patch_artist=True,
            manage_ticks=False,
            flierprops={"marker": ".", "markersize": 4, "markerfacecolor": colour, "markeredgecolor": colour},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.4, edgecolor=colour)
        for line in drawn["medians"]:
            line.set(color="black")
        drawn["boxes"][0].set_label(group)
    axes.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    axes.set_ylabel("sentiment (logit)")
