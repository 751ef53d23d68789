"""What an audit leaves for others: a model card, JUnit, SARIF, CSV, impact ratios, and figures that can be repeated.

One file for each form; `write_evidence` writes them all.
"""

from __future__ import annotations

from likewise.report.evidence.csv_bundle import csv_tables
from likewise.report.evidence.evidence_file import Evidence, compare_figures, figures_of, read_evidence
from likewise.report.evidence.evidence_folder import write_evidence
from likewise.report.evidence.junit import junit_xml
from likewise.report.evidence.local_law_144 import impact_page
from likewise.report.evidence.model_card import model_card
from likewise.report.evidence.sarif import sarif_log

__all__ = [
    "Evidence",
    "compare_figures",
    "csv_tables",
    "figures_of",
    "impact_page",
    "junit_xml",
    "model_card",
    "read_evidence",
    "sarif_log",
    "write_evidence",
]
