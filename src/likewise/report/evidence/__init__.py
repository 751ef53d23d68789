"""What an audit leaves for others: a model card, JUnit, SARIF, CSV, impact ratios, and figures that can be repeated.

One file for each form; `write_evidence` writes them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.report.evidence.cards import impact_page as impact_page, model_card as model_card
    from likewise.report.evidence.checks import junit_xml as junit_xml, sarif_log as sarif_log
    from likewise.report.evidence.folder import (
        Evidence as Evidence,
        check_files as check_files,
        compare_figures as compare_figures,
        csv_tables as csv_tables,
        evidence_files as evidence_files,
        figures_of as figures_of,
        read_evidence as read_evidence,
        write_evidence as write_evidence,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
