"""From a result to what people read: one page, a JSON document, a table in the terminal, plots.

Every form is made of the same plain document, so they all say the same.

Examples
--------
>>> from likewise.report import json_schema
>>> json_schema("audit")["title"]
'An audit by likewise'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.report.comparison import Comparison, ComparisonEntry, comparison_document
    from likewise.report.document import audit_document, json_schema, write_json
    from likewise.report.evidence import read_evidence, write_evidence
    from likewise.report.html import render_html, write_html
    from likewise.report.plots import plot_box, plot_curve, plot_frontier, plot_unfair_map
    from likewise.report.provenance import Provenance
    from likewise.report.score_report import (
        print_scores,
        score_document,
        write_scores_html,
        write_scores_json,
    )
    from likewise.report.terminal import print_audit, print_comparison
    from likewise.report.verification import (
        flip_table,
        print_verification,
        verification_document,
        write_verification,
    )

__all__ = [
    "Comparison",
    "ComparisonEntry",
    "Provenance",
    "audit_document",
    "comparison_document",
    "flip_table",
    "json_schema",
    "plot_box",
    "plot_curve",
    "plot_frontier",
    "plot_unfair_map",
    "print_audit",
    "print_comparison",
    "print_scores",
    "print_verification",
    "read_evidence",
    "render_html",
    "score_document",
    "verification_document",
    "write_evidence",
    "write_html",
    "write_json",
    "write_scores_html",
    "write_scores_json",
    "write_verification",
]

# The command line and notebooks load only what they use.
_HOMES = {
    "Comparison": "comparison",
    "ComparisonEntry": "comparison",
    "Provenance": "provenance",
    "audit_document": "document",
    "comparison_document": "comparison",
    "flip_table": "verification",
    "json_schema": "document",
    "plot_box": "plots",
    "plot_curve": "plots",
    "plot_frontier": "plots",
    "plot_unfair_map": "plots",
    "print_audit": "terminal",
    "print_comparison": "terminal",
    "print_scores": "score_report",
    "print_verification": "verification",
    "read_evidence": "evidence",
    "render_html": "html",
    "score_document": "score_report",
    "verification_document": "verification",
    "write_evidence": "evidence",
    "write_html": "html",
    "write_json": "document",
    "write_scores_html": "score_report",
    "write_scores_json": "score_report",
    "write_verification": "verification",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
