"""Fair metrics in one safetensors file: arrays, and a JSON description with a schema version. No pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file

from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path
from likewise.core.plain_forms import Fields, ListOf, Maybe, OneOf, Whole, check_form
from likewise.core.tensor_files import read_description, read_tensors
from likewise.fair_metrics.feature_maps import is_encoder

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric

__all__ = ["load_metric", "save_metric"]

_KEY = "likewise"
_KIND = "fair_metric"
_SCHEMA = 1
_FORM = Fields(
    {
        "kind": OneOf((_KIND,)),
        "schema": Whole(),
        "scale": float,
        "feature_names": Maybe(ListOf(str)),
        "domain": Maybe(dict),
    },
    # Files of earlier versions do not have these.
    {"sensitive_features": ListOf(str)},
    more=True,
)


def save_metric(metric: FairMetric, path: str | os.PathLike[str], *, feature_map: bool = True) -> None:
    """Write a metric; see `FairMetric.save`."""
    mapping = metric.feature_map if feature_map else None
    if mapping is not None and not is_encoder(mapping):
        raise InputError(
            f"FairMetric.save: the feature map {type(mapping).__name__} cannot be written to a file. "
            "Call save(path, feature_map=False) and give the map again after loading, with "
            "dataclasses.replace(metric, feature_map=...)."
        )
    description = {
        "kind": _KIND,
        "schema": _SCHEMA,
        "scale": metric.scale,
        "feature_names": metric.feature_names,
        "sensitive_features": metric.sensitive_features,
        "domain": None if mapping is None else mapping.to_dict(),
    }
    arrays = {"basis": np.ascontiguousarray(metric.basis), "values": metric.values}
    with atomic_path(path) as temporary:
        # One key only: safetensors writes several in any order, and equal metrics should be equal files.
        save_file(arrays, temporary, metadata={_KEY: json.dumps(description)})


def load_metric(path: str | os.PathLike[str]) -> FairMetric:
    """Read a metric; see `FairMetric.load`."""
    from likewise.fair_metrics.metric import FairMetric

    where = Path(path)
    description, arrays = _read(where)
    try:
        if description.get("kind") != _KIND:
            raise FormatError(
                f"{where.name} is no fair metric (kind {description.get('kind')!r}). "
                "Pass a file that FairMetric.save wrote."
            )
        check_form(description, _FORM, "its description")
        schema = description["schema"]
        if schema > _SCHEMA:
            raise FormatError(
                f"{where.name} was written by a newer version (schema {schema}; this one reads up to {_SCHEMA}). "
                "Upgrade likewise, or save the metric again with this version."
            )
        return FairMetric(
            description["scale"],
            arrays["basis"],
            arrays["values"],
            _domain(description["domain"]),
            description["feature_names"],
            # Files of earlier versions do not say.
            description.get("sensitive_features", ()),
        )
    except FormatError as error:
        if str(error).startswith(where.name):
            raise
        raise FormatError(
            f"{where.name} is damaged: {str(error).rstrip('.')}. Save the metric again."
        ) from error
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"{where.name} is damaged: {error}. Save the metric again.") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"FairMetric.load: there is no file {str(path)!r}.")
    metadata, arrays = read_tensors(path, "numpy")
    return read_description(metadata, _KEY, path.name), arrays


def _domain(state: dict[str, Any] | None) -> Any:
    if state is None:
        return None
    from likewise.domains import TabularDomain

    return TabularDomain.from_dict(state)
