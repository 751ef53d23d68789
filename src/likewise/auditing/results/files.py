"""An audit result as a folder: Parquet tables and one JSON file, written whole or not at all, never unpickled."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import Bound, Certificate, ConfidenceInterval, Estimate
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.significance import TestResult
from likewise.auditing.inference.verdict import Bracket
from likewise.auditing.results.sensitive import ChangedGroup, ChangedPerson
from likewise.auditing.results.unfair_map import UnfairMap
from likewise.core.errors import FormatError, InputError
from likewise.core.messages import collect_messages, restore_messages

if TYPE_CHECKING:
    from likewise.auditing.results.audit_result import AuditResult, SensitiveAnswer

KIND = "likewise.audit"
SCHEMA_VERSION = 4
_SENTENCES = ("reasons", "left_out", "assumptions")
_MAPS = ("unfair_map", "pure_map")
_TABLES = ("people", "twins", "outcomes")
_PLAIN = (
    "eps", "delta", "n", "value", "base_loss", "pure_gap", "flipped", "lambda_", "transport", "status", "search", "settings",
    "timing",
)  # fmt: skip


def save_result(result: AuditResult, path: Path, *, overwrite: bool = False) -> None:
    """Write a result as a folder."""
    if path.exists():
        if not overwrite:
            raise InputError(f"AuditResult.save: {path} exists. Choose another path, or pass overwrite=True.")
        if not (path / "audit.json").is_file():
            raise InputError(f"AuditResult.save: {path} is no saved audit, so it is not replaced.")
    if not path.parent.is_dir():
        raise InputError(f"AuditResult.save: the folder {path.parent} does not exist. Make it first.")
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        _write(result, temporary)
        temporary.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(result: AuditResult, folder: Path) -> None:
    document: dict[str, Any] = {"kind": KIND, "schema_version": SCHEMA_VERSION}
    document |= {name: getattr(result, name) for name in _PLAIN}
    for name in _SENTENCES:
        document[name] = list(getattr(result, name))
    document["findings"] = [dataclasses.asdict(finding) for finding in result.findings]
    document["sensitive"] = None if result.sensitive is None else dataclasses.asdict(result.sensitive)
    document["test"] = dataclasses.asdict(result.test)
    document["interval"] = dataclasses.asdict(result.interval)
    document["estimate"] = dataclasses.asdict(result.certificate.estimate)
    for name, bound in (("bound", result.certificate.bound), ("population_bound", result.population_bound)):
        document[name] = None if bound is None else dataclasses.asdict(bound)
    document["brackets"] = [dataclasses.asdict(bracket) for bracket in result.brackets]
    document["same_map"] = result.pure_map is result.unfair_map
    document["total"] = {name: getattr(result, name).total for name in _MAPS}
    for name in _MAPS:
        for table in _TABLES:
            getattr(getattr(result, name), table).to_parquet(folder / f"{name}.{table}.parquet")
    curve = pd.DataFrame(
        {"eps": result.curve.eps, "value": result.curve.values, "slope": np.append(result.curve.slopes, 0.0)}
    )
    curve.to_parquet(folder / "curve.parquet")
    document["said"] = collect_messages(document)
    text = json.dumps(document, indent=1, ensure_ascii=False, default=_plain)
    (folder / "audit.json").write_text(text, encoding="utf-8")


def load_result(path: Path) -> AuditResult:
    """Read a folder that `save_result` wrote."""
    from likewise.auditing.results.audit_result import AuditResult

    file = path / "audit.json"
    if not file.is_file():
        raise FormatError(f"AuditResult.load: {path} is no saved audit: it has no audit.json.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        version = document["schema_version"]
        if document["kind"] != KIND:
            raise FormatError(f"AuditResult.load: {file} is of kind {document['kind']!r}, not an audit.")
        if version != SCHEMA_VERSION:
            raise FormatError(
                f"AuditResult.load: {path} was written by another version (schema {version}, this one reads "
                f"{SCHEMA_VERSION}). Use the same version of likewise, or run the audit again."
            )
        document = _with_said(document, document["said"])
        maps = {name: _read_map(path, name, document["total"][name]) for name in _MAPS}
        curve = pd.read_parquet(path / "curve.parquet")
        return AuditResult(
            **{name: document[name] for name in _PLAIN},
            reasons=tuple(document["reasons"]),
            left_out=tuple(document["left_out"]),
            assumptions=tuple(document["assumptions"]),
            findings=tuple(
                Finding(**(one | {"columns": tuple(one["columns"])})) for one in document["findings"]
            ),
            sensitive=_sensitive(document["sensitive"]),
            unfair_map=maps["unfair_map"],
            pure_map=maps["unfair_map"] if document["same_map"] else maps["pure_map"],
            curve=DualCurve(
                document["base_loss"],
                curve["eps"].to_numpy(),
                curve["value"].to_numpy(),
                curve["slope"].to_numpy()[:-1],
            ),
            certificate=Certificate(Estimate(**_claim(document["estimate"])), _bound(document["bound"])),
            brackets=tuple(Bracket(**plain) for plain in document["brackets"]),
            population_bound=_bound(document["population_bound"]),
            interval=ConfidenceInterval(**document["interval"]),
            test=TestResult(**(document["test"] | {"interval": tuple(document["test"]["interval"])})),
        )
    except FormatError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"AuditResult.load: {path} is damaged ({type(error).__name__}: {error}). Run the audit again."
        ) from error


def _with_said(value: Any, known: dict[str, Any]) -> Any:
    """Sentences as they were before they were written: able to be said in another language."""
    if isinstance(value, dict):
        return {name: item if name == "said" else _with_said(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_said(item, known) for item in value]
    return restore_messages(value, known) if isinstance(value, str) else value


def _read_map(path: Path, name: str, total: int) -> UnfairMap:
    tables = {table: pd.read_parquet(path / f"{name}.{table}.parquet") for table in _TABLES}
    return UnfairMap(tables["people"], tables["twins"], tables["outcomes"], total)


def _sensitive(plain: dict[str, Any] | None) -> SensitiveAnswer | None:
    from likewise.auditing.results.audit_result import SensitiveAnswer

    if plain is None:
        return None
    tuples = {
        name: None if plain[name] is None else tuple(plain[name])
        for name in ("columns", "gap_interval", "changed_interval")
    }
    groups = tuple(ChangedGroup(**group) for group in plain["groups"])
    example = plain["example"]
    if example is not None:
        example = ChangedPerson(**(example | {"rank": tuple(example["rank"])}))
    return SensitiveAnswer(**(plain | tuples | {"groups": groups, "example": example}))


def _bound(plain: dict[str, Any] | None) -> Bound | None:
    return None if plain is None else Bound(**_claim(plain))


def _claim(plain: dict[str, Any]) -> dict[str, Any]:
    return plain | {"assumptions": tuple(plain["assumptions"])}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
