"""What SenSR and SenSeI share as estimators: a metric, a search for the worst comparable row, and its λ."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from likewise.domains import Domain, TabularDomain
from likewise.estimators.fields_as_parameters import parameters_from_fields
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
from likewise.training.robust import SearchLike

__all__ = ["RobustClassifier"]


@parameters_from_fields
class RobustClassifier(NetworkClassifier):
    """A network trained against the worst comparable rows; a subclass says how they count.

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
    lambda_init : float, default=2.0
        λ at the start.
    search_domain : Domain or "data", optional
        Which rows the search may reach. None sets no bound, as the paper does: its large moves are what brings
        group gaps down. "data" goes as far along each sensitive direction as the data does, which keeps more
        accuracy.
    project : FairMetric, learner or list of them, optional
        Directions that the network shall not see at all: they are projected off the rows first, and the
        search is left with the rest of the metric's subspace.

    Attributes
    ----------
    metric_ : FairMetric
        Who is comparable for this model, what was projected off included.
    removed_ : Subspace or None
        What was projected off.
    search_domain_ : Domain or None
        Where the search may go.
    """

    metric: Any = field(default=None, kw_only=False)
    eps: float = 1e-3
    search: SearchLike | None = "fast"
    lambda_rule: LambdaRule = "authors"
    lambda_init: float = 2.0
    search_domain: Domain | Literal["data"] | None = None
    project: Any = None

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder([self.metric, self.project])

    def _learn(self, rows: TrainingRows) -> None:
        owner = type(self).__name__
        self.removed_, told = removed_directions(self.project, rows, owner=owner)
        self.metric_ = metric_of_model(trained_metric(self.metric, rows, owner=owner), self.removed_, told)
        searched = searched_metric(self.metric_, self.removed_)
        self.search_domain_ = search_region(self.search_domain, searched, rows, owner=owner)

    def _robust_choices(self) -> dict[str, Any]:
        """Parameters of a `likewise.training.robust.RobustObjective`, from the own ones and what was learned."""
        return {
            "metric": searched_metric(self.metric_, self.removed_),
            "eps": self.eps,
            "lambda_init": self.lambda_init,
            "lambda_rule": self.lambda_rule,
            "search": self.search,
            "domain": self.search_domain_,
        }
