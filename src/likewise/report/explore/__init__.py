"""What a page needs so that its reader can edit a person and see the decision: plain data, no code of a model.

A model travels as arrays that ``evaluate.js`` reads; a model that cannot stays behind a server, and the same page asks
that. People, domain and fair metric travel with it, so whoever has the page has them.
"""

from __future__ import annotations

from likewise.report.explore.document import explore_document
from likewise.report.explore.page_model import page_model

__all__ = ["explore_document", "page_model"]
