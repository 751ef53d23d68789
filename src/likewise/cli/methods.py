"""The methods that `train` and `compare` know by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from likewise.domains import TabularDomain
    from likewise.fair_metrics import FairMetric

__all__ = ["METHODS", "Method", "train_method"]


@dataclass(frozen=True)
class Method:
    """One way to train.

    Parameters
    ----------
    estimator : str
        Name of the class in `likewise.estimators`.
    title : str
        How tables and pages call it.
    needs : {"", "metric", "attributes"}
        What it must be told besides the table.
    """

    estimator: str
    title: str
    needs: str = ""


METHODS = {
    "baseline": Method("MLPBaselineClassifier", "Baseline"),
    "project": Method("ProjectClassifier", "Project", "metric"),
    "sensr": Method("SenSRClassifier", "SenSR", "metric"),
    "sensei": Method("SenSeIClassifier", "SenSeI", "metric"),
    "wasserstein": Method("WassersteinRobustClassifier", "Wasserstein robust"),
    "adversarial": Method("AdversarialDebiasingClassifier", "Adversarial debiasing", "attributes"),
    "cocl": Method("CoCLClassifier", "CoCL", "attributes"),
}


def train_method(
    name: str,
    frame: pd.DataFrame,
    y: Any,
    *,
    domain: TabularDomain,
    metric: FairMetric | None,
    sensitive: Sequence[str],
    progress: bool,
    seed: int,
    **choices: Any,
) -> Any:
    """Train one method on a table.

    Parameters
    ----------
    name : str
        A key of `METHODS`.
    frame : DataFrame
        Features in original units.
    y : array
        Labels.
    domain : TabularDomain
        Encodes the table; saved with the model.
    metric : FairMetric or None
        Who is comparable, for the methods that need it.
    sensitive : sequence of str
        Columns, for the methods that need attributes.
    progress : bool
        Show a bar.
    seed : int
    **choices
        Further parameters of the estimator.

    Returns
    -------
    NetworkClassifier
        Fitted.
    """
    from likewise import estimators

    method = METHODS[name]
    if method.needs == "metric":
        choices["metric"] = metric
    if method.needs == "attributes":
        choices["attributes"] = list(sensitive)
    build = getattr(estimators, method.estimator)
    estimator = build(domain=domain, progress=progress, random_state=seed, **choices)
    outside = [column for column in sensitive if column not in domain.groups_]
    extra = frame[outside] if outside and method.needs == "attributes" else None
    return estimator.fit(frame[list(domain.feature_names_in_)], y, sensitive_features=extra)
