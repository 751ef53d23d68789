"""Boosted trees: plain, with the consensus of twins, and fair at several strengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likewise.experiments.settings import plain_settings
from likewise.improving.candidate import Candidate
from likewise.improving.families.consensus import twin_consensus
from likewise.improving.people import Ground
from likewise.texts import Said

__all__ = ["BoostingCandidate", "boosting_candidates"]

PENALTIES = (0.5, 1.5, 4.0)


@dataclass(frozen=True)
class BoostingCandidate(Candidate):
    """Boosted trees, as `FairBoostingClassifier` grows them.

    Parameters
    ----------
    title, about : str
        Name and note.
    blind : bool
        Whether no tree sees the sensitive columns and edits.
    consensus : bool
        Whether the answer is the consensus of a person's twins.
    choices : mapping
        Further parameters of `FairBoostingClassifier`.
    """

    title: str
    about: str
    blind: bool = True
    consensus: bool = False
    choices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How tables and pages call it."""
        return self.title

    @property
    def note(self) -> str:
        """One sentence about what it does."""
        return self.about

    @property
    def suffix(self) -> str:
        """XGBoost's own format."""
        return ".ubj"

    def settings(self, ground: Ground) -> dict[str, Any]:
        """Every parameter of the trees but the metric, which is the ground's."""
        stored = plain_settings(self._estimator(ground, 0).set_params(metric=None))
        return {"consensus": self.consensus, "estimator": stored}

    def fit(self, ground: Ground, rows: Any, *, seed: int) -> Any:
        """Grow the trees."""
        grown = self._estimator(ground, seed).fit(ground.frame.iloc[rows], ground.labels[rows])
        return twin_consensus(grown, ground) if self.consensus else grown

    def cost(self, n_people: int) -> float:
        """CPU seconds, measured on Adult; a robust objective looks for worst cases in each round."""
        slower = 3.0 if self.choices.get("eps") else 1.0
        return 1.0 + slower * n_people / 6000 + (n_people / 3000 if self.consensus else 0.0)

    def _estimator(self, ground: Ground, seed: int) -> Any:
        from likewise.estimators import FairBoostingClassifier

        named: dict[str, Any] = {}
        if self.blind:
            named["sensitive_features"] = list(ground.sensitive)
            named["edits"] = list(ground.edits) or None
        if self.choices.get("eps"):
            named["metric"] = ground.metric
        return FairBoostingClassifier(**named, **self.choices, random_state=seed)


def boosting_candidates(ground: Ground) -> tuple[Candidate, ...]:
    """Return plain boosting first, then ever stronger ones."""
    named = ", ".join(ground.sensitive)
    found = [
        BoostingCandidate("Boosting", Said("improve.about_boosting"), blind=False),
        BoostingCandidate(
            "Boosting, twin consensus",
            Said("improve.about_consensus", columns=named),
            blind=False,
            consensus=True,
        ),
        BoostingCandidate("Fair boosting", Said("improve.about_fair", columns=named)),
    ]
    if ground.eps > 0:
        found.append(
            BoostingCandidate(
                f"Fair boosting, ε = {ground.eps:g}",
                Said("improve.about_fair_eps", eps=ground.eps),
                choices={"eps": ground.eps},
            )
        )
    if len(ground.groups) == len(ground.sensitive):
        found += [
            BoostingCandidate(
                f"Fair boosting, penalty {strength:g}",
                Said("improve.about_penalty", strength=strength),
                choices={"group_penalty": strength},
            )
            for strength in PENALTIES
        ]
    return tuple(found)
