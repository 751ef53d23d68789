"""The public surface: which room brings which name. Loaded lazily by `likewise.__getattr__`."""

from __future__ import annotations

ROOMS: dict[str, tuple[str, ...]] = {
    "core.errors": (
        "FormatError",
        "InputError",
        "LikewiseError",
        "MissingExtraError",
        "ModelError",
        "NotConvergedError",
        "UnfairError",
    ),
    "core.subspace": ("Subspace",),
    "auditing": (
        "AuditResult",
        "Bound",
        "CandidateSearch",
        "Certificate",
        "Estimate",
        "GradientSearch",
        "audit",
    ),
    "domains": ("BoxDomain", "DataRangeDomain", "TabularDomain", "Unbounded"),
    "evaluation": ("Edit", "correspondence_study", "evaluate", "group_gaps"),
    "fair_metrics": (
        "AttributeSubspace",
        "ComparableSubspace",
        "Euclidean",
        "ExpertSubspace",
        "FairMetric",
        "Mahalanobis",
        "PairMetric",
        "diagnose",
    ),
}

PUBLIC = {name: f"likewise.{room}" for room, names in ROOMS.items() for name in names}

SUBPACKAGES = frozenset({"auditing", "core", "datasets", "domains", "evaluation", "fair_metrics", "models"})
