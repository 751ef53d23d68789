"""A `GraphSmoothing` as files: the model in its own format, and beside it a JSON description, the graph and the metric."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy import sparse

from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path
from likewise.core.plain_forms import Fields, MapOf, check_form
from likewise.fair_metrics.metric import FairMetric
from likewise.fair_metrics.neighbours import NearestPlaces
from likewise.models.sidecars import damage_named, find_sidecar, sidecar_path, write_with_sidecar
from likewise.postprocessing.wrapped_models import model_bytes, read_wrapped

if TYPE_CHECKING:
    from likewise.postprocessing.graph_smoothing import GraphSmoothing

__all__ = ["graph_path", "load_smoothing", "metric_path", "save_smoothing"]

_KIND = "graph_smoothing"
_OWNER = "GraphSmoothing.save"
_FORM = Fields(
    {
        "choices": MapOf(object),
        "exact": bool,
        "scale": float,
        "unit": float,
        "graph_sha256": str,
        "inner": object,
    },
    more=True,
)
_CHOICES = ("n_neighbors", "strength", "scale", "exact", "random_state")


def graph_path(path: str | os.PathLike[str]) -> Path:
    """Return where the graph of a model file is.

    Examples
    --------
    >>> graph_path("model.ubj").name
    'model.ubj.graph.safetensors'
    """
    return Path(f"{os.fspath(path)}.graph.safetensors")


def metric_path(path: str | os.PathLike[str]) -> Path:
    """Return where the fair metric of a model file is.

    Examples
    --------
    >>> metric_path("model.ubj").name
    'model.ubj.metric.safetensors'
    """
    return Path(f"{os.fspath(path)}.metric.safetensors")


def save_smoothing(smoothing: GraphSmoothing, path: str | os.PathLike[str]) -> None:
    """Write a fitted smoothing; see `GraphSmoothing.save`."""
    seed = smoothing.random_state
    if not smoothing._nearest.exact and not isinstance(seed, (int, np.integer)):
        raise InputError(
            f"{_OWNER}: the cells of the graph were drawn at random. Fit with a random_state that is an int."
        )
    graph = smoothing.graph_
    arrays = save(
        {
            "places": smoothing._nearest.places,
            "nodes": np.ascontiguousarray(smoothing._nodes),
            "smoothed": np.ascontiguousarray(smoothing.smoothed_),
            "weights": graph.data,
            "columns": graph.indices.astype(np.int64),
            "starts": graph.indptr.astype(np.int64),
        }
    )
    data, inner = model_bytes(smoothing.model, Path(path), owner=_OWNER)
    about = {
        "choices": {name: _plain(getattr(smoothing, name)) for name in _CHOICES},
        "exact": bool(smoothing._nearest.exact),
        "scale": float(smoothing.scale_),
        "unit": float(smoothing._unit),
        "graph_sha256": hashlib.sha256(arrays).hexdigest(),
        "inner": inner,
    }
    with atomic_path(graph_path(path)) as temporary:
        temporary.write_bytes(arrays)
    smoothing.metric_.save(metric_path(path))
    write_with_sidecar(path, data, _KIND, about)


def load_smoothing(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    trust: bool = False,
    about: dict[str, Any] | None = None,
) -> Any:
    """Read a smoothing that `save_smoothing` wrote.

    Parameters
    ----------
    path : path-like
        Of the model's file.
    trusted : sequence of str, default=()
        Types in a skops file to trust, as in `load_model`.
    trust : bool, default=False
        Whether to load the model at once; else it is tried in a process of its own first.
    about : dict, optional
        The description, where it stands inside of another; the one beside the file by default.

    Returns
    -------
    GraphSmoothing
    """
    from likewise.postprocessing.graph_smoothing import GraphSmoothing

    where = Path(path)
    about = find_sidecar(where, _KIND, "a GraphSmoothing", about)
    with damage_named(sidecar_path(where)):
        check_form(about, _FORM, "it")
    # What is wrong with the files beside it is said of them.
    arrays = _read_arrays(graph_path(where), about["graph_sha256"])
    metric = FairMetric.load(metric_path(where))
    native = read_wrapped(where, about["inner"], trusted=trusted, trust=trust)
    with damage_named(sidecar_path(where)):
        choices = {name: about["choices"][name] for name in _CHOICES}
        loaded = GraphSmoothing(native, metric=metric, **choices)
        loaded.metric_ = metric
        loaded.scale_, loaded._unit = float(about["scale"]), float(about["unit"])
        loaded._nodes, loaded.smoothed_ = arrays["nodes"], arrays["smoothed"]
        places = arrays["places"]
        loaded._nearest = NearestPlaces(
            places, exact=bool(about["exact"]), random_state=choices["random_state"]
        )
        parts = (arrays["weights"], arrays["columns"], arrays["starts"])
        loaded.graph_ = sparse.csr_array(parts, shape=(len(places), len(places)))
    return loaded


def _read_arrays(path: Path, expected: str) -> dict[str, Any]:
    if not path.is_file():
        raise FormatError(f"There is no {path.name} beside the model. Move the four files together.")
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != expected:
        raise FormatError(
            f"{path.name} belongs to another model, or is damaged. Move the four files together."
        )
    try:
        found: dict[str, Any] = load(raw)
    except SafetensorError as error:  # pragma: no cover - the digest says that we wrote it
        raise FormatError(f"{path.name} is no readable safetensors file: {error}.") from error
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float)) else None
