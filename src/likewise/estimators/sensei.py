"""SenSeI behind the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.auditing.search.gradient.gradient_search import GradientSearch
from likewise.core.randomness import RandomState
from likewise.domains import Domain, TabularDomain
from likewise.estimators.metrics import (
    metric_encoder,
    metric_of_model,
    removed_directions,
    search_region,
    searched_metric,
    trained_metric,
)
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.training.lambda_rules import LambdaRule
from likewise.training.objective import Objective
from likewise.training.robust import SearchLike
from likewise.training.sampling import Sampling
from likewise.training.sensei import SenSeI
from likewise.training.setup import OptimizerLike

__all__ = ["SenSeIClassifier"]

_SEARCH = GradientSearch(full_steps=0)


class SenSeIClassifier(NetworkClassifier):
    """Sensitive Set Invariance (Yurochkin & Sun 2021): the loss plus ρ times the change between comparable rows.

    Parameters
    ----------
    metric, eps, lambda_rule, lam, project
        As in `SenSRClassifier`.
    rho : float, default=5.0
        ρ, what the change of output between comparable rows counts for: accuracy is traded for fairness by it.
    outputs : {"probabilities", "logits"}, default="probabilities"
        What is compared between comparable rows, by squared distance.
    search : {"fast", "paper"} or GradientSearch, optional
        Default: ten steps of the fixed point inside the sensitive subspace, and none outside of it.
    search_domain : Domain, "data" or None, default="data"
        As in `SenSRClassifier`, but bounded unless told otherwise: where rows may go any distance, all outputs
        change, whatever the network.
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`.

    Attributes
    ----------
    metric_, removed_, search_domain_
        As in `SenSRClassifier`.
    objective_ : SenSeI
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> clf = SenSeIClassifier(ExpertSubspace([0]), n_steps=500, random_state=0)
    >>> clf.fit(X, X.sum(axis=1) > 0).predict([[-1.5, 1.0], [1.5, 1.0]]).tolist()
    [True, True]
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        rho: float = 5.0,
        eps: float = 1e-3,
        outputs: Literal["probabilities", "logits"] = "probabilities",
        search: SearchLike | None = None,
        lambda_rule: LambdaRule = "authors",
        lam: float = 2.0,
        search_domain: Domain | Literal["data"] | None = "data",
        project: Any = None,
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
        self.metric = metric
        self.rho = rho
        self.eps = eps
        self.outputs = outputs
        self.search = search
        self.lambda_rule = lambda_rule
        self.lam = lam
        self.search_domain = search_domain
        self.project = project

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder([self.metric, self.project])

    def _learn(self, rows: TrainingRows) -> None:
        owner = type(self).__name__
        self.removed_ = removed_directions(self.project, rows, owner=owner)
        self.metric_ = metric_of_model(trained_metric(self.metric, rows, owner=owner), self.removed_)
        searched = searched_metric(self.metric_, self.removed_)
        self.search_domain_ = search_region(self.search_domain, searched, rows, owner=owner)

    def _objective(self) -> Objective:
        return SenSeI(
            searched_metric(self.metric_, self.removed_),
            eps=self.eps,
            lam=self.lam,
            lambda_rule=self.lambda_rule,
            search=_SEARCH if self.search is None else self.search,
            domain=self.search_domain_,
            rho=self.rho,
            outputs=self.outputs,
        )
