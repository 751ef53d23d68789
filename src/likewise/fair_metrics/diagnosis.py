"""What a diagnosis of a fair metric says: a frozen result that prints as small tables."""

from __future__ import annotations

from dataclasses import dataclass

from likewise.core.text import text_table
from likewise.evaluation.measures import Measure
from likewise.fair_metrics.stability import Stability

__all__ = ["Diagnosis", "ProbeScores"]

_SHOWN = 12


@dataclass(frozen=True)
class ProbeScores:
    """Score of one probe on the rows as they came, and after the subspace was projected off.

    Parameters
    ----------
    name : {"linear", "boosted"}
    before, after : Measure
        Mean over the folds with its interval.

    Examples
    --------
    >>> found = ProbeScores("linear", Measure("AUC", 0.93, 0.92, 0.95, "folds"), Measure("AUC", 0.63, 0.59, 0.66, "folds"))
    >>> found.after.value < found.before.low
    True
    """

    name: str
    before: Measure
    after: Measure


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; `print` shows it as small tables.

    Parameters
    ----------
    attribute : str
    kind : {"categorical", "continuous", "count"}
    score : {"AUC", "R²"}
        What the probes are scored by. No knowledge of the attribute is an AUC of 0.5, an R² of 0.
    n_rows : int
        Rows that were probed.
    n_folds : int
    dim : int
        Number of directions that were projected off.
    probes : tuple of ProbeScores
        The linear one, then the boosted one.
    variance_removed : dict of str to float
        For every column the share of its variance that the projection takes; negative where it adds some.
    total_variance_removed : float
        The same for all columns together.
    stability : Stability or None
        None where it could not be computed (the last of the notes says why) or was not asked for.
    notes : tuple of str
        What a reader should know about these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import AttributeSubspace, diagnose
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> learner = AttributeSubspace().fit(X, X[:, 0] > 0)
    >>> found = diagnose(learner.metric_, X, X[:, 0] > 0, folds=2)
    >>> found.score, found.dim, max(found.variance_removed.values()) > 0.9
    ('AUC', 1, True)
    """

    attribute: str
    kind: str
    score: str
    n_rows: int
    n_folds: int
    dim: int
    probes: tuple[ProbeScores, ...]
    variance_removed: dict[str, float]
    total_variance_removed: float
    stability: Stability | None
    notes: tuple[str, ...]

    @property
    def linear(self) -> ProbeScores:
        """Scores of the linear probe."""
        return self.probes[0]

    @property
    def boosted(self) -> ProbeScores:
        """Scores of the gradient-boosted probe."""
        return self.probes[1]

    def __str__(self) -> str:
        parts = [self._probe_table(), self._variance_table()]
        if self.stability is not None:
            parts.append(_stability_table(self.stability))
        return "\n\n".join(parts + ["\n".join(self.notes)] * bool(self.notes))

    def _probe_table(self) -> str:
        title = f"{self.score} of predicting {self.attribute!r}"
        rows = [[f"{p.name} probe", _cell(p.before), _cell(p.after)] for p in self.probes]
        what = f"{self.n_rows:,} rows, {self.n_folds} folds, {self.dim} direction(s) projected off"
        return text_table([title, "before", "after projection"], rows) + f"\n{what}"

    def _variance_table(self) -> str:
        ranked = sorted(self.variance_removed.items(), key=lambda item: -item[1])
        rows = [[name, f"{share:.1%}"] for name, share in ranked[:_SHOWN]]
        if len(ranked) > _SHOWN:
            rows.append([f"{len(ranked) - _SHOWN} more columns", f"at most {ranked[_SHOWN][1]:.1%}"])
        rows.append(["all columns", f"{self.total_variance_removed:.1%}"])
        return text_table(["column", "variance removed"], rows)


def _cell(measure: Measure) -> str:
    return f"{measure.value:.3f} [{measure.low:.3f}, {measure.high:.3f}]"


def _stability_table(stability: Stability) -> str:
    rows = [[measure.name, _cell(measure)] for measure in stability.angles[:_SHOWN]]
    table = text_table([f"{stability.n_resamples} bootstrap resamples", "radians"], rows)
    more = len(stability.angles) - _SHOWN
    low, high = stability.dims
    lines = [table] + [f"{more} more, all smaller"] * (more > 0)
    if (low, high) != (len(stability.angles),) * 2:
        lines.append(f"the resamples gave {low} to {high} directions")
    if stability.n_failed:
        lines.append(f"{stability.n_failed} more resamples could not be learned from")
    return "\n".join(lines)
