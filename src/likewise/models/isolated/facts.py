"""What must be known of a model that runs elsewhere: described there in plain data, checked here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.plain_forms import Fields, ListOf, Maybe, OneOf, Whole, check_form, is_scalar
from likewise.models.isolated.messages import Array
from likewise.models.isolated.network_arrays import check_layers
from likewise.models.layered_model import Layers
from likewise.models.losses import CrossEntropy, CustomLoss, Hinge, Loss, Squared, ZeroOne
from likewise.models.model import Model
from likewise.models.sidecars import plain_value

__all__ = ["Facts", "class_labels", "describe", "loss_like", "plain_labels", "read_facts", "written_loss"]

MAX_CLASSES = 10_000
_LOSSES: dict[str, type[Loss]] = {
    "probabilities": CrossEntropy,
    "scores": Hinge,
    "decisions": ZeroOne,
    "values": Squared,
}
_ACTIVATIONS = ("identity", "relu", "tanh", "logistic")
_FORM = Fields(
    {
        "number": Whole(),
        "adapter": str,
        "kind": OneOf(("probabilities", "scores", "values")),
        "classes": Maybe(ListOf(object, most=MAX_CLASSES)),
        "takes_frame": bool,
        "feature_names": Maybe(ListOf(str)),
        "n_features": Maybe(Whole(0, 100_000_000)),
        "missing": bool,
        "batch_rows": Whole(1, 2**31),
        "decides": bool,
        "guesses": bool,
        "keeps_frames": bool,
        "activation": Maybe(OneOf(_ACTIVATIONS)),
    }
)


@dataclass(frozen=True, eq=False)
class Facts:
    """A model that runs elsewhere, in plain data.

    Parameters
    ----------
    number : int
        By which it is asked.
    adapter : str
        The class of `likewise.models` that it is there.
    kind, classes, takes_frame, feature_names, n_features, missing, batch_rows
        As `Model` takes them.
    decides : bool
        Whether its decisions are its own and not the class of the largest output.
    guesses : bool
        Whether it had to guess what its outputs are.
    keeps_frames : bool
        Whether it wants tables as they are.
    layers : Layers or None
        Its weights, where it is a linear model or a small network.
    """

    number: int
    adapter: str
    kind: Any
    classes: Array | None
    takes_frame: bool
    feature_names: tuple[str, ...] | None
    n_features: int | None
    missing: bool
    batch_rows: int
    decides: bool
    guesses: bool
    keeps_frames: bool
    layers: Layers | None


def describe(model: Model) -> tuple[dict[str, Any], list[Array]]:
    """Return what there is to know of a model as JSON and plain arrays."""
    from likewise.models.sklearn_model import EstimatorModel

    classes, names = model.known_classes, model.feature_names
    layers: Layers | None = getattr(model, "layers", None)
    text = {
        "adapter": type(model).__name__,
        "kind": model.output_kind,
        "classes": None if classes is None else classes.tolist(),
        "takes_frame": bool(model.takes_frame),
        "feature_names": None if names is None else list(names),
        "n_features": None if model.n_features is None else int(model.n_features),
        "missing": bool(model._missing),
        "batch_rows": int(model._batch_rows),
        "decides": isinstance(model, EstimatorModel) and model.decides,
        "guesses": bool(getattr(model, "_guess", False)),
        "keeps_frames": type(model)._rows is not Model._rows,
        "activation": None if layers is None else layers.activation,
    }
    arrays = (
        []
        if layers is None
        else [part for pair in zip(layers.weights, layers.biases, strict=True) for part in pair]
    )
    return text, [np.asarray(part, dtype=np.float64) for part in arrays]


def read_facts(text: dict[str, Any], arrays: Sequence[Array]) -> Facts:
    """Return what `describe` described, once it is sure that it hangs together.

    Raises
    ------
    FormatError
        Where it does not.
    """
    check_form(text, _FORM, "the description of the model")
    names, width = text["feature_names"], text["n_features"]
    if names is not None and width is not None and len(names) != width:
        raise FormatError(f"the model has {len(names)} names for {width} columns")
    values = {name: part for name, part in text.items() if name != "activation"}
    return Facts(
        **values
        | {
            "classes": class_labels(text["classes"]),
            "feature_names": None if names is None else tuple(names),
            "layers": None if text["activation"] is None else _layers(text["activation"], arrays, width),
        }
    )


def class_labels(values: Any) -> Array | None:
    """Return class labels that came as a list."""
    if values is None:
        return None
    if not isinstance(values, list) or not 2 <= len(values) <= MAX_CLASSES or not all(map(is_scalar, values)):
        raise FormatError("the model's classes are no list of two or more labels")
    if len({type(value) for value in values}) == 1:
        return np.array(values)
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return labels


def plain_labels(labels: Any) -> list[Any] | None:
    """Return class labels as JSON holds them.

    Examples
    --------
    >>> plain_labels(np.array(["no", "yes"]))
    ['no', 'yes']
    """
    if labels is None:
        return None
    return [
        plain_value(label, owner="load_model", what="a class label") for label in np.asarray(labels).tolist()
    ]


def written_loss(loss: Loss) -> dict[str, Any]:
    """Return what a model must know of a loss: what it is asked for, not how that is scored."""
    return {
        "wants": loss.wants,
        "regression": bool(loss.regression),
        "differentiable": bool(loss.differentiable),
    }


def loss_like(written: dict[str, Any]) -> Loss:
    """Return a loss that asks a model for the same as the one that was written.

    Examples
    --------
    >>> loss_like(written_loss(Hinge())).wants
    'scores'
    """
    if written["wants"] in _LOSSES:
        return _LOSSES[written["wants"]]()
    return CustomLoss(_elsewhere, regression=written["regression"])


def _elsewhere(scores: Any, targets: Any) -> Any:
    raise NotImplementedError("losses are computed by whoever asks")


def _layers(activation: str, arrays: Sequence[Array], width: int | None) -> Layers:
    weights, biases = check_layers(arrays)
    if width is not None and weights[0].shape[1] != width:
        raise FormatError("the model's layers do not fit together")
    return Layers(weights, biases, activation)
