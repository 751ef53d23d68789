"""The public surface: which room brings which name. Everything loads when first used."""

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
    "estimators": (
        "AdversarialDebiasingClassifier",
        "CoCLClassifier",
        "FairBoostingClassifier",
        "MLPBaselineClassifier",
        "ProjectClassifier",
        "SenSRClassifier",
        "SenSeIClassifier",
        "WassersteinRobustClassifier",
    ),
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
    "models": ("as_model", "load_model"),
    "postprocessing": ("GraphSmoothing", "TwinConsensus"),
    "preprocessing": ("HardDebias", "Project"),
    "report": ("Comparison", "write_html", "write_json"),
    "training": ("AdversarialDebiasing", "CoCL", "ERM", "SenSR", "SenSeI", "WassersteinRobust"),
}

SUBPACKAGES = (
    "auditing",
    "core",
    "datasets",
    "domains",
    "estimators",
    "evaluation",
    "experiments",
    "fair_metrics",
    "models",
    "postprocessing",
    "preprocessing",
    "report",
    "scale",
    "training",
)

# Name to the module it comes from; an empty module is a subpackage.
HOMES = dict.fromkeys(SUBPACKAGES, "") | {name: room for room, names in ROOMS.items() for name in names}
