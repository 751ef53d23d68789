"""Scorers of text: edits that should not matter, placebos that cannot, and what moves above the noise.

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
    from likewise.text.edited import Change, Edited, TextEdit
    from likewise.text.name_lists import names_of
    from likewise.text.name_swap import NameSwap
    from likewise.text.paid_calls import BudgetError, CallLimits
    from likewise.text.placebos import Greeting, IrrelevantSentence, ListOrder, WhiteSpace, default_placebos
    from likewise.text.power import AuditDesign
    from likewise.text.reply_cache import ReplyCache
    from likewise.text.score_audit import EditEffect, ScoreAudit, ScoreAudits, audit_scores
    from likewise.text.sentence_encoder import SentenceEncoder
    from likewise.text.sentence_vectors import WordMean
    from likewise.text.swap_consensus import SwapConsensus
    from likewise.text.templates import Template
    from likewise.text.term_swap import FunctionEdit, TermSwap
    from likewise.text.text_auditor import TextAudit, audit_texts
    from likewise.text.text_plan import TextPlan, default_edits, plan_texts

__all__ = [
    "AuditDesign",
    "BudgetError",
    "CallLimits",
    "Change",
    "EditEffect",
    "Edited",
    "FunctionEdit",
    "Greeting",
    "IrrelevantSentence",
    "ListOrder",
    "NameSwap",
    "ReplyCache",
    "ScoreAudit",
    "ScoreAudits",
    "SentenceEncoder",
    "SwapConsensus",
    "Template",
    "TermSwap",
    "TextAudit",
    "TextEdit",
    "TextPlan",
    "WhiteSpace",
    "WordMean",
    "audit_scores",
    "audit_texts",
    "default_edits",
    "default_placebos",
    "names_of",
    "plan_texts",
]

_HOMES = {
    "AuditDesign": "power",
    "BudgetError": "paid_calls",
    "CallLimits": "paid_calls",
    "Change": "edited",
    "EditEffect": "score_audit",
    "Edited": "edited",
    "FunctionEdit": "term_swap",
    "Greeting": "placebos",
    "IrrelevantSentence": "placebos",
    "ListOrder": "placebos",
    "NameSwap": "name_swap",
    "ReplyCache": "reply_cache",
    "ScoreAudit": "score_audit",
    "ScoreAudits": "score_audit",
    "SentenceEncoder": "sentence_encoder",
    "SwapConsensus": "swap_consensus",
    "Template": "templates",
    "TermSwap": "term_swap",
    "TextAudit": "text_auditor",
    "TextEdit": "edited",
    "TextPlan": "text_plan",
    "WhiteSpace": "placebos",
    "WordMean": "sentence_vectors",
    "audit_scores": "score_audit",
    "audit_texts": "text_auditor",
    "default_edits": "text_plan",
    "default_placebos": "placebos",
    "names_of": "name_lists",
    "plan_texts": "text_plan",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
