"""The verdict of an audit in one sentence: what was found, how sure that is, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from likewise.auditing.inference.certificate import FAIR, UNFAIR, Bound
from likewise.auditing.results.sensitive import ChangedGroup
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.intervals import proportion_interval
from likewise.core.messages import Message
from likewise.core.text import short_number

if TYPE_CHECKING:
    from likewise.auditing.inference.certificate import ConfidenceInterval
    from likewise.auditing.results.audit_result import AuditResult

# What is known of one number from both sides: attained by listed people, and not to be exceeded by anybody.


Bracketed: TypeAlias = Literal["value", "gap", "changed"]
QUANTITIES: tuple[Bracketed, ...] = ("value", "gap", "changed")

# Narrower than this a bracket is one number: sums in another order, and the rounding of what costs nothing.
_CLOSED = 1e-9


@dataclass(frozen=True)
class Bracket:
    """The truth lies between `lower` and `upper`.

    Parameters
    ----------
    quantity : {"value", "gap", "changed"}
        V(ε), V(ε) − mean loss, or the share of people whose decision changes within the budget.
    eps : float
        The budget ε.
    lower : float
        Attained by listed people (`Estimate`).
    upper : float or None
        Not to be exceeded (`Bound`); None where nothing is proved.
    confidence : float, default=1
        Probability that `upper` holds: 1 where everybody was looked at, less where a sample was.
    method : str, optional
        How `upper` was found, in words.

    Examples
    --------
    >>> print(Bracket("gap", 0.0, 0.01, 0.02)), print(Bracket("changed", 0.1, 0.25, None))
    0.010 to 0.020
    at least 25.0%
    (None, None)
    >>> Bracket("gap", 0.0, 0.01, 0.01).closed
    True
    """

    quantity: Bracketed
    eps: float
    lower: float
    upper: float | None
    confidence: float = 1.0
    method: str | None = None

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise bad_parameter(
                "Bracket", "quantity", allowed=f"one of {', '.join(QUANTITIES)}", got=self.quantity
            )
        check_number(self.eps, owner="Bracket", name="eps", low=0.0)
        check_number(self.lower, owner="Bracket", name="lower")
        if self.upper is not None and self.upper < self.lower:
            raise bad_parameter("Bracket", "upper", allowed="at least 'lower'", got=self.upper)

    @property
    def closed(self) -> bool:
        """Whether the truth is known: both ends are the same number but for rounding."""
        return self.upper is not None and self.upper - self.lower <= _CLOSED * (1.0 + abs(self.upper))

    def __str__(self) -> str:
        low = self._number(self.lower)
        if self.upper is None:
            return f"at least {low}"
        sure = "" if self.confidence == 1 else f" ({self.confidence:.0%} confidence)"
        return f"exactly {low}{sure}" if self.closed else f"{low} to {self._number(self.upper)}{sure}"

    @property
    def name(self) -> str:
        """What it is about, in words."""
        at = f"ε = {self.eps:g}"
        if self.quantity == "changed":
            return f"decided differently at {at}"
        return f"gap at {at}" if self.quantity == "gap" else f"worst mean loss at {at}"

    def _number(self, number: float) -> str:
        return f"{number:.1%}" if self.quantity == "changed" else short_number(number)


def brackets_of(
    *,
    eps: float,
    base_loss: float,
    values: tuple[float, float],
    changed: tuple[float, float] | None,
    bounds: Sequence[Bound],
) -> tuple[Bracket, ...]:
    """Put what was attained and what was proved side by side: V, the gap and changed decisions, at 0 and at ε."""
    here = [bound for bound in bounds if bound.about == "sample"]
    found: list[Bracket] = []
    for at, budget in enumerate(dict.fromkeys((0.0, float(eps)))):
        value = values[at]
        # V and the share rise with ε, so what bounds them at a larger one bounds them here as well.
        loss = [bound for bound in here if bound.measure == "loss" and bound.eps >= budget]
        best = min(loss, key=lambda bound: bound.value, default=None)
        high = None if best is None else max(best.value, value)
        found.append(_bracket("value", budget, value, high, best))
        low, high = value - base_loss, None if high is None else high - base_loss
        if best is not None and best.gap is not None:
            high = max(best.gap, low)
        found.append(_bracket("gap", budget, low, high, best))
        if changed is None:
            continue
        share = [bound for bound in here if bound.measure == "decisions" and bound.eps >= budget]
        best = min(share, key=lambda bound: bound.value, default=None)
        low = changed[at]
        found.append(
            _bracket("changed", budget, low, None if best is None else min(1.0, max(best.value, low)), best)
        )
    return tuple(found)


def _bracket(quantity: Bracketed, eps: float, low: float, high: float | None, by: Bound | None) -> Bracket:
    # Means of the same numbers in another order.
    if high is not None and high - low <= 1e-12 * (1.0 + abs(low)):
        high = low
    return Bracket(
        quantity, eps, low, high, 1.0 if by is None else by.confidence, None if by is None else by.method
    )


Kind = Literal["fair", "trivial", "unfair", "undecided", "unanswered", "not converged", "no limit"]

_KINDS: dict[str, Kind] = {FAIR: "fair", "fair (trivially)": "trivial", UNFAIR: "unfair"}


@dataclass(frozen=True)
class Verdict:
    """What a page says first."""

    kind: Kind
    sentence: str

    @property
    def title(self) -> str:
        """The kind in a word or two."""
        return Message(f"verdict.title.{self.kind.replace(' ', '_')}")

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence}"


def give_verdict(result: AuditResult) -> Verdict:
    """Say what an audit found."""
    verdict, bound = result.verdict(), result.certificate.bound
    names = [str(name) for name in result.settings.get("sensitive") or ()]
    assumed = Message("verdict.assumed_exchange", columns=names) if names else Message("verdict.assumed")
    said: dict[str, Any] = {"people": _people(result.n), "gap": result.gap, "assumed": assumed}
    if verdict == "unanswered":
        return Verdict("unanswered", Message("verdict.unanswered", **said))
    if verdict == "not converged":
        why: str = Message("verdict.no_reason")
        for i, reason in enumerate(result.reasons):
            why = reason if i == 0 else Message("verdict.reasons", one=why, two=reason)
        return Verdict("not converged", Message("verdict.not_converged", why=why, **said))
    if result.delta is None:
        only, free = _sensitive_only(result), _free(result)
        if only is None:
            return Verdict("no limit", Message("verdict.no_limit_free", free=free, assumed=assumed))
        return Verdict("no limit", Message("verdict.no_limit", only=only, free=free, assumed=assumed))
    kind = _KINDS.get(verdict, "undecided")
    said["budget"] = (
        Message("verdict.at_no_distance") if result.eps == 0 else Message("verdict.within", eps=result.eps)
    )
    if kind == "trivial":
        said["columns"] = names or [n for one in result.findings if one.kind == "unread" for n in one.columns]
        del said["gap"]
        return Verdict(kind, Message("verdict.trivial", **said))
    said["delta"] = result.delta
    if kind == "fair":
        said |= {"gap": bound.of("gap") if bound else result.gap, "sure": _how_sure(result)}
    else:
        said["interval"] = interval_words(result.interval)
    if kind == "undecided":
        nothing = bound is None or bound.gap is None
        said["open_end"] = (
            Message("verdict.open") if nothing or bound is None else Message("verdict.proven", gap=bound.gap)
        )
    return Verdict(kind, Message(f"verdict.{kind}", **said))


def _how_sure(result: AuditResult) -> Message:
    bound, wider = result.certificate.bound, result.population_bound
    sure = (
        Message("verdict.bound")
        if bound is None or bound.confidence == 1
        else Message("verdict.bound_at", level=bound.confidence)
    )
    if wider is None or wider.gap is None:
        return sure
    return Message("verdict.bound_and_population", bound=sure, gap=wider.gap, level=wider.confidence)


def _sensitive_only(result: AuditResult) -> Message | None:
    """What needs no metric to be believed, which comes first."""
    found = result.sensitive
    if found is None:
        return None
    shared: dict[str, Any] = {"columns": list(found.columns), "people": _people(result.n)}
    if found.changed is None or found.changed_interval is None:
        return Message("verdict.only_loss", gap=found.gap, **shared)
    low, high = found.changed_interval
    shared |= {"level": result.settings.get("confidence", 0.95), "low": low}
    share = Message("verdict.share" if found.exact else "verdict.share_at_least", changed=found.changed)
    if found.tolerance is not None:
        return Message("verdict.only_apart", share=share, high=high, tolerance=found.tolerance, **shared)
    return Message("verdict.only", share=share, high=high, **shared)


def _free(result: AuditResult) -> Message:
    test = result.test
    low, high = test.interval
    ends = (
        Message("verdict.at_least", low=low)
        if high == float("inf")
        else Message("verdict.between", low=low, high=high)
    )
    said = Message(
        "verdict.free_shown" if test.rejected else "verdict.free_not_shown",
        gap=result.pure_gap,
        level=test.confidence,
        ends=ends,
        threshold=test.threshold,
        p=test.p_value,
    )
    return (
        said if result.flipped is None else Message("verdict.free_decided", free=said, share=result.flipped)
    )


def interval_words(interval: ConfidenceInterval) -> Message:
    """Return an interval and what it is about, to stand in a sentence."""
    about = Message(f"interval.about_{interval.about.replace(' ', '_')}")
    if interval.open:
        return Message("interval.open", low=interval.low, level=interval.confidence, about=about)
    return Message(
        "interval.closed", low=interval.low, high=interval.high, level=interval.confidence, about=about
    )


def _people(n: int) -> Message:
    return Message("people", n=n)


# Whose decisions depend most on the sensitive columns: which of their values, and what these people get
# now.


_CONFIDENCE = 0.95


@dataclass(frozen=True)
class AffectedGroup:
    """People with one value of a sensitive column, of whom some get another decision when sensitive columns change.

    Whether that is to their good or harm depends on what the decisions mean, so the decision that most of them get now
    is said, and nothing else.
    """

    column: str
    value: Any
    people: int
    changed: int
    decision: Any
    of_decision: int

    @property
    def share(self) -> float:
        """Share of the group's people who change."""
        return self.changed / self.people


def most_affected(groups: Iterable[ChangedGroup], *, most: int = 2) -> tuple[AffectedGroup, ...]:
    """Find the values of one sensitive column whose people change decision most often.

    Ranked by the lower end of the exact 95% interval of the share, so that three of four people do not outweigh a
    thousand of two thousand.
    """
    found = sorted((one for one in by_value(groups) if one.changed), key=_surely, reverse=True)
    return tuple(one for one in found if one.column == found[0].column)[:most]


def by_value(groups: Iterable[ChangedGroup]) -> tuple[AffectedGroup, ...]:
    """Count every value of each sensitive column, whatever is decided: those of one column together."""
    inside: dict[str, dict[Any, list[ChangedGroup]]] = {}
    for group in groups:
        inside.setdefault(group.column, {}).setdefault(group.value, []).append(group)
    found: list[AffectedGroup] = []
    for column, values in inside.items():
        counted = []
        for value, parts in values.items():
            people, changed = sum(part.people for part in parts), sum(part.changed for part in parts)
            main = max(parts, key=lambda part: (part.changed, part.people))
            counted.append(AffectedGroup(column, value, people, changed, main.decision, main.changed))
        found += sorted(counted, key=lambda one: -one.share)
    return tuple(found)


def _surely(group: AffectedGroup) -> float:
    return proportion_interval(group.changed, group.people, confidence=_CONFIDENCE).low
