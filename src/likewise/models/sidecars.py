"""A model file in its library's own format, and a small JSON file beside it that says what else belongs to the model.

The JSON names the model file's SHA-256, so that a pair that does not belong together is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path
from likewise.core.plain_forms import Fields, Whole, check_form

__all__ = [
    "damage_named",
    "find_sidecar",
    "plain_value",
    "read_sidecar",
    "sidecar_path",
    "write_with_sidecar",
]

SUFFIX = ".likewise.json"
MAX_SIZE = 64 * 2**20
_SCHEMA = 1
_FORM = Fields({"likewise": str, "schema": Whole(), "sha256": str}, more=True)


def sidecar_path(path: str | os.PathLike[str]) -> Path:
    """Return where the description of a model file is.

    Examples
    --------
    >>> sidecar_path("model.ubj").name
    'model.ubj.likewise.json'
    """
    return Path(f"{os.fspath(path)}{SUFFIX}")


def write_with_sidecar(path: str | os.PathLike[str], data: bytes, kind: str, about: dict[str, Any]) -> None:
    """Write a model file and its description, each whole or not at all.

    Parameters
    ----------
    path : path-like
        Of the model file.
    data : bytes
        What it holds.
    kind : str
        Which reader understands the description.
    about : dict
        What JSON can hold.
    """
    document = {
        "likewise": kind,
        "schema": _SCHEMA,
        "sha256": hashlib.sha256(data).hexdigest(),
        **about,
    }
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    with atomic_path(sidecar_path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_sidecar(path: str | os.PathLike[str], data: bytes | None = None) -> dict[str, Any] | None:
    """Return the description beside a model file, or None where there is none.

    Parameters
    ----------
    path : path-like
        Of the model file.
    data : bytes, optional
        What it holds, where it was read already.

    Raises
    ------
    FormatError
        When the description is damaged, from a newer version, or of another model file.
    """
    where = sidecar_path(path)
    if not where.is_file():
        return None
    with damage_named(where):
        check_form(where.stat().st_size, Whole(0, MAX_SIZE), "its size")
        about = check_form(json.loads(where.read_text(encoding="utf-8")), _FORM, "it")
        kind, schema, expected = about["likewise"], about["schema"], about["sha256"]
    if schema > _SCHEMA:
        raise FormatError(
            f"{where.name} was written by a newer version (schema {schema}; this one reads up to {_SCHEMA}, "
            f"kind {kind!r}). Upgrade likewise."
        )
    if hashlib.sha256(Path(path).read_bytes() if data is None else data).hexdigest() != expected:
        raise FormatError(
            f"{where.name} describes another file than {Path(path).name}. Move the two together, or save again."
        )
    return dict(about)


def find_sidecar(path: Path, kind: str, what: str, about: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the description of a model file, which must be of a kind.

    Parameters
    ----------
    path : Path
        Of the model file.
    kind : str
    what : str
        The kind in words.
    about : dict, optional
        The description, where it is known already.
    """
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {str(path)!r}.")
    found = read_sidecar(path) if about is None else about
    if found is None or found.get("likewise") != kind:
        raise FormatError(f"{path.name} has no {sidecar_path(path).name} of {what} beside it.")
    return found


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Say of whatever goes wrong while a description is read that the description is damaged.

    Parameters
    ----------
    path : Path
        Of the description.
    """
    try:
        yield
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path.name} is damaged ({type(error).__name__}: {error}). Save the model again."
        ) from error


def plain_value(value: Any, *, owner: str, what: str) -> Any:
    """Return a value as JSON holds it, or say that it cannot be written.

    Examples
    --------
    >>> plain_value(np.int64(3), owner="save", what="a label")
    3
    """
    if isinstance(value, np.generic):
        value = value.item()
    if (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and np.isfinite(value))
    ):
        return value
    raise InputError(
        f"{owner}: {what} is {value!r} ({type(value).__name__}), which cannot be written without pickle. "
        "Use plain text and numbers."
    )
