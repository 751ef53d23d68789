"""A torch module as a model."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from likewise.core.checks import FloatArray
from likewise.core.errors import ModelError
from likewise.models.losses import LossLike, as_loss
from likewise.models.model import DifferentiableModel, OutputKind, check_output
from likewise.models.network import network_of, torch_output
from likewise.models.oracle import (
    Oracle,
    TorchOutput,
    check_rows_independent,
    class_scores,
    evaluating,
    is_half_precision,
    make_oracle,
    module_device,
    module_dtype,
)


class TorchModel(DifferentiableModel):
    """An `nn.Module` that maps encoded rows (n, d) to logits (n, C), or to one logit or value per row.

    Parameters
    ----------
    module : torch.nn.Module
        Evaluated in eval mode without gradients, and left exactly as it came, also when it raises.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Labels in the order of the outputs; 0, 1, … by default.
    output : {"auto", "logits", "probabilities"}, default="auto"
        What the module returns. "auto" sees a last layer that is a softmax or, for one output, a sigmoid; anything
        else counts as logits, and outputs that look like probabilities then raise an error that asks.

    Examples
    --------
    >>> net = nn.Linear(2, 2)
    >>> with torch.no_grad():
    ...     _ = net.weight.copy_(torch.eye(2)), net.bias.zero_()
    >>> model = TorchModel(net)
    >>> model.predict([[1.0, 0.0], [0.0, 3.0]])
    array([0, 1])
    """

    batch_rows = 8192

    def __init__(
        self,
        module: nn.Module,
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        output: Literal["auto", "logits", "probabilities"] = "auto",
    ) -> None:
        check_output(output)
        self.module = module
        objective = as_loss(loss)
        check_rows_independent(module, owner="as_model")
        self._torch_output: TorchOutput = torch_output(module, objective) if output == "auto" else output
        network = network_of(module)
        if output == "auto" and self._torch_output == "logits" and network is None:
            self._guessed = "the module's outputs"
        if classes is None and network is not None and not objective.regression:
            classes = np.arange(max(network.n_outputs, 2))
        kind: OutputKind = "scores" if self._torch_output == "logits" else "probabilities"
        super().__init__(
            loss=objective,
            kind="values" if objective.regression else kind,
            classes=classes,
            n_features=None if network is None else network.n_inputs,
        )

    @property
    def roundoff(self) -> float:  # type: ignore[override]
        """Unit roundoff of the module's own numbers."""
        return torch.finfo(module_dtype(self.module)).eps / 2

    def outputs(self, X: Any) -> FloatArray:
        """Return what the module says about each row, (n, C) float64; see `Model.outputs`."""
        with evaluating(self.module):
            return super().outputs(X)

    def gradient_oracle(self) -> Oracle:
        """Return the fastest `Oracle` that fits the module, which follows the module's weights.

        A search needs single precision at least: of a module of fewer bits it is the oracle of a copy.
        """
        module, own = self.module, module_dtype(self.module)
        wanted = torch.promote_types(own, torch.float32)
        if wanted != own:
            module = copy.deepcopy(module).to(wanted)
        return make_oracle(module, self.loss, output=self._torch_output)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) when the module is linear up to its softmax, else None."""
        network = network_of(self.module)
        if network is None or (network.ending is not None and self.loss.wants == "native"):
            return None
        if is_half_precision(self.module):
            return None
        return network.layers().linear_form(regression=self.loss.regression)

    def _answer(self, rows: Any) -> Any:
        # A copy, because a module may begin with an operation in place and rows may be read-only.
        x = torch.tensor(rows, dtype=module_dtype(self.module), device=module_device(self.module))
        with torch.no_grad():
            try:
                raw = self.module(x)
            except RuntimeError as error:
                raise ModelError(
                    f"TorchModel: the module raised {type(error).__name__} on rows of {x.shape[1]} numbers: {error}. "
                    "If these are not the columns it was trained on, pass encoded rows: domain.encode(frame) of the "
                    "domain it was trained with, and the same domain to the audit."
                ) from error
            if self._torch_output == "logits" or self.loss.regression:
                return class_scores(raw, n=len(x), loss=self.loss, output="logits").double()
        return raw
