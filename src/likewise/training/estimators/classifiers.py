"""Networks behind the scikit-learn contract: the plain one, SenSR, SenSeI, and the methods they are compared with."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from likewise.core.parameters import parameters_from_fields
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import euclidean
from likewise.mitigation.project import projected_off
from likewise.training.estimators.network_classifier import NetworkClassifier
from likewise.training.estimators.rows import (
    AttributeCodes,
    ProxyVectors,
    TrainingRows,
    metric_encoder,
    trained_metric,
)
from likewise.training.objective import Objective
from likewise.training.penalised import AdversarialDebiasing, CoCL
from likewise.training.robust import SearchLike
from likewise.training.sensr import wasserstein_robust

# The paper's Baseline: plain training.


@parameters_from_fields
class MLPBaselineClassifier(NetworkClassifier):
    """A multilayer perceptron trained for accuracy alone, as the paper's "Baseline".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> clf = MLPBaselineClassifier(n_steps=200, random_state=0).fit(X, y)
    >>> clf.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist()
    ['yes', 'no']
    """


# Distributionally robust training with the Euclidean cost.


@parameters_from_fields
class WassersteinRobustClassifier(NetworkClassifier):
    """SenSR with the Euclidean metric: the distributionally robust training of Sinha et al. 2018.

    No direction is sensitive: it is the comparison that shows what the fair metric does for SenSR.

    Parameters
    ----------
    eps : float, default=0.1
        The tolerance ε of mean squared Euclidean distance.
    search : {"two_phase", "paper"} or GradientSearch, optional
        Default: fifteen steps of the damped fixed point over all coordinates.

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
    search: SearchLike | None = None

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = euclidean(rows.x.shape[1])

    def _objective(self) -> Objective:
        chosen = {} if self.search is None else {"search": self.search}
        # As far as the data goes along free directions, of which there is none.
        domain = self._config.search_domain
        return wasserstein_robust(
            self.metric_.n_features,
            eps=self.eps,
            lambda_init=self._config.lambda_init,
            lambda_rule=self._config.lambda_rule,
            domain=None if isinstance(domain, str) else domain,
            **chosen,
        )

    def _why_at_chance(self) -> str:
        return "the tolerance is too large: lower 'eps', or bound the search with TrainingConfig(search_domain=...)"


# The paper's Project: plain training on rows without the sensitive directions.


@parameters_from_fields
class ProjectClassifier(NetworkClassifier):
    """Plain training on rows projected off the sensitive subspace, as the paper's "Project".

    The same as a pipeline of `likewise.mitigation.Project` and `MLPBaselineClassifier`, in one estimator whose
    network takes the unprojected rows: the projection is folded into its first layer.

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Whose sensitive subspace is projected off; as in `SenSRClassifier`.

    Attributes
    ----------
    metric_ : FairMetric
    removed_ : Subspace
        What was projected off.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = ProjectClassifier(ExpertSubspace([0]), n_steps=100, random_state=0).fit(X, X.sum(axis=1) > 0)
    >>> a, b = clf.predict_proba([[-9.0, 1.0], [9.0, 1.0]])
    >>> bool(np.allclose(a, b))
    True
    """

    metric: Any = field(default=None, kw_only=False)

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder(self.metric)

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = trained_metric(self.metric, rows, owner=type(self).__name__)
        self.removed_ = projected_off(self.metric_, owner=type(self).__name__)

    def _why_at_chance(self) -> str:
        linear = "" if self.hidden_layer_sizes or self.module is not None else "add hidden layers, "
        return (
            f"what tells it was projected off: {linear}name fewer attributes, or project off just the sensitive columns "
            "themselves: metric=ExpertSubspace([...])"
        )


# CoCL behind the scikit-learn contract.


@parameters_from_fields
class CoCLClassifier(NetworkClassifier):
    """Covariance-constrained loss (Romanov et al. 2019): answers shall not covary with a proxy, class by class.

    The proxy is a vector about each person, needed in training only: the embedding of their name, passed as
    numeric `sensitive_features`; or, if there are no names (Adult), the vector of protected attributes.

    Parameters
    ----------
    attributes : str, int or list of them, optional
        Columns of `sensitive_features`, or of X, that make the proxy. Default: all of `sensitive_features`.
        Numbers are taken as they are, categories become 0/1 columns.
    strength : float, default=1.0
        What the covariance counts for; 0 is plain training.

    Attributes
    ----------
    proxy_ : ProxyVectors
        How the proxy is made.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], size=200)
    >>> clf = CoCLClassifier(strength=2.0, n_steps=100, random_state=0)
    >>> clf.fit(X, X[:, 0] > 0, sensitive_features=sex).proxy_.width
    1
    """

    attributes: Any = field(default=None, kw_only=False)
    strength: float = 1.0

    def _learn(self, rows: TrainingRows) -> None:
        self.proxy_ = ProxyVectors.of(rows, self.attributes, owner=type(self).__name__)

    def _objective(self) -> Objective:
        return CoCL(strength=self.strength)

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        return {"proxy": self.proxy_.vectors(rows, owner=type(self).__name__)}

    def _why_at_chance(self) -> str:
        return "the penalty is too strong: lower 'strength'"


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
