"""What an audit found in one sentence, how sure that is, and whether a limit is kept; brackets of what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from likewise.auditing.inference.certificate import UNFAIR, Bound
from likewise.auditing.results.effects import ANOTHER, ANY, LESS, MORE, OTHER
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.messages import Message
from likewise.core.text import option, short_number, value_words

if TYPE_CHECKING:
    from likewise.auditing.inference.certificate import ConfidenceInterval
    from likewise.auditing.results.audit_result import AuditResult

# What is known of one number from both sides: attained by listed people, and not to be exceeded by anybody.


Bracketed: TypeAlias = Literal["value", "gap", "changed"]
QUANTITIES: tuple[Bracketed, ...] = ("value", "gap", "changed")

# Narrower than this a bracket is one number: sums in another order, and the rounding of what costs nothing.
_CLOSED = 1e-9
# What a number with many values is exchanged for.
_MANY = (LESS, MORE, OTHER)
# So many values of an attribute are named.
_NAMED = 4


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
        Probability that `upper` holds: 1 if everybody was looked at, less where a sample was.
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


# The headline: what is said first of every result. Badge and sentence come from one count, so that they cannot differ.


Badge: TypeAlias = Literal["depends", "not_found", "independent", "not_read", "unanswered"]
BADGES: tuple[Badge, ...] = ("depends", "not_found", "independent", "not_read", "unanswered")


@dataclass(frozen=True)
class Limit:
    """A limit of the share of decisions that may change, and whether it is kept.

    `passed` is None if nothing can be said: the audit was not answered, or only a lower bound of the share is known.
    """

    limit: float
    passed: bool | None
    sentence: str


@dataclass(frozen=True)
class Headline:
    """What is said first of an audit.

    Parameters
    ----------
    badge : {"depends", "not_found", "independent", "not_read", "unanswered"}
        Decisions depend on the sensitive columns; no dependence was found; every value was tried for everybody audited
        and nothing changes; the model does not read the columns; the question could not be answered.
    title : str
        The badge in a few words.
    sentence : str
        How many decisions change, and to whose disadvantage.
    sure : str
        What that rests on.
    limit : Limit or None
        Whether the limit that was set is kept.
    """

    badge: Badge
    title: str
    sentence: str
    sure: str
    limit: Limit | None = None

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence}"


def headline(result: AuditResult) -> Headline:
    """Say what an audit found, by the decisions that change when only the sensitive columns do."""
    return Headline(*_said(result), _limit(result))


def _said(result: AuditResult) -> tuple[Badge, Message, str, Message]:
    """Badge, title, sentence, and how sure that is."""
    blocking = [finding for finding in result.findings if finding.blocks]
    if blocking:
        why = Message("headline.unanswered", why=blocking[0].sentence)
        return "unanswered", Message("badge.unanswered"), why, Message("sure.unanswered")
    only = result.sensitive
    if only is None:
        return _free(result)
    columns = [str(name) for name in only.attributes]
    if only.depends:
        sentence = _number_words(result) if only.shift is not None else _changed_words(result)
        return "depends", Message("badge.depends", columns=_moving(result)), sentence, _sure(result)
    said: dict[str, Any] = {"people": result.n, "columns": columns}
    read = "number" if only.shift is not None else "decision"
    if only.tolerance is not None:
        read, said["tolerance"] = "apart", only.tolerance
    if result.unread:
        title = Message("badge.not_read", columns=columns)
        return "not_read", title, Message("headline.not_read", **said), _sure(result)
    title = Message("badge.not_found", columns=columns)
    if result.same:
        alike = next(finding.sentence for finding in result.findings if finding.kind == "same")
        return "not_found", title, alike, _sure(result)
    assumed = any(finding.kind in ("encoding", "recorded") for finding in result.findings)
    if only.exact and not result.scope.sampled and not assumed:
        # Of other people it is not known: `verify` looks at everybody who could exist.
        title = Message("badge.independent_people", columns=columns)
        sentence = Message(f"headline.independent_{read}", values=_values(result), **said)
        return "independent", title, sentence, _sure(result)
    return "not_found", title, Message(f"headline.not_found_{read}", **said), _sure(result)


def _free(result: AuditResult) -> tuple[Badge, Message, str, Message]:
    """No column is called sensitive: what counterparts at no fair distance get."""
    if result.flipped is None:
        depends = result.pure_gap > 1e-9 * (1.0 + abs(result.base_loss))
        key, count = "headline.free_number", {"gap": result.pure_gap}
    else:
        changed = round(result.flipped * result.n)
        depends, key, count = changed > 0, "headline.free", {"n": changed}
    sentence = Message(key if depends else f"{key}_none", people=result.n, **count)
    title = Message("badge.depends_free" if depends else "badge.not_found_free")
    return "depends" if depends else "not_found", title, sentence, Message("sure.metric")


def _moving(result: AuditResult) -> list[str]:
    """The attributes that move decisions by themselves, most of them first; all if only several together do."""
    only = result.sensitive
    assert only is not None
    moved: dict[str, float] = {}
    for one in only.exchanges:
        if one.single and one.changed:
            moved[one.attribute] = moved.get(one.attribute, 0.0) + one.changed
    return sorted(moved, key=lambda name: -moved[name]) or [str(name) for name in only.attributes]


def _changed_words(result: AuditResult) -> Message:
    found = result.changed
    assert found is not None
    only = result.sensitive
    assert only is not None
    key = "headline.changed" if found.exact else "headline.changed_at_least"
    count = {"n": found.count, "people": found.n, "share": found.share}
    said = Message(key, **count, columns=list(only.attributes))
    table = result.effects
    if result.favourable is None or table is None:
        return Message("headline.name_favourable", count=said)
    moved = table[table["lose"] + table["gain"] > 0]
    if not len(moved):
        return Message("headline.no_favourable_change", count=said, favourable=str(result.favourable))
    first = moved.iloc[0]
    swap = {LESS: (ANY, MORE), MORE: (ANY, LESS)}
    recorded, instead = swap.get(first["instead"], (first["instead"], first["recorded"]))
    back = (table["recorded"] == recorded) & (table["instead"] == instead)
    rows = [first, *(row for _, row in table[(table["attribute"] == first["attribute"]) & back].iterrows())]
    # First who has a disadvantage now; a direction in which nothing changes comes last.
    rows.sort(key=lambda row: (row["lose"] + row["gain"] == 0, row["lose"] - row["gain"]))
    effect = exchange_words(rows)
    if len(only.attributes) == 1 and first["recorded"] == ANY:
        return Message("headline.both", count=said, effect=effect)
    if first["recorded"] != ANY and sum(row["lose"] + row["gain"] for row in rows) == found.count:
        # These entries alone change every decision that is counted.
        said = Message(key, **count, columns=[str(first["attribute"])])
        return Message("headline.both", count=said, effect=effect)
    return Message("headline.largest", count=said, effect=effect)


def exchange_words(rows: Sequence[Any]) -> Message:
    """Say of rows of `AuditResult.effects` how many people would gain and lose the favourable decision."""
    said: Message | None = None
    for row in rows:
        values: dict[str, Any] = {name: int(row[name]) for name in ("people", "gain", "lose")}
        values |= {name: value_words(row[name]) for name in ("attribute", "recorded", "instead")}
        kind = {LESS: "_lower", MORE: "_higher", OTHER: "_any"}.get(row["instead"], "")
        if said is not None:
            said = Message(f"headline.exchange_back{kind}", first=said, **values)
        else:
            said = Message(f"headline.exchange{kind}", **values)
    assert said is not None
    return said


def _number_words(result: AuditResult) -> Message:
    only = result.sensitive
    assert only is not None
    assert only.shift is not None
    target = result.settings.get("target")
    what: str = (
        Message("headline.predicted", target=str(target)) if target else Message("headline.predicted_number")
    )
    more = "" if only.exact else "_at_least"
    said: dict[str, Any] = {"people": result.n, "columns": list(only.attributes)}
    if result.changed is not None and only.tolerance is not None:
        said |= {"n": result.changed.count, "tolerance": only.tolerance}
        count = Message(f"headline.apart{more}", **said)
    else:
        mean, largest = only.shift
        count = Message(f"headline.number{more}", what=what, mean=mean, largest=largest, **said)
    table = result.effects
    if table is None or not len(table) or table.iloc[0]["instead"] in _MANY or only.tolerance is not None:
        return Message("headline.alone", count=count)
    first = table.iloc[0]
    key = "headline.number_lower" if first["change"] < 0 else "headline.number_higher"
    effect = Message(
        key,
        recorded=value_words(first["recorded"]),
        instead=value_words(first["instead"]),
        change=abs(float(first["change"])),
        n=int(first["people"]),
    )
    return Message("headline.number_both", count=count, effect=effect)


def _sure(result: AuditResult) -> Message:
    said = _tried(result)
    return said if result.labelled else Message("sure.unlabelled", sure=said)


def _tried(result: AuditResult) -> Message:
    only = result.sensitive
    assert only is not None
    columns = [str(name) for name in only.attributes]
    if result.unread and not only.depends:
        return Message("sure.not_read", columns=columns)
    key = "sure.every_value" if only.exact else "sure.some_values"
    tried = Message(key, people=result.n, columns=columns, values=_values(result))
    if only.changed_interval is None:
        return tried
    low, high = only.changed_interval
    level = float(result.settings.get("confidence", 0.95))
    what = Message("sure.decisions" if only.tolerance is None else "sure.predictions")
    key = "sure.interval" if only.exact else "sure.interval_open"
    return Message(key, tried=tried, what=what, low=low, high=high, level=level)


def _values(result: AuditResult) -> Message:
    """Say which values were tried: by name if there are few, of one attribute."""
    only = result.sensitive
    assert only is not None
    columns = [str(name) for name in only.attributes]
    tried = dict.fromkeys(value_words(one.instead) for one in only.exchanges if one.single)
    if len(columns) > 1 or not 0 < len(tried) <= _NAMED or not tried.keys().isdisjoint((*_MANY, ANOTHER)):
        return Message("sure.values", columns=columns)
    return Message("sure.values_named", columns=columns, values=", ".join(sorted(tried)))


def _limit(result: AuditResult) -> Limit | None:
    if result.limit is None:
        return None
    found, said = result.changed, {"limit": result.limit}
    if not result.answered or found is None:
        numbers = result.answered and result.sensitive is not None
        key = "limit.numbers" if numbers else "limit.unanswered"
        return Limit(result.limit, None, Message(key, **said, how=option("apart")))
    low, high = found.interval
    said |= {"share": found.share, "low": low, "high": high, "level": found.confidence}
    if found.share > result.limit:
        return Limit(result.limit, False, Message("limit.exceeded", **said))
    if not found.exact:
        return Limit(result.limit, None, Message("limit.not_shown", **said))
    if result.sensitive is not None and result.unread and not found.share:
        columns = [str(name) for name in result.sensitive.attributes]
        return Limit(result.limit, True, Message("limit.kept_unread", limit=result.limit, columns=columns))
    return Limit(result.limit, True, Message("limit.kept", **said))


# The paper's verdict: is the gap at most δ.


def gap_words(result: AuditResult) -> Message | None:
    """Say what the gap V(ε) − mean loss is against δ; None if no δ was set."""
    if result.delta is None:
        return None
    bound = result.certificate.bound
    said: dict[str, Any] = {"people": Message("people", n=result.n), "gap": result.gap, "delta": result.delta}
    said["budget"] = (
        Message("verdict.at_no_distance") if result.eps == 0 else Message("verdict.within", eps=result.eps)
    )
    found = result.verdict()
    if found in (UNFAIR, "undecided"):
        said["interval"] = interval_words(result.interval)
    if found == UNFAIR:
        return Message("verdict.unfair", **said)
    if found.startswith("fair"):
        assert bound is not None
        return Message("verdict.fair", **said | {"gap": bound.of("gap"), "sure": _how_sure(result)})
    if found == "undecided":
        proven = None if bound is None else bound.gap
        said["open_end"] = (
            Message("verdict.open") if proven is None else Message("verdict.proven", gap=proven)
        )
        return Message("verdict.undecided", **said)
    return Message("verdict.not_answered", **said)


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


def interval_words(interval: ConfidenceInterval) -> Message:
    """Return an interval and what it is about, to stand in a sentence."""
    about = Message(f"interval.about_{interval.about.replace(' ', '_')}")
    if interval.open:
        return Message("interval.open", low=interval.low, level=interval.confidence, about=about)
    return Message(
        "interval.closed", low=interval.low, high=interval.high, level=interval.confidence, about=about
    )
