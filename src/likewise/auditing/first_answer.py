"""The first question of an audit: whether a decision changes when only the sensitive columns do.

The counterparts of everybody are asked about (`results.sensitive`), what becomes of people is counted
(`results.effects`), and model and table are looked at before anything is said (`inference.sanity`).
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.inference.sanity import check_before_verdict
from likewise.auditing.people import AuditedPeople, TableCoordinates, check_tolerance, rows_of
from likewise.auditing.results.audit_result import AuditResult, Scope, SensitiveAnswer
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import enumerate_sensitive, sensitive_values
from likewise.auditing.search.contract import Budget, Search, read_searches
from likewise.core.checks import IntArray, check_parameters
from likewise.core.errors import InputError, installed_versions
from likewise.core.intervals import proportion_interval
from likewise.core.messages import Message
from likewise.core.plain import plain_cell
from likewise.core.randomness import numpy_generator
from likewise.counterfactuals.edits import edited_columns, read_edits

# Seconds that are kept to put people and numbers together after the search: a share of the time given, and at most so many.
_KEPT, _MOST_KEPT = 0.2, 0.5
_NO_LIMIT = Budget()


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """What was asked of an audit, checked; `AuditRequest.of` reads searches and seconds as a user writes them.

    `worst_case`: whether more is asked than what changes with the sensitive columns alone. `eps` may be given in the
    table's own units, {column: change}, until the metric is known.
    """

    model: Any = None
    metric: Any = None
    searches: tuple[Search, ...] = ()
    domain: Any = None
    loss: Any = None
    edits: Any = None
    encoded: bool | None = None
    eps: float | Mapping[str, float] = 0.0
    delta: float | None = None
    limit: float | None = None
    tau: float = 0.01
    confidence: float = 0.95
    required: bool = False
    budget: Budget = _NO_LIMIT
    random_state: int = 0
    tolerance: float | None = None
    worst_case: bool = True
    absent: Any = None
    labelled: bool = True

    def __post_init__(self) -> None:
        check_parameters(type(self), vars(self), owner="audit")

    @classmethod
    def of(cls, *, search: Any = None, budget_seconds: float | None = None, **asked: Any) -> AuditRequest:
        """Return a request whose search is a word, a search or a list of them; an empty list asks about no distance alone."""
        found = cls(**asked)
        searches: tuple[Search, ...] = ()
        required = False
        if found.worst_case:
            timed = budget_seconds is not None
            searches, required = read_searches(
                "auto" if search is None else search, timed=timed, confidence=found.confidence
            )
        budget = _NO_LIMIT
        if budget_seconds is not None:
            kept = min(_KEPT * budget_seconds, _MOST_KEPT)
            budget = replace(Budget(budget_seconds), seconds=budget_seconds - kept)
        return replace(found, searches=searches, required=required, budget=budget)

    @property
    def tolerated(self) -> float:
        """The budget ε as a number."""
        assert not isinstance(self.eps, Mapping)  # the metric has turned units of the table into one
        return float(self.eps)

    def people(self, X: Any, y: Any) -> AuditedPeople:
        """Return the people of a raw table, with the model and the columns that are exchanged."""
        place = TableCoordinates.of_table(X, model=self.model, domain=self.domain)
        labels = None if y is None else np.asarray(y)
        made = AuditedPeople(
            place,
            rows_of(X, place),
            labels,
            tolerance=self.tolerance,
            absent=self.absent,
            labelled=self.labelled,
        )
        check_tolerance(made)
        return made.exchanging(read_edits(self.edits or (), owner="audit"))

    def draw(self, size: int, n: int) -> IntArray:
        """Draw `size` of n people without replacement; their numbers, rising."""
        chosen = numpy_generator(self.random_state).choice(n, size=min(size, n), replace=False)
        return np.sort(chosen).astype(np.int64)

    def pool(self, searches: Sequence[Search], n: int) -> IntArray:
        """Numbers of the people who are everybody's candidates, rising; none if no search wants some."""
        size = max((search.pool_size for search in searches), default=0)
        return self.draw(size, n) if size else np.zeros(0, dtype=np.int64)


@cache
def _versions() -> dict[str, str]:
    libraries = ("numpy", "scikit-learn", "torch", "pandas")
    return {"python": platform.python_version()} | installed_versions(libraries)


def settings_of(asked: AuditRequest, people: AuditedPeople) -> dict[str, Any]:
    """Plain values that say how an audit was made."""
    model = people.coordinates.model
    return {
        "version": __version__,
        "versions": dict(_versions()),
        "loss": model.loss.name,
        "model": model.adapter,
        "sensitive": [str(name) for name in edited_columns(people.sensitive_edits)],
        "seed": asked.random_state,
        "confidence": asked.confidence,
    }


def answer_first_question(asked: AuditRequest, X: Any, y: Any) -> AuditResult:
    """Audit a raw table by its sensitive columns alone: no metric, no search."""
    clock = Clock()
    people = ready_people(asked.people(X, y))
    clock.lap("prepare")
    found = enumerate_sensitive(people)
    sums = None if found is None else SensitiveSums.of(found)
    return first_answer(people, sums, asked, n=people.n, clock=clock)


def ready_people(people: AuditedPeople) -> AuditedPeople:
    """Return people with the values that their counterparts get, and say if these are all."""
    if not people.edits:
        raise InputError(
            "audit: none of the sensitive columns may change: the domain calls them immutable. Pass another domain."
        )
    values = sensitive_values(people)
    names = [str(name) for name in edited_columns(people.edits)]
    said = (Message("assumption.every_value", columns=names),) if values.exact else ()
    return people.with_known(values=values, assumptions=(*people.assumptions, *said))


def first_answer(
    people: AuditedPeople,
    sums: SensitiveSums | None,
    asked: AuditRequest,
    *,
    n: int,
    clock: Clock,
    assumptions: tuple[str, ...] | None = None,
    settings: dict[str, Any] | None = None,
) -> AuditResult:
    """Put what changes with the sensitive columns alone into a result, after a look at whether it can be believed."""
    findings = check_before_verdict(people, sums)
    favourable = guess_favourable(people.coordinates.model.known_classes if people.decides else None)
    clock.lap("sensitive columns")
    return AuditResult(
        n=n,
        sensitive=_sensitive(sums, people, asked.confidence),
        findings=findings,
        assumptions=people.assumptions if assumptions is None else assumptions,
        settings=settings_of(asked, people) if settings is None else settings,
        timing=clock.timing,
        scope=Scope(n, n, counted="position"),
        favourable=favourable,
        guessed=favourable is not None,
        limit=asked.limit,
    )


@dataclass
class Clock:
    """CPU seconds by part."""

    timing: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def lap(self, name: str) -> None:
        """Book the CPU time since the last lap under `name`."""
        now = time.process_time()
        self.timing[name] = self.timing.get(name, 0.0) + now - self._last
        self._last = now

    def book(self, name: str, seconds: float) -> None:
        """Book CPU time that was measured where it was spent, instead of this process's since the last lap."""
        self.timing[name] = self.timing.get(name, 0.0) + seconds
        self._last = time.process_time()


def _sensitive(
    sums: SensitiveSums | None, people: AuditedPeople, confidence: float
) -> SensitiveAnswer | None:
    if sums is None:
        return None
    n, shift = sums.n, sums.shift
    counted = people.counts_changes
    share = proportion_interval(sums.changed, n, confidence=confidence) if counted else None
    # In an order that does not depend on which part was first to hold a value or a decision.
    groups = sorted(
        sums.groups,
        key=lambda g: (sums.attributes.index(g.column), _rising(g.value), str(g.decision), str(g.label)),
    )
    found = SensitiveAnswer(
        columns=sums.columns,
        attributes=sums.attributes,
        changed=sums.changed / n if counted else None,
        changed_interval=None if share is None else (share.low, share.high if sums.exact else 1.0),
        groups=tuple(map(_rounded, groups)),
        exchanges=tuple(map(_rounded, sums.exchanges)),
        outcomes=tuple(map(_rounded, sums.outcomes)),
        people=sums.people,
        shift=None if shift is None else (shift.mean, shift.largest),
        exact=sums.exact,
        tolerance=people.tolerance,
    )
    if sums.harm is None:
        return found
    from likewise.auditing.inference.intervals import gap_interval

    free, ceiling = float("inf"), people.coordinates.model.loss.upper_bound
    gap = gap_interval({free: sums.harm}, lambda_=free, eps=0.0, ceiling=ceiling, confidence=confidence)
    return replace(found, gap=sums.harm.mean, gap_interval=(gap.low, gap.high))


def _rising(value: Any) -> tuple[float, bool, str]:
    """A key that puts numbers, ranges and words that begin with a number in the order of their numbers."""
    text = str(value)
    number = re.match(r"[≤>]? ?(-?\d+(\.\d+)?(e[+-]\d+)?)", text)
    return float(number[1]) if number else float("inf"), not text.startswith("≤"), text


def _rounded(one: Any) -> Any:
    """Return a count whose exact sum of predicted numbers is a float."""
    return one if one.total is None else replace(one, total=float(one.total.fraction))


# Pairs of labels of which one is plainly the favourable one, in lower case; first those that answer a question.
_YES = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
_FAVOURABLE = (
    *_YES,
    ("bad", "good"),
    ("reject", "accept"),
    ("rejected", "accepted"),
    ("denied", "approved"),
    ("refused", "granted"),
    ("fail", "pass"),
)
# Targets of which nobody wants a yes, such as two_year_recid and "default payment next month".
_UNWANTED = re.compile(
    r"recid|reoffend|rearrest|arrest|default|delinq|charged?_?off|fraud|crime|violen|den(ied|ial)|reject|refus|dropout"
)
_BELOW, _ABOVE = re.compile(r"<=?\s*([\d.,]+\s*\w*)\.?"), re.compile(r">=?\s*([\d.,]+\s*\w*)\.?")


def guess_favourable(classes: Any, target: Any = None) -> Any:
    """Return the class that is plainly the favourable one of two by its name, such as "yes" or ">50K"; else None.

    Of a target that nobody wants, such as "default", it is "no".
    """
    if classes is None or len(classes) != 2:
        return None
    cells = [plain_cell(value) for value in classes]
    words = [
        str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip().lower()
        for cell in cells
    ]
    for pair in _FAVOURABLE:
        if set(words) == set(pair):
            unwanted = pair in _YES and _UNWANTED.search(str(target).lower())
            return cells[words.index(pair[0 if unwanted else 1])]
    for low, high in ((0, 1), (1, 0)):
        below, above = _BELOW.fullmatch(words[low]), _ABOVE.fullmatch(words[high])
        if below and above and below[1] == above[1]:
            return cells[high]
    return None
