"""The auditor's problem: worst case, unfair map, certificate and test, for any model.

`auditor` has the verb and `audit_result` what it returns. Its rooms: `problem` (model, metric, domain and people in one
coordinate system), `search` (rows that treat people worse), `bounds` (what no row can exceed), `support` (what was found,
and V(ε) on it), `parts` (tables in parts, and the one reduction), `claims` (what may be said) and `people` (what is read).

Examples
--------
>>> from likewise.auditing import share_interval
>>> share = share_interval(3, 100)
>>> round(share.low, 3), round(share.high, 3)
(0.006, 0.085)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.auditing.audit_result import AuditResult
    from likewise.auditing.auditor import audit
    from likewise.auditing.bounds.enumeration import EnumerationSearch
    from likewise.auditing.bounds.verifying.verification import verify
    from likewise.auditing.claims.bracket import Bracket
    from likewise.auditing.claims.certificate import (
        Bound,
        Certificate,
        Estimate,
        clt_interval,
        finite_sample_bound,
    )
    from likewise.auditing.claims.concentration import delta_n
    from likewise.auditing.claims.confidence_interval import ConfidenceInterval
    from likewise.auditing.claims.flip_tests import direction_test, flip_share_test
    from likewise.auditing.claims.intervals import gap_interval, population_interval, share_interval
    from likewise.auditing.claims.sample_splitting import split_interval
    from likewise.auditing.claims.significance import gap_test, loss_ratio_test
    from likewise.auditing.people.unfair_map import UnfairMap
    from likewise.auditing.search.candidates.candidate_search import CandidateSearch
    from likewise.auditing.search.contract import Found, Search
    from likewise.auditing.search.domain.domain_search import DomainSearch
    from likewise.auditing.search.gradient.gradient_search import GradientSearch
    from likewise.auditing.support.finite_dual import dual_curve, solve_dual
    from likewise.auditing.support.frontier import Frontier
    from likewise.auditing.support.stochastic_dual import algorithm1

__all__ = [
    "AuditResult",
    "Bound",
    "Bracket",
    "CandidateSearch",
    "Certificate",
    "ConfidenceInterval",
    "DomainSearch",
    "EnumerationSearch",
    "Estimate",
    "Found",
    "Frontier",
    "GradientSearch",
    "Search",
    "UnfairMap",
    "algorithm1",
    "audit",
    "clt_interval",
    "delta_n",
    "direction_test",
    "dual_curve",
    "finite_sample_bound",
    "flip_share_test",
    "gap_interval",
    "gap_test",
    "loss_ratio_test",
    "population_interval",
    "share_interval",
    "solve_dual",
    "split_interval",
    "verify",
]

_HOMES = {
    "AuditResult": "audit_result",
    "Bound": "claims.certificate",
    "Bracket": "claims.bracket",
    "CandidateSearch": "search.candidates.candidate_search",
    "Certificate": "claims.certificate",
    "ConfidenceInterval": "claims.confidence_interval",
    "DomainSearch": "search.domain.domain_search",
    "EnumerationSearch": "bounds.enumeration",
    "Estimate": "claims.certificate",
    "Found": "search.contract",
    "Frontier": "support.frontier",
    "GradientSearch": "search.gradient.gradient_search",
    "Search": "search.contract",
    "UnfairMap": "people.unfair_map",
    "algorithm1": "support.stochastic_dual",
    "audit": "auditor",
    "clt_interval": "claims.certificate",
    "delta_n": "claims.concentration",
    "direction_test": "claims.flip_tests",
    "dual_curve": "support.finite_dual",
    "finite_sample_bound": "claims.certificate",
    "flip_share_test": "claims.flip_tests",
    "gap_interval": "claims.intervals",
    "gap_test": "claims.significance",
    "loss_ratio_test": "claims.significance",
    "population_interval": "claims.intervals",
    "share_interval": "claims.intervals",
    "solve_dual": "support.finite_dual",
    "split_interval": "claims.sample_splitting",
    "verify": "bounds.verifying.verification",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
