"""What a notebook shows of an audit: a compact table that stands on its own, with every string escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from likewise.auditing.claims.verdict import Kind, give_verdict
from likewise.core.text import interval_ends, join_words, short_number

if TYPE_CHECKING:
    from likewise.auditing.audit_result import AuditResult
    from likewise.auditing.people.unfair_map import UnfairMap

__all__ = ["audit_summary_html"]

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
    """Return an audit as a small piece of HTML for notebooks.

    Parameters
    ----------
    result : AuditResult
    people : int, default=3
        How many of the most harmed people to name.

    Returns
    -------
    str
        One ``<div>`` without scripts, style sheets or links. It follows the notebook's light or dark theme.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> table = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["<F>", "M", "M", "<F>"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(table).metric_
    >>> result = audit(as_model(score, takes_frame=True), table, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> html = audit_summary_html(result)
    >>> "No limit set" in html, "&lt;F&gt;" in html, "<F>" in html
    (True, True, False)
    """
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
    if result.eps == 0:
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
