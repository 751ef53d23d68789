"""What an audit found: one frozen object that can be read, gated on, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import FAIR, ROUNDING, Bound, Certificate, ConfidenceInterval
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.significance import TestResult
from likewise.auditing.inference.verdict import Bracket, Bracketed, Kind, give_verdict
from likewise.auditing.results.effects import ChangedPeople, Exchange, effects_table, effects_words
from likewise.auditing.results.sensitive import ChangedGroup, ChangedPerson
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.auditing.search.contract import Status
from likewise.core.checks import check_number
from likewise.core.errors import NotConvergedError, UnfairError, bad_parameter
from likewise.core.text import interval_ends, join_words, short_number, text_table

# What a notebook shows of an audit: a compact table that stands on its own, with every string escaped.


# Readable on white and on black; each word is written out as well, so colour alone says nothing.
_COLOURS: dict[Kind, str] = {
    "fair": "#008060",
    "trivial": "#3f6fb0",
    "unfair": "#c2410c",
    "undecided": "#8a6100",
    "unanswered": "#8a6100",
    "not converged": "#8a6100",
    "no limit": "#3f6fb0",
}
_CELL = "padding:.2em .8em .2em 0;text-align:left;vertical-align:top"


def audit_summary_html(result: AuditResult, *, people: int = 3) -> str:
    """Return an audit as a small piece of HTML for notebooks."""
    verdict = give_verdict(result)
    badge = (
        f'<span style="background:{_COLOURS[verdict.kind]};color:#fff;border-radius:1em;padding:.1em .7em;'
        f'font-weight:600">{escape(verdict.title)}</span>'
    )
    parts = [f'<p style="margin:.3em 0"><b>{escape(finding.sentence)}</b></p>' for finding in result.findings]
    parts += [f'<p style="margin:.3em 0 .6em">{badge} {escape(verdict.sentence)}</p>', _numbers(result)]
    parts.append(_people(result.pure_map if result.pure_gap > 0 else result.unfair_map, people))
    parts += [f'<p style="margin:.3em 0">Note: {escape(reason)}.</p>' for reason in result.reasons]
    return f'<div style="max-width:60em;line-height:1.45">{"".join(parts)}</div>'


def _numbers(result: AuditResult) -> str:
    pure, whole = result.test, result.interval
    rows = [
        (
            "Gap at ε = 0 (pure unfairness)",
            short_number(result.pure_gap),
            interval_ends(*pure.interval),
        ),
        (
            f"Gap at ε = {result.eps:g}",
            short_number(result.gap),
            interval_ends(whole.low, whole.high),
        ),
        (
            "Free under the metric: decided differently",
            "n/a" if result.flipped is None else f"{result.flipped:.1%}",
            "",
        ),
        ("Mean loss of the people as they are", short_number(result.base_loss), ""),
        *(
            (f"Proved: {bracket.name}", str(bracket), "")
            for bracket in result.brackets
            if bracket.upper is not None and bracket.quantity != "value"
        ),
    ]
    if not result.labelled:
        rows = [rows[2]]
    elif result.eps == 0:
        del rows[1]
    only = result.sensitive
    if only is not None and only.changed is not None and only.changed_interval is not None:
        ends = " to ".join(f"{end:.1%}" for end in only.changed_interval)
        words = f"Only {join_words(list(only.columns))} changed: {only.happens}"
        rows.insert(0, (words, only.share, ends))
    head = [f"{result.n:,} people", "value", f"{whole.confidence:.0%} interval"]
    return _table(head, [list(row) for row in rows])


def _people(unfair: UnfairMap, k: int) -> str:
    harmed = int((unfair.harm > 0).sum())
    if not harmed or k < 1:
        return ""
    rows = []
    worst = (-unfair.harm).argsort(kind="stable")[: min(k, harmed)]
    for i in worst:
        outcome, person, twin = unfair.outcomes.iloc[i], unfair.people.iloc[i], unfair.twins.iloc[i]
        moved = [name for name in unfair.people.columns if str(person[name]) != str(twin[name])]
        changes = ", ".join(f"{name}: {person[name]} → {twin[name]}" for name in moved[:4])
        changes += f" and {len(moved) - 4} more" if len(moved) > 4 else ""
        before, after = outcome["decision"], outcome["twin_decision"]
        decision = f"{before} → {after}" if before != after else f"{before} (same)"
        rows.append([str(outcome["person"]), changes, decision, short_number(float(outcome["harm"]))])
    return _table(["Most harmed: row", "twin", "decision", "added loss"], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<table style="border-collapse:collapse;margin:.4em 0"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


@dataclass(frozen=True)
class SensitiveAnswer:
    """What changes when only the sensitive columns do, for any model; no learned metric is needed."""

    columns: tuple[str, ...]
    gap: float
    gap_interval: tuple[float, float]
    changed: float | None
    changed_interval: tuple[float, float] | None
    groups: tuple[ChangedGroup, ...] = ()
    example: ChangedPerson | None = None
    exact: bool = True
    tolerance: float | None = None

    @property
    def share(self) -> str:
        """The share of people who change, in words."""
        if self.changed is None:
            return "n/a (a regression decides nothing)"
        return f"{'' if self.exact else 'at least '}{self.changed:.1%}"

    @property
    def happens(self) -> str:
        """What happens to the people who change, in words."""
        return (
            "decided differently"
            if self.tolerance is None
            else f"predicted more than {self.tolerance:g} apart"
        )


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The auditor's problem of one model on one table, solved.

    Parameters
    ----------
    eps : float
        Budget ε: mean squared fair distance that people may be moved by.
    delta : float or None
        The gap that is still called fair, where one was asked for.
    n : int
        People audited.
    value, base_loss : float
        V(ε), attained by the listed twins, and the mean loss of the people where they stand.
    pure_gap : float
        V(0) − mean loss, the excess at ε = 0: what moves that cost nothing add. For ε > 0 the gap also contains
        honest differences between people a little apart.
    flipped : float or None
        Share of people of whom some twin at no fair distance is decided differently: free under the metric, which is
        an assumption where the metric was learned. None for a regression, which decides nothing.
    sensitive : SensitiveAnswer or None
        What changes when only the sensitive columns do, which needs no metric; None where nothing is sensitive.
    lambda_, transport : float
        λ* of the dual at ε, and the mean squared fair distance actually spent.
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
        see `bracket`.
    population_bound : Bound or None
        Upper bound of the population's V(ε) at the asked confidence, for any sample size, where the inner problem
        is exact: λ is chosen on one half of the people and evaluated on the other.
    interval : ConfidenceInterval
        Of the gap at ε; its `about` says what it covers: the candidates of this audit held fixed, people like those
        audited.
    test : TestResult
        Of "pure unfairness is at most τ", with a two-sided interval.
    status : {"converged", "not_converged", "failed"}
        Whether the search can be trusted.
    reasons : tuple of str
        Why not, in words.
    left_out : tuple of str
        Searches that could not serve this model and table, and why.
    findings : tuple of Finding
        What has to be known before any number: that the model and the table do not seem to belong together, in which
        case nothing is proved and the audit is not answered; or that the model does not read a sensitive column.
    search : str
        How the worst case was looked for.
    assumptions : tuple of str
        What the numbers rest on, for a page that people read.
    settings : dict
        Seed, versions and choices, plain values.
    timing : dict of str to float
        CPU seconds by part.
    exchanges : tuple of Exchange or None
        What `effects` is made of; None for a regression, and if nothing is sensitive.
    favourable : object or None
        The decision that people lose or gain in `effects`: the user's, else the second of two classes; None if the model
        has more classes and none was named, or decides nothing.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> round(result.base_loss, 3), round(result.pure_gap, 3), result.flipped
    (0.314, 0.243, 0.25)
    >>> result.pure_map.top(1)["changed"].item()
    'sex'
    >>> print(result.verdict(delta=0.1))
    unfair (shown)
    """

    eps: float
    delta: float | None
    n: int
    value: float
    base_loss: float
    pure_gap: float
    flipped: float | None
    sensitive: SensitiveAnswer | None
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
    findings: tuple[Finding, ...]
    search: str
    assumptions: tuple[str, ...]
    settings: dict[str, Any]
    timing: dict[str, float]
    exchanges: tuple[Exchange, ...] | None = None
    favourable: Any = None

    @property
    def gap(self) -> float:
        """V(ε) − mean loss, the excess that (ε, δ)-DRF bounds: the certificate of the paper's section 3."""
        return self.value - self.base_loss

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
    def effects(self) -> pd.DataFrame | None:
        """Who would lose and who would gain the favourable decision if one sensitive attribute were recorded differently.

        A row for every attribute and every two of its values, with the other columns as they are: how many people are
        recorded with the one, and how many of them would lose or gain the decision `favourable` if the other were
        recorded. A number with more than 20 values has one row, which counts people for whom any value that was tried
        does so. Missing cells are recorded as "(missing)", unless `missing="impute"` filled them on request; 0/1 columns
        of one attribute change together. Most changes first. The numbers of Parquet files are summed over their parts: a
        number's values are then those of the sample that the audit is prepared on, and missing cells that the model does
        not take are counted with the value that fills them. None for a regression, and if nothing is sensitive.
        """
        return None if self.exchanges is None else effects_table(self.exchanges, self.favourable)

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
    def trivial(self) -> bool:
        """Whether nothing can change because the model reads none of the sensitive columns, and nothing else is free."""
        bound, known = self.certificate.bound, {str(name) for name in self.settings.get("sensitive") or ()}
        unread = {name for finding in self.findings if finding.kind == "unread" for name in finding.columns}
        if bound is None or not unread or not known <= unread:
            return False
        return bound.value - self.base_loss <= ROUNDING * (1.0 + abs(self.base_loss))

    def verdict(self, delta: float | None = None) -> str:
        """Say whether the gap is at most δ.

        "unanswered" if a finding speaks against the model and the table; "unfair (shown)" if listed rows exceed it;
        "fair (proved)" if a bound does not exceed it, or "fair (trivially)" if the model reads none of the sensitive
        columns; else "undecided", or "not converged" if the search did not end well besides.

        Parameters
        ----------
        delta : float, optional
            The gap that is still called fair; default the audit's own.
        """
        level = self.delta if delta is None else delta
        found = "undecided" if level is None else self.certificate.verdict(level, of="gap")
        if not self.answered:
            return "unanswered"
        if found == FAIR and self.trivial:
            return "fair (trivially)"
        # What listed rows attain refutes, and what is bounded is proved, however the search ended.
        return "not converged" if found == "undecided" and self.status != "converged" else found

    def raise_if_unfair(self, delta: float | None = None) -> None:
        """Raise unless the gap found is at most `delta`, and the search, the model and the table can be trusted.

        Parameters
        ----------
        delta : float, optional
            The gap that is still called fair; default the audit's own.

        Raises
        ------
        UnfairError
            The gap found exceeds `delta`.
        NotConvergedError
            The search did not end well, or model and table do not seem to belong together: nothing can be said.
        """
        level = check_number(
            self.delta if delta is None else delta, owner="raise_if_unfair", name="delta", low=0
        )
        self.raise_if_unanswered()
        if not self.labelled:
            raise bad_parameter(
                "raise_if_unfair", "delta", allowed="None without labels", got=level, remedy="Audit with 'y'."
            )
        if self.gap > level:
            worst = self.unfair_map.top(1)
            raise UnfairError(
                f"the worst case adds {self.gap:.4g} to the mean loss at eps={self.eps:g}, more than "
                f"delta={level:g} (pure unfairness at no distance: {self.pure_gap:.4g}). "
                f"Most harmed: person {worst['person'].iloc[0]} through {worst['changed'].iloc[0] or 'nothing'}."
            )
        if self.verdict(level) == "not converged" or not np.isfinite(self.gap):
            raise NotConvergedError("the audit did not converge: " + "; ".join(self.reasons))

    def raise_if_unanswered(self) -> None:
        """Raise if the model and the table do not seem to belong together.

        Raises
        ------
        NotConvergedError
        """
        if not self.answered:
            told = " ".join(finding.sentence for finding in self.findings if finding.blocks)
            raise NotConvergedError(f"the audit could not be answered. {told}")

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result, whole or not at all.

        Parameters
        ----------
        path : path-like
            ``audit.json`` holds everything, for `load` and for the report; ``audit.html`` is the page; a path without a
            suffix is a folder of evidence.
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

    def __str__(self) -> str:
        rows, told = [["people audited", f"{self.n:,}"]], 0
        if self.labelled:
            rows.append(["mean loss", f"{self.base_loss:.4f}"])
        if self.sensitive is not None:
            only = f"only {join_words(list(self.sensitive.columns))} changed"
            rows.append([f"{only}: {self.sensitive.happens}", self.sensitive.share])
            told = 1 + len(rows)
            if self.labelled:
                rows.append([f"{only}: added to the mean loss", f"{self.sensitive.gap:.4f}"])
        rows.append(["free under the metric: decided differently", _share(self.flipped)])
        if self.labelled:
            rows += [
                ["gap at ε = 0 (pure unfairness)", f"{self.pure_gap:.4f}"],
                [f"gap at ε = {self.eps:g}", f"{self.gap:.4f}"],
                *([f"proved: {one.name}", str(one)] for one in self.brackets if one.upper is not None),
                ["λ*", f"{self.lambda_:.4g}"],
            ]
        rows += [["searched by", self.search], ["status", self.status]]
        lines = [finding.sentence for finding in self.findings]
        table = text_table(["audit", ""], rows).split("\n")
        effects = [f"  {line}" for line in effects_words(self.exchanges, self.favourable)] if told else []
        lines += [*table[:told], *effects, *table[told:]]
        if self.labelled:
            lines += ["", str(self.test)]
        if self.delta is not None:
            lines.append(f"verdict at δ = {self.delta:g}: {self.verdict()}")
        if self.labelled:
            lines += [f"harmed: {rule}" for rule in self.unfair_map.rules[:3]]
        lines += [f"note: {reason}" for reason in (*self.reasons, *self.left_out)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:

        return audit_summary_html(self)


def _share(value: float | None) -> str:
    return "n/a (a regression decides nothing)" if value is None else f"{value:.1%}"
