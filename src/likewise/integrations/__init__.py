"""Where models live already: pytest, scikit-learn's model selection, MLflow, skorch, Lightning. One small file each.

Nothing here is imported before it is used, and a package that is absent is named with what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.integrations.assertion import assert_fair as assert_fair
    from likewise.integrations.lightning_module import FairLightningModule as FairLightningModule
    from likewise.integrations.mlflow_logging import (
        impact_ratio_metric as impact_ratio_metric,
        log_audit as log_audit,
    )
    from likewise.integrations.scorers import (
        PureGapScorer as PureGapScorer,
        pure_gap_scorer as pure_gap_scorer,
    )
    from likewise.integrations.skorch_net import FairNeuralNetClassifier as FairNeuralNetClassifier
    from likewise.integrations.torch_losses import StatefulLoss as StatefulLoss

__getattr__, __dir__, __all__ = lazy_names(__name__)
