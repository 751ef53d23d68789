"""Settings as JSON values, so that a kept cell can say what it was made with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

__all__ = ["file_digest", "plain_settings", "with_todays_names"]

# What changes how a training runs or where, but not what it learns; and the seed, which a cell has anyway.
_LEFT_OUT = frozenset({"checkpoint", "resume", "progress", "device", "threads", "random_state"})
_RENAMED = {"lam": "lambda_init"}
# What an earlier version did where it had no such parameter yet.
_SINCE: dict[str, dict[str, Any]] = {
    **{name: {"blind_to": None, "baseline": False} for name in ("SenSRClassifier", "SenSeIClassifier")},
    "Edit": {"consequences": None},
}


def plain_settings(value: Any) -> Any:
    """Return an estimator, a choice or a collection of them as JSON values.

    Parameters
    ----------
    value : object
        scikit-learn estimators become a dict of their class and all their parameters, also those at their
        default, because defaults change; dataclasses the same; anything else unknown is its `repr`.

    Returns
    -------
    JSON value

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> plain_settings([Ridge(alpha=2.0)])[0]["alpha"]
    2.0
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "get_params"):
        inner = value.get_params(deep=False)
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: getattr(value, f.name) for f in fields(value)}
    elif isinstance(value, Mapping):
        return {str(key): plain_settings(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        return [plain_settings(item) for item in value]
    else:
        return repr(value)
    kept = {name: plain_settings(item) for name, item in inner.items() if name not in _LEFT_OUT}
    return {"class": type(value).__name__, **kept}


def with_todays_names(settings: Any) -> Any:
    """Return kept settings with parameters that an earlier version called otherwise, or did not have, as today's.

    Examples
    --------
    >>> with_todays_names({"estimator": {"class": "SenSRClassifier", "lam": 2.0}})
    {'estimator': {'blind_to': None, 'baseline': False, 'class': 'SenSRClassifier', 'lambda_init': 2.0}}
    """
    if isinstance(settings, list):
        return [with_todays_names(item) for item in settings]
    if not isinstance(settings, dict):
        return settings
    renamed = {_RENAMED.get(name, name): with_todays_names(item) for name, item in settings.items()}
    return {**_SINCE.get(str(settings.get("class")), {}), **renamed}


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, read in pieces.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     file_digest(empty.name)[:8]
    'e3b0c442'
    """
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
