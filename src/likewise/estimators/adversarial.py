"""Adversarial debiasing behind the scikit-learn contract."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from likewise.estimators.attributes import AttributeCodes
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.training.adversarial import AdversarialDebiasing
from likewise.training.objective import Objective

__all__ = ["AdversarialDebiasingClassifier"]


@parameters_from_fields
class AdversarialDebiasingClassifier(NetworkClassifier):
    """Adversarial debiasing (Zhang et al. 2018): no adversary shall guess sensitive attributes from the answer.

    Parameters
    ----------
    attributes : str, int or list of them, optional
        Sensitive columns: of `sensitive_features`, or of X. Default: all of `sensitive_features`. A number with
        more than ten values is cut at its median.
    strength : float, default=0.1
        α: what the adversary's loss counts for. The paper's Adult run used 0.001.
    equalized_odds : bool, default=True
        Whether the adversary knows the label; False aims at equal rates of decisions (demographic parity).
    adversary_lr : float, default=1e-3
        Learning rate of the adversary.

    Attributes
    ----------
    attributes_ : AttributeCodes
        Names and values of the sensitive attributes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], size=200)
    >>> clf = AdversarialDebiasingClassifier(n_steps=100, random_state=0)
    >>> clf.fit(X, X[:, 0] > 0, sensitive_features=sex).attributes_.values
    (('F', 'M'),)
    """

    attributes: Any = field(default=None, kw_only=False)
    strength: float = 0.1
    equalized_odds: bool = True
    adversary_lr: float = 1e-3

    def _learn(self, rows: TrainingRows) -> None:
        self.attributes_ = AttributeCodes.of(rows, self.attributes, owner=type(self).__name__)

    def _objective(self) -> Objective:
        return AdversarialDebiasing(
            n_values=tuple(len(values) for values in self.attributes_.values),
            strength=self.strength,
            equalized_odds=self.equalized_odds,
            adversary_lr=self.adversary_lr,
            seed=self._seed(),
        )

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        return {"sensitive_features": self.attributes_.codes(rows, owner=type(self).__name__)}

    def _why_at_chance(self) -> str:
        return "the adversary is too strong: lower 'strength'"
