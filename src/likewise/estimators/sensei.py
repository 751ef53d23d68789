"""SenSeI behind the scikit-learn contract."""

from __future__ import annotations

from typing import Literal

from likewise.auditing.search.gradient.gradient_search import GradientSearch
from likewise.core.renaming import renamed_parameters
from likewise.domains import Domain
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.robust_classifier import RobustClassifier
from likewise.fair_metrics import FairMetric
from likewise.training.objective import Objective
from likewise.training.sensei import SenSeI

__all__ = ["SenSeIClassifier"]

# Ten steps of the fixed point inside the sensitive subspace, and none outside of it.
SEARCH = GradientSearch(full_steps=0)


@renamed_parameters(lam="lambda_init")
@parameters_from_fields
class SenSeIClassifier(RobustClassifier):
    """Sensitive Set Invariance (Yurochkin & Sun 2021): the loss plus ρ times the change between comparable rows.

    Parameters
    ----------
    rho : float, default=5.0
        ρ, what the change of output between comparable rows counts for: accuracy is traded for fairness by it.
    outputs : {"probabilities", "logits"}, default="probabilities"
        What is compared between comparable rows, by squared distance.

    Attributes
    ----------
    objective_ : SenSeI

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> clf = SenSeIClassifier(ExpertSubspace([0]), baseline=False, random_state=0)
    >>> clf.fit(X, X.sum(axis=1) > 0).predict([[-1.5, 1.0], [1.5, 1.0]]).tolist()
    [True, True]
    """

    rho: float = 5.0
    outputs: Literal["probabilities", "logits"] = "probabilities"

    def _objective_of(self, metric: FairMetric, domain: Domain | None) -> Objective:
        choices = self._robust_choices(metric, domain)
        if choices["search"] is None:  # the default of earlier versions
            choices["search"] = SEARCH
        return SenSeI(**choices, rho=self.rho, outputs=self.outputs)
