"""Where models live already: pytest, scikit-learn's model selection, MLflow, skorch, Lightning. One small file each.

Nothing here is imported before it is used, and a package that is absent is named with what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.integrations.fair_assertion import assert_fair
    from likewise.integrations.lightning_module import FairLightningModule
    from likewise.integrations.mlflow_logging import impact_ratio_metric, log_audit
    from likewise.integrations.scorers import PureGapScorer, pure_gap_scorer
    from likewise.integrations.skorch_net import FairNeuralNetClassifier
    from likewise.integrations.stateful_loss import StatefulLoss

__all__ = [
    "FairLightningModule",
    "FairNeuralNetClassifier",
    "PureGapScorer",
    "StatefulLoss",
    "assert_fair",
    "impact_ratio_metric",
    "log_audit",
    "pure_gap_scorer",
]

_HOMES = {
    "FairLightningModule": "lightning_module",
    "FairNeuralNetClassifier": "skorch_net",
    "PureGapScorer": "scorers",
    "StatefulLoss": "stateful_loss",
    "assert_fair": "fair_assertion",
    "impact_ratio_metric": "mlflow_logging",
    "log_audit": "mlflow_logging",
    "pure_gap_scorer": "scorers",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
