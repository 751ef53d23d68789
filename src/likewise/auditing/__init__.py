"""The auditor's problem: worst case, unfair map, certificate and test, for any model.

`auditor` has the verb. `problem` brings model, metric, domain and people into one coordinate system; `search` looks for rows
that treat people worse, `bounds` for what no row can exceed; `dual` solves V(ε) on what was found; `worst_case` is the whole
way from the request to the result, and `partitions` goes it part by part; `inference` says what follows; `results` is what
people read.

Examples
--------
>>> from likewise.auditing import Bound
>>> Bound(value=0.7, gap=0.2, eps=0.1, n=100, method="exact dual").verdict(0.25)
'fair (proved)'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.auditing.auditor import audit as audit
    from likewise.auditing.bounds.enumeration import EnumerationSearch as EnumerationSearch
    from likewise.auditing.dual.finite_dual import (
        Frontier as Frontier,
        dual_curve as dual_curve,
        solve_dual as solve_dual,
    )
    from likewise.auditing.inference.certificate import (
        Bound as Bound,
        Certificate as Certificate,
        ConfidenceInterval as ConfidenceInterval,
        Estimate as Estimate,
        delta_n as delta_n,
        finite_sample_bound as finite_sample_bound,
    )
    from likewise.auditing.inference.intervals import gap_interval as gap_interval
    from likewise.auditing.inference.verdict import Bracket as Bracket
    from likewise.auditing.partitions.dask import DaskEngine as DaskEngine
    from likewise.auditing.partitions.engine import Engine as Engine, LocalEngine as LocalEngine
    from likewise.auditing.results.audit_result import AuditResult as AuditResult
    from likewise.auditing.results.unfair_map import UnfairMap as UnfairMap
    from likewise.auditing.search.candidates import CandidateSearch as CandidateSearch
    from likewise.auditing.search.contract import Found as Found, Search as Search
    from likewise.auditing.search.domain import DomainSearch as DomainSearch
    from likewise.auditing.search.gradient.search import GradientSearch as GradientSearch
    from likewise.auditing.verification.verify import verify as verify

__getattr__, __dir__, __all__ = lazy_names(__name__)
