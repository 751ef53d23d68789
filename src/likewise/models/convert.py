"""`as_model`: a `Model` for anything that a user trained."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from likewise.core.checks import is_torch_module
from likewise.core.errors import InputError, bad_parameter
from likewise.models.losses import LossLike, as_loss
from likewise.models.model import Model, OutputKind, check_output, libraries_of, named

# Any function that predicts, as a model.


class CallableModel(Model):
    """A prediction function.

    Parameters
    ----------
    function : callable
        Takes a numeric array (n, d), or a pandas frame when ``takes_frame=True``, and returns class
        probabilities (n, C), or (n,) of the second of two classes. With ``loss="hinge"`` or
        ``output="logits"`` it returns scores; for regression one value per row.
    loss : str, Loss or callable, default="cross_entropy"
    classes : array-like, optional
        Labels in the order of the outputs; 0, 1, … by default. Taken from the owner of a bound method such as
        ``pipeline.predict_proba``.
    takes_frame : bool, optional
        Whether it takes the table; False unless the function is a bound method of an estimator that was fitted
        on a table with categories.
    output : {"auto", "probabilities", "logits"}, default="auto"
        What the function returns.

    Examples
    --------
    >>> import numpy as np
    >>> model = CallableModel(lambda X: 1 / (1 + np.exp(-X[:, 0])))
    >>> model.losses(np.array([[0.0], [2.0]]), [1, 1]).round(3)
    array([0.693, 0.127])
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        loss: LossLike = "cross_entropy",
        classes: Any = None,
        takes_frame: bool | None = None,
        output: Literal["auto", "probabilities", "logits"] = "auto",
    ) -> None:
        self.function = function
        loss = as_loss(loss)
        owner = getattr(function, "__self__", None)
        if classes is None and getattr(function, "__name__", "") != "predict":
            classes = getattr(owner, "classes_", None)
        if takes_frame is None and hasattr(owner, "feature_names_in_"):
            from likewise.models.sklearn_model import wants_table

            takes_frame = wants_table(owner)
        check_output(output)
        wanted = "scores" if loss.wants == "scores" else "probabilities"
        kind: OutputKind = {"auto": wanted, "logits": "scores"}.get(output, "probabilities")  # type: ignore[assignment]
        super().__init__(
            loss=loss,
            kind="values" if loss.regression else kind,
            classes=classes,
            takes_frame=bool(takes_frame),
            feature_names=getattr(owner, "feature_names_in_", None),
            missing=True,
        )

    def _answer(self, rows: Any) -> Any:
        return self.function(named(rows, self.feature_names))


def as_model(
    model: Any,
    *,
    loss: LossLike = "cross_entropy",
    classes: Any = None,
    takes_frame: bool | None = None,
    output: Literal["auto", "probabilities", "logits"] = "auto",
) -> Model:
    """Return a `Model` for anything that predicts.

    Parameters
    ----------
    model : object
        A torch module; a fitted scikit-learn estimator or pipeline; an XGBoost, LightGBM or CatBoost model, native or
        wrapped (a subclass of one of them is asked through its own `predict_proba`, `decision_function` and `predict`);
        an onnxruntime session, a path to an ``.onnx`` file, its bytes or an onnx ``ModelProto``; a function
        that returns probabilities; a file that `likewise.models.model_files.read_model` opened; or a `Model`, which
        is returned as it is.
    loss : {"cross_entropy", "hinge", "zero_one", "squared"}, Loss or callable, default="cross_entropy"
        What a prediction costs; "squared" for regression; a callable is a per-row torch loss (see `CustomLoss`).
    classes : array-like, optional
        Class labels in the order of the outputs, if the model does not know them; 0, 1, … by default.
    takes_frame : bool, optional
        Whether the model wants the raw table (True) or a numeric array (False); found out if possible.
    output : {"auto", "probabilities", "logits"}, default="auto"
        What a torch module, an ONNX graph or a function returns. The others know.

    Returns
    -------
    Model
        A `DifferentiableModel` if there is an input gradient.

    Examples
    --------
    >>> import numpy as np
    >>> model = as_model(lambda X: 1 / (1 + np.exp(-X.sum(axis=1))), classes=["no", "yes"])
    >>> model.predict(np.array([[1.0, 2.0], [-3.0, 1.0]])).tolist()
    ['yes', 'no']
    """
    if isinstance(model, Model):
        return model
    as_loss(loss)
    choices: dict[str, Any] = {"loss": loss, "classes": classes}
    if type(model).__name__ == "SandboxedFile":
        sandboxed: Model = model.model(takes_frame=takes_frame, output=output, **choices)
        return sandboxed
    if isinstance(model, type):
        raise bad_parameter(
            "as_model",
            "model",
            "a fitted model",
            f"the class {model.__name__}",
            f"Fit one: {model.__name__}().fit(X, y).",
        )
    if hasattr(model, "__likewise_model__") and not _answers_anew(type(model)):
        found = model.__likewise_model__(**choices)
        if not isinstance(found, Model):
            raise InputError(
                f"as_model: __likewise_model__ of {type(model).__name__} did not return a Model."
            )
        return found
    library = _library(model)
    if library == "torch":
        if takes_frame:
            raise bad_parameter(
                "as_model",
                "takes_frame",
                "False or None for a torch module, which takes encoded rows",
                takes_frame,
                "Wrap the encoding and the module in a function to audit on the raw table.",
            )
        from likewise.models.torch_module import TorchModel

        return TorchModel(model, output=output, **choices)
    if library == "onnx":
        from likewise.models.onnx_model import OnnxModel

        return OnnxModel(model, takes_frame=takes_frame, output=output, **choices)
    if library is not None:
        from likewise.models.boosted import ADAPTERS, has_raw_columns, is_exactly

        if is_exactly(model, library):
            return ADAPTERS[library](model, takes_frame=takes_frame, **choices)
        takes_frame = has_raw_columns(model) if takes_frame is None else takes_frame
    if hasattr(model, "predict") or hasattr(model, "predict_proba"):
        from likewise.models.sklearn_network import from_sklearn

        return from_sklearn(model, takes_frame=takes_frame, **choices)
    if callable(model):
        return CallableModel(model, takes_frame=takes_frame, output=output, **choices)
    raise bad_parameter(
        "as_model",
        "model",
        "a torch module, a scikit-learn estimator, an XGBoost/LightGBM/CatBoost model, an ONNX file or session, "
        "or a function that returns probabilities",
        type(model).__name__,
    )


def _library(model: Any) -> str | None:
    """Say whose model it is, without importing any library that the model does not come from."""
    if isinstance(model, (bytes, bytearray)):
        return "onnx"
    if isinstance(model, (str, PathLike)):
        if str(model).endswith(".onnx"):
            return "onnx"
        raise bad_parameter("as_model", "model", "a model, or the path of an .onnx file", repr(str(model)))
    if is_torch_module(model):
        return "torch"
    roots = libraries_of(model)
    if roots & {"onnxruntime", "onnx"}:
        return "onnx"
    return next((name for name in ("xgboost", "lightgbm", "catboost") if name in roots), None)


def _answers_anew(kind: type) -> bool:
    """Whether a subclass answers in its own way, so that the `__likewise_model__` of its parent is not its model."""
    answers = {"predict", "predict_proba", "decision_function"}
    for base in kind.__mro__:
        if "__likewise_model__" in vars(base):
            return False
        if answers & vars(base).keys():
            return True
    return False
