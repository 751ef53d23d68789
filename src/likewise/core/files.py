"""Files: written whole or not at all, their form checked before use, and the package's own safetensors files."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from likewise.core.checks import to_numpy
from likewise.core.errors import FormatError, InputError, did_you_mean
from likewise.core.text import option


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it onto `path` when the block ends without an error."""
    target = Path(path)
    check_replaceable(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder beside `path`; put it in the place of `path` when the block ends without an error."""
    target = Path(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    aside = temporary.with_name(f"{temporary.name}-old")
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            target.rename(aside)
        temporary.rename(target)
    finally:
        if aside.exists() and not target.exists():
            aside.rename(target)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


# The one reader of paths: regular files only, of a size that was expected. A device never ends, a pipe waits for somebody.


# Descriptions, rules, evidence: what people or this package write. A saved result holds tables.
LARGEST_TEXT = 10_000_000
LARGEST_RESULT = 2**30


def check_file(
    path: str | os.PathLike[str],
    *,
    owner: str = "",
    remedy: str = "Check the path.",
    largest: int | None = None,
    empty: bool = False,
) -> Path:
    """Return the path of a regular file, or raise an error that says why it is not one; `owner` is the parameter that named it."""
    place, begin = Path(path), f"{owner}: " if owner else ""
    try:
        found = place.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        said = f"{begin}there is no file {str(path)!r}. {remedy}"
        raise InputError(said[:1].upper() + said[1:] if not owner else said) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{begin}{str(path)!r} cannot be opened: {why}. {remedy}") from error
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe"
        raise InputError(f"{begin}{str(path)!r} is {what}. Pass one file.")
    if not found.st_size and not empty:
        # The system's own files (/proc) say so as well, and reading some of them never ends.
        raise FormatError(f"{begin}{place.name} is empty. Pass a file with content.")
    if largest is not None and found.st_size > largest:
        raise FormatError(
            f"{begin}{place.name} has {found.st_size:,} bytes, and at most {largest:,} are read."
        )
    return place


def is_below(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether a path leads into a folder, wherever links lead, before any file is touched."""
    try:
        return "\0" not in str(path) and Path(path).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False


def check_replaceable(path: str | os.PathLike[str], *, owner: str = "") -> None:
    """Raise if anything but a regular file, or nothing, is where a file is to be written, whatever the permissions are."""
    begin = f"{owner}: " if owner else ""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(
            f"{begin}{str(path)!r} cannot be written: {error.strerror}. Choose another name."
        ) from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{begin}{str(path)!r} is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{begin}{str(path)!r} is a device or a pipe. Choose another name.")


def check_target(path: str | os.PathLike[str], *, overwrite: bool, owner: str = "") -> Path:
    """Return the path of a file to be written, or raise an error that says why it cannot be."""
    target, begin = Path(path), f"{owner}: " if owner else ""
    if not target.parent.is_dir():
        raise InputError(f"{begin}{str(target.parent)!r} does not exist. Make the folder first.")
    check_replaceable(target, owner=owner)
    if target.exists() and not overwrite:
        raise InputError(
            f"{begin}{str(target)!r} exists already. Choose another name, or replace it ({option('overwrite')})."
        )
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{begin}{str(target.parent)!r} cannot be written to.")
    return target


def read_file(path: str | os.PathLike[str], *, largest: int = LARGEST_TEXT, **choices: str) -> bytes:
    """Return the content of a regular file; the parameters are those of `check_file`."""
    place = check_file(path, largest=largest, empty=True, **choices)
    # What was a file a moment ago may be a pipe by now, which would wait.
    handle = os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        return stream.read(min(os.fstat(handle).st_size, largest))


def read_toml(path: str | os.PathLike[str], *, owner: str, remedy: str = "Check the path.") -> dict[str, Any]:
    """Return what a TOML file holds."""
    data = read_file(path, owner=owner, remedy=remedy)
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError as error:
        raise FormatError(f"{owner}: {Path(path).name} is nested too deeply.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{owner}: {Path(path).name} is not a TOML file: {error}.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# What plain data from a file or another process must look like, said once and checked before anyone uses
# it.


_DTYPE = re.compile(r"[<>|=]?[biufUO](\d{0,6})")

_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


class Whole(NamedTuple):
    """A whole number from `low` to `high`."""

    low: int = 0
    high: int = 2**53


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]


class Maybe(NamedTuple):
    """Something, or null."""

    form: Any


class ListOf(NamedTuple):
    """A list of things of one form, at most `most` of them."""

    form: Any
    most: int = 10_000_000


class MapOf(NamedTuple):
    """Text to things of one form."""

    form: Any


class Fields(NamedTuple):
    """Named things, each of its own form; those in `optional` may be absent, others come only if `more` lets them."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = {}
    more: bool = False


def check_form(value: Any, form: Any, where: str) -> Any:
    """Return plain data as it is, or say where it is not what it must be."""
    if form is object:
        return value
    if isinstance(form, type):
        _check_type(value, form, where)
    elif isinstance(form, Whole):
        _check_type(value, int, where)
        if not form.low <= value <= form.high:
            raise FormatError(f"{where} must be from {form.low} to {form.high}, got {value}")
    elif isinstance(form, OneOf):
        if not is_scalar(value) or value not in form.values:
            shown = ", ".join(map(repr, form.values))
            raise FormatError(f"{where} must be one of {shown}, got {_shown(value)}")
    elif isinstance(form, Maybe):
        if value is not None:
            check_form(value, form.form, where)
    elif isinstance(form, ListOf):
        _check_type(value, list, where)
        if len(value) > form.most:
            raise FormatError(f"{where} must have at most {form.most} parts, got {len(value)}")
        for number, part in enumerate(value):
            check_form(part, form.form, f"part {number} of {where}")
    elif isinstance(form, MapOf):
        _check_type(value, dict, where)
        for name, part in value.items():
            check_form(part, form.form, f"{name!r} of {where}")
    else:
        _check_type(value, dict, where)
        known = {**form.optional, **form.required}
        for name in value:
            if name not in known and not form.more:
                raise FormatError(f"{where} has {name!r}, which is not known{did_you_mean(name, known)}")
        for name in form.required:
            if name not in value:
                raise FormatError(f"{where} has no {name!r}")
        for name, part in value.items():
            if name in known:
                check_form(part, known[name], f"{name!r} of {where}")
    return value


def is_scalar(value: Any) -> bool:
    """Whether a value is text, a number, true, false or null."""
    return value is None or isinstance(value, (str, bool, int, float))


def plain_dtype(text: Any) -> np.dtype[Any]:
    """Return the numpy dtype of numbers, text or objects that a file names; no other, and none of a senseless width."""
    try:
        if isinstance(text, str) and _DTYPE.fullmatch(text):
            return np.dtype(text)
    except TypeError:
        pass
    raise FormatError(f"a type of values must be one of numpy's for numbers or text, got {_shown(text)}")


def _check_type(value: Any, kind: type[Any], where: str) -> None:
    fits = isinstance(value, kind)
    if kind is float:
        fits = isinstance(value, numbers.Real) and not isinstance(value, bool)
        # A whole number that numpy has no room for is an object to it, not a number.
        fits = fits and (abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value))
    if kind is int:
        fits = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not fits:
        raise FormatError(f"{where} must be {_WORDS.get(kind, kind.__name__)}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (list, dict)):
        return _WORDS[type(value)]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# A JSON document that holds its own digest: what was edited, cut or damaged since is refused. It is not a signature:
# the author of another document can write its digest.


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the digest of everything else in it."""
    open_ = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(open_, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return open_ | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def check_seal(document: Any) -> dict[str, Any]:
    """Return a document whose digest is that of its content."""
    check_form(document, dict, "the file")
    try:
        right = document.get("sha256") == sealed(document)["sha256"]
    except (ValueError, RecursionError, UnicodeError):
        right = False
    if not right:
        raise FormatError("it was changed after it was written: its own SHA-256 is another")
    return dict(document)


# Safetensors files, read once their header agrees with the file: no size is believed before it is checked.


MAX_HEADER = 64 * 2**20
LARGEST_TENSORS = 4 * 2**30
_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
_TENSOR = Fields(
    {
        "dtype": OneOf(tuple(_BYTES)),
        "shape": ListOf(Whole(), most=16),
        "data_offsets": ListOf(Whole(), most=2),
    }
)


def check_header(data: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file whose header and size agree."""
    size, length = len(data), int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise FormatError(f"its header claims {length:,} bytes of {size:,}")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise FormatError(f"its header is not JSON ({type(error).__name__})") from error
    check_form(header, dict, "its header")
    metadata: dict[str, str] = check_form(header.pop("__metadata__", {}), MapOf(str), "its metadata")
    room = size - 8 - length
    for name, tensor in header.items():
        check_form(tensor, _TENSOR, f"the tensor {name[:60]!r}")
        start, end = tensor["data_offsets"] if len(tensor["data_offsets"]) == 2 else (0, -1)
        needed = math.prod(tensor["shape"]) * _BYTES[tensor["dtype"]]
        if not start <= end <= room or end - start != needed:
            raise FormatError(
                f"the tensor {name[:60]!r} of shape {tensor['shape'][:4]} needs {needed:,} bytes, and has {end - start:,} "
                f"of {room:,}"
            )
    return metadata


def read_tensors(
    path: str | os.PathLike[str], framework: Literal["numpy", "pt"]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata and the tensors of a safetensors file, read whole: a mapped file may shrink under its reader."""
    from safetensors import SafetensorError

    module = import_module("safetensors.torch" if framework == "pt" else "safetensors.numpy")
    where, data = Path(path), read_file(path, largest=LARGEST_TENSORS)
    try:
        return check_header(data), module.load(data)
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{where.name} is not a readable safetensors file: {error}. It is damaged or of another kind."
        ) from error


def read_description(metadata: dict[str, str], name: str) -> dict[str, Any]:
    """Return the JSON object that the metadata of a file of this package hold; an empty one if they hold none."""
    try:
        found: dict[str, Any] = check_form(json.loads(metadata.get(_KEY, "{}")), dict, "its description")
    except FormatError as error:
        raise FormatError(f"{name} is damaged: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{name} is damaged: its description is not JSON ({type(error).__name__})."
        ) from error
    return found


# One file of this package: a JSON description with a kind and a schema, and named arrays. No pickle.

_KEY = "likewise"
SCHEMA = 1
_ANY = Fields({"kind": str, "schema": Whole()}, more=True)


def save_described(
    path: str | os.PathLike[str],
    kind: str,
    description: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    framework: Literal["numpy", "pt"] = "numpy",
) -> None:
    """Write a description and arrays or tensors to one safetensors file, whole or not at all.

    With the framework "pt" also those of torch's types that numpy does not have.
    """
    # safetensors refuses views and shared memory, so every array is a contiguous copy.
    save: Callable[..., Any]
    owned: dict[str, Any]
    if framework == "pt":
        import torch
        from safetensors.torch import save

        tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
        owned = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    else:
        from safetensors.numpy import save

        owned = {name: np.array(to_numpy(array), order="C") for name, array in arrays.items()}
    text = json.dumps({"kind": kind, "schema": SCHEMA, **description})
    with atomic_path(path) as temporary:
        # One key only: safetensors writes several in any order, and equal objects should be equal files.
        # Written here, so that a full disk is an error of the system like any other.
        temporary.write_bytes(save(owned, metadata={_KEY: text}))


def load_described(
    path: str | os.PathLike[str],
    kind: str,
    form: Fields,
    build: Callable[[dict[str, Any], dict[str, Any]], Any],
    *,
    what: str,
    owner: str,
    framework: Literal["numpy", "pt"] = "numpy",
) -> Any:
    """Return what `build` makes of the description and the arrays of a file that `save_described` wrote.

    Whatever goes wrong on the way is raised as an error about the file.
    """
    where = Path(path)
    if not where.exists():
        raise FileNotFoundError(f"{owner}: there is no file {str(path)!r}.")
    metadata, arrays = read_tensors(where, framework)
    description = read_description(metadata, where.name)
    if description.get("kind") != kind:
        raise FormatError(
            f"{where.name} is not {what} (kind {description.get('kind')!r}). Pass a file that save wrote."
        )
    try:
        check_form(description, _ANY, "its description")
        if description["schema"] > SCHEMA:
            raise FormatError(
                f"{where.name} was written by a newer version (schema {description['schema']}; this one reads up to "
                f"{SCHEMA}). Upgrade likewise."
            )
        return build(check_form(description, form, "its description"), arrays)
    except FormatError as error:
        if str(error).startswith(where.name):
            raise
        raise FormatError(f"{where.name} is damaged: {str(error).rstrip('.')}. Save it again.") from error
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError) and str(error).startswith(where.name):
            raise
        raise FormatError(
            f"{where.name} is damaged ({type(error).__name__}: {error}). Save it again."
        ) from error
