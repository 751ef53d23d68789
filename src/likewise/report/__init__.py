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
    from likewise.report.comparison import (
        Comparison as Comparison,
        ComparisonEntry as ComparisonEntry,
        comparison_document as comparison_document,
    )
    from likewise.report.document import audit_document as audit_document, json_schema as json_schema
    from likewise.report.evidence.folder import (
        read_evidence as read_evidence,
        write_evidence as write_evidence,
    )
    from likewise.report.html import render_html as render_html
    from likewise.report.plots import (
        plot_box as plot_box,
        plot_curve as plot_curve,
        plot_frontier as plot_frontier,
        plot_unfair_map as plot_unfair_map,
    )
    from likewise.report.provenance import Provenance as Provenance
    from likewise.report.proxies import ProxyFindings as ProxyFindings
    from likewise.report.terminal import print_audit as print_audit, print_comparison as print_comparison
    from likewise.report.writing import (
        document_of as document_of,
        print_document as print_document,
        write_html as write_html,
        write_json as write_json,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
