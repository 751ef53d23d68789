"""A skorch classifier that minimises one of our objectives."""

from __future__ import annotations

from typing import Any

import torch

from likewise.core.errors import require
from likewise.integrations.torch_losses import StatefulLoss
from likewise.training import Objective

require("skorch", why="FairNeuralNetClassifier")
from skorch import NeuralNetClassifier  # noqa: E402 - after the message about what to install
from skorch.utils import to_tensor  # noqa: E402


class FairNeuralNetClassifier(NeuralNetClassifier):
    """`skorch.NeuralNetClassifier` whose training loss is an objective such as `SenSR` or `SenSeI`.

    Validation loss, callbacks, checkpoints and everything else are skorch's own; `criterion` is what is measured on
    held-out rows.

    Parameters
    ----------
    module : torch module or class
        Maps (n, d) encoded rows to (n, C) logits.
    objective : Objective
        On the rows that the module gets.
    criterion : loss class, default=torch.nn.CrossEntropyLoss
    **choices
        As in `skorch.NeuralNetClassifier`.

    Examples
    --------
    >>> import numpy as np, likewise as lw
    >>> from torch import nn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(64, 3)).astype("float32")
    >>> metric = lw.ExpertSubspace([2]).fit(X).metric_
    >>> net = FairNeuralNetClassifier(nn.Linear(3, 2), lw.SenSR(metric), max_epochs=1, train_split=None, verbose=0)
    >>> net.fit(X, (X[:, 0] > 0).astype("int64")).predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self, module: Any, objective: Objective, *, criterion: Any = torch.nn.CrossEntropyLoss, **choices: Any
    ) -> None:
        super().__init__(module, criterion=criterion, **choices)
        self.objective = objective

    def initialize_criterion(self) -> Any:
        """Begin with the objective's first state, as a fresh `fit` does."""
        super().initialize_criterion()
        self.fair_loss_ = StatefulLoss(self.objective)
        return self

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> torch.Tensor:
        """Return the objective's loss while training, skorch's own on held-out rows."""
        if not training:
            held_out: torch.Tensor = super().get_loss(y_pred, y_true, X=X, training=training)
            return held_out
        rows = to_tensor(X, device=self.device)
        return self.fair_loss_(self.module_, (rows, to_tensor(y_true, device=self.device)))
