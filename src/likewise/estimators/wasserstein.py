"""Distributionally robust training with the Euclidean cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.core.randomness import RandomState
from likewise.domains import Domain, TabularDomain
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.fair_metrics import Euclidean
from likewise.training.lambda_rules import LambdaRule
from likewise.training.objective import Objective
from likewise.training.robust import SearchLike
from likewise.training.sampling import Sampling
from likewise.training.sensr import WassersteinRobust
from likewise.training.setup import OptimizerLike

__all__ = ["WassersteinRobustClassifier"]


class WassersteinRobustClassifier(NetworkClassifier):
    """SenSR with the Euclidean metric: the distributionally robust training of Sinha et al. 2018.

    No direction is sensitive: it is the comparison that shows what the fair metric does for SenSR.

    Parameters
    ----------
    eps : float, default=0.1
        The budget ε of mean squared Euclidean distance.
    lam : float, default=2.0
        λ at the start.
    lambda_rule : {"dual", "authors", "paper", "fixed"}, default="dual"
        How λ moves; see `likewise.training.SenSR`.
    search : {"fast", "paper"} or GradientSearch, optional
        Default: fifteen steps of the damped fixed point over all coordinates.
    search_domain : Domain, optional
        Which rows the search may reach; None sets no bound.
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`.

    Attributes
    ----------
    metric_ : FairMetric
        The Euclidean metric.
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = WassersteinRobustClassifier(n_steps=100, random_state=0).fit(X, X[:, 0] > 0)
    >>> clf.predict([[-1.0, 0.0], [1.0, 0.0]]).tolist()
    [False, True]
    """

    def __init__(
        self,
        *,
        eps: float = 0.1,
        lam: float = 2.0,
        lambda_rule: LambdaRule = "dual",
        search: SearchLike | None = None,
        search_domain: Domain | None = None,
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
        self.eps = eps
        self.lam = lam
        self.lambda_rule = lambda_rule
        self.search = search
        self.search_domain = search_domain

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = Euclidean(rows.x.shape[1])

    def _objective(self) -> Objective:
        chosen = {} if self.search is None else {"search": self.search}
        return WassersteinRobust(
            self.metric_.n_features,
            eps=self.eps,
            lam=self.lam,
            lambda_rule=self.lambda_rule,
            domain=self.search_domain,
            **chosen,
        )
