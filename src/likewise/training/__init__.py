"""Training: objectives that can be swapped, and the only loop over them.

An objective is a frozen set of choices with ``init(net)`` and ``step(net, batch, state)``; the loop is `train`, or
your own.

Examples
--------
>>> from likewise.training import ERM, SEARCHES
>>> sorted(SEARCHES), ERM().describe()["objective"]
(['fast', 'paper', 'two_phase'], 'ERM')
"""

from __future__ import annotations

from likewise._api import RENAMED
from likewise.core.lazy import lazy_names
from likewise.training.adversarial import AdversarialDebiasing
from likewise.training.batch import Batch, as_batch
from likewise.training.checkpoint import read_checkpoint
from likewise.training.cocl import CoCL
from likewise.training.erm import ERM
from likewise.training.findings import Finding, TrainingWarning
from likewise.training.history import History
from likewise.training.loop import train
from likewise.training.objective import Objective, State
from likewise.training.parquet_batches import ParquetBatches
from likewise.training.penalised import WithCovariancePenalty
from likewise.training.plain_networks import mlp
from likewise.training.ranks import RankLostError, Ranks, alone, current_ranks, joined
from likewise.training.robust import SEARCHES
from likewise.training.sampling import ArrayBatches, BatchSource, LoaderBatches
from likewise.training.sensei import SenSeI
from likewise.training.sensr import SenSR, wasserstein_robust
from likewise.training.training_result import TrainingResult

__all__ = [
    "ERM",
    "SEARCHES",
    "AdversarialDebiasing",
    "ArrayBatches",
    "Batch",
    "BatchSource",
    "CoCL",
    "Finding",
    "History",
    "LoaderBatches",
    "Objective",
    "ParquetBatches",
    "RankLostError",
    "Ranks",
    "SenSR",
    "SenSeI",
    "State",
    "TrainingResult",
    "TrainingWarning",
    "WithCovariancePenalty",
    "alone",
    "as_batch",
    "current_ranks",
    "joined",
    "mlp",
    "read_checkpoint",
    "train",
    "wasserstein_robust",
]

__getattr__ = lazy_names(__name__, {}, RENAMED)[0]
