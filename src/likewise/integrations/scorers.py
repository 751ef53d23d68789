"""Scorers for scikit-learn's model selection: the fairer a model, the higher its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import is_regressor
from sklearn.metrics import get_scorer

from likewise.auditing import audit
from likewise.core.checks import check_number
from likewise.core.errors import ModelError


@dataclass(frozen=True)
class PureGapScorer:
    """A scorer with scikit-learn's signature ``(estimator, X, y)``; see `pure_gap_scorer`.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> blind = DummyClassifier(strategy="prior").fit(people, [0, 1, 1, 1])
    >>> PureGapScorer(("sex",), beside="accuracy")(blind, people, [0, 1, 1, 1])
    0.75
    """

    sensitive_features: tuple[str, ...]
    beside: Any = None
    weight: float = 1.0
    metric: Any = "columns"
    choices: dict[str, Any] = field(default_factory=dict)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator on people."""
        choices = {
            "loss": "squared" if is_regressor(estimator) else "cross_entropy",
            "eps": 0.0,
            **self.choices,
        }
        result = audit(
            estimator, X, y, sensitive_features=self.sensitive_features, metric=self.metric, **choices
        )
        if result.status != "converged":
            # A model selection takes the highest score: what is not known must not look fair.
            raise ModelError("pure_gap_scorer: the audit did not converge: " + "; ".join(result.reasons))
        beside = 0.0 if self.beside is None else float(get_scorer(self.beside)(estimator, X, y))
        return beside - self.weight * result.pure_gap


def pure_gap_scorer(
    sensitive_features: Sequence[str],
    *,
    beside: Any = None,
    weight: float = 1.0,
    metric: Any = "columns",
    **choices: Any,
) -> PureGapScorer:
    """Make a scorer of the zero-distance gap for `GridSearchCV`, `HalvingGridSearchCV`, `cross_val_score` and the like.

    The score is minus the gap at ε = 0: what counterparts at no fair distance add to the mean loss. With `beside` it is that
    score minus `weight` times the gap, for a search that must not trade all accuracy for fairness.

    Parameters
    ----------
    sensitive_features : sequence of str
        Columns of X that decisions should not depend on. X must be a table, and the estimator a pipeline that takes it.
    beside : str or scorer, optional
        Another scorer, such as ``"accuracy"`` or ``"neg_log_loss"``.
    weight : float, default=1.0
        What the gap counts for beside it.
    metric : {"columns", "learned"}, FairMetric or learner, default="columns"
        Who is comparable, as in `assert_fair`. Pass a fixed metric and a ``domain`` to score every fold by the same.
    **choices
        Anything else that `likewise.audit` takes.

    Returns
    -------
    PureGapScorer
        Can be pickled, so that ``n_jobs`` may be more than 1 if its choices can.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> blind = DummyClassifier(strategy="prior").fit(people, [0, 1, 1, 1])
    >>> pure_gap_scorer(["sex"])(blind, people, [0, 1, 1, 1]) == 0
    True
    """
    check_number(weight, owner="pure_gap_scorer", name="weight", low=0)
    if beside is not None:
        get_scorer(beside)
    names = (sensitive_features,) if isinstance(sensitive_features, str) else tuple(sensitive_features)
    return PureGapScorer(names, beside, weight, metric, choices)
