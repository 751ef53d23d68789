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

if TYPE_CHECKING:
    from likewise.models.boosted import (
        CatBoostModel as CatBoostModel,
        LightGBMModel as LightGBMModel,
        XGBoostModel as XGBoostModel,
    )
    from likewise.models.convert import CallableModel as CallableModel, as_model as as_model
    from likewise.models.losses import (
        CrossEntropy as CrossEntropy,
        CustomLoss as CustomLoss,
        Hinge as Hinge,
        Loss as Loss,
        Squared as Squared,
        ZeroOne as ZeroOne,
        as_loss as as_loss,
    )
    from likewise.models.mlp import MLPOracle as MLPOracle
    from likewise.models.model import DifferentiableModel as DifferentiableModel, Model as Model
    from likewise.models.model_files import load_model as load_model
    from likewise.models.onnx_model import OnnxModel as OnnxModel
    from likewise.models.oracle import (
        AutogradOracle as AutogradOracle,
        Oracle as Oracle,
        make_oracle as make_oracle,
    )
    from likewise.models.sklearn_model import SklearnModel as SklearnModel
    from likewise.models.sklearn_network import SklearnNetwork as SklearnNetwork
    from likewise.models.torch_module import TorchModel as TorchModel

__getattr__, __dir__, __all__ = lazy_names(__name__)
