"""One person: the decision, what it depends on, what would change it, why, and whether that is the same for counterparts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray, check_parameters
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns
from likewise.core.plain import Written, plain_cell
from likewise.data.case import Counted
from likewise.explaining.engine import Effort, Status
from likewise.explaining.moves import CostUnit
from likewise.explaining.reasons import Reason, find_reasons, principal, read_reason_codes
from likewise.explaining.situation import LEARNED, ExplanationRequest, Situation, situate

# People with the favourable decision that reasons compare with, and that are listed.
_REFERENCE, _LISTED = 100, 5


@dataclass(frozen=True)
class Change:
    """One column of a suggestion, in original units."""

    column: str
    recorded: Any
    instead: Any
    cost: float


@dataclass(frozen=True)
class Suggestion:
    """A change that gives the favourable decision, asked of the model and validated by the domain.

    Parameters
    ----------
    status : {"proved", "bracket", "none", "estimate", "not found"}
        "proved": nothing cheaper does. "bracket": nothing cheaper than `lower` does. "none": it is proved that nothing does,
        within the rules. "estimate", "not found": what a search found, or that it found nothing.
    cost, lower : float
        What it costs, and what nothing costs less than; infinite if there is none.
    changes : tuple of Change
    """

    status: Status
    cost: float
    lower: float
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        said = ", ".join(f"{one.column}: {one.recorded} → {one.instead}" for one in self.changes)
        return f"{said or 'no change'} ({self.status})"


@dataclass(frozen=True)
class Counterpart:
    """The same person under other values of the sensitive columns.

    Parameters
    ----------
    values : dict
        The sensitive values, and columns that follow from them by a rule.
    plausible : bool
        Whether the rules allow such a person; nothing is compared with one they do not allow.
    decision : object
    favourable : bool
    least : Suggestion or None
        Their least change; None if they need none or are not plausible.
    difference : float or None
        Their cost less the person's own; None if either is only known to lie in a bracket, or was not found.
    exact : bool
        Whether both costs are proved; else the difference is one of estimates.
    reasons : tuple of Reason
    same_reasons : bool or None
        Whether the columns that count against them are the person's own, in the same order.
    """

    values: Mapping[str, Any]
    plausible: bool
    decision: Any
    favourable: bool
    least: Suggestion | None
    difference: float | None
    exact: bool = True
    reasons: tuple[Reason, ...] = ()
    same_reasons: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Written):
    """What is known of one person's decision.

    Parameters
    ----------
    row : object
        Where the person is in the table.
    recorded : dict
        The person's columns that the model uses.
    decision, favourable : object
        The model's decision, and the favourable one.
    refused : bool
    score : float
        The model's score of the favourable decision: its probability, if it gives one.
    line : float or None
        The score at which decisions change, if decisions follow from scores of two classes.
    changes_with : int
        Counterparts whose decision differs, of those that the rules allow.
    least, fewest : Suggestion or None
        The cheapest change, and the cheapest of those that change fewest columns; None if the decision is favourable.
    alternatives : tuple of Suggestion
        Further changes, each the cheapest that leaves a column of every earlier one as it is.
    reasons : tuple of Reason
        All columns, those that count most against the person first.
    reference : int
        How many comparable people with the favourable decision the reasons compare with.
    exact_reasons : bool
    counterparts : tuple of Counterpart
        One for every other combination of sensitive values.
    comparable : DataFrame
        Comparable people with the favourable decision, nearest first. Data of other people: not on the page.
    not_read : tuple of str
        Sensitive columns that the model does not use.
    settings : dict
    findings : tuple
        Findings about the model and the table.
    """

    row: Any
    recorded: Mapping[str, Any]
    decision: Any
    favourable: Any
    refused: bool
    score: float
    line: float | None
    changes_with: int
    least: Suggestion | None
    fewest: Suggestion | None
    alternatives: tuple[Suggestion, ...]
    reasons: tuple[Reason, ...]
    reference: int
    exact_reasons: bool
    counterparts: tuple[Counterpart, ...]
    comparable: pd.DataFrame
    sensitive_features: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Any, ...] = ()
    counted: Counted = "index"

    @property
    def principal_reasons(self) -> tuple[Reason, ...]:
        """At most four columns that count against the person."""
        return principal(self.reasons)

    def __repr__(self) -> str:
        said = "" if self.least is None else f", {self.least}"
        return f"<Explanation: row {self.row}, {self.decision}{said}>"


def explain(
    model: Any,
    X: Any,
    row: Any,
    *,
    sensitive_features: Sequence[str] = (),
    favourable: Any = None,
    actions: Mapping[str, Any] | None = None,
    rules: Any = LEARNED,
    cost: CostUnit = "range",
    alternatives: int = 3,
    reason_codes: Any = None,
    columns: Any = None,
    missing: str = "auto",
    budget_seconds: float = 10.0,
    random_state: int = 0,
) -> Explanation:
    """Explain one person's decision: what would change it at the least cost, why it is so, and whether others pay the same.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        Least changes are proved for tree ensembles, linear models and ReLU networks. Any other model is asked; what is found
        then is called an estimate.
    X : table of people, in original units
    row : object
        The person: a label of the table's index.
    sensitive_features : sequence of str
        Columns that should not matter. They are never suggested to be changed.
    favourable : object, optional
        The favourable decision; by default the second of two classes.
    actions : mapping, optional
        What can be done about a column: ``"fixed"``, ``"up"``, ``"down"``, or a dict with `actionable`, `direction`, `step`,
        `range` and `cost` (a factor).
    rules : "learned", None, Rules, mapping or path, default="learned"
        Combinations that nobody has, and what counterparts become, as in `twin_study`. By default those that the table shows
        for the sensitive columns: no female husband.
    cost : {"range", "percentile"}, default="range"
        Numbers cost their change in spans of the middle 80% of people, or the share of people passed. A changed category
        costs 1.
    alternatives : int, default=3
        Further suggestions.
    reason_codes : mapping or path, optional
        Words for the columns in the reasons: ``{"hours": "Hours worked are too few"}``, or a TOML file of the same.
    columns : mapping or path, optional
        What the columns are, as ``columns.toml``; it may hold `actionable`, `direction`, `step` and `cost` too.
    missing : {"auto", "keep", "impute", "drop", "category"}, default="auto"
        As in `audit`. Missing cells of the person stay missing.
    budget_seconds : float, default=10
        CPU time of each least change.
    random_state : int, default=0

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "hours": [10, 20, 30, 40], "sex": [0, 1, 0, 1]})
    >>> tree = DecisionTreeClassifier(random_state=0).fit(people[["hours", "sex"]], [0, 0, 1, 1])
    >>> explain(tree, people, row=0, sensitive_features=["sex"], favourable=1)
    <Explanation: row 0, 0, hours: 10 → 26 (proved)>
    """
    check_parameters(explain, locals())
    asked = ExplanationRequest(
        favourable, actions, rules, cost, Effort(10_000_000, float(budget_seconds)), random_state
    )
    situation = situate(model, X, sensitive_features, asked, missing=missing, columns=columns)
    return explain_person(situation, row, alternatives=alternatives, reason_codes=reason_codes)


def explain_person(
    situation: Situation, row: Any, *, alternatives: int = 3, reason_codes: Any = None
) -> Explanation:
    """Explain the decision about one of the people of a situation."""
    codes = read_reason_codes(reason_codes, owner=situation.owner)
    check_columns(situation.found.people.frame, codes, owner=f"{situation.owner}, 'reason_codes'", name="X")
    number, findings = _number(situation, row), situation.findings
    own, gaps = situation.people[number], situation.gaps[number]
    refused = bool(situation.decisions[number] != situation.favourable)
    read = situation.reader is not None
    least = _suggestion(situation, own, gaps) if refused else None
    others: tuple[Suggestion, ...] = ()
    fewest = None
    if least is not None and least.changes:
        fewest = _suggestion(situation, own, gaps, fewest=True)
        others = _alternatives(situation, own, gaps, least, alternatives)
    near, distances = _comparable(situation, own)
    reasons, method = find_reasons(situation, own, near, codes)
    counterparts = tuple(_counterparts(situation, own, gaps, least, reasons, near, codes))
    if read and situation.reader is None:
        # The reading was withdrawn meanwhile, so what it gave before is computed again.
        return explain_person(situation, row, alternatives=alternatives, reason_codes=reason_codes)
    listed = situation.all.table(situation.people[near[:_LISTED]])
    listed.insert(0, "row", [plain_cell(situation.all.person(int(i))[1]) for i in near[:_LISTED]])
    score = float(situation.scores(own[None, :])[0])
    graded = situation.all.problem.coordinates.model.graded()
    classes, line = situation.all.given.known_classes, None
    if (classes is None or len(classes) == 2) and graded.loss.wants != "decisions":
        line = 0.5 if graded.gives_probabilities else 0.0
    decision = situation.all.decision(int(situation.decisions[number]))
    return Explanation(
        row=plain_cell(row),
        recorded=situation.cells(own[None, :], gaps)[0],
        decision=decision,
        favourable=situation.all.decision(situation.favourable),
        refused=refused,
        score=score,
        line=line,
        changes_with=sum(one.plausible and one.decision != decision for one in counterparts),
        least=least,
        fewest=fewest,
        alternatives=others,
        reasons=reasons,
        reference=len(near),
        exact_reasons=method.exact,
        counterparts=counterparts,
        comparable=listed.assign(distance=distances[:_LISTED]),
        sensitive_features=situation.sensitive,
        not_read=situation.not_read,
        settings=situation.settings,
        findings=findings,
        counted=situation.found.people.counted,
    )


def _number(situation: Situation, row: Any) -> int:
    """The number of the person whom the user calls `row`."""
    places = situation.found.people.places
    listed = np.asarray(places if places is not None else np.arange(len(situation.people)))
    found = np.flatnonzero(np.array([plain_cell(place) == plain_cell(row) for place in listed]))
    if not len(found):
        ends = f"{listed[0]} to {listed[-1]}" if len(listed) else "nobody"
        raise bad_parameter(situation.owner, "row", f"the place of a person in the table ({ends})", repr(row))
    if len(found) > 1:
        raise InputError(
            f"{situation.owner}: {len(found)} people have the label {row!r}. Pass X.reset_index(drop=True)."
        )
    return int(found[0])


def _suggestion(
    situation: Situation, own: FloatArray, gaps: BoolArray, *, held: Iterable[int] = (), fewest: bool = False
) -> Suggestion:
    """The least change of a row of values that leaves some columns as they are, in original units."""
    fixed = gaps.copy()
    fixed[list(held)] = True
    found = situation.least(own, fixed, whole=not gaps.any(), fewest=fewest)
    if found.values is None:
        return Suggestion(found.status, np.inf, found.lower)
    before, after = situation.cells(np.vstack([own, found.values]), gaps)
    changes = []
    for p in np.flatnonzero(found.values != own):
        one = own.copy()
        one[p] = found.values[p]
        name, cost = situation.layout.columns[p].name, float(situation.moves.costs(own, one[None, :])[0])
        changes.append(Change(name, before[name], after[name], cost))
    cost = float(situation.moves.costs(own, found.values[None, :])[0])
    changes.sort(key=lambda one: -one.cost)
    # With fewest columns `lower` counts columns first, and says nothing about costs.
    lower = found.lower if not fewest else (cost if found.status == "proved" else 0.0)
    return Suggestion(found.status, cost, min(lower, cost), tuple(changes))


def _alternatives(
    situation: Situation, own: FloatArray, gaps: BoolArray, first: Suggestion, count: int
) -> tuple[Suggestion, ...]:
    """Each the cheapest change that leaves a column of every earlier one as it is."""
    names = {column.name: p for p, column in enumerate(situation.layout.columns)}
    chosen: list[Suggestion] = [first]
    # Which columns are held, and the cheapest change then.
    waiting: dict[frozenset[int], Suggestion] = {}
    done: set[frozenset[int]] = set()
    taken = frozenset(names[one.column] for one in first.changes)
    parents: list[frozenset[int]] = [frozenset()]
    while len(chosen) <= count:
        for parent in parents:
            for p in taken:
                held = parent | {p}
                if held not in done:
                    done.add(held)
                    found = _suggestion(situation, own, gaps, held=held)
                    if found.changes:
                        waiting[held] = found
        if not waiting:
            break
        best = min(waiting, key=lambda held: (waiting[held].cost, sorted(held)))
        chosen.append(waiting[best])
        taken = frozenset(names[one.column] for one in waiting[best].changes)
        # A suggestion that changes all of these columns is looked for again with one of them held.
        parents = [h for h, one in waiting.items() if taken <= {names[c.column] for c in one.changes}]
        for held in parents:
            del waiting[held]
    return tuple(chosen[1:])


def _comparable(situation: Situation, own: FloatArray) -> tuple[Any, FloatArray]:
    """Numbers of the nearest people with the favourable decision, and how far away they are but for sensitive columns."""
    favoured = np.flatnonzero(situation.decisions == situation.favourable)
    rows = situation.people[favoured].copy()
    for name in situation.names:
        p = next(i for i, column in enumerate(situation.layout.columns) if column.name == name)
        rows[:, p] = own[p]
    distances = situation.moves.costs(own, rows)
    # Equally near people in the order of their values: not in that of the table.
    keys = [situation.people[favoured][:, p] for p in range(rows.shape[1] - 1, -1, -1)]
    order = np.lexsort((*keys, np.round(distances, 12)))[:_REFERENCE]
    return favoured[order], distances[order]


def _counterparts(
    situation: Situation,
    own: FloatArray,
    gaps: BoolArray,
    least: Suggestion | None,
    reasons: tuple[Reason, ...],
    near: Any,
    codes: Mapping[str, str],
) -> list[Counterpart]:
    found = []
    mine = [one.column for one in principal(reasons)]
    for twin, plausible in situation.counterparts(own):
        position = int(situation.all.asker.decisions(twin[None, :])[0])
        good = position == situation.favourable
        cells = situation.cells(twin[None, :])[0]
        moved = [situation.layout.columns[p].name for p in np.flatnonzero(twin != own)]
        shown = {name: cells[name] for name in dict.fromkeys([*situation.names, *moved])}
        change: Suggestion | None = None
        difference: float | None = None
        theirs: tuple[Reason, ...] = ()
        exact, same = True, None
        if plausible:
            if situation.alike(own, twin):
                change, difference = least, 0.0
            else:
                change = None if good else _suggestion(situation, twin, gaps)
                difference, exact = _difference(least, change)
            theirs, _ = find_reasons(situation, twin, near, codes)
            same = [one.column for one in principal(theirs)] == mine
        decision = situation.all.decision(position)
        found.append(Counterpart(shown, plausible, decision, good, change, difference, exact, theirs, same))
    return found


def _difference(own: Suggestion | None, other: Suggestion | None) -> tuple[float | None, bool]:
    """The other's cost less the person's own, 0 for whoever needs no change, and whether it is exact; None if not known."""
    costs, exact = [], True
    for one in (own, other):
        if one is None:
            costs.append(0.0)
        elif one.status in ("proved", "none", "estimate"):
            costs.append(np.inf if one.status == "none" else one.cost)
            exact = exact and one.status != "estimate"
        else:
            return None, False
    if np.isinf(costs[0]) and np.isinf(costs[1]):
        return 0.0, exact
    return float(costs[1] - costs[0]), exact
