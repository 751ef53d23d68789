"""Networks and a linear model: SenSR, SenSeI, Project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likewise.experiments.settings import plain_settings
from likewise.improving.candidate import Candidate
from likewise.improving.people import Ground
from likewise.texts import Said

__all__ = ["NetworkCandidate", "network_candidates"]


@dataclass(frozen=True)
class NetworkCandidate(Candidate):
    """An estimator of `likewise.estimators` that is given the fair metric.

    Parameters
    ----------
    title, about : str
        Name and note.
    estimator : str
        Name of the class.
    seconds : float
        About how long a training takes.
    choices : mapping
        Further parameters.
    """

    title: str
    about: str
    estimator: str
    seconds: float
    choices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How tables and pages call it."""
        return self.title

    @property
    def note(self) -> str:
        """One sentence about what it does."""
        return self.about

    def settings(self, ground: Ground) -> dict[str, Any]:
        """Every parameter but the metric and the domain, which are the ground's."""
        estimator = self._estimator(ground, 0).set_params(metric=None, domain=None)
        return {"estimator": plain_settings(estimator)}

    def fit(self, ground: Ground, rows: Any, *, seed: int) -> Any:
        """Train it."""
        return self._estimator(ground, seed).fit(ground.frame.iloc[rows], ground.labels[rows])

    def cost(self, n_people: int) -> float:
        """CPU seconds: steps are of batches, whatever the number of people."""
        return self.seconds + n_people / 20_000

    def _estimator(self, ground: Ground, seed: int) -> Any:
        from likewise import estimators

        build = getattr(estimators, self.estimator)
        return build(metric=ground.metric, domain=ground.domain, random_state=seed, **self.choices)


def network_candidates(ground: Ground) -> tuple[Candidate, ...]:
    """Return the networks on their defaults, which the table decides, and the linear model."""
    return (
        NetworkCandidate(
            "SenSR",
            Said("improve.about_sensr"),
            "SenSRClassifier",
            6.0,
        ),
        NetworkCandidate(
            "SenSeI",
            Said("improve.about_sensei"),
            "SenSeIClassifier",
            8.0,
        ),
        NetworkCandidate(
            "Project, logistic",
            Said("improve.about_project"),
            "ProjectClassifier",
            3.0,
            {"hidden_layer_sizes": (), "lr": 0.01},
        ),
    )
