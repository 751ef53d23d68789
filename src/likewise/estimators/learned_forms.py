"""What an estimator can have learned, by name: a file that says otherwise is refused before anything uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.errors import FormatError

__all__ = ["check_learned"]


def check_learned(learned: dict[str, Any], width: int) -> None:
    """Raise unless everything that a file calls learned is of the kind that its name promises.

    Parameters
    ----------
    learned : dict
        Names that end in ``_``, with their values.
    width : int
        Columns of the network's rows.

    Examples
    --------
    >>> check_learned({"classes_": np.array(["no", "yes"]), "n_features_in_": [3]}, width=3)
    Traceback (most recent call last):
    ...
    likewise.core.errors.FormatError: what was learned has n_features_in_ as list
    """
    for name, value in learned.items():
        if not name.endswith("_") or name.startswith("_"):
            raise FormatError(f"what was learned has {name!r}, which no estimator learns")
        if not isinstance(value, _kinds().get(name, object)):
            raise FormatError(f"what was learned has {name} as {type(value).__name__}")
    classes = learned.get("classes_")
    if classes is None or classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) < len(classes):
        raise FormatError("its classes are no list of two or more different labels")
    names = learned.get("feature_names_in_")
    if names is not None and (names.ndim != 1 or not all(isinstance(name, str) for name in names.tolist())):
        raise FormatError("its columns have names that are no text")
    for name in ("encoder_", "metric_", "removed_"):
        own = getattr(learned.get(name), "n_features", None)
        if own not in (None, width):
            raise FormatError(f"{name} has {own} columns, and the network {width}")


def _kinds() -> dict[str, Any]:
    from likewise.core.subspace import Subspace
    from likewise.domains import BoxDomain, DataRangeDomain, TabularDomain, Unbounded
    from likewise.estimators.attributes import AttributeCodes, ProxyVectors
    from likewise.fair_metrics import FairMetric

    nothing = type(None)
    return {
        "classes_": np.ndarray,
        "n_features_in_": int,
        "feature_names_in_": np.ndarray,
        "encoder_": TabularDomain,
        "removed_": (Subspace, nothing),
        "metric_": FairMetric,
        "search_domain_": (BoxDomain, DataRangeDomain, TabularDomain, Unbounded, nothing),
        "attributes_": AttributeCodes,
        "proxy_": ProxyVectors,
        "status_": str,
        "findings_": (list, tuple),
        "n_iter_": int,
    }
