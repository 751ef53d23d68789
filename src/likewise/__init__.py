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

from likewise._version import __version__ as __version__
from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise import (
        auditing as auditing,
        core as core,
        counterfactuals as counterfactuals,
        data as data,
        datasets as datasets,
        estimators as estimators,
        evaluation as evaluation,
        experiments as experiments,
        fair_metrics as fair_metrics,
        improving as improving,
        mitigation as mitigation,
        models as models,
        report as report,
        serving as serving,
        text as text,
        training as training,
    )
    from likewise.auditing import (
        AuditResult as AuditResult,
        Bound as Bound,
        CandidateSearch as CandidateSearch,
        Certificate as Certificate,
        DomainSearch as DomainSearch,
        Estimate as Estimate,
        Found as Found,
        GradientSearch as GradientSearch,
        Search as Search,
        audit as audit,
        verify as verify,
    )
    from likewise.core.errors import (
        FormatError as FormatError,
        InputError as InputError,
        LikewiseError as LikewiseError,
        MissingExtraError as MissingExtraError,
        ModelError as ModelError,
        NotConvergedError as NotConvergedError,
        UnfairError as UnfairError,
    )
    from likewise.core.subspace import Subspace as Subspace
    from likewise.counterfactuals import (
        Consequences as Consequences,
        Edit as Edit,
        MatchedTwins as MatchedTwins,
        correspondence_study as correspondence_study,
        twin_study as twin_study,
    )
    from likewise.data import (
        BoxDomain as BoxDomain,
        DataRangeDomain as DataRangeDomain,
        TabularDomain as TabularDomain,
        Unbounded as Unbounded,
    )
    from likewise.estimators import (
        AdversarialDebiasingClassifier as AdversarialDebiasingClassifier,
        CoCLClassifier as CoCLClassifier,
        FairBoostingClassifier as FairBoostingClassifier,
        MLPBaselineClassifier as MLPBaselineClassifier,
        ProjectClassifier as ProjectClassifier,
        SenSeIClassifier as SenSeIClassifier,
        SenSRClassifier as SenSRClassifier,
        WassersteinRobustClassifier as WassersteinRobustClassifier,
    )
    from likewise.evaluation import evaluate as evaluate, group_gaps as group_gaps
    from likewise.fair_metrics import (
        AttributeSubspace as AttributeSubspace,
        ComparableSubspace as ComparableSubspace,
        ExpertSubspace as ExpertSubspace,
        FairMetric as FairMetric,
        PairMetric as PairMetric,
        diagnose as diagnose,
        euclidean as euclidean,
        mahalanobis as mahalanobis,
    )
    from likewise.improving import (
        Improvement as Improvement,
        improve as improve,
        write_improvement as write_improvement,
    )
    from likewise.mitigation import (
        GraphSmoothing as GraphSmoothing,
        HardDebias as HardDebias,
        Project as Project,
        TwinConsensus as TwinConsensus,
    )
    from likewise.models import as_model as as_model, load_model as load_model
    from likewise.report import Comparison as Comparison, write_html as write_html, write_json as write_json
    from likewise.text import (
        NameSwap as NameSwap,
        TermSwap as TermSwap,
        audit_scores as audit_scores,
        audit_texts as audit_texts,
    )
    from likewise.training import (
        ERM as ERM,
        AdversarialDebiasing as AdversarialDebiasing,
        CoCL as CoCL,
        SenSeI as SenSeI,
        SenSR as SenSR,
        wasserstein_robust as wasserstein_robust,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__, "__version__")
