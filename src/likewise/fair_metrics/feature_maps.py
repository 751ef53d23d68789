"""The known feature map φ of Appendix B.2: identity, tabular encoder, transformer, torch module or callable."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from likewise.core.checks import is_tensor, like, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import declared_encoded, is_frame, to_pandas


def is_encoder(feature_map: Any) -> bool:
    """Whether the map is a `TabularDomain`: an encoder of raw frames that can be written to a file."""
    return all(hasattr(feature_map, name) for name in ("encode_array", "to_dict", "columns_"))


def map_names(feature_map: Any) -> tuple[str, ...] | None:
    """Names of the columns of φ(x), where the map knows them."""
    if not is_encoder(feature_map):
        return None
    return tuple(str(name) for name in feature_map.get_feature_names_out())


def map_width(feature_map: Any) -> int | None:
    """Width of φ(x), where the map knows it."""
    names = map_names(feature_map)
    return None if names is None else len(names)


def apply_feature_map(feature_map: Any, X: Any) -> Any:
    """Return φ(X), not yet checked."""
    if feature_map is None:
        return X
    if is_encoder(feature_map):
        return _encode(feature_map, X)
    if _is_module(feature_map):
        return _run_module(feature_map, X)
    if hasattr(feature_map, "transform"):
        return _transform(feature_map, X)
    if callable(feature_map):
        return _dense(feature_map(X))
    raise bad_parameter(
        "FairMetric",
        "feature_map",
        allowed="None, a TabularDomain, a torch module, a fitted scikit-learn transformer or a callable",
        got=type(feature_map).__name__,
    )


def _encode(domain: Any, X: Any) -> Any:
    if not is_frame(X):
        return X
    if declared_encoded(X):
        return domain.encoding_.read_encoded(X, owner="FairMetric")
    return domain.encode_array(X)


def _transform(transformer: Any, X: Any) -> Any:
    if not is_tensor(X):
        return _dense(transformer.transform(X))
    if X.requires_grad:
        raise InputError(
            f"FairMetric: the feature map {type(transformer).__name__} is not a torch module, so no gradient can "
            "flow through it. Pass tensors without requires_grad, or a feature map written in torch."
        )
    return like(_dense(transformer.transform(to_numpy(X))), X)


def _dense(features: Any) -> Any:
    return features.toarray() if hasattr(features, "toarray") else features


def _is_module(feature_map: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(feature_map, torch.nn.Module)


def _run_module(module: Any, X: Any) -> Any:
    import torch

    if is_frame(X):
        X = to_pandas(X, owner="FairMetric", name="X").to_numpy(dtype=float)
    parameters = [*module.parameters(), *module.buffers()]
    floating = [p for p in parameters if p.dtype.is_floating_point]
    kind = floating[0] if floating else torch.zeros(0, dtype=torch.get_default_dtype())
    training = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        if is_tensor(X):
            return module(X)
        with torch.no_grad():
            features = module(torch.as_tensor(np.asarray(X), dtype=kind.dtype, device=kind.device))
        return to_numpy(features)
    finally:
        for part, mode in training:
            part.training = mode
