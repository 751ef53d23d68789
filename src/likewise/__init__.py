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

from likewise import _interrupt as _interrupt  # before what takes longer to load

# isort: split
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
        evaluation as evaluation,
        experiments as experiments,
        explaining as explaining,
        fair_metrics as fair_metrics,
        improving as improving,
        mitigation as mitigation,
        models as models,
        proxies as proxies,
        report as report,
        serving as serving,
        text as text,
        training as training,
    )
    from likewise.auditing import (
        AuditResult as AuditResult,
        Bound as Bound,
        Certificate as Certificate,
        Estimate as Estimate,
        audit as audit,
        verify as verify,
    )
    from likewise.core.errors import (
        InputError as InputError,
        LikewiseError as LikewiseError,
        UnfairError as UnfairError,
    )
    from likewise.counterfactuals import (
        Consequences as Consequences,
        Edit as Edit,
        MatchedTwins as MatchedTwins,
        correspondence_study as correspondence_study,
        twin_study as twin_study,
    )
    from likewise.data import (
        TabularDomain as TabularDomain,
    )
    from likewise.evaluation import evaluate as evaluate, group_gaps as group_gaps
    from likewise.explaining import explain as explain, recourse as recourse
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
        improve as improve,
    )
    from likewise.mitigation import (
        GraphSmoothing as GraphSmoothing,
        Project as Project,
        TwinConsensus as TwinConsensus,
    )
    from likewise.models import as_model as as_model, load_model as load_model
    from likewise.proxies import (
        disparity_bounds as disparity_bounds,
        group_probabilities as group_probabilities,
        proxy_test as proxy_test,
    )
    from likewise.report import write_html as write_html
    from likewise.text import (
        audit_scores as audit_scores,
        audit_texts as audit_texts,
    )
    from likewise.training import (
        FairBoostingClassifier as FairBoostingClassifier,
        MLPBaselineClassifier as MLPBaselineClassifier,
        ProjectClassifier as ProjectClassifier,
        SenSeI as SenSeI,
        SenSeIClassifier as SenSeIClassifier,
        SenSR as SenSR,
        SenSRClassifier as SenSRClassifier,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__, "__version__")
