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
        "DomainSearch",
        "Estimate",
        "Found",
        "GradientSearch",
        "Search",
        "audit",
        "verify",
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
        "euclidean",
        "ExpertSubspace",
        "FairMetric",
        "mahalanobis",
        "PairMetric",
        "diagnose",
    ),
    "improving": ("Improvement", "improve", "write_improvement"),
    "models": ("as_model", "load_model"),
    "postprocessing": ("GraphSmoothing", "TwinConsensus"),
    "preprocessing": ("HardDebias", "Project"),
    "report": ("Comparison", "write_html", "write_json"),
    "text": ("NameSwap", "TermSwap", "audit_scores", "audit_texts"),
    "twins": ("Consequences", "MatchedTwins", "twin_study"),
    "training": ("AdversarialDebiasing", "CoCL", "ERM", "SenSR", "SenSeI", "wasserstein_robust"),
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
    "improving",
    "models",
    "postprocessing",
    "preprocessing",
    "report",
    "scale",
    "serving",
    "tables",
    "text",
    "training",
    "twins",
)

# Old name to new name: the old ones work for one release, with a DeprecationWarning.
RENAMED = {"Euclidean": "euclidean", "Mahalanobis": "mahalanobis", "WassersteinRobust": "wasserstein_robust"}

# Name to the module it comes from; an empty module is a subpackage.
HOMES = dict.fromkeys(SUBPACKAGES, "") | {name: room for room, names in ROOMS.items() for name in names}
