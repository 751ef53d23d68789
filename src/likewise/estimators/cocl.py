"""CoCL behind the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.core.randomness import RandomState
from likewise.domains import TabularDomain
from likewise.estimators.attributes import ProxyVectors
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.training.cocl import CoCL
from likewise.training.objective import Objective
from likewise.training.sampling import Sampling
from likewise.training.setup import OptimizerLike

__all__ = ["CoCLClassifier"]


class CoCLClassifier(NetworkClassifier):
    """Covariance-constrained loss (Romanov et al. 2019): answers shall not covary with a proxy, class by class.

    The proxy is a vector about each person, needed in training only: the embedding of their name, passed as
    numeric `sensitive_features`; or, where there are no names (Adult), the vector of protected attributes.

    Parameters
    ----------
    attributes : str, int or list of them, optional
        Columns of `sensitive_features`, or of X, that make the proxy. Default: all of `sensitive_features`.
        Numbers are taken as they are, categories become 0/1 columns.
    strength : float, default=1.0
        What the covariance counts for; 0 is plain training.
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`.

    Attributes
    ----------
    proxy_ : ProxyVectors
        How the proxy is made.
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], size=200)
    >>> clf = CoCLClassifier(strength=2.0, n_steps=100, random_state=0)
    >>> clf.fit(X, X[:, 0] > 0, sensitive_features=sex).proxy_.width
    1
    """

    def __init__(
        self,
        attributes: Any = None,
        *,
        strength: float = 1.0,
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

    def _learn(self, rows: TrainingRows) -> None:
        self.proxy_ = ProxyVectors.of(rows, self.attributes, owner=type(self).__name__)

    def _objective(self) -> Objective:
        return CoCL(strength=self.strength)

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        return {"proxy": self.proxy_.vectors(rows, owner=type(self).__name__)}
