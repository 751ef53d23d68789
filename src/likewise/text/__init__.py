"""Audits of text scorers: edits that should not matter, compared with placebo edits.

Examples
--------
>>> from likewise.text import TermSwap
>>> TermSwap("religion", {"church": "mosque"})("She sings in the church choir.").text
'She sings in the mosque choir.'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.text.cluster_inference import AuditDesign as AuditDesign
    from likewise.text.edited import Change as Change, Edited as Edited, TextEdit as TextEdit
    from likewise.text.encoders import (
        SentenceEncoder as SentenceEncoder,
        SwapConsensus as SwapConsensus,
        WordMean as WordMean,
    )
    from likewise.text.name_lists import names_of as names_of
    from likewise.text.name_swap import NameSwap as NameSwap
    from likewise.text.replies import (
        BudgetError as BudgetError,
        CallLimits as CallLimits,
        ReplyCache as ReplyCache,
    )
    from likewise.text.score_audit import (
        EditEffect as EditEffect,
        ScoreAudit as ScoreAudit,
        ScoreAudits as ScoreAudits,
        audit_scores as audit_scores,
    )
    from likewise.text.term_swap import (
        FunctionEdit as FunctionEdit,
        Greeting as Greeting,
        IrrelevantSentence as IrrelevantSentence,
        ListOrder as ListOrder,
        Template as Template,
        TermSwap as TermSwap,
        WhiteSpace as WhiteSpace,
        default_placebos as default_placebos,
    )
    from likewise.text.text_audit import (
        TextAudit as TextAudit,
        TextPlan as TextPlan,
        audit_texts as audit_texts,
        default_edits as default_edits,
        plan_texts as plan_texts,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
