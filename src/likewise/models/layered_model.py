"""Models that are exactly a linear model or a small network of their numeric input, known by their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.models.model import DifferentiableModel

if TYPE_CHECKING:
    from likewise.models.oracle import Oracle

__all__ = ["LayeredModel", "Layers"]


@dataclass(frozen=True, eq=False)
class Layers:
    """Weights (out, in) and biases (out,) from input to output, and the activation between them."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str = "identity"

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the network's outputs (n, C), or (n, 1)."""
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = X @ weight.T + bias
            if i < len(self.weights) - 1:
                X = _activate(X, self.activation)
        return X


class LayeredModel(DifferentiableModel):
    """A model whose gradients and linear form come from weights that are at hand.

    Attributes
    ----------
    layers : Layers
    """

    layers: Layers

    def gradient_oracle(self, dtype: Any = None) -> Oracle:
        """Return an `MLPOracle` of the weights, float64 by default."""
        import torch

        from likewise.models.mlp import MLPOracle
        from likewise.models.oracle import as_dtype

        wanted = as_dtype(dtype, torch.float64)
        weights, biases = (
            [torch.tensor(np.ascontiguousarray(part), dtype=wanted) for part in parts]
            for parts in (self.layers.weights, self.layers.biases)
        )
        return MLPOracle(weights, biases, self.layers.activation, self.loss)

    def linear_form(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (coef (C, d), intercept (C,)) for a linear model, None for an MLP."""
        if len(self.layers.weights) > 1:
            return None
        coef, intercept = self.layers.weights[0], self.layers.biases[0]
        if len(coef) == 1 and not self.loss.regression:
            return np.vstack([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
        return coef, intercept


def _activate(u: FloatArray, name: str) -> FloatArray:
    if name == "relu":
        return np.maximum(u, 0.0)
    if name == "tanh":
        return np.tanh(u)
    return u if name == "identity" else np.asarray(0.5 * (1.0 + np.tanh(0.5 * u)))
