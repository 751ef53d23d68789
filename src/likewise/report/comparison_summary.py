"""What a notebook shows of a comparison: one table that stands on its own, with every string escaped."""

from __future__ import annotations

from html import escape

from likewise.auditing.claims.verdict import give_verdict
from likewise.core.text import interval_ends, short_number
from likewise.evaluation.measures import Measure
from likewise.report.comparison import Comparison

__all__ = ["comparison_summary_html"]

_CELL = "padding:.2em .8em .2em 0;text-align:left;vertical-align:top"


def comparison_summary_html(comparison: Comparison) -> str:
    """Return a comparison as a small piece of HTML for notebooks.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
        One ``<div>`` without scripts, style sheets or links.
    """
    head = ["", *comparison.measures, "verdict"]
    rows = []
    for entry in comparison.entries:
        measures = entry.measures()
        cells = [_cell(measures.get(name)) for name in comparison.measures]
        name = f'<th style="{_CELL}">{escape(entry.name)}</th>'
        verdict = f'<td style="{_CELL}">{escape(give_verdict(entry.audit).title)}</td>'
        rows.append("<tr>" + name + "".join(cells) + verdict + "</tr>")
    top = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    return (
        f'<div style="line-height:1.45;overflow-x:auto"><p style="max-width:60em">{escape(comparison.sentence())}</p>'
        f'<table style="border-collapse:collapse"><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(measure: Measure | None) -> str:
    if measure is None:
        return f'<td style="{_CELL}">not measured</td>'
    interval = interval_ends(measure.low, measure.high)
    return f'<td style="{_CELL}"><b>{short_number(measure.value)}</b><br><small>{interval}</small></td>'
