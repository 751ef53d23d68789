"""Adversarial debiasing behind the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.core.randomness import RandomState
from likewise.domains import TabularDomain
from likewise.estimators.attributes import AttributeCodes
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.training.adversarial import AdversarialDebiasing
from likewise.training.objective import Objective
from likewise.training.sampling import Sampling
from likewise.training.setup import OptimizerLike

__all__ = ["AdversarialDebiasingClassifier"]


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
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`.

    Attributes
    ----------
    attributes_ : AttributeCodes
        Names and values of the sensitive attributes.
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], size=200)
    >>> clf = AdversarialDebiasingClassifier(n_steps=100, random_state=0)
    >>> clf.fit(X, X[:, 0] > 0, sensitive_features=sex).attributes_.values
    (('F', 'M'),)
    """

    def __init__(
        self,
        attributes: Any = None,
        *,
        strength: float = 0.1,
        equalized_odds: bool = True,
        adversary_lr: float = 1e-3,
        hidden_layer_sizes: Sequence[int] = (100,),
        activation: str = "relu",
        module: Any = None,
        domain: TabularDomain | None = None,
        n_steps: int = 2000,
        batch_size: int = 1000,
        lr: float = 1e-3,
        optimizer: OptimizerLike = "adam",
        sampling: Sampling = "balanced",
        validation: float | None = None,
        patience: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        progress: bool = False,
        device: str | None = None,
        threads: int | Literal["auto"] | None = "auto",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            module=module,
            domain=domain,
            n_steps=n_steps,
            batch_size=batch_size,
            lr=lr,
            optimizer=optimizer,
            sampling=sampling,
            validation=validation,
            patience=patience,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
            device=device,
            threads=threads,
            random_state=random_state,
        )
        self.attributes = attributes
        self.strength = strength
        self.equalized_odds = equalized_odds
        self.adversary_lr = adversary_lr

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
        return {"sensitive": self.attributes_.codes(rows, owner=type(self).__name__)}
