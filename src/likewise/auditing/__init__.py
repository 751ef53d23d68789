"""The auditor's problem: worst case, unfair map, certificate and test, for any model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.auditing.auditor import audit
    from likewise.auditing.certificate import (
        Bound,
        Certificate,
        Estimate,
        clt_interval,
        finite_sample_bound,
    )
    from likewise.auditing.concentration import delta_n
    from likewise.auditing.dual import dual_curve, solve_dual
    from likewise.auditing.frontier import Frontier
    from likewise.auditing.result import AuditResult
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.auditing.search.gradient import GradientSearch
    from likewise.auditing.significance import direction_test, flip_share_test, gap_test, loss_ratio_test
    from likewise.auditing.stochastic_dual import algorithm1
    from likewise.auditing.unfair_map import UnfairMap

__all__ = [
    "AuditResult",
    "Bound",
    "CandidateSearch",
    "Certificate",
    "Estimate",
    "Frontier",
    "GradientSearch",
    "UnfairMap",
    "algorithm1",
    "audit",
    "clt_interval",
    "delta_n",
    "direction_test",
    "dual_curve",
    "finite_sample_bound",
    "flip_share_test",
    "gap_test",
    "loss_ratio_test",
    "solve_dual",
]

_HOMES = {
    "AuditResult": "result",
    "Bound": "certificate",
    "CandidateSearch": "search.candidates",
    "Certificate": "certificate",
    "Estimate": "certificate",
    "Frontier": "frontier",
    "GradientSearch": "search.gradient",
    "UnfairMap": "unfair_map",
    "algorithm1": "stochastic_dual",
    "audit": "auditor",
    "clt_interval": "certificate",
    "delta_n": "concentration",
    "direction_test": "significance",
    "dual_curve": "dual",
    "finite_sample_bound": "certificate",
    "flip_share_test": "significance",
    "gap_test": "significance",
    "loss_ratio_test": "significance",
    "solve_dual": "dual",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
