"""SenSR behind the scikit-learn contract."""

from __future__ import annotations

from typing import Any

from likewise.core.checks import check_number
from likewise.core.renaming import renamed_parameters
from likewise.domains import Domain
from likewise.estimators.attributes import ProxyVectors
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.network_rows import TrainingRows
from likewise.estimators.presets import preset_parameters
from likewise.estimators.robust_classifier import RobustClassifier
from likewise.fair_metrics import FairMetric
from likewise.training.objective import Objective
from likewise.training.penalised import WithCovariancePenalty
from likewise.training.sensr import SenSR

__all__ = ["SenSRClassifier"]


@renamed_parameters(lam="lambda_init")
@parameters_from_fields
class SenSRClassifier(RobustClassifier):
    """Sensitive Subspace Robustness: trained on the worst comparable row of each row (the paper's Algorithm 2).

    Parameters
    ----------
    group_penalty : float, default=0.0
        Strength of a penalty for groups on top: CoCL's, which keeps answers from covarying with `attributes`, class
        by class. 0 is SenSR alone.
    attributes : str, int or list of them, optional
        What the group penalty is about: columns of `sensitive_features` or of X. Default: all of
        `sensitive_features`.

    Attributes
    ----------
    objective_ : SenSR, or WithCovariancePenalty of it

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> clf = SenSRClassifier(ExpertSubspace([0]), baseline=False, random_state=0).fit(X, y)
    >>> clf.predict([[-3.0, 1.0], [3.0, 1.0], [3.0, -1.0]]).tolist()
    [True, True, False]
    """

    group_penalty: float = 0.0
    attributes: Any = None

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

    def _learn(self, rows: TrainingRows) -> None:
        super()._learn(rows)
        if self._penalises():
            self.proxy_ = ProxyVectors.of(rows, self.attributes, owner=type(self).__name__)

    def _penalises(self) -> bool:
        return check_number(self.group_penalty, owner=type(self).__name__, name="group_penalty", low=0) > 0

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        if not self._penalises():
            return {}
        return {"proxy": self.proxy_.vectors(rows, owner=type(self).__name__)}

    def _objective_of(self, metric: FairMetric, domain: Domain | None) -> Objective:
        objective = SenSR(**self._robust_choices(metric, domain))
        return WithCovariancePenalty(objective, self.group_penalty) if self._penalises() else objective
