"""What kind of file this is: found from its content, and from its name only if the content leaves it open.

Nothing is executed and nothing is unpacked here; a file can call itself what it likes.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import pickletools
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

from likewise.core.errors import FormatError
from likewise.core.files import LARGEST_TENSORS, MAX_HEADER, Fields, Whole, atomic_path, check_form, read_file

Container: TypeAlias = Literal[
    "likewise", "onnx", "xgboost", "lightgbm", "catboost", "skops", "pickle", "torch", "torchscript", "pt2"
]

# An archive may not unpack to more than this, and not to very much more than it weighs.
MAX_UNPACKED = 4 * 2**30
MAX_RATIO = 200
SMALL = 64 * 2**20
MAX_MEMBERS = 100_000

# gzip, bzip2, xz, lzma, lz4, and zlib at its four levels.
_COMPRESSED = (
    b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"]\x00\x00", b"\x04\x22\x4d\x18",
    b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda",
)  # fmt: skip
_OTHER = {
    b"\x89HDF\r\n\x1a\n": "an HDF5 file (Keras?); export the model to ONNX",
    b"PAR1": "a Parquet table, not a model",
    b"ARROW1": "an Arrow table, not a model",
    b"%PDF": "a PDF document",
    b"\x93NUMPY": "a numpy array; pass the model itself",
    b"binf": "an XGBoost model in the old binary format; save it as .json or .ubj",
    b"{\\rtf": "a text document",
    b"SQLite format 3": "a database",
}
_READABLE = (
    "Models that can be read: likewise's own .safetensors, ONNX, XGBoost .json/.ubj, LightGBM .txt, "
    "CatBoost .cbm, skops, or an import path such as package.module:model."
)


def find_container(data: bytes, name: str) -> Container:
    r"""Say what kind of model file some bytes are, or raise an error that says what they are instead."""
    if not data:
        raise FormatError(f"{name} is empty. {_READABLE}")
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<!--", b"<head", b"<script", b"<?xml")):
        raise FormatError(f"{name} is a web page, not a model. Download the file itself. {_READABLE}")
    for mark, said in _OTHER.items():
        if data.startswith(mark):
            raise FormatError(f"{name} is {said}. {_READABLE}")
    found = _by_mark(data, name) or _json_model(data, name)
    if found is not None:
        return found
    if _is_pickle(data) or data.startswith(_COMPRESSED):
        return "pickle"
    if _is_onnx(data):
        return "onnx"
    raise FormatError(f"{name} is not a model file that likewise knows. {_READABLE}")


def check_archive(data: bytes, name: str) -> zipfile.ZipFile:
    r"""Open a zip archive once it is sure that it unpacks to a sane size.

    Python unpacks no more of a member than it declares, so the declared sizes are what counts.
    """
    members = data.count(b"PK\x01\x02")
    if members > MAX_MEMBERS:
        raise FormatError(
            f"{name} is a zip archive of {members:,} files, which no model is. It was not opened."
        )
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise FormatError(f"{name} is a damaged zip archive: {error}. Save the model again.") from error
    unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > MAX_UNPACKED or (unpacked > SMALL and unpacked > MAX_RATIO * len(data)):
        raise FormatError(
            f"{name} is a zip archive of {len(data):,} bytes that would unpack to {unpacked:,} bytes. "
            "That is how a zip bomb looks, so it was not opened."
        )
    return archive


def _by_mark(data: bytes, name: str) -> Container | None:
    if data.startswith(b"PK\x03\x04"):
        return _zip_kind(check_archive(data, name), name)
    if data.startswith(b"CBM1"):
        return "catboost"
    if data.startswith((b"tree\nversion=", b"tree\r\nversion=")):
        return "lightgbm"
    if data.startswith(b"{L") and b"learner" in data[:64]:
        return "xgboost"
    return _safetensors(data, name)


def _zip_kind(archive: zipfile.ZipFile, name: str) -> Container:
    names = [part.filename for part in archive.infolist()]
    last = {Path(part).name for part in names}
    if "schema.json" in names:
        return "skops"
    if "archive_format" in last or "serialized_exported_program.json" in last:
        return "pt2"
    if "data.pkl" in last:
        return "torchscript" if any("/code/" in part for part in names) else "torch"
    raise FormatError(f"{name} is a zip archive without a model that likewise knows. {_READABLE}")


def _safetensors(data: bytes, name: str) -> Container | None:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 10 or data[8:9] != b"{" or length > min(len(data) - 8, MAX_HEADER):
        return None
    try:
        header = json.loads(data[8 : 8 + length])
        about = json.loads(header.get("__metadata__", {}).get("likewise", "{}"))
        kind = about.get("kind")
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    if kind == "fair_metric":
        raise FormatError(f"{name} is a fair metric, not a model. Pass it as the metric.")
    if kind is None:
        raise FormatError(
            f"{name} holds weights (safetensors) but not the model they belong to. "
            f"Export the model to ONNX, or pass an import path. {_READABLE}"
        )
    return "likewise"


def _json_model(data: bytes, name: str) -> Container | None:
    if data[:1] != b"{" and data[:2] != b"\xef\xbb":
        return None
    if len(data) > SMALL:
        # Parsed, JSON can take a hundred times its bytes; the process that loads the model is limited.
        if b'"learner"' in data[:4096]:
            return "xgboost"
        raise FormatError(f"{name} is not an XGBoost model. {_READABLE}")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        if name.endswith(".json"):
            raise FormatError(
                f"{name} is damaged: it is not JSON ({error}). Save the model again."
            ) from error
        return None
    keys = set(document) if isinstance(document, dict) else set()
    if {"learner", "version"} <= keys:
        return "xgboost"
    if "oblivious_trees" in keys or "model_info" in keys:
        raise FormatError(
            f"{name} is a CatBoost model in JSON. Save it as .cbm: model.save_model('model.cbm')."
        )
    raise FormatError(f"{name} is JSON, but not an XGBoost model. {_READABLE}")


def _is_pickle(data: bytes) -> bool:
    """Whether the bytes read as pickle instructions to the end; they are only read, never followed."""
    if data[:1] == b"\x80" and data[1:2] <= b"\x08":
        return True
    try:
        for count, (operation, _, _) in enumerate(pickletools.genops(data)):
            if operation.name == "STOP":
                return count > 0
            if count > 5_000_000:
                return True
    except Exception:  # pickletools raises all kinds of errors on bytes that are not a pickle
        return False
    return False


def _is_onnx(data: bytes) -> bool:
    """Whether the bytes are a protobuf message with the fields of an ONNX ModelProto, among them a graph."""
    known = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
    place, seen = 0, set()
    while place < len(data):
        tag, place = _varint(data, place)
        field, wire = tag >> 3, tag & 7
        if known.get(field) != wire:
            return False
        seen.add(field)
        size, place = _varint(data, place)
        place += size if wire == 2 else 0
    return place == len(data) and {1, 7} <= seen


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    return 0, len(data) + 1


# A model file in its library's own format, and a small JSON file beside it that says what else belongs to
# the model.


SUFFIX = ".likewise.json"
MAX_SIZE = 64 * 2**20
_SCHEMA = 1
_FORM = Fields({"likewise": str, "schema": Whole(), "sha256": str}, more=True)


def sidecar_path(path: str | os.PathLike[str]) -> Path:
    """Return where the description of a model file is."""
    return Path(f"{os.fspath(path)}{SUFFIX}")


# How protobuf writes the name of a file of weights inside of an ONNX model: the key, and the value that follows it.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x1f])", re.DOTALL)


def external_names(data: bytes) -> set[str]:
    """Return the names of the files in which an ONNX model keeps weights, without a parser.

    What it names elsewhere is not looked at, not even for its digest.
    """
    found = set()
    for match in _LOCATION.finditer(data):
        length = match[1][0] if len(match[1]) == 1 else (match[1][0] & 127) | match[1][1] << 7
        found.add(data[match.end() : match.end() + length].decode("utf-8", "replace"))
    return set(filter(is_beside, found))


def is_beside(name: str) -> bool:
    """Whether a model may keep weights under a name: in its own folder or below."""
    place = Path(name)
    return bool(place.parts) and not place.is_absolute() and ".." not in place.parts and "\0" not in name


def model_files(path: Path) -> dict[str, Path]:
    """Return every file that a model is made of, by its name as seen from the model.

    Itself, those called like it with more behind, weights of ONNX beside it.
    """
    beside = {one.name: one for one in path.parent.glob(f"{glob.escape(path.name)}.*") if one.is_file()}
    beside |= {name: path.parent / name for name in external_names(read_file(path, largest=LARGEST_TENSORS))}
    return {path.name: path} | dict(sorted(beside.items()))


def write_with_sidecar(path: str | os.PathLike[str], data: bytes, kind: str, about: dict[str, Any]) -> None:
    """Write a model file and its description, each whole or not at all."""
    document = {"likewise": kind, "schema": _SCHEMA, "sha256": hashlib.sha256(data).hexdigest(), **about}
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    with atomic_path(sidecar_path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_sidecar(path: str | os.PathLike[str], data: bytes | None = None) -> dict[str, Any] | None:
    """Return the description beside a model file, or None if there is none."""
    where = sidecar_path(path)
    if not where.exists():
        return None
    with damage_named(where):
        about = check_form(json.loads(read_file(where, largest=MAX_SIZE)), _FORM, "it")
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


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Say of whatever goes wrong while a description is read that the description is damaged."""
    try:
        yield
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path.name} is damaged ({type(error).__name__}: {error}). Save the model again."
        ) from error
