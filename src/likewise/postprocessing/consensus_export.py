"""A `TwinConsensus` as one model of another library: what each kind needs, and what cannot be had."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.core.errors import InputError, bad_parameter
from likewise.core.files import atomic_path
from likewise.models.boosted import XGBoostModel
from likewise.models.onnx_model import OnnxModel

if TYPE_CHECKING:
    from likewise.postprocessing.twin_consensus import TwinConsensus

__all__ = ["export_consensus"]

_OWNER = "TwinConsensus.export"


def export_consensus(consensus: TwinConsensus, path: str | os.PathLike[str]) -> None:
    """Write a consensus as one model; see `TwinConsensus.export`."""
    where = Path(path)
    inner, factors = consensus._inner(), consensus._factors()
    if where.suffix == ".onnx":
        if not isinstance(inner, OnnxModel):
            raise InputError(
                f"{_OWNER}: a {type(inner).__name__} is no ONNX graph. Convert the model to ONNX first, and wrap that."
            )
        _check_how(consensus, "mean", "ONNX")
        from likewise.postprocessing.consensus_onnx import consensus_graph

        data = consensus_graph(inner, factors, inner.feature_names)
    elif where.suffix in (".json", ".ubj"):
        if not isinstance(inner, XGBoostModel):
            raise InputError(f"{_OWNER}: a {type(inner).__name__} has no trees of XGBoost to sum.")
        _check_how(consensus, "margin", "summed trees")
        from likewise.postprocessing.consensus_trees import summed_trees

        booster = summed_trees(consensus.model, factors)
        data = bytes(booster.save_raw("json" if where.suffix == ".json" else "ubj"))
    else:
        raise bad_parameter(
            _OWNER, "path", allowed="a name that ends in .onnx, .json or .ubj", got=where.name
        )
    with atomic_path(where) as temporary:
        temporary.write_bytes(data)


def _check_how(consensus: TwinConsensus, wanted: str, what: str) -> None:
    if consensus.how != wanted:
        raise InputError(f"{_OWNER}: {what} can hold how={wanted!r} only, and this is how={consensus.how!r}.")
