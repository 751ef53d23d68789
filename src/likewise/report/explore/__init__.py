"""What a page needs so that its reader can edit a person and see the decision: plain data, no code of a model.

A model travels as arrays that ``evaluate.js`` reads; a model that cannot stays behind a server, and the same page asks
that. People, domain and fair metric travel with it, so whoever has the page has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.report.explore.document import (
        explore_case as explore_case,
        explore_document as explore_document,
    )
    from likewise.report.explore.models import page_model as page_model

__getattr__, __dir__, __all__ = lazy_names(__name__)
