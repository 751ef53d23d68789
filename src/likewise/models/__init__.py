"""Models: one small contract over torch, scikit-learn, boosted trees, ONNX and any function that predicts.

`as_model` turns what a user has into a `Model`: classes, predictions and one loss per row; a
`DifferentiableModel` also has an `Oracle` for input gradients. Nothing of a third party is imported before a
model of that library turns up.

Examples
--------
>>> from likewise.models import as_model
>>> as_model(lambda rows: [[0.2, 0.8]] * len(rows)).predict([[1.0], [2.0]])
array([1, 1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names
from likewise.models.convert import as_model
from likewise.models.losses import CrossEntropy, CustomLoss, Hinge, Loss, Squared, ZeroOne, as_loss
from likewise.models.model import DifferentiableModel, Model

if TYPE_CHECKING:
    from likewise.models.boosted import CatBoostModel, LightGBMModel, XGBoostModel
    from likewise.models.callable_model import CallableModel
    from likewise.models.mlp import MLPOracle
    from likewise.models.model_files import load_model
    from likewise.models.onnx_model import OnnxModel
    from likewise.models.oracle import AutogradOracle, Oracle, make_oracle
    from likewise.models.sklearn_model import SklearnModel
    from likewise.models.sklearn_network import SklearnNetwork
    from likewise.models.torch_module import TorchModel

__all__ = [
    "AutogradOracle",
    "CallableModel",
    "CatBoostModel",
    "CrossEntropy",
    "CustomLoss",
    "DifferentiableModel",
    "Hinge",
    "LightGBMModel",
    "Loss",
    "MLPOracle",
    "Model",
    "OnnxModel",
    "Oracle",
    "SklearnModel",
    "SklearnNetwork",
    "Squared",
    "TorchModel",
    "XGBoostModel",
    "ZeroOne",
    "as_loss",
    "as_model",
    "load_model",
    "make_oracle",
]

_HOMES = {
    "AutogradOracle": "oracle",
    "CallableModel": "callable_model",
    "CatBoostModel": "boosted",
    "LightGBMModel": "boosted",
    "MLPOracle": "mlp",
    "OnnxModel": "onnx_model",
    "Oracle": "oracle",
    "SklearnModel": "sklearn_model",
    "SklearnNetwork": "sklearn_network",
    "TorchModel": "torch_module",
    "XGBoostModel": "boosted",
    "load_model": "model_files",
    "make_oracle": "oracle",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
