"""SenSR behind the scikit-learn contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.core.checks import check_number
from likewise.core.randomness import RandomState
from likewise.domains import Domain, TabularDomain
from likewise.estimators.attributes import ProxyVectors
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
from likewise.estimators.presets import preset_parameters
from likewise.training.lambda_rules import LambdaRule
from likewise.training.objective import Objective
from likewise.training.penalised import WithCovariancePenalty
from likewise.training.robust import SearchLike
from likewise.training.sampling import Sampling
from likewise.training.sensr import SenSR
from likewise.training.setup import OptimizerLike

__all__ = ["SenSRClassifier"]


class SenSRClassifier(NetworkClassifier):
    """Sensitive Subspace Robustness: trained on the worst comparable row of each row (the paper's Algorithm 2).

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Who is comparable: a metric on the encoded rows; a learner such as ``AttributeSubspace(["sex"])``,
        cloned and fitted inside `fit`; several mean the union. Default: ``AttributeSubspace()`` on the
        `sensitive_features` given to `fit`.
    eps : float, default=1e-3
        The budget ε of mean squared fair distance. It counts only where the search has a full phase.
    search : {"fast", "paper"} or GradientSearch, default="fast"
        How the worst case is looked for: "paper" is 50 + 40 steps of Adam, "fast" a fifth of the first and
        none of the second.
    lambda_rule : {"authors", "paper", "dual", "fixed"}, default="authors"
        How λ moves; see `likewise.training.SenSR`.
    lam : float, default=2.0
        λ at the start.
    search_domain : Domain or "data", optional
        Which rows the search may reach. None sets no bound, as the paper does: its large moves are what brings
        group gaps down. "data" goes as far along each sensitive direction as the data does, which keeps more
        accuracy.
    project : FairMetric, learner or list of them, optional
        Directions that the network shall not see at all: they are projected off the rows first, and the
        search is left with the rest of the metric's subspace.
    group_penalty : float, default=0.0
        Strength of a penalty for groups on top: CoCL's, which keeps answers from covarying with `attributes`, class
        by class. 0 is SenSR alone.
    attributes : str, int or list of them, optional
        What the group penalty is about: columns of `sensitive_features` or of X. Default: all of
        `sensitive_features`.
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`. Validation goes by the robust loss.

    Attributes
    ----------
    metric_ : FairMetric
        Who is comparable for this model, what was projected off included.
    removed_ : Subspace or None
        What was projected off.
    search_domain_ : Domain or None
        Where the search may go.
    objective_ : SenSR, or WithCovariancePenalty of it
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> clf = SenSRClassifier(ExpertSubspace([0]), n_steps=200, random_state=0).fit(X, y)
    >>> clf.predict([[-3.0, 1.0], [3.0, 1.0], [3.0, -1.0]]).tolist()
    [True, True, False]
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        eps: float = 1e-3,
        search: SearchLike = "fast",
        lambda_rule: LambdaRule = "authors",
        lam: float = 2.0,
        search_domain: Domain | Literal["data"] | None = None,
        project: Any = None,
        group_penalty: float = 0.0,
        attributes: Any = None,
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
        self.eps = eps
        self.search = search
        self.lambda_rule = lambda_rule
        self.lam = lam
        self.search_domain = search_domain
        self.project = project
        self.group_penalty = group_penalty
        self.attributes = attributes

    @classmethod
    def preset(cls, name: str, **changes: Any) -> SenSRClassifier:
        """Return an estimator with named settings, not fitted.

        Parameters
        ----------
        name : {"paper-adult", "paper-sentiment", "adult-best", "adult-best-untold"}
            "paper-adult" and "paper-sentiment" are Table 3 of the paper; "adult-best" is better on Adult in every
            column of its tables, *told* that husbands and wives are comparable; "adult-best-untold" was not told.
            ``likewise.estimators.presets.SENSR_PRESETS`` says of each what it uses and what it was told.
        **changes
            Parameters that differ from it, such as ``random_state``.

        Returns
        -------
        SenSRClassifier

        Examples
        --------
        >>> SenSRClassifier.preset("adult-best", random_state=0).project
        ExpertSubspace(directions=['sex', 'race', 'relationship: Husband - Wife'])
        """
        return cls(**{**preset_parameters(name), **changes})

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder([self.metric, self.project])

    def _learn(self, rows: TrainingRows) -> None:
        owner = type(self).__name__
        self.removed_ = removed_directions(self.project, rows, owner=owner)
        self.metric_ = metric_of_model(trained_metric(self.metric, rows, owner=owner), self.removed_)
        searched = searched_metric(self.metric_, self.removed_)
        self.search_domain_ = search_region(self.search_domain, searched, rows, owner=owner)

        if self._penalises():
            self.proxy_ = ProxyVectors.of(rows, self.attributes, owner=owner)

    def _penalises(self) -> bool:
        return check_number(self.group_penalty, owner=type(self).__name__, name="group_penalty", low=0) > 0

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        if not self._penalises():
            return {}
        return {"proxy": self.proxy_.vectors(rows, owner=type(self).__name__)}

    def _objective(self) -> Objective:
        objective = SenSR(
            searched_metric(self.metric_, self.removed_),
            eps=self.eps,
            lam=self.lam,
            lambda_rule=self.lambda_rule,
            search=self.search,
            domain=self.search_domain_,
        )
        return WithCovariancePenalty(objective, self.group_penalty) if self._penalises() else objective
