"""What an audit found: one frozen object that can be read, gated on, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar, overload

import numpy as np
import pandas as pd

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import FAIR, ROUNDING, Bound, Certificate, ConfidenceInterval
from likewise.auditing.inference.intervals import TestResult
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.verdict import Bracket, Bracketed, Headline, headline
from likewise.auditing.results.effects import (
    ANY,
    LESS,
    MORE,
    ChangedPeople,
    ChangedPerson,
    Exchange,
    GroupCount,
    Outcome,
    effects_table,
    outcomes_table,
    rates_table,
)
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.contract import Status
from likewise.core.checks import check_number
from likewise.core.errors import NotAskedError, NotConvergedError, UnfairError, bad_parameter
from likewise.core.messages import Message
from likewise.core.plain import beside


@dataclass(frozen=True)
class SensitiveAnswer:
    """Question 1: what changes when only the sensitive columns do, for any model; needs no metric.

    `changed` is a share of the people, None for a model that predicts numbers unless a tolerance was given; `shift` holds
    the mean and the largest change of a predicted number.
    """

    columns: tuple[str, ...]
    changed: float | None
    changed_interval: tuple[float, float] | None
    attributes: tuple[str, ...] = ()
    groups: tuple[GroupCount, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    people: tuple[ChangedPerson, ...] = ()
    shift: tuple[float, float] | None = None
    exact: bool = True
    tolerance: float | None = None
    # What is added to the mean loss at most, if losses were asked for.
    gap: float | None = None
    gap_interval: tuple[float, float] | None = None

    @property
    def depends(self) -> bool:
        """Whether anything changes."""
        if self.changed is not None:
            return self.changed > 0
        return self.shift is not None and self.shift[1] > 0


@dataclass(frozen=True)
class Scope:
    """Who was audited: how many of how many rows, and how their places in the user's table are counted."""

    people: int
    supplied: int
    sampled: bool = False
    counted: Literal["line", "row", "position", "index"] = "index"
    source: str | None = None

    def words(self) -> Message:
        """Say who was audited."""
        said = {"people": self.people, "supplied": self.supplied}
        if self.sampled:
            return Message("scope.sampled", **said)
        return (
            Message("scope.all", people=self.people)
            if self.people == self.supplied
            else Message("scope.some", **said)
        )

    def place(self, row: Any) -> Message:
        """Say where a person is in the user's table."""
        if self.counted in ("line", "row"):
            return Message(f"counted.{self.counted}", row=row, source=self.source or "X")
        return Message(f"counted.{self.counted}", row=str(self.row(row)))

    def row(self, row: Any) -> Any:
        """Return the number or label by which a row is named; positions are counted from 1."""
        return row + 1 if self.counted == "position" else row


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The auditor's problem of the paper, solved: the worst case among people a little apart.

    Parameters
    ----------
    eps : float
        Budget ε: mean squared fair distance that people may be moved by.
    delta : float or None
        The gap that is still called fair, where one was asked for.
    value, base_loss : float
        V(ε), attained by the rows that `unfair_map` lists, and the mean loss of the people where they stand. The rows'
        mean squared distance is at most ε, and their mean loss is V(ε), up to one person, of whose mass V(ε) may move
        a fraction by a further step: the map shows this person before it.
    pure_gap : float
        V(0) − mean loss, the excess at ε = 0: what moves that cost nothing add. For ε > 0 the gap also contains
        honest differences between people a little apart.
    flipped : float or None
        Share of people of whom some twin at no fair distance is decided differently: free under the metric, which is
        an assumption where the metric was learned. None for a regression, which decides nothing.
    lambda_, transport : float
        λ* of the dual at ε, and the mean squared fair distance that V(ε) spends, that person's fraction included.
    curve : DualCurve
        V(ε) for every ε.
    unfair_map : UnfairMap
        Each person beside their worst twin at ε.
    pure_map : UnfairMap
        Each person beside their worst twin at no fair distance.
    certificate : Certificate
        What is proven: an `Estimate` (lower bound) and, where one holds, a `Bound` (upper bound).
    brackets : tuple of Bracket
        V, the gap and the share of changed decisions at 0 and at ε, each between what is attained and what is proved;
        see `AuditResult.bracket`.
    population_bound : Bound or None
        Upper bound of the population's V(ε) at the asked confidence, for any sample size, where the inner problem
        is exact: λ is chosen on one half of the people and evaluated on the other.
    interval : ConfidenceInterval
        Of the gap at ε; its `about` says what it covers: the candidates of this audit held fixed, people like those
        audited.
    test : TestResult
        Of "pure unfairness is at most τ", with a two-sided interval.
    status : {"converged", "not_converged", "failed"}
        Whether the searches came to their end. A heuristic one may have missed worse rows all the same.
    reasons : tuple of str
        Why not, in words.
    left_out : tuple of str
        Searches that could not serve this model and table, and why.
    search : str
        How the worst case was looked for.
    """

    eps: float
    delta: float | None
    value: float
    base_loss: float
    pure_gap: float
    flipped: float | None
    lambda_: float
    transport: float
    curve: DualCurve
    unfair_map: UnfairMap
    pure_map: UnfairMap
    certificate: Certificate
    brackets: tuple[Bracket, ...]
    population_bound: Bound | None
    interval: ConfidenceInterval
    test: TestResult
    status: Status
    reasons: tuple[str, ...]
    left_out: tuple[str, ...]
    search: str


T = TypeVar("T")


class _OfWorstCase(Generic[T]):
    """A value of `AuditResult.worst_case`; whoever did not ask for it is told how to."""

    def __init__(self, read: Callable[[WorstCase], T]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self.__doc__ = f"`WorstCase.{name}`."

    @overload
    def __get__(self, result: None, owner: type) -> Self: ...

    @overload
    def __get__(self, result: AuditResult, owner: type) -> T: ...

    def __get__(self, result: AuditResult | None, owner: type) -> T | Self:
        if result is None:
            return self
        if result.worst_case is None:
            raise NotAskedError(
                "This is about the worst case among comparable people, which was not asked for. Ask for it: "
                "audit(…, eps=0.1), with a metric of yours or without."
            )
        return self._read(result.worst_case)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit of one model on one table found.

    The first answer is always there: what changes when only the sensitive columns do (`changed`, `effects`, `headline`).
    What a metric or ε asks for is in `worst_case`, and its values are attributes of the result too: `gap`, `value`,
    `pure_gap`, `unfair_map` and the others of `WorstCase`. Without having asked they raise `NotAskedError`.

    Parameters
    ----------
    n : int
        People audited.
    sensitive : SensitiveAnswer or None
        What changes when only the sensitive columns do, which needs no metric; None if nothing is sensitive.
    findings : tuple of Finding
        What has to be known before any number: that the model and the table do not seem to belong together, in which
        case nothing is proved and the audit is not answered; or that the model does not read a sensitive column.
    assumptions : tuple of str
        What the numbers rest on, for a page that people read.
    settings : dict
        Seed, versions and choices, plain values.
    timing : dict of str to float
        CPU seconds by part.
    scope : Scope
        How many of the rows supplied were audited, and how their places are counted.
    favourable : object or None
        The decision that people lose or gain: the user's, or one that is plain from its name; else None.
    guessed : bool
        Whether `favourable` was guessed.
    limit : float or None
        The share of decisions that may change.
    worst_case : WorstCase or None
        V(ε), the gap, the unfair map and what is proved, if a metric, ε, δ, τ or a search was asked for.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> result = lw.audit(score, people, sensitive_features=["sex"])
    >>> print(result.changed)
    1 of 4 (25.0%, 95% interval 0.6% to 80.6%)
    >>> result.worst_case is None
    True

    With a metric, or a tolerance ε:

    >>> result = lw.audit(score, people, [0, 1, 1, 1], sensitive_features=["sex"], eps=0.0)
    >>> round(result.base_loss, 3), round(result.pure_gap, 3), result.flipped
    (0.314, 0.243, 0.25)
    >>> result.pure_map.top(1)["changed"].item()
    'sex'
    >>> print(result.verdict(delta=0.1))
    unfair (shown)
    """

    n: int
    sensitive: SensitiveAnswer | None
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    timing: dict[str, float]
    scope: Scope
    favourable: Any = None
    guessed: bool = False
    limit: float | None = None
    worst_case: WorstCase | None = None

    eps = _OfWorstCase(lambda found: found.eps)
    value = _OfWorstCase(lambda found: found.value)
    base_loss = _OfWorstCase(lambda found: found.base_loss)
    pure_gap = _OfWorstCase(lambda found: found.pure_gap)
    flipped = _OfWorstCase(lambda found: found.flipped)
    lambda_ = _OfWorstCase(lambda found: found.lambda_)
    transport = _OfWorstCase(lambda found: found.transport)
    curve = _OfWorstCase(lambda found: found.curve)
    unfair_map = _OfWorstCase(lambda found: found.unfair_map)
    pure_map = _OfWorstCase(lambda found: found.pure_map)
    certificate = _OfWorstCase(lambda found: found.certificate)
    brackets = _OfWorstCase(lambda found: found.brackets)
    population_bound = _OfWorstCase(lambda found: found.population_bound)
    interval = _OfWorstCase(lambda found: found.interval)
    test = _OfWorstCase(lambda found: found.test)

    @property
    def gap(self) -> float:
        """V(ε) − mean loss, the excess that (ε, δ)-DRF bounds: the certificate of the paper's section 3."""
        return self.value - self.base_loss

    @property
    def delta(self) -> float | None:
        """The gap that is still called fair, if one was asked for."""
        return None if self.worst_case is None else self.worst_case.delta

    @property
    def status(self) -> Status:
        """Whether the search of the worst case, if it was asked for, can be trusted; the first answer is complete."""
        return "converged" if self.worst_case is None else self.worst_case.status

    @property
    def search(self) -> str:
        """How the worst case was looked for, or that the counterparts were enumerated."""
        return Message("search.enumeration") if self.worst_case is None else self.worst_case.search

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the search cannot be trusted, in words."""
        return () if self.worst_case is None else self.worst_case.reasons

    @property
    def left_out(self) -> tuple[str, ...]:
        """Searches that could not serve this model and table, and why."""
        return () if self.worst_case is None else self.worst_case.left_out

    @property
    def changed(self) -> ChangedPeople | None:
        """How many people are decided differently when only the sensitive columns change.

        None if nothing is sensitive, and for a regression without a tolerance.
        """
        only = self.sensitive
        if only is None or only.changed is None or only.changed_interval is None:
            return None
        confidence = float(self.settings.get("confidence", 0.95))
        low, high = only.changed_interval
        count = round(only.changed * self.n)
        return ChangedPeople(count, self.n, only.changed, (low, high), only.exact, confidence)

    @property
    def headline(self) -> Headline:
        """Badge, sentence, how sure, and whether the limit is kept: what is said first, everywhere."""
        return headline(self)

    @property
    def effects(self) -> pd.DataFrame | None:
        """Who would lose and who would gain the favourable decision if something else were recorded of them.

        A row for every attribute and every two of its values, with the other columns as they are: how many people are
        recorded with the one, and how many of them would lose or gain the decision `favourable` if the other were
        recorded; then the same for values of several attributes together. Most changes first. A number with more than 20
        values has two rows, which count people for whom any lower and any higher value that was tried does so. Missing cells are recorded as
        "(missing)"; 0/1 columns of one attribute change together. Of a model that predicts numbers: how many would be
        predicted lower or higher, and by how much on average. None if nothing is sensitive.
        """
        return None if self.sensitive is None else effects_table(self.sensitive.exchanges, self.favourable)

    @property
    def outcomes(self) -> pd.DataFrame | None:
        """How many people would get the favourable decision if everybody were recorded with the same sensitive values.

        None if nothing is sensitive; empty if there are too many combinations of values.
        """
        only = self.sensitive
        return None if only is None else outcomes_table(only.attributes, only.outcomes, self.favourable)

    @property
    def group_rates(self) -> pd.DataFrame | None:
        """How often people with each sensitive value get the favourable decision, as they are, and how often wrongly.

        None if nothing is sensitive.
        """
        only = self.sensitive
        return None if only is None else rates_table(only.groups, self.favourable, labelled=self.labelled)

    @property
    def listed(self) -> tuple[ChangedPerson, ...]:
        """People whose decision changes: those to review first, who would gain the favourable one, come first.

        Then those who would lose it; fewest changed columns first, and among them those of the largest effect.
        At most 5,000 of each decision; of a model that predicts numbers those with the largest changes.
        """
        only = self.sensitive
        if only is None:
            return ()
        if only.shift is not None:
            return tuple(sorted(only.people, key=lambda one: -abs(one.twin_decision - one.decision)))
        # By how many more people gain than lose by an exchange.
        size = {
            (one.attribute, str(one.recorded), str(one.instead)): one.gain(wanted) - one.lose(wanted)
            for one in only.exchanges
            if one.single and (wanted := self.favourable) is not None
        }
        order = {"gain": 0, "lose": 1, "other": 2}

        def balance(name: str, own: Any, value: Any) -> int:
            known = size.get((name, str(own), str(value)))
            if known is None and isinstance(own, (int, float)) and isinstance(value, (int, float)):
                known = size.get((name, ANY, LESS if value < own else MORE))
            return known or 0

        def rank(one: ChangedPerson) -> tuple[int, int, int, int]:
            side = self.direction(one)
            moves = [balance(name, one.cells[name], value) for name, value in one.twin.items()]
            most = max((-net if side == "lose" else net for net in moves), default=0)
            return order[side], one.changes, -most, one.person

        return tuple(sorted((one.decided(self.favourable) for one in only.people), key=rank))

    def direction(self, person: ChangedPerson) -> Literal["lose", "gain", "other"]:
        """Whether a person would lose or gain the favourable decision, or it is about others or not known."""
        if self.sensitive is not None and self.sensitive.shift is not None:
            return "lose" if person.twin_decision < person.decision else "gain"
        if self.favourable is None or self.favourable not in (person.decision, person.twin_decision):
            return "other"
        return "lose" if person.decision == self.favourable else "gain"

    @property
    def people(self) -> pd.DataFrame:
        """The people of `listed` as a table: where they are, their decision, the other one, what would change it, their cells."""
        rows = [
            {
                "row": one.row,
                "decision": one.decision,
                "instead": one.twin_decision,
                "direction": self.direction(one),
                "change": ", ".join(
                    f"{name}: {one.cells[name]} → {value}" for name, value in one.twin.items()
                ),
            }
            | {beside(name, _PEOPLE): cell for name, cell in one.cells.items()}
            for one in self.listed
        ]
        return pd.DataFrame(rows, columns=None if rows else list(_PEOPLE))

    def bracket(self, quantity: Bracketed = "gap", *, eps: float | None = None) -> Bracket:
        """Return one of the brackets.

        Parameters
        ----------
        quantity : {"gap", "value", "changed"}, default="gap"
            V(ε) − mean loss, V(ε), or the share of people whose decision changes within the budget.
        eps : float, optional
            0, or the audit's own (the default).
        """
        at = self.eps if eps is None else float(eps)
        for one in self.brackets:
            if one.quantity == quantity and one.eps == at:
                return one
        known = ", ".join(f"{one.quantity!r} at {one.eps:g}" for one in self.brackets)
        raise bad_parameter(
            "AuditResult.bracket", "quantity, eps", allowed=f"one of {known}", got=f"{quantity!r} at {at:g}"
        )

    @property
    def labelled(self) -> bool:
        """Whether there were labels; without them losses are those against the model's own decisions, and are not shown."""
        return bool(self.settings.get("labelled", True))

    @property
    def answered(self) -> bool:
        """Whether the model and the table seem to belong together, so that the audit says something about them."""
        return not any(finding.blocks for finding in self.findings)

    @property
    def unread(self) -> bool:
        """Whether the model reads none of the sensitive columns."""
        known = set() if self.sensitive is None else set(self.sensitive.columns)
        unread = {name for finding in self.findings if finding.kind == "unread" for name in finding.columns}
        return bool(known) and known <= unread

    @property
    def same(self) -> bool:
        """Whether everybody gets the same decision, whatever the sensitive columns are: no evidence of independence."""
        return any(finding.kind == "same" for finding in self.findings)

    @property
    def trivial(self) -> bool:
        """Whether nothing can change because the model reads none of the sensitive columns, and nothing else is free."""
        if self.worst_case is None or not self.unread:
            return self.unread
        bound = self.certificate.bound
        if bound is None:
            return False
        return bound.value - self.base_loss <= ROUNDING * (1.0 + abs(self.base_loss))

    def verdict(self, delta: float | None = None) -> str:
        """Say whether the gap is at most δ.

        "unanswered" if a finding speaks against the model and the table; "unfair (shown)" if listed rows exceed it;
        "fair (proved)" if a bound does not exceed it (never for a result that was loaded), or "fair (trivially)" if the model reads none of the sensitive
        columns or everybody gets the same decision; else "undecided", or "not converged" if the search did not end well besides.

        Parameters
        ----------
        delta : float, optional
            The gap that is still called fair; default the audit's own.
        """
        level = self.delta if delta is None else delta
        found = "undecided" if level is None else self.certificate.verdict(level, of="gap")
        if not self.answered:
            return "unanswered"
        if found == FAIR and any(finding.kind == "recorded" for finding in self.findings):
            return "undecided"  # a bound from a file was not checked again
        if found == FAIR and (self.trivial or self.same):
            return "fair (trivially)"
        # What listed rows attain refutes, and what is bounded is proved, however the search ended.
        return "not converged" if found == "undecided" and self.status != "converged" else found

    def raise_if_unfair(self, limit: float | None = None, *, delta: float | None = None) -> None:
        """Raise unless at most a share `limit` of the decisions changes, and the gap is at most `delta`.

        Parameters
        ----------
        limit : float, optional
            The share of decisions that may change when only the sensitive columns do; default the audit's own.
        delta : float, optional
            The gap V(ε) − mean loss that is still called fair; default the audit's own.

        Raises
        ------
        UnfairError
            A limit is exceeded.
        NotConvergedError
            Nothing can be said: the search did not end well, model and table do not seem to belong together, or not every
            value was tried and the share found is within the limit.
        """
        share, level = self.limit if limit is None else limit, self.delta if delta is None else delta
        if share is None and level is None:
            raise bad_parameter(
                "raise_if_unfair", "limit", allowed="a share such as 0.01, or 'delta'", got=None
            )
        self.raise_if_unanswered()
        if share is not None:
            share = check_number(share, owner="raise_if_unfair", name="limit", low=0, high=1)
            found = replace(self, limit=share).headline
            assert found.limit is not None
            if found.limit.passed is False:
                raise UnfairError(found.limit.sentence)
            if found.limit.passed is None:
                raise NotConvergedError(found.limit.sentence)
        if level is not None:
            self._raise_if_gap(check_number(level, owner="raise_if_unfair", name="delta", low=0))

    def _raise_if_gap(self, level: float) -> None:
        if not self.labelled:
            raise bad_parameter(
                "raise_if_unfair", "delta", allowed="None without labels", got=level, remedy="Audit with 'y'."
            )
        if self.gap > level:
            worst = self.unfair_map.top(1)
            raise UnfairError(
                f"The worst case adds {self.gap:.4g} to the mean loss at eps={self.eps:g}, more than "
                f"delta={level:g} (zero-distance gap: {self.pure_gap:.4g}). "
                f"First of the unfair map: person {worst['person'].iloc[0]} through {worst['changed'].iloc[0] or 'nothing'}."
            )
        if self.verdict(level) == "not converged" or not np.isfinite(self.gap):
            raise NotConvergedError("The audit did not converge: " + "; ".join(self.reasons))

    def raise_if_unanswered(self) -> None:
        """Raise if the model and the table do not seem to belong together.

        Raises
        ------
        NotConvergedError
        """
        if not self.answered:
            told = " ".join(finding.sentence for finding in self.findings if finding.blocks)
            raise NotConvergedError(f"The audit could not be answered. {told}")

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result, whole or not at all.

        Parameters
        ----------
        path : path-like
            ``audit.json`` holds everything, for `load` and for the report; ``audit.html`` is the page; ``people.csv``
            lists `people`; a path without a suffix is a folder of evidence.
        overwrite : bool, default=False
            Replace what an earlier call wrote.
        """
        from likewise.auditing.results.files import save_result

        save_result(self, Path(path), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> AuditResult:
        """Read a JSON file that `save` wrote; nothing is unpickled.

        Parameters
        ----------
        path : path-like
        """
        from likewise.auditing.results.files import load_result

        return load_result(Path(path))

    def plot(self, ax: Any = None) -> Any:
        """Draw who would lose and who would gain the favourable decision, a bar to either side for each attribute.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        # Results do not depend on the report; it is looked up when somebody draws one.
        return import_module("likewise.report.plots").plot_effects(self, ax)

    def __repr__(self) -> str:
        return f"<AuditResult: {self.headline.title}, {self.n:,} people>"

    def __str__(self) -> str:
        text: str = import_module("likewise.report.terminal").audit_text(self)
        return text

    def _repr_html_(self) -> str:
        html: str = import_module("likewise.report.terminal").audit_html(self)
        return html


_PEOPLE = ("row", "decision", "instead", "direction", "change")
