"""The verdict of an audit in one sentence: what was found, how sure that is, and what was assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from likewise.auditing.claims.certificate import FAIR, UNFAIR
from likewise.texts import Said

if TYPE_CHECKING:
    from likewise.auditing.audit_result import AuditResult
    from likewise.auditing.claims.confidence_interval import ConfidenceInterval

__all__ = ["Verdict", "give_verdict", "interval_words"]

Kind = Literal["fair", "trivial", "unfair", "undecided", "unanswered", "not converged", "no limit"]

_KINDS: dict[str, Kind] = {FAIR: "fair", "fair (trivially)": "trivial", UNFAIR: "unfair"}


@dataclass(frozen=True)
class Verdict:
    """What a page says first.

    Parameters
    ----------
    kind : {"fair", "trivial", "unfair", "undecided", "unanswered", "not converged", "no limit"}
        "trivial" if nothing can change because the model reads none of the sensitive columns; "unanswered" if the
        model and the table do not seem to belong together; "no limit" if the audit was not asked whether the gap is
        at most some δ.
    sentence : str
        One sentence with the number, the confidence and what was assumed.
    """

    kind: Kind
    sentence: str

    @property
    def title(self) -> str:
        """The kind in a word or two."""
        return Said(f"verdict.title.{self.kind.replace(' ', '_')}")

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence}"


def give_verdict(result: AuditResult) -> Verdict:
    """Say what an audit found.

    Parameters
    ----------
    result : AuditResult

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> model = as_model(score, takes_frame=True)
    >>> result = audit(model, people, [0, 1, 1, 1], metric=metric, eps=0.0, delta=0.1)
    >>> print(give_verdict(result))
    Unfair (shown): Comparable twins at no fair distance (ε = 0) raise the mean loss of 4 people by at least 0.243 (95% interval 0.034 to 16.74 for everybody like those audited, moved among the same candidates), more than the δ = 0.1 allowed, assuming the fair metric as given and twins that may exchange sex.
    """
    assumed = _assumed(result)
    verdict = result.verdict()
    if verdict == "unanswered":
        said = Said("verdict.unanswered", people=_people(result.n), gap=result.gap, assumed=assumed)
        return Verdict("unanswered", said)
    if verdict == "not converged":
        return Verdict("not converged", _not_converged(result, assumed))
    if result.delta is None:
        return Verdict("no limit", _without_limit(result, assumed))
    kind = _KINDS.get(verdict, "undecided")
    say = {"fair": _fair, "trivial": _trivial, "unfair": _unfair, "undecided": _undecided}[kind]
    return Verdict(kind, say(result, result.delta, assumed))


def _not_converged(result: AuditResult, assumed: Said) -> Said:
    why: str = Said("verdict.no_reason")
    for i, reason in enumerate(result.reasons):
        why = reason if i == 0 else Said("verdict.reasons", one=why, two=reason)
    return Said("verdict.not_converged", why=why, gap=result.gap, people=_people(result.n), assumed=assumed)


def _unfair(result: AuditResult, delta: float, assumed: Said) -> Said:
    return Said(
        "verdict.unfair",
        budget=_budget(result.eps),
        people=_people(result.n),
        gap=result.gap,
        interval=interval_words(result.interval),
        delta=delta,
        assumed=assumed,
    )


def _fair(result: AuditResult, delta: float, assumed: Said) -> Said:
    bound = result.certificate.bound
    assert bound is not None  # nothing else makes a verdict of fair
    sure = (
        Said("verdict.bound") if bound.confidence == 1 else Said("verdict.bound_at", level=bound.confidence)
    )
    wider = result.population_bound
    if wider is not None and wider.gap is not None:
        sure = Said("verdict.bound_and_population", bound=sure, gap=wider.gap, level=wider.confidence)
    return Said(
        "verdict.fair",
        budget=_budget(result.eps),
        people=_people(result.n),
        gap=bound.of("gap"),
        sure=sure,
        delta=delta,
        assumed=assumed,
    )


def _trivial(result: AuditResult, delta: float, assumed: Said) -> Said:
    columns = [str(name) for name in result.settings.get("sensitive") or ()] or list(_unread(result))
    return Said(
        "verdict.trivial",
        people=_people(result.n),
        columns=columns,
        budget=_budget(result.eps),
        assumed=assumed,
    )


def _unread(result: AuditResult) -> tuple[str, ...]:
    return tuple(name for finding in result.findings if finding.kind == "unread" for name in finding.columns)


def _undecided(result: AuditResult, delta: float, assumed: Said) -> Said:
    bound = result.certificate.bound
    nothing = bound is None or bound.gap is None
    return Said(
        "verdict.undecided",
        budget=_budget(result.eps),
        people=_people(result.n),
        gap=result.gap,
        interval=interval_words(result.interval),
        delta=delta,
        open_end=Said("verdict.open") if bound is None or nothing else Said("verdict.proven", gap=bound.gap),
        assumed=assumed,
    )


def _without_limit(result: AuditResult, assumed: Said) -> Said:
    only = _sensitive_only(result)
    if only is None:
        return Said("verdict.no_limit_free", free=_free(result), assumed=assumed)
    return Said("verdict.no_limit", only=only, free=_free(result), assumed=assumed)


def _sensitive_only(result: AuditResult) -> Said | None:
    """What needs no metric to be believed, which comes first."""
    found = result.sensitive
    if found is None:
        return None
    shared: dict[str, Any] = {"columns": list(found.columns), "people": _people(result.n)}
    if found.changed is None or found.changed_interval is None:
        return Said("verdict.only_loss", gap=found.gap, **shared)
    low, high = found.changed_interval
    shared |= {"level": result.settings.get("confidence", 0.95), "low": low}
    share = Said("verdict.share" if found.exact else "verdict.share_at_least", changed=found.changed)
    if found.tolerance is not None:
        return Said("verdict.only_apart", share=share, high=high, tolerance=found.tolerance, **shared)
    return Said("verdict.only", share=share, high=high, **shared)


def _free(result: AuditResult) -> Said:
    test = result.test
    low, high = test.interval
    ends = (
        Said("verdict.at_least", low=low)
        if high == float("inf")
        else Said("verdict.between", low=low, high=high)
    )
    said = Said(
        "verdict.free_shown" if test.rejected else "verdict.free_not_shown",
        gap=result.pure_gap,
        level=test.confidence,
        ends=ends,
        threshold=test.threshold,
        p=test.p_value,
    )
    return said if result.flipped is None else Said("verdict.free_decided", free=said, share=result.flipped)


def interval_words(interval: ConfidenceInterval) -> Said:
    """Return an interval and what it is about, to stand in a sentence.

    Parameters
    ----------
    interval : ConfidenceInterval

    Examples
    --------
    >>> from likewise.auditing.claims.confidence_interval import ConfidenceInterval
    >>> interval_words(ConfidenceInterval(0.5, 0.4, 0.6, 0.95, 100, "gap", about="population"))
    '95% interval 0.400 to 0.600 for the population'
    """
    about = Said(f"interval.about_{interval.about.replace(' ', '_')}")
    if interval.open:
        return Said("interval.open", low=interval.low, level=interval.confidence, about=about)
    return Said(
        "interval.closed", low=interval.low, high=interval.high, level=interval.confidence, about=about
    )


def _budget(eps: float) -> Said:
    return Said("verdict.at_no_distance") if eps == 0 else Said("verdict.within", eps=eps)


def _people(n: int) -> Said:
    return Said("people", n=n)


def _assumed(result: AuditResult) -> Said:
    names = [str(name) for name in result.settings.get("sensitive") or ()]
    return Said("verdict.assumed_exchange", columns=names) if names else Said("verdict.assumed")
