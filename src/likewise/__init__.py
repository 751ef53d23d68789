"""likewise: individual fairness in machine learning.

Learn who is comparable with whom, audit any model for unequal treatment of comparable people, certify what
was found, and train models that pass. Nothing heavy is imported before it is used.

Examples
--------
>>> import likewise as lw
>>> lw.__version__.count(".")
2
>>> "audit" in lw.__all__
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._api import HOMES, RENAMED
from likewise._version import __version__
from likewise.core.lazy import lazy_names

if TYPE_CHECKING:  # what type checkers and editors see; a test keeps it equal to _api.py
    from likewise.auditing import (
        AuditResult,
        Bound,
        CandidateSearch,
        Certificate,
        DomainSearch,
        Estimate,
        Found,
        GradientSearch,
        Search,
        audit,
        verify,
    )
    from likewise.core.errors import (
        FormatError,
        InputError,
        LikewiseError,
        MissingExtraError,
        ModelError,
        NotConvergedError,
        UnfairError,
    )
    from likewise.core.subspace import (
        Subspace,
    )
    from likewise.domains import (
        BoxDomain,
        DataRangeDomain,
        TabularDomain,
        Unbounded,
    )
    from likewise.estimators import (
        AdversarialDebiasingClassifier,
        CoCLClassifier,
        FairBoostingClassifier,
        MLPBaselineClassifier,
        ProjectClassifier,
        SenSeIClassifier,
        SenSRClassifier,
        WassersteinRobustClassifier,
    )
    from likewise.evaluation import (
        Edit,
        correspondence_study,
        evaluate,
        group_gaps,
    )
    from likewise.fair_metrics import (
        AttributeSubspace,
        ComparableSubspace,
        ExpertSubspace,
        FairMetric,
        PairMetric,
        diagnose,
        euclidean,
        mahalanobis,
    )
    from likewise.improving import (
        Improvement,
        improve,
        write_improvement,
    )
    from likewise.models import (
        as_model,
        load_model,
    )
    from likewise.postprocessing import (
        GraphSmoothing,
        TwinConsensus,
    )
    from likewise.preprocessing import (
        HardDebias,
        Project,
    )
    from likewise.report import (
        Comparison,
        write_html,
        write_json,
    )
    from likewise.text import (
        NameSwap,
        TermSwap,
        audit_scores,
        audit_texts,
    )
    from likewise.training import (
        ERM,
        AdversarialDebiasing,
        CoCL,
        SenSeI,
        SenSR,
        wasserstein_robust,
    )
    from likewise.twins import (
        Consequences,
        MatchedTwins,
        twin_study,
    )

__all__ = ["__version__", *sorted(HOMES)]

__getattr__, __dir__ = lazy_names(__name__, HOMES, RENAMED)
