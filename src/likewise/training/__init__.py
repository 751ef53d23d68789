"""Training: scikit-learn classifiers, the objectives that they minimise, and the only loop over them.

An objective is a frozen set of choices with ``init(net)`` and ``step(net, batch, state)``; the loop is `train`, or
your own.

Examples
--------
>>> from likewise.training import ERM, SEARCHES
>>> sorted(SEARCHES), ERM().describe()["objective"]
(['fast', 'paper', 'two_phase'], 'ERM')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.core.launch import alone as alone
    from likewise.training.batch import (
        ArrayBatches as ArrayBatches,
        Batch as Batch,
        BatchSource as BatchSource,
        LoaderBatches as LoaderBatches,
        as_batch as as_batch,
    )
    from likewise.training.boosting.classifier import FairBoostingClassifier as FairBoostingClassifier
    from likewise.training.boosting.growers import BoostingConfig as BoostingConfig
    from likewise.training.checkpoint import read_checkpoint as read_checkpoint
    from likewise.training.distributed import (
        RankLostError as RankLostError,
        Ranks as Ranks,
        current_ranks as current_ranks,
        joined as joined,
    )
    from likewise.training.estimators.classifiers import (
        AdversarialDebiasingClassifier as AdversarialDebiasingClassifier,
        CoCLClassifier as CoCLClassifier,
        MLPBaselineClassifier as MLPBaselineClassifier,
        ProjectClassifier as ProjectClassifier,
        WassersteinRobustClassifier as WassersteinRobustClassifier,
    )
    from likewise.training.estimators.files import load as load
    from likewise.training.estimators.parameters import TrainingConfig as TrainingConfig
    from likewise.training.estimators.robust_classifier import (
        SenSeIClassifier as SenSeIClassifier,
        SenSRClassifier as SenSRClassifier,
    )
    from likewise.training.loop import train as train
    from likewise.training.networks import mlp as mlp
    from likewise.training.objective import ERM as ERM, Objective as Objective, State as State
    from likewise.training.parquet_batches import ParquetBatches as ParquetBatches
    from likewise.training.penalised import (
        AdversarialDebiasing as AdversarialDebiasing,
        CoCL as CoCL,
        WithCovariancePenalty as WithCovariancePenalty,
    )
    from likewise.training.results import (
        Finding as Finding,
        History as History,
        TrainingResult as TrainingResult,
        TrainingWarning as TrainingWarning,
    )
    from likewise.training.robust import SEARCHES as SEARCHES
    from likewise.training.sensr import (
        SenSeI as SenSeI,
        SenSR as SenSR,
        wasserstein_robust as wasserstein_robust,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
