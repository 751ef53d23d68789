"""CoCL behind the scikit-learn contract."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from likewise.estimators.attributes import ProxyVectors
from likewise.estimators.fields_as_parameters import parameters_from_fields
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.training.cocl import CoCL
from likewise.training.objective import Objective

__all__ = ["CoCLClassifier"]


@parameters_from_fields
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
