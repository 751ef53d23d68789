"""`improve`: try several ways to a fairer model, choose by a rule, and check the choice on people never seen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.checks import check_parameters
from likewise.core.errors import NotConvergedError, bad_parameter, is_installed
from likewise.core.messages import Message
from likewise.counterfactuals.edits import Edits
from likewise.improving.candidates import Candidate, given_candidates, trained_candidates
from likewise.improving.cells import Cell, CellResult, Computation, Store
from likewise.improving.figures import (
    ACCURACY,
    CHANGED,
    ERROR,
    GAP,
    GROUP_GAP,
    PURE_GAP,
    ROUNDING,
    Tally,
    expected_figures,
    figure_values,
    fold_figures,
    pooled,
    rule_figures,
    seen_figures,
)
from likewise.improving.improvement import Alternative, Improvement, Rule, Unseen
from likewise.improving.people import SplitData, split_data, tally_model
from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress, plan_run, run_plan

if TYPE_CHECKING:
    from likewise.fair_metrics import FairMetric

# How much a choice flatters what it was made by: the winner's curse, estimated by choosing again without
# each fold.


def selection_optimism(folds: Mapping[str, Sequence[Tally]], rule: Rule) -> dict[str, float]:
    """Return by how much the chosen model's figures are expected to change on people it was not chosen by.

    For each fold the rule chooses by the others; what that model shows on the fold, less what it shows on the others, is
    what the choice had of luck (Tibshirani and Tibshirani 2009, Annals of Applied Statistics 3: 822–829, for any rule).
    A model that is chosen every time was not lucky: its folds differ from each other by 0 in the mean.
    """
    changes: dict[str, list[float]] = {}
    for fold in range(len(next(iter(folds.values())))):
        others = {name: [*parts[:fold], *parts[fold + 1 :]] for name, parts in folds.items()}
        name = rule.choose(fold_figures(others))
        before = figure_values(pooled(others[name]))
        for figure, value in figure_values(folds[name][fold]).items():
            changes.setdefault(figure, []).append(value - before[figure])
    return {figure: float(np.mean(found)) for figure, found in changes.items()}


# Candidates × folds as a study: each cell is trained on the other folds and counted on its own, and is
# kept.


@dataclass(frozen=True, eq=False)
class CrossValidation(Computation):
    """The search for a less discriminatory alternative, in cells that can be computed anywhere and kept."""

    data: SplitData
    candidates: tuple[Candidate, ...]

    name = "improve"
    keys = (ACCURACY, CHANGED, PURE_GAP, GAP, GROUP_GAP)

    @property
    def methods(self) -> tuple[str, ...]:
        """The candidates."""
        return tuple(candidate.name for candidate in self.candidates)

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by its name."""
        return next(candidate for candidate in self.candidates if candidate.name == name)

    def settings(self, method: str) -> dict[str, Any]:
        """The people, the folds, every parameter of the candidate."""
        return {"data": self.data.settings(), "candidate": self.candidate(method).settings(self.data)}

    def cost(self, method: str) -> float:
        """CPU seconds of a training, and of asking about twins."""
        candidate = self.candidate(method)
        asked = self.data.n_audited / 1000 + self.data.n_searched / 100
        return candidate.cost(len(self.data.train)) + asked

    def run(self, method: str, seed: int) -> CellResult:
        """Train on the other folds, count on the one called `seed`."""
        data = self.data
        model = self.candidate(method).fit(data, data.kept(seed), seed=data.seed)
        tally = tally_model(model, data, data.folds[seed], seed=data.seed)
        return CellResult(rule_figures(tally), {"tally": tally.plain()})


Reporter = Callable[[StudyProgress, CellTask, "Cell | Failure"], None]


def improve(
    X: Any,
    y: Any,
    *,
    sensitive_features: Sequence[str],
    model: Any = None,
    edits: Edits | None = None,
    metric: FairMetric | str | None = None,
    eps: float = 0.1,
    rule: Rule | None = None,
    candidates: Sequence[Candidate] | None = None,
    test_share: float = 0.2,
    folds: int | None = None,
    confidence: float = 0.95,
    n_jobs: int = 0,
    folder: str | Path | None = None,
    replace_other: bool = False,
    favourable: Any = None,
    scales: Mapping[str, Any] | None = None,
    missing: str = "auto",
    random_state: int = 0,
    announce: Callable[[Plan], None] | None = None,
    report: Reporter | None = None,
) -> Improvement:
    """Search for a less discriminatory alternative and document the search.

    A fifth of the people is put aside. On the others each candidate is cross-validated: logistic regression and
    boosted trees, plain and without the sensitive columns, trees with the consensus of counterparts and fair at
    several strengths, SenSR, SenSeI, Project, and the user's model as it is and with the consensus of counterparts.
    One is chosen by the rule, trained on all of them, and reported on the people put aside.

    Parameters
    ----------
    X : pandas, polars or arrow table of n people
        Raw. Columns that look like ids, dates or text are left out, unless they are named here or `model` takes them.
    y : array-like of shape (n,)
        Class labels.
    sensitive_features : sequence of str
        Columns that shall not decide.
    model : object, optional
        A fitted model that takes the table, to be improved on: anything `likewise.models.as_model` takes.
    edits : mapping, Edit or sequence, optional
        Further values that shall make no difference, such as ``Edit("relationship", ("Husband", "Wife"))``.
    metric : FairMetric, "learned" or "columns", optional
        Who is comparable; by default `AttributeSubspace` of the sensitive columns, learned on training people.
    eps : float, default=0.1
        Budget of the gap that is measured, and of robust boosting.
    rule : Rule, optional
        By default the least unfair model within .01 plus a standard error of the best balanced accuracy.
    candidates : sequence of Candidate, optional
        Instead of those above; see `likewise.improving.candidates`.
    test_share : float in (0, 1), default=0.2
        Of the people that nothing sees before the choice.
    folds : int, optional
        By default 3 from 100,000 training people on, and 5 below.
    confidence : float, default=0.95
        Of the intervals.
    n_jobs : int, default=0
        Worker processes, each with one thread; 0 works in this one. The result is the same.
    folder : path-like, optional
        Where finished cells are kept: a search that was stopped goes on there, and ends the same.
    replace_other : bool, default=False
        Compute cells in `folder` again that are of other people or settings; otherwise they are an error.
    favourable : object, optional
        The label that stands for class 1, if `model` only numbers its classes.
    scales : dict of str to str, optional
        Scales of numbers in the distances, as in `TabularDomain`; by default those of `metric`, or linear.
    missing : {"auto", "impute", "category", "drop"}, default="auto"
        Missing cells: impute the median or the most frequent value (auto does too), make them a category, or drop these
        people.
    random_state : int, default=0
        Same seed, same folds, same choice.
    announce, report : callable, optional
        Called with the plan before the work, and after each cell with the progress, the task and what came of it.

    Returns
    -------
    Improvement

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from likewise.improving.candidates import BoostingCandidate
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(400, 3)), columns=["skill", "talk", "test"])
    >>> people["sex"] = random.choice(["F", "M"], 400)
    >>> hired = (people["skill"] + (people["sex"] == "M") + 0.3 * random.normal(size=400) > 0.5).astype(int)
    >>> few = {"n_estimators": 20, "max_depth": 2}
    >>> two = [BoostingCandidate("plain", "", blind=False, choices=few), BoostingCandidate("blind", "", choices=few)]
    >>> result = improve(people, hired, sensitive_features=["sex"], candidates=two, rule=Rule(within=0.1), folds=2)
    >>> result.chosen, result.unseen.surprises
    ('blind', ())
    """
    check_parameters(improve, locals())
    chosen_by = Rule() if rule is None else rule
    if not isinstance(chosen_by, Rule):
        raise bad_parameter("improve", "rule", "a Rule", f"a {type(rule).__name__}")
    data = split_data(
        X,
        y,
        sensitive_features=sensitive_features,
        model=model,
        edits=edits,
        metric=metric,
        eps=eps,
        test_share=test_share,
        folds=folds,
        scales=scales,
        missing=missing,
        seed=random_state,
    )
    given = () if model is None else given_candidates(model, data, favourable=favourable)
    trained = trained_candidates(data) if candidates is None else tuple(candidates)
    if candidates is None and not is_installed("torch"):
        data = replace(data, notes=(*data.notes, Message("improve.note_no_torch")))
    everybody = (*given, *trained)
    _check_names(everybody)
    cells: dict[str, list[Cell]] = {}
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        where = Path(stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder)
        # A given model is asked here: not every one can be sent to another process.
        for some, jobs in ((given, 0), (trained, n_jobs)):
            if not some:
                continue
            study = CrossValidation(data, some)
            store = Store(where, study)
            plan = plan_run([(study, store)], len(data.folds), replace_other=replace_other)
            if announce is not None:
                announce(plan)
            for failure in run_plan(plan, jobs=jobs, report=report):
                failed[failure.task.method] = failure.reason
            kept = store.find(study.methods, range(len(data.folds))).cells
            for name in study.methods:
                found = [kept[name, fold] for fold in range(len(data.folds)) if (name, fold) in kept]
                if len(found) == len(data.folds):
                    cells[name] = found
    if not cells:
        reason = next(iter(failed.values()))
        raise NotConvergedError(f"improve: no candidate could be computed. The first failed so: {reason}")
    return _chosen(data, everybody, cells, failed, chosen_by, confidence)


def _check_names(candidates: Sequence[Candidate]) -> None:
    names = [candidate.name for candidate in candidates]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        what = f"two of the name {twice[0]!r}" if twice else "none"
        raise bad_parameter("improve", "candidates", "candidates of different names", what)


def _chosen(
    data: SplitData,
    candidates: Sequence[Candidate],
    computed: Mapping[str, Sequence[Cell]],
    failed: dict[str, str],
    rule: Rule,
    confidence: float,
) -> Improvement:
    folds = {
        name: [Tally.from_plain(cell.result.extras["tally"]) for cell in cells]
        for name, cells in computed.items()
    }
    tallies = {name: pooled(parts) for name, parts in folds.items()}
    values = fold_figures(folds)
    enough, name = rule.allowed(values), rule.choose(values)
    alternatives = tuple(
        Alternative(
            candidate.name,
            candidate.note,
            seen_figures(tallies[candidate.name], confidence=confidence),
            candidate.name in enough,
            sum(cell.cpu_seconds for cell in computed[candidate.name]),
            tuple(dict.fromkeys(w for cell in computed[candidate.name] for w in cell.warnings)),
            candidate.linear,
            values[candidate.name][ERROR],
        )
        for candidate in candidates
        if candidate.name in tallies
    )
    chosen = next(candidate for candidate in candidates if candidate.name == name)
    reference = next(candidate for candidate in candidates if candidate.name in tallies)
    model, unseen = _on_unseen(
        chosen, data, folds[name], confidence, flattered=selection_optimism(folds, rule)
    )
    before = (
        unseen if reference is chosen else _on_unseen(reference, data, folds[reference.name], confidence)[1]
    )
    return Improvement(
        alternatives=alternatives,
        rule=rule,
        chosen=name,
        model=model,
        unseen=unseen,
        reference=before,
        failed=failed,
        eps=data.eps,
        confidence=confidence,
        n_train=len(data.train),
        n_test=len(data.test),
        folds=len(data.folds),
        suffix=chosen.suffix,
        notes=(
            *data.notes,
            *([_left_to_gain(name, folds, rule)] if chosen.trained else ()),
            *_price(rule, values),
            *_notes(unseen, chosen, data),
            *_flattered(candidates, values, rule),
        ),
    )


def gain_of_another_training(values: Sequence[float]) -> float:
    """Return what one more training gains in the mean, at most, over the best of k with these figures; none is below 0.

    Of k + 1 trainings that differ by chance the last is the best in one case of k + 1, and then gains no more than the second
    smallest of all has. The second smallest of k is not below that (the problem of arXiv 2512.23943).
    """
    return float(np.sort(values)[1]) / (len(values) + 1)


def _left_to_gain(name: str, folds: Mapping[str, Sequence[Tally]], rule: Rule) -> str:
    """Say what more search could gain in the first figure of the rule that is not 0 already."""
    parts, shared = folds[name], {"name": name, "models": len(folds), "folds": len(folds[name])}
    for figure in rule.least:
        value = rule_figures(pooled(parts))[figure]
        if value > ROUNDING:
            gain = gain_of_another_training([rule_figures(part)[figure] for part in parts])
            words = rule.words_of(figure)
            return Message("improve.note_gain", figure=words, value=value, gain=gain, **shared)
    return Message("improve.note_no_gain", **shared)


def _price(rule: Rule, values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What more accuracy given up would buy, if the rule takes a model that leaves much unfairness."""
    found = rule.looser(values)
    if found is None:
        return []
    name, wider = found
    own, first = rule.choose(values), rule.least[0]
    return [
        Message(
            "improve.note_price",
            name=name,
            figure=rule.words_of(first),
            value=values[name][first],
            own=values[own][first],
            within=wider.within,
        )
    ]


def _on_unseen(
    candidate: Candidate,
    data: SplitData,
    folds: Sequence[Tally],
    confidence: float,
    *,
    flattered: Mapping[str, float] | None = None,
) -> tuple[Any, Unseen]:
    announced = expected_figures(
        folds,
        n_people=len(data.test),
        n_audited=data.n_audited,
        n_searched=data.n_searched,
        selection_optimism=flattered,
        confidence=confidence,
        seed=data.seed,
    )
    model = candidate.fit(data, data.final, seed=data.seed)
    tally = tally_model(model, data, data.test, seed=data.seed)
    figures = seen_figures(tally, confidence=confidence)
    return model, Unseen(candidate.name, figures, announced)


def _flattered(
    candidates: Sequence[Candidate], values: Mapping[str, Mapping[str, float]], rule: Rule
) -> list[str]:
    """Say where a given model, of which nobody knows whom it has seen, sets how accurate the others have to be."""
    trained = {c.name: values[c.name] for c in candidates if c.trained and c.name in values}
    best = max(values, key=lambda name: values[name][ACCURACY])
    if best in trained or not trained or set(trained) & set(rule.allowed(values)):
        return []
    return [
        Message(
            "improve.note_flattered",
            name=best,
            accuracy=values[best][ACCURACY],
            within=rule.within,
            other=rule.choose(trained),
        )
    ]


def _notes(unseen: Unseen, chosen: Candidate, data: SplitData) -> list[str]:
    notes: list[str] = [Message("improve.note_audited", people=data.n_audited, searched=data.n_searched)]
    if chosen.trained and len(data.final) < len(data.train):
        notes.append(
            Message(
                "improve.note_final", people=len(data.final), size=len(data.final) + 1, of=len(data.train)
            )
        )
    if unseen.surprises:
        notes.append(Message("improve.note_surprises", figures=", ".join(unseen.surprises)))
    if not chosen.trained:
        notes.append(Message("improve.note_given"))
    return notes
