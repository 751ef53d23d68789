"""The auditor's problem: worst case, unfair map, certificate and test, for any model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.auditing.auditor import audit
    from likewise.auditing.certificate import Bound, Certificate, Estimate
    from likewise.auditing.result import AuditResult
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.auditing.search.gradient import GradientSearch
    from likewise.auditing.unfair_map import UnfairMap

__all__ = [
    "AuditResult",
    "Bound",
    "CandidateSearch",
    "Certificate",
    "Estimate",
    "GradientSearch",
    "UnfairMap",
    "audit",
]

_LAZY = {
    "AuditResult": "result",
    "Bound": "certificate",
    "CandidateSearch": "search.candidates",
    "Certificate": "certificate",
    "Estimate": "certificate",
    "GradientSearch": "search.gradient",
    "UnfairMap": "unfair_map",
    "audit": "auditor",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"likewise.auditing.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'likewise.auditing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
