"""A result as plain JSON values and back: nothing is unpickled, and only the fields of known dataclasses are read."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import types
import typing
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.inference.sanity import Finding
from likewise.core.errors import FormatError, InputError, bad_parameter
from likewise.core.files import LARGEST_RESULT, OneOf, check_form, check_seal, read_file
from likewise.core.frames import csv_text
from likewise.core.messages import Message
from likewise.core.plain import plain_cell, to_json
from likewise.data.opening import read_parquet, room_for

if TYPE_CHECKING:
    from likewise.auditing.results.audit_result import AuditResult

KIND = "likewise.report.audit"
SCHEMA_VERSION = 5
# Keys of values that JSON has no form for; no column is called so.
_MESSAGE, _NUMBER, _TABLE = "likewise:message", "likewise:number", "likewise:parquet"


def save_result(result: AuditResult, path: Path, *, overwrite: bool = False) -> None:
    """Write a result as a JSON document, a page, the people as CSV, or a folder of evidence, by what the path is."""
    # Results do not depend on the report; it is looked up when somebody saves one.
    report = import_module("likewise.report")
    suffix = path.suffix.lower()
    if suffix == ".json":
        report.write_json(result, path, complete=True, overwrite=overwrite)
    elif suffix in (".html", ".htm"):
        report.write_html(result, path, overwrite=overwrite)
    elif suffix == ".csv":
        writing, people = import_module("likewise.report.writing"), result.people
        target = writing.check_target(path, owner="AuditResult.save", overwrite=overwrite)
        # Rows are numbered as on the page.
        writing.write_text(target, csv_text(people.assign(row=people["row"].map(result.scope.row))))
    elif not suffix:
        report.write_evidence(result, path, overwrite=overwrite)
    else:
        allowed = "a file that ends in .json, .html or .csv, or a folder for the evidence"
        raise bad_parameter("AuditResult.save", "path", allowed=allowed, got=str(path))


def load_result(path: Path) -> AuditResult:
    """Read a JSON document that `save_result` wrote."""
    from likewise.auditing.results.audit_result import AuditResult

    try:
        data = read_file(path, owner="AuditResult.load", largest=LARGEST_RESULT)
        document = json.loads(data)
        kind, version = document["kind"], document["schema_version"]
        if kind != KIND:
            raise FormatError(f"AuditResult.load: {path} is of kind {kind!r}, not an audit.")
        if version > SCHEMA_VERSION:
            raise FormatError(
                f"AuditResult.load: {path} was written by a newer version (schema {version}, this one reads up to "
                f"{SCHEMA_VERSION}). Update likewise."
            )
        if document.get("result") is None:
            raise FormatError(
                f"AuditResult.load: {path} holds what a page shows, not the whole result. Write it with AuditResult.save."
            )
        if data != to_json(check_seal(document)).encode():
            raise FormatError("it was changed after it was written")
        values = _restored(document["result"])
        found: AuditResult = _built(AuditResult, values)
        if values["worst_case"] is not None and values["worst_case"]["pure_map"] is None:
            assert found.worst_case is not None
            worst = dataclasses.replace(found.worst_case, pure_map=found.unfair_map)
            found = dataclasses.replace(found, worst_case=worst)
        _check_figures(found)
        return _told(found)
    except FormatError as error:
        named = str(error).startswith("AuditResult.load")
        raise error if named else FormatError(f"AuditResult.load: {path}: {error}.") from error
    except InputError:
        raise
    except (
        OSError,
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise FormatError(
            f"AuditResult.load: {path} is not a saved audit, or a damaged one ({type(error).__name__}: {error})."
        ) from error


def _check_figures(found: AuditResult) -> None:
    """Raise if figures that say the same of one audit say different things."""
    only, worst = found.sensitive, found.worst_case
    listed = {one.person for one in only.people} if only is not None else set()
    right = {
        "the number of people": found.n == found.scope.people >= 0,
        "the share of changed decisions": only is None
        or only.changed is None
        or (0 <= only.changed <= 1 and len(listed) <= round(only.changed * found.n)),
    }
    if worst is not None:
        rounding = 1e-9 * (1 + abs(worst.base_loss))
        right |= {
            "ε": 0 <= worst.eps == worst.certificate.estimate.eps,
            "V(ε)": worst.certificate.estimate.value == worst.value >= worst.base_loss - rounding,
            "a bound": all(one.upper is None or one.lower <= one.upper for one in worst.brackets),
            "the list of people": len(worst.unfair_map.people) <= found.n,
        }
    wrong = next((name for name, holds in right.items() if not holds), None)
    if wrong is not None:
        raise FormatError(
            f"{wrong} contradicts the other figures of the file, so it was changed or is damaged"
        )


def result_values(result: AuditResult) -> dict[str, Any]:
    """Return a whole result as JSON values, exactly; a map that is both is written once."""
    values: dict[str, Any] = _plain(result)
    worst = result.worst_case
    if worst is not None and worst.pure_map is worst.unfair_map:
        values["worst_case"]["pure_map"] = None
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return {_MESSAGE: value.document(), "text": str(value)}
    if isinstance(value, pd.DataFrame):
        return {_TABLE: base64.b64encode(value.to_parquet()).decode()}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    return value if value is None or isinstance(value, (str, bool, int, float)) else plain_cell(value)


def _restored(value: Any) -> Any:
    """Messages, numbers and tables as they were; everything else as JSON gives it."""
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _MESSAGE in value:
        return Message.of(value[_MESSAGE]) or value["text"]
    if _NUMBER in value:
        return float(value[_NUMBER])
    if _TABLE in value:
        data = base64.b64decode(value[_TABLE], validate=True)
        return read_parquet("a table of it", io.BytesIO(data), room_for(len(data))).to_pandas()
    return {name: _restored(item) for name, item in value.items()}


def _built(hint: Any, value: Any) -> Any:
    """The value of a field, by the type that its dataclass declares."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _built(inner[0], value)
    if origin is tuple:
        return tuple(_built(inner[0], item) for item in value)
    if origin is np.ndarray:
        return np.asarray(value, dtype=np.float64)
    if origin is typing.Literal:
        return check_form(value, OneOf(inner), "a word")
    if hint in (str, int, bool):
        return check_form(value, hint, "a value")
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise FormatError(f"a number is expected, not {value!r:.60}")
        return value
    if dataclasses.is_dataclass(hint) and value is not None:
        hints = typing.get_type_hints(hint)
        return hint(**{name: _built(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    return value


def _told(found: AuditResult) -> AuditResult:
    """A result as it is told: what a file calls proved was recorded, and is said in words that are not from the file.

    One that cannot be told is damaged, though every field by itself may be of its type.
    """
    others = [finding for finding in found.findings if finding.kind != "recorded"]
    recorded = Finding("recorded", Message("gate.recorded"))
    found = dataclasses.replace(found, findings=(*others, recorded))
    to_json(import_module("likewise.report").audit_document(found))
    str(found)
    return found
