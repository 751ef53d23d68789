"""Candidates × folds as a study: each cell is trained on the other folds and counted on its own, and is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.experiments.study import CellResult, Published, Study, StudyMeasure
from likewise.improving.candidate import Candidate
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP, rule_figures
from likewise.improving.measuring import tally_model
from likewise.improving.people import Ground

__all__ = ["CrossValidation"]

_MEASURES = (
    StudyMeasure(ACCURACY, "B-Acc", 3, "higher"),
    StudyMeasure(CHANGED, "Changed decisions", 3, "lower"),
    StudyMeasure(PURE_GAP, "Pure gap", 3, "lower"),
    StudyMeasure(GAP, "Gap at ε", 3, "lower"),
    StudyMeasure(GROUP_GAP, "Group gap", 3, "lower"),
)


@dataclass(frozen=True, eq=False)
class CrossValidation(Study):
    """The search for a less discriminatory alternative, in cells that can be computed anywhere and kept.

    Parameters
    ----------
    ground : Ground
    candidates : tuple of Candidate
        With different names.
    """

    ground: Ground
    candidates: tuple[Candidate, ...]

    @property
    def name(self) -> str:
        """Of the study in progress lines."""
        return "improve"

    @property
    def title(self) -> str:
        """Heading."""
        return "Less discriminatory alternatives"

    @property
    def measures(self) -> tuple[StudyMeasure, ...]:
        """What a rule may look at."""
        return _MEASURES

    @property
    def methods(self) -> tuple[str, ...]:
        """The candidates."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def published(self) -> Mapping[tuple[str, str], Published]:
        """Nothing: it is the user's table."""
        return {}

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by its name."""
        return next(candidate for candidate in self.candidates if candidate.name == name)

    def settings(self, method: str) -> dict[str, Any]:
        """The people, the folds, every parameter of the candidate."""
        return {"ground": self.ground.settings(), "candidate": self.candidate(method).settings(self.ground)}

    def note(self, method: str) -> str:
        """What the candidate does."""
        return self.candidate(method).note

    def cost(self, method: str) -> float:
        """CPU seconds of a training, and of asking about twins."""
        candidate = self.candidate(method)
        return candidate.cost(len(self.ground.train)) + self.ground.n_audited / 1000

    def run(self, method: str, seed: int) -> CellResult:
        """Train on the other folds, count on the one called `seed`."""
        ground = self.ground
        model = self.candidate(method).fit(ground, ground.kept(seed), seed=ground.seed)
        tally = tally_model(model, ground, ground.folds[seed], seed=ground.seed)
        return CellResult(rule_figures(tally), {"tally": tally.plain()})
