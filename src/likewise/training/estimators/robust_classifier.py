"""SenSR and SenSeI behind the scikit-learn contract: a metric, what the network is blind to, a search, and its λ."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

import numpy as np
from torch import nn

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import FloatArray, check_choice, check_number, to_numpy
from likewise.core.errors import bad_parameter
from likewise.core.parameters import parameters_from_fields
from likewise.core.subspace import Subspace
from likewise.data.domain import Domain
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import MOST, removed_share
from likewise.fair_metrics.naming import ColumnPlaces
from likewise.mitigation.project import projected_off
from likewise.training.batch import Batch
from likewise.training.estimators.automatic import (
    Auto,
    Decisions,
    HeldOut,
    auto_eps,
    auto_search,
    compare,
    compared,
    continued,
    eps_rungs,
    frees_too_much,
    is_small,
    too_costly,
)
from likewise.training.estimators.network_classifier import NetworkClassifier
from likewise.training.estimators.parameters import preset_parameters
from likewise.training.estimators.rows import (
    ProxyVectors,
    TrainingRows,
    metric_encoder,
    metric_of_model,
    search_region,
    searched_metric,
    trained_metric,
)
from likewise.training.networks import behind_projection, whole_axes
from likewise.training.objective import ERM, Objective
from likewise.training.penalised import WithCovariancePenalty
from likewise.training.results import Finding, TrainingResult
from likewise.training.robust import SearchLike
from likewise.training.sensr import SenSeI, SenSR

# What the network does not see: the sensitive columns, or everything that costs nothing under the metric.


BlindTo: TypeAlias = Literal["subspace", "columns"]


def sensitive_coordinates(metric: FairMetric, encoder: TabularDomain | None, width: int) -> list[int]:
    """Return the coordinates of the columns that are sensitive according to the metric.

    If the rows have no names, those of whole columns that cost nothing, as long as not all do.
    """
    if metric.sensitive_features:
        where = ColumnPlaces("fit", width, metric.feature_names, encoder)
        known = [name for name in metric.sensitive_features if where.has(name)]
        return sorted({i for name in known for i in where.find(name)})
    free = metric.null_space
    if metric.feature_names is not None or free.dim >= width:
        return []
    return whole_axes(free)


def choose_blindness(
    blind_to: str | None, metric: FairMetric, x: FloatArray, sensitive: Sequence[int] = (), *, owner: str
) -> BlindTo | None:
    """Return what "auto" means for these rows, and any other choice as it is."""
    if blind_to is None:
        return None
    words, besides = ("auto", "subspace", "columns"), "a metric or learner, or None"
    check_choice(blind_to, words, owner=owner, name="blind_to", besides=besides)
    if blind_to != "auto":
        return "subspace" if blind_to == "subspace" else "columns"
    return "subspace" if removed_share(x, metric.null_space, sensitive) <= MOST else "columns"


def blind_directions(
    blind_to: BlindTo | None, metric: FairMetric, sensitive: list[int], width: int
) -> Subspace | None:
    """Return what is projected off in front of the network; None for nothing."""
    rows = [np.eye(width)[sensitive]] if blind_to is not None else []
    if blind_to == "subspace" and metric.null_space.dim:
        rows.append(np.asarray(to_numpy(metric.null_space.basis), dtype=float).T)
    directions = np.concatenate([np.zeros((0, width)), *rows])
    return Subspace.from_directions(directions) if len(directions) else None


@parameters_from_fields
class RobustClassifier(NetworkClassifier):
    """A network trained against the worst comparable rows; a subclass says how they count.

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Who is comparable: a metric on the encoded rows; a learner such as ``AttributeSubspace(["sex"])``,
        cloned and fitted inside `fit`; an ``Edit("sex", consequences=...)``, whose twins are comparable then
        (`likewise.counterfactuals.TwinSubspace`); several mean the union. Default: ``AttributeSubspace()`` on the
        `sensitive_features` given to `fit`.
    eps : float or "auto", default="auto"
        The tolerance ε of mean squared fair distance, in the units of `likewise.audit`. A larger one gives a fairer and
        less accurate model; 0 allows only moves that cost nothing. "auto" goes up from 0
        over 1/100,000, 1/10,000 and 1/1,000 of the mean squared fair distance between two people of the table (for
        fewer than 2,000 people 1/10,000 alone), and stops before what brings balanced accuracy on people held out
        more than .01 below a plain network's, and further below than 0 did, and before 1/1,000 if these people are
        too few to be sure of that; if nobody is held out or there is
        no plain network to compare with, it is 1/10,000. It counts only if the search has a full phase.
    blind_to : {"auto", "subspace", "columns"}, metric, learner, list of these, or None, default="auto"
        What the network does not see at all, exactly and by construction, also in every file it is written to.
        "columns": the sensitive columns, so that they never change a decision. "subspace": everything that costs
        nothing under the metric, which solves the search along it. None: nothing, as in the paper. "auto" is
        "subspace", or "columns" if that would take more than half of the other columns' variance. A metric or learner
        such as ``ExpertSubspace(["relationship: Husband - Wife"])`` names directions: they are projected off the rows
        first, and the search is left with the rest of the metric's subspace.
    search : {"auto", "two_phase", "fast", "paper"} or GradientSearch, default="auto"
        How the worst case is looked for. "auto": three steps of the damped fixed point, which have no length to
        choose, and before them five along free directions that the network sees, the first of half the data's
        range. "two_phase" is 10 + 10 steps of Adam, "paper" 50 + 40, "fast" 10 and none of the second phase.
    n_steps : int or "auto", default="auto"
        Updates of the weights, at most; "auto" is 400.
    batch_size : int or "auto", default="auto"
        Rows of one update; "auto" is a sixteenth of the table, between 64 and 512.
    lr : float, default=3e-3
        Learning rate.
    validation : float or "auto", default="auto"
        Share of the rows to hold out: the weights with the lowest robust loss on them are kept, where classes
        count as they are sampled. "auto" is a fifth, at most 2,000 people, and none of fewer than 100. Of fewer than
        2,000 people the network is then trained on all of them, for as many steps as did well.

    Attributes
    ----------
    metric_ : FairMetric
        Who is comparable for this model, what was projected off included.
    removed_ : Subspace or None
        What the network does not see.
    search_domain_ : Domain or None
        Where the search may go.
    eps_, search_, blind_to_
        What the parameters of these names were, or what the table made of "auto".
    beside_baseline_ : BesideBaseline
        Balanced accuracy, flips of twins, robust loss and gap of this network and of a plain one, on people that
        networks trained in this way did not see; only if people were held out.
    """

    metric: Any = field(default=None, kw_only=False)
    eps: float | Auto = "auto"
    blind_to: Any = "auto"
    search: SearchLike | Auto | None = "auto"
    n_steps: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    lr: float = 3e-3
    validation: float | Auto | None = "auto"

    def _objective_of(self, metric: FairMetric, domain: Domain | None) -> Objective:
        """Return what is minimised under a metric that is searched with, in a domain."""
        raise NotImplementedError

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder([self.metric, self.blind_to])

    def _learn(self, rows: TrainingRows) -> None:
        owner, width = type(self).__name__, rows.x.shape[1]
        parts = list(self.blind_to) if isinstance(self.blind_to, (list, tuple)) else [self.blind_to]
        words = [part for part in parts if isinstance(part, str)]
        named = [part for part in parts if part is not None and not isinstance(part, str)]
        if len(words) > 1:
            raise bad_parameter(owner, "blind_to", "one word, and directions beside it", words)
        projected: Subspace | None = None
        told: tuple[str, ...] = ()
        if named:
            beside = trained_metric(named if len(named) > 1 else named[0], rows, owner=owner)
            projected, told = projected_off(beside, owner=owner), beside.sensitive_features
        metric = trained_metric(self.metric, rows, owner=owner)
        sensitive = sensitive_coordinates(metric, rows.encoder, width)
        word = words[0] if words else None
        self.blind_to_ = choose_blindness(word, metric, rows.x, sensitive, owner=owner)
        blind = blind_directions(self.blind_to_, metric, sensitive, width)
        # What is hidden as a whole comes first: orthogonal directions that come first are the basis.
        self.removed_ = blind | projected if blind and projected else blind or projected
        self.metric_ = metric_of_model(metric, self.removed_, told)
        searched = searched_metric(self.metric_, self.removed_)
        self.search_domain_ = search_region(self._config.search_domain, searched, rows, owner=owner)
        self._sensitive = sensitive
        self._freed = removed_share(rows.x, metric.null_space, sensitive)
        # Where a network that sees everything may be moved: for the comparison with a plain one.
        self._everywhere = search_region(self._config.search_domain, self.metric_, rows, owner=owner)
        self._usual_eps = auto_eps(self.metric_, rows.x, rows.weights) if self.eps == "auto" else self.eps
        # "auto" begins at 0 if people held out can say whether more costs accuracy.
        self._compares = self._config.baseline and self.validation_ is not None
        self.eps_ = 0.0 if self._compares and self.eps == "auto" else self._usual_eps
        self.search_ = auto_search(searched, self.search_domain_) if self.search == "auto" else self.search

    def _objective(self) -> Objective:
        return self._objective_of(searched_metric(self.metric_, self.removed_), self.search_domain_)

    def _robust_choices(self, metric: FairMetric, domain: Domain | None) -> dict[str, Any]:
        """Parameters of a `likewise.training.robust.RobustObjective`, from the own ones and what was learned."""
        return {
            "metric": metric,
            "eps": self.eps_,
            "lambda_init": self._config.lambda_init,
            "lambda_rule": self._config.lambda_rule,
            "search": auto_search(metric, domain) if self.search == "auto" else self.search,
            "domain": domain,
        }

    # ---- the choice of ε, and the comparison with a plain network ---------------------------------------

    def _train(self, people: Batch, held_out: HeldOut | None) -> TrainingResult:
        """Train, raise ε as long as people held out do not show that it costs accuracy, and compare with a plain network."""
        result = super()._train(people, held_out)
        if not self._compares or held_out is None or not result.ended:
            return result
        part, judges = people.take(held_out.rows), held_out.people
        # Of the same build, but it sees everything, and is trained for accuracy alone.
        trained = self._run(
            self._new_network(), part, ERM(), self.n_steps_, held_out, blind=False, progress=False
        )
        plain = trained.net.eval()
        network, plan = self.network_, [(self.eps_, result.best_step)]
        decisions = Decisions.of(self._as_module(network), plain, judges)
        without, steps = decisions.lost, max(1, int(self.n_steps_) // 4)
        for eps in eps_rungs(self._usual_eps, len(people)) if self.eps == "auto" else ():
            # Each begins with the weights of the one before.
            higher = copy.deepcopy(network)
            self.eps_ = eps
            after = self._run(higher, part, self._objective(), steps, held_out)
            seen = Decisions.of(self._as_module(higher), plain, judges)
            if not after.ended or too_costly(seen.lost, without):
                break
            # More than the usual ε only if the table shows that it can bear it.
            if eps > self._usual_eps and seen.doubtful:
                break
            network, result, decisions = higher, continued(after), seen
            plan.append((eps, after.best_step))
        final = network, result
        if is_small(len(people)) and self.validation == "auto" and self._config.checkpoint is None:
            final = self._train_everybody(people, plan) or final
        self.eps_ = plan[-1][0]
        # Both networks as functions of all columns, moved wherever the metric allows.
        objective = self._objective_of(self.metric_, self._everywhere)
        nets = behind_projection(network, self.removed_), plain
        self.beside_baseline_ = compare(
            (self._as_module(network), plain),
            judges,
            decisions,
            self._sensitive,
            self.metric_,
            losses=tuple(objective.robust_loss(net, judges, result.state) for net in nets),
        )
        self.objective_, self.network_ = self._objective(), final[0]
        return self._finish(final[1])

    def _train_everybody(
        self, people: Batch, plan: list[tuple[float, int]]
    ) -> tuple[nn.Module, TrainingResult] | None:
        """Train a new network on all people, with the values of ε and for as many steps as did well."""
        network = self._new_network()
        for eps, steps in plan:
            self.eps_ = eps
            result = self._run(network, people, self._objective(), steps)
            if result.status != "finished":
                return None
        return network, continued(result) if len(plan) > 1 else result

    def _finish(self, result: TrainingResult) -> TrainingResult:
        super()._finish(result)
        if self.eps_ == 0 and not searched_metric(self.metric_, self.removed_).null_space.dim:
            # Everything that costs nothing was projected off: there was nothing to search for.
            self.findings_ = tuple(one for one in self.findings_ if one.code != "search_found_nothing")
        return result

    def _look_back(
        self, people: Batch, held_out: HeldOut | None, result: TrainingResult
    ) -> tuple[Finding, ...]:
        owner = type(self).__name__
        found = frees_too_much(self._freed, self.metric_, owner)
        if not hasattr(self, "beside_baseline_"):
            return found + super()._look_back(people, held_out, result)
        return found + compared(
            self.beside_baseline_,
            owner=owner,
            eps=float(self.eps_),
            asked=self.eps != "auto",
            freed=self._freed,
            names=self.metric_.sensitive_features,
        )

    def _why_at_chance(self) -> str:
        lower = "lower 'eps', " if self.eps_ > 0 and self._freed <= MOST else ""
        return (
            f"too much counts as comparable: {lower}make only the sensitive columns free (metric=ExpertSubspace([...])), "
            "bound the search (TrainingConfig(search_domain='data')), shorten its steps, or leave all of these at their "
            "defaults"
        )


# SenSR behind the scikit-learn contract.


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
    >>> clf = SenSRClassifier(ExpertSubspace([0]), n_steps=100, validation=None, random_state=0).fit(X, y)
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
            ``likewise.training.estimators.parameters.SENSR_PRESETS`` says of each what it uses and what it was told.
        **changes
            Parameters that differ from it, such as ``random_state``.

        Returns
        -------
        SenSRClassifier

        Examples
        --------
        >>> SenSRClassifier.preset("adult-best", random_state=0).blind_to
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


# SenSeI behind the scikit-learn contract.


# Ten steps of the fixed point inside the sensitive subspace, and none outside of it.
SEARCH = GradientSearch(full_steps=0)


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
    >>> clf = SenSeIClassifier(ExpertSubspace([0]), n_steps=100, validation=None, random_state=0)
    >>> clf.fit(X, X.sum(axis=1) > 0).predict([[-1.5, 1.0], [1.5, 1.0]]).tolist()
    [True, True]
    """

    rho: float = 5.0
    outputs: Literal["probabilities", "logits"] = "probabilities"

    def _objective_of(self, metric: FairMetric, domain: Domain | None) -> Objective:
        choices = self._robust_choices(metric, domain)
        if choices["search"] is None:
            choices["search"] = SEARCH
        return SenSeI(**choices, rho=self.rho, outputs=self.outputs)
