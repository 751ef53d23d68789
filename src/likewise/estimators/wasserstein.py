"""Distributionally robust training with the Euclidean cost."""

from __future__ import annotations

from likewise.core.renaming import renamed_parameters
from likewise.domains import Domain
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.fair_metrics import euclidean
from likewise.training.lambda_rules import LambdaRule
from likewise.training.objective import Objective
from likewise.training.robust import SearchLike
from likewise.training.sensr import wasserstein_robust

__all__ = ["WassersteinRobustClassifier"]


@renamed_parameters(lam="lambda_init")
@parameters_from_fields
class WassersteinRobustClassifier(NetworkClassifier):
    """SenSR with the Euclidean metric: the distributionally robust training of Sinha et al. 2018.

    No direction is sensitive: it is the comparison that shows what the fair metric does for SenSR.

    Parameters
    ----------
    eps : float, default=0.1
        The budget ε of mean squared Euclidean distance.
    lambda_init : float, default=2.0
        λ at the start.
    lambda_rule : {"dual", "authors", "paper", "fixed"}, default="dual"
        How λ moves; see `likewise.training.SenSR`.
    search : {"two_phase", "paper"} or GradientSearch, optional
        Default: fifteen steps of the damped fixed point over all coordinates.
    search_domain : Domain, optional
        Which rows the search may reach; None sets no bound.

    Attributes
    ----------
    metric_ : FairMetric
        The Euclidean metric.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = WassersteinRobustClassifier(n_steps=100, random_state=0).fit(X, X[:, 0] > 0)
    >>> clf.predict([[-1.0, 0.0], [1.0, 0.0]]).tolist()
    [False, True]
    """

    eps: float = 0.1
    lambda_init: float = 2.0
    lambda_rule: LambdaRule = "dual"
    search: SearchLike | None = None
    search_domain: Domain | None = None

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = euclidean(rows.x.shape[1])

    def _objective(self) -> Objective:
        chosen = {} if self.search is None else {"search": self.search}
        return wasserstein_robust(
            self.metric_.n_features,
            eps=self.eps,
            lambda_init=self.lambda_init,
            lambda_rule=self.lambda_rule,
            domain=self.search_domain,
            **chosen,
        )

    def _why_at_chance(self) -> str:
        return "the budget is too large: lower 'eps', or bound the search with a 'search_domain'"
