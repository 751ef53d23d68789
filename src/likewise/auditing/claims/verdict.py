"""The verdict of an audit in one sentence: what was found, how sure that is, and what was assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from likewise.auditing.claims.certificate import FAIR, UNFAIR
from likewise.core.text import join_words, short_number

if TYPE_CHECKING:
    from likewise.auditing.audit_result import AuditResult

__all__ = ["Verdict", "give_verdict"]

Kind = Literal["fair", "unfair", "undecided", "not converged", "no limit"]

_TITLES: dict[Kind, str] = {
    "fair": "Fair (proved)",
    "unfair": "Unfair (shown)",
    "undecided": "Undecided",
    "not converged": "No verdict",
    "no limit": "No limit set",
}
_KINDS: dict[str, Kind] = {FAIR: "fair", UNFAIR: "unfair"}


@dataclass(frozen=True)
class Verdict:
    """What a page says first.

    Parameters
    ----------
    kind : {"fair", "unfair", "undecided", "not converged", "no limit"}
        "no limit" where the audit was not asked whether the gap is at most some δ.
    sentence : str
        One sentence with the number, the confidence and what was assumed.
    """

    kind: Kind
    sentence: str

    @property
    def title(self) -> str:
        """The kind in a word or two."""
        return _TITLES[self.kind]

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
    Unfair (shown): Comparable twins at no fair distance (ε = 0) raise the mean loss of 4 people by at least 0.243 (95% interval 0.034 to 1.937 for everybody like those audited, moved among the same candidates), more than the δ = 0.1 allowed, assuming the fair metric as given and twins that may exchange sex.
    """
    assumed = _assumed(result)
    verdict = result.verdict()
    if verdict == "not converged":
        why = "; ".join(result.reasons) or "no reason was given"
        return Verdict(
            "not converged",
            f"The search did not end well ({why}), so the gap of {short_number(result.gap)} found for "
            f"{_people(result.n)} is no answer yet, {assumed}.",
        )
    if result.delta is None:
        return Verdict("no limit", f"{_without_limit(result)}, {assumed}.")
    kind = _KINDS.get(verdict, "undecided")
    say = {"fair": _fair, "unfair": _unfair, "undecided": _undecided}[kind]
    return Verdict(kind, f"{say(result, result.delta)}, {assumed}.")


def _unfair(result: AuditResult, delta: float) -> str:
    return (
        f"Comparable twins {_budget(result.eps)} raise the mean loss of {_people(result.n)} by at least "
        f"{short_number(result.gap)} ({_interval(result)}), more than the δ = {delta:g} allowed"
    )


def _fair(result: AuditResult, delta: float) -> str:
    bound = result.certificate.bound
    assert bound is not None  # nothing else makes a verdict of fair
    sure = "an upper bound for everyone audited"
    if bound.confidence < 1:
        sure += f" at {bound.confidence:.0%} confidence"
    wider = result.population_bound
    if wider is not None and wider.gap is not None:
        sure += f"; {short_number(wider.gap)} for the population at {wider.confidence:.0%} confidence"
    return (
        f"No comparable twins {_budget(result.eps)} raise the mean loss of {_people(result.n)} by more than "
        f"{short_number(bound.of('gap'))} ({sure}), within the δ = {delta:g} allowed"
    )


def _undecided(result: AuditResult, delta: float) -> str:
    bound = result.certificate.bound
    open_end = (
        "no upper bound rules out worse ones"
        if bound is None or bound.gap is None
        else f"the proven upper bound is {short_number(bound.gap)}"
    )
    return (
        f"The worst comparable twins found {_budget(result.eps)} raise the mean loss of {_people(result.n)} by "
        f"{short_number(result.gap)} ({_interval(result)}), within the δ = {delta:g} allowed, but {open_end}"
    )


def _without_limit(result: AuditResult) -> str:
    return "; ".join(part for part in (_sensitive_only(result), _free(result)) if part)


def _sensitive_only(result: AuditResult) -> str:
    """What needs no metric to be believed, which comes first."""
    found = result.sensitive
    if found is None:
        return ""
    names = join_words(list(found.columns))
    if found.changed is None or found.changed_interval is None:
        return (
            f"Changing only {names} raises the mean loss of {_people(result.n)} by {short_number(found.gap)}"
        )
    low, high = found.changed_interval
    level = result.settings.get("confidence", 0.95)
    return (
        f"Changing only {names} changes the decision for {found.changed:.1%} of {_people(result.n)} "
        f"({level:.0%} interval {low:.1%} to {high:.1%})"
    )


def _free(result: AuditResult) -> str:
    test = result.test
    low, high = test.interval
    ends = (
        f"at least {short_number(low)}"
        if high == float("inf")
        else f"{short_number(low)} to {short_number(high)}"
    )
    p = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.2g}"
    known = "which is" if test.rejected else "which is not shown to be"
    start = (
        "all moves that the metric calls free"
        if result.sensitive is not None
        else "All moves that the metric calls free"
    )
    decided = "" if result.flipped is None else f", and change the decision for {result.flipped:.1%}"
    return (
        f"{start} raise the mean loss by {short_number(result.pure_gap)} ({test.confidence:.0%} interval "
        f"{ends}), {known} more than {test.threshold:g} ({p}){decided}"
    )


def _interval(result: AuditResult) -> str:
    return str(result.interval)


def _budget(eps: float) -> str:
    return "at no fair distance (ε = 0)" if eps == 0 else f"within a fair distance of ε = {eps:g}"


def _people(n: int) -> str:
    return "1 person" if n == 1 else f"{n:,} people"


def _assumed(result: AuditResult) -> str:
    names = [str(name) for name in result.settings.get("sensitive") or ()]
    twins = f" and twins that may exchange {join_words(names)}" if names else ""
    return f"assuming the fair metric as given{twins}"
