"""The toy example of Figure 1: a tilted boundary, its unfair map as arrows, and the boundary that SenSR learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.plain import plain_settings
from likewise.datasets.toy import ToyData, make_toy
from likewise.experiments.study import Cells, Study
from likewise.improving.cells import CellResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from likewise.data.domain import BoxDomain
    from likewise.fair_metrics import FairMetric

STEPS, QUICK_STEPS = 600, 100
# The unfair map of panel (b) may also spend a little on the vertical coordinate.
EPS = 0.01
FRESH = 4000
DRAWN_SEED = 0


@dataclass(frozen=True)
class ToyStudy(Study, label="toy"):
    """Figure 1: logistic regression and SenSR on two groups apart in the horizontal direction only.

    Parameters
    ----------
    quick : bool, default=False
        Fewer steps.

    Examples
    --------
    >>> ToyStudy().methods
    ('Baseline', 'SenSR')
    """

    def words(self, method: str | None = None) -> dict[str, Any]:
        """How many points accuracies are of."""
        return {"fresh": FRESH}

    def settings(self, method: str) -> dict[str, Any]:
        """Data, measures and every parameter of the estimator."""
        return {
            "data": "toy",
            "fresh": FRESH,
            "eps": EPS,
            "estimator": plain_settings(self.estimator(method)),
        }

    def estimator(self, method: str, seed: int | None = None) -> Any:
        """Return the estimator of a method, not fitted."""
        from likewise.fair_metrics import ExpertSubspace
        from likewise.training import MLPBaselineClassifier, SenSRClassifier
        from likewise.training.estimators.parameters import AS_PUBLISHED

        choices: dict[str, Any] = {
            "hidden_layer_sizes": (),
            "n_steps": QUICK_STEPS if self.quick else STEPS,
            "batch_size": 200,
            "lr": 0.02,
            "random_state": seed,
        }
        if method == "Baseline":
            return MLPBaselineClassifier(**choices)
        estimator = SenSRClassifier(ExpertSubspace([0]), eps=1e-3, search="fast", **AS_PUBLISHED, **choices)
        return estimator.set_params(training__search_domain="data")

    def run(self, method: str, seed: int) -> CellResult:
        """Train, audit, and keep the boundary and (of one seed) the unfair map."""
        from likewise.auditing import audit

        toy = make_toy(random_state=seed)
        metric, box = _comparable(toy)
        estimator = self.estimator(method, seed).fit(toy.X, toy.y)
        # A linear score is known from three points.
        at = estimator.decision_function(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        bias, horizontal, vertical = float(at[0]), float(at[1] - at[0]), float(at[2] - at[0])
        result = audit(
            estimator, toy.X, toy.y, metric=metric, domain=box, eps=EPS, search="gradient", random_state=seed
        )
        fresh = make_toy(FRESH, minority=0.5, random_state=10_000 + seed)
        right = estimator.predict(fresh.X) == fresh.y
        values = {
            "tilt": abs(horizontal / vertical),
            "accuracy majority": float(right[fresh.group == 0].mean()),
            "accuracy minority": float(right[fresh.group == 1].mean()),
            "gap": float(result.pure_gap),
        }
        extras: dict[str, Any] = {"weights": [horizontal, vertical], "bias": bias}
        if seed == DRAWN_SEED:
            extras["twins"] = np.round(result.unfair_map.twins.to_numpy(dtype=float), 4).tolist()
        return CellResult(values, extras)

    def figures(self, cells: Cells) -> dict[str, Figure]:
        """Figure 1: (a) the boundary of logistic regression, (b) its unfair map, (c) SenSR's boundary."""
        plain = cells.get(("Baseline", DRAWN_SEED))
        fair = cells.get(("SenSR", DRAWN_SEED))
        if plain is None or fair is None:
            return {}
        from likewise.core.errors import require

        figure = require("matplotlib.figure", extra="report", why="Drawing").Figure(
            figsize=(12, 4.2), layout="constrained"
        )
        toy = make_toy(random_state=DRAWN_SEED)
        panels = figure.subplots(1, 3, sharex=True, sharey=True)
        for axes, cell, title in zip(
            panels,
            (plain, plain, fair),
            ("(a) unfair classifier", "(b) its unfair map", "(c) classifier from SenSR"),
            strict=True,
        ):
            _draw_boundary(axes, toy, cell.extras)
            axes.set_title(title)
            axes.set_xlabel("sensitive direction")
        panels[0].set_ylabel("what should decide")
        _draw_arrows(panels[1], toy, np.asarray(plain.extras["twins"]))
        _draw_people(panels[0], toy, legend=True)
        _draw_people(panels[2], toy)
        return {"figure-1": figure}


def _comparable(toy: ToyData) -> tuple[FairMetric, BoxDomain]:
    """The metric that ignores the horizontal direction, and the box of the data."""
    from likewise.core.subspace import Subspace
    from likewise.data.domain import BoxDomain
    from likewise.fair_metrics import FairMetric

    metric = FairMetric.from_subspace(Subspace.from_directions(toy.sensitive_directions))
    return metric, BoxDomain.from_data(toy.X)


def _draw_boundary(axes: Axes, toy: ToyData, learned: Mapping[str, Any]) -> None:
    """The decision heatmap and the line where the score is zero."""
    low, high = toy.X.min(axis=0) - 0.3, toy.X.max(axis=0) + 0.3
    horizontal, vertical = np.meshgrid(np.linspace(low[0], high[0], 60), np.linspace(low[1], high[1], 60))
    w = learned["weights"]
    score = w[0] * horizontal + w[1] * vertical + learned["bias"]
    axes.pcolormesh(
        horizontal,
        vertical,
        1 / (1 + np.exp(-score)),
        cmap="PuOr",
        vmin=0,
        vmax=1,
        alpha=0.45,
        rasterized=True,
    )
    axes.contour(horizontal, vertical, score, levels=[0.0], colors="black", linewidths=1.5)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])


def _draw_people(axes: Axes, toy: ToyData, legend: bool = False) -> None:
    from likewise.report.plots import COLOURS

    for group, words, colour in ((0, "majority", COLOURS[1]), (1, "minority", COLOURS[0])):
        for label, marker, sign in ((1, "+", "positive"), (0, "o", "negative")):
            x, y = toy.X[(toy.group == group) & (toy.y == label)].T
            edge = {"facecolors": "none", "edgecolors": colour} if marker == "o" else {"color": colour}
            looks: dict[str, Any] = {"marker": marker, "s": 22, "linewidths": 1, **edge}
            axes.scatter(x, y, label=f"{words}, {sign}", **looks)
    if legend:
        axes.legend(fontsize=8, loc="lower right", framealpha=0.9)


def _draw_arrows(axes: Axes, toy: ToyData, twins: Any) -> None:
    from likewise.report.plots import COLOURS

    for group in (0, 1):
        # Every third of the many, all of the few: arrows that can be told apart.
        rows = np.flatnonzero(toy.group == group)[:: 3 if group == 0 else 1]
        move = twins[rows] - toy.X[rows]
        axes.quiver(
            *toy.X[rows].T, *move.T, angles="xy", scale_units="xy", scale=1, width=0.003, headwidth=5,
            color=COLOURS[1 - group], alpha=0.65,
        )  # fmt: skip
