"""Everything that an audit leaves for others, in one folder that is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from likewise.auditing.results.audit_result import AuditResult
from likewise.core.errors import FormatError, InputError
from likewise.core.files import (
    LARGEST_RESULT,
    Fields,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    atomic_folder,
    check_form,
    check_seal,
    is_scalar,
    read_file,
    sealed,
)
from likewise.core.frames import csv_text
from likewise.core.plain import plain, to_json
from likewise.core.text import option, printable
from likewise.evaluation.impact import ImpactTable
from likewise.evaluation.summary import Evaluation
from likewise.report.document import audit_document
from likewise.report.evidence.cards import impact_page, model_card
from likewise.report.evidence.checks import junit_xml, sarif_log
from likewise.report.evidence.signing import SIGNATURE, Signer, check_signature, public_key
from likewise.report.provenance import Provenance

# evidence.json: where an audit's figures come from and what they are, checked before anyone uses them.


EVIDENCE = "evidence.json"
KIND = "likewise.evidence"
SCHEMA_VERSION = 1
# Larger files are not the evidence of one audit.
_MOST_BYTES = 50_000_000

_OPTION = ListOf(str, most=10_000)
_INPUT = Fields({"path": str, "sha256": Maybe(str)})
_FORM = Fields(
    {
        "kind": OneOf((KIND,)),
        "schema_version": OneOf((SCHEMA_VERSION,)),
        "name": Maybe(str),
        "provenance": Maybe(MapOf(object)),
        "run": Maybe(Fields({"verb": OneOf(("audit",)), "options": MapOf(_OPTION), "inputs": MapOf(_INPUT)})),
        "figures": MapOf(object),
        "impact": ListOf(object, most=10_000),
        "files": MapOf(str),
        "signer": Maybe(str),
        "sha256": str,
    }
)


@dataclass(frozen=True)
class Evidence:
    """What `evidence.json` holds.

    Parameters
    ----------
    figures : mapping
        Name of each figure, such as ``"numbers.gap.value"``, to its number or word.
    name : str or None
        What was audited.
    provenance : mapping or None
        Time, versions, seed, command; plain values.
    options : mapping or None
        The options of the audit, by their names without dashes in front, as the command line would take them; None
        if the audit was not made by the command, so that it cannot be replayed.
    inputs : mapping
        ``"model"``, ``"table"`` and other files the audit read, to their path as it was given and its SHA-256; None
        for a hash if there is no file.
    impact : sequence of mapping
        The impact tables.
    files : mapping
        The other files of the evidence, to their SHA-256.
    signer : str or None
        The public key, in hexadecimal digits, whose owner signed the file; the signature stands beside it.
    """

    figures: Mapping[str, Any]
    name: str | None = None
    provenance: Mapping[str, Any] | None = None
    options: Mapping[str, Sequence[str]] | None = None
    inputs: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    impact: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    signer: str | None = None

    def to_json(self) -> str:
        """Return the file's text."""
        run = None
        if self.options is not None:
            run = {"verb": "audit", "options": plain(self.options), "inputs": plain(self.inputs)}
        document = {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "provenance": self.provenance,
            "run": run,
            "figures": dict(self.figures),
            "impact": list(self.impact),
            "files": dict(self.files),
            "signer": self.signer,
        }
        return to_json(sealed(document))


def read_evidence(path: str | Path) -> Evidence:
    """Read evidence.json; what is not of its form is refused in words.

    Parameters
    ----------
    path : path-like
        The file, or the folder it is in.

    Returns
    -------
    Evidence

    Raises
    ------
    FormatError
        The file is not evidence, is damaged, or of a newer version.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> import tempfile
    >>> from likewise.report import write_evidence
    >>> folder = write_evidence(result, Path(tempfile.mkdtemp()) / "evidence", name="hiring")
    >>> read_evidence(folder).name
    'hiring'
    """
    file = Path(path)
    file = file / EVIDENCE if file.is_dir() else file
    data = read_file(file, remedy=f"`likewise audit -o DIR/` writes DIR/{EVIDENCE}.", largest=_MOST_BYTES)
    try:
        document = json.loads(data, parse_constant=_no_constant)
        check_form(document, _FORM, "the evidence")
        for name, value in document["figures"].items():
            if not is_scalar(value) or (isinstance(value, float) and not math.isfinite(value)):
                raise FormatError(f"figure {name!r} must be a number, a word or null")
        if data != to_json(check_seal(document)).encode():
            raise FormatError("it was changed after it was written")
    except FormatError as error:
        raise FormatError(f"{file.name} is not evidence that this version can read: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file.name} is not a JSON file, or a damaged one: {error}.") from error
    run = document["run"] or {"options": None, "inputs": {}}
    kept = {name: document[name] for name in ("figures", "name", "provenance", "impact", "files", "signer")}
    return Evidence(options=run["options"], inputs=run["inputs"], **kept)


def check_files(folder: Path, recorded: Evidence, *, verify_key: str | Path | None = None) -> None:
    """Raise unless a folder holds the recorded files with the recorded bytes, and nothing else, signed as it says.

    With `verify_key`, a file with a public key, its owner must have signed.
    """
    if verify_key is not None and public_key(verify_key) != recorded.signer:
        by = "by nobody" if recorded.signer is None else f"by another key, {recorded.signer[:64]}"
        raise InputError(f"The evidence is signed {by}, and not by the key that was asked for.")
    wanted = {*recorded.files, EVIDENCE, *([SIGNATURE] if recorded.signer is not None else [])}
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    folders = {parent.as_posix() for name in wanted for parent in Path(name).parents}
    added = sorted(found.keys() - wanted - folders)
    absent = sorted(wanted - found.keys())
    if added or absent:
        what = f"{added[0]!r}, which the audit did not write" if added else f"no {absent[0]!r} any more"
        raise FormatError(f"The folder of the evidence holds {what}.")
    for name, digest in recorded.files.items():
        if hashlib.sha256(read_file(found[name], largest=LARGEST_RESULT)).hexdigest() != digest:
            raise FormatError(f"{name!r} in the folder of the evidence was changed after it was written.")
    if recorded.signer is not None:
        signature = read_file(found[SIGNATURE], largest=1_000)
        check_signature(recorded.to_json().encode(), signature, recorded.signer)


def figures_of(document: Mapping[str, Any], impact: Sequence[ImpactTable] = ()) -> dict[str, Any]:
    """Return every figure of an audit by name: what a repetition must give again.

    Parameters
    ----------
    document : mapping
        Of `audit_document`.
    impact : sequence of ImpactTable, optional

    Returns
    -------
    dict of str to number, word or None
    """
    found: dict[str, Any] = {
        "verdict.kind": document["verdict"]["kind"],
        "computed.status": document["computed"]["status"],
        "findings": ", ".join(finding["kind"] for finding in document["findings"]),
    }
    _flatten("numbers", document["numbers"], found)
    _flatten("test", document["test"] or {}, found)
    for bracket in (document["certificate"] or {"brackets": ()})["brackets"]:
        start = f"bracket.{bracket['quantity']}.{bracket['eps']:g}"
        found |= {f"{start}.lower": bracket["lower"], f"{start}.upper": bracket["upper"]}
    if document["evaluation"] is not None:
        for one in document["evaluation"]["measures"]:
            _flatten(f"measure.{one['name']}", {key: one[key] for key in ("value", "low", "high")}, found)
    for table in impact:
        for row in table.rows:
            _flatten(f"impact.{table.attribute}.{row.category}", asdict(row), found)
    return found


def compare_figures(
    before: Mapping[str, Any], now: Mapping[str, Any], *, tolerance: float
) -> list[tuple[str, Any, Any]]:
    """Return the figures that are not the same: name, before and now; None for one that is not there.

    Parameters
    ----------
    before, now : mapping
        Of `figures_of`.
    tolerance : float
        Numbers that differ by no more than this, relative to the larger, are the same.

    Examples
    --------
    >>> compare_figures({"gap": 0.1, "status": "converged"}, {"gap": 0.1 + 1e-12, "status": "failed"}, tolerance=1e-6)
    [('status', 'converged', 'failed')]
    """
    names = [*before, *(name for name in now if name not in before)]
    return [
        (name, before.get(name), now.get(name))
        for name in names
        if not _same(before.get(name), now.get(name), tolerance)
    ]


def _same(a: Any, b: Any, tolerance: float) -> bool:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (a, b))
    # Below the second limit a difference is rounding of a figure that is 0.
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12) if numbers else a == b


def _flatten(start: str, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for name, part in value.items():
            _flatten(f"{start}.{name}", part, found)
    else:
        found[start] = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _no_constant(text: str) -> Any:
    raise FormatError(f"{text} is not a number")


def write_evidence(
    result: AuditResult,
    folder: str | Path,
    *,
    name: str | None = None,
    evaluation: Evaluation | None = None,
    impact: Sequence[ImpactTable] = (),
    impact_notes: Sequence[str] = (),
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
    options: Mapping[str, Sequence[str]] | None = None,
    inputs: Mapping[str, Mapping[str, str | None]] | None = None,
    overwrite: bool = False,
    sign: str | Path | None = None,
) -> Path:
    """Write the evidence of an audit: a model card, JUnit, SARIF, CSV tables, impact ratios and evidence.json.

    Parameters
    ----------
    result : AuditResult
    folder : path-like
        To be made; its parent must exist.
    name : str, optional
        What was audited.
    evaluation : Evaluation, optional
        Accuracy, consistency and group gaps of the same model.
    impact : sequence of ImpactTable, optional
        Of `likewise.evaluation.impact_tables`.
    impact_notes : sequence of str, optional
        What a reader of these must know, or why there are none.
    labels : mapping, optional
        Names of the labels and decisions.
    provenance : Provenance, optional
        Where the numbers come from.
    options, inputs
        As in `Evidence`: what `likewise replay` needs.
    overwrite : bool, default=False
        Replace a folder that holds evidence already; anything else there is never touched.
    sign : path-like, optional
        File with the private key (Ed25519, PEM) to sign with, which needs the extra ``sign``.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, pandas as pd, likewise as lw
    >>> from likewise.evaluation import impact_tables
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0, delta=0.1)
    >>> impact = impact_tables(score(people) > 0.7, people, ["sex"])
    >>> folder = write_evidence(result, pathlib.Path(tempfile.mkdtemp()) / "evidence", impact=impact)
    >>> sorted(path.name for path in folder.iterdir())
    ['audit.sarif', 'evidence.json', 'impact_ratios.md', 'junit.xml', 'model_card.md', 'tables']
    """
    target = Path(folder)
    check_folder(target, overwrite=overwrite)
    signer = None if sign is None else Signer(sign)
    document = audit_document(result, name=name, evaluation=evaluation, labels=labels, provenance=provenance)
    files = evidence_files(result, document, impact, impact_notes)
    hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
    evidence = Evidence(
        figures_of(document, impact),
        document["name"],
        document["provenance"],
        options,
        inputs or {},
        [asdict(table) for table in impact],
        hashes,
        None if signer is None else signer.public,
    )
    written = {file: text.encode() for file, text in {**files, EVIDENCE: evidence.to_json()}.items()}
    if signer is not None:
        written[SIGNATURE] = signer.sign(written[EVIDENCE])
    with atomic_folder(target) as temporary:
        for file, data in written.items():
            path = temporary / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
    return target


def evidence_files(
    result: AuditResult,
    document: Mapping[str, Any],
    impact: Sequence[ImpactTable],
    impact_notes: Sequence[str] = (),
) -> dict[str, str]:
    """Return every file of the evidence but evidence.json: name to text."""
    files = {
        "model_card.md": model_card(document, impact),
        "junit.xml": junit_xml(document),
        "audit.sarif": to_json(sarif_log(document)),
    }
    if impact:
        people = document["numbers"]["people"]
        about = f"Measured on the {people:,} people audited: {document['name'] or 'the model'}."
        files["impact_ratios.md"] = impact_page(impact, about=about, notes=impact_notes)
    tables = csv_tables(result, document, impact)
    files |= {f"tables/{file}": text for file, text in tables.items()}
    return {file: printable(text, keep="\n\t") for file, text in files.items()}


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise unless a folder of evidence can be made here; nothing but old evidence is ever replaced."""
    if not folder.absolute().parent.is_dir():
        raise InputError(f"The folder {str(folder.parent)!r} does not exist. Make it first.")
    if not folder.exists():
        return
    if not (folder / EVIDENCE).is_file():
        raise InputError(
            f"{str(folder)!r} exists and holds no evidence, so it is not replaced. Choose another name."
        )
    if not overwrite:
        raise InputError(
            f"{str(folder)!r} exists already. Choose another name, or replace it ({option('overwrite')})."
        )


# The tables as CSV, for people who go on in a spreadsheet.


def csv_tables(
    result: AuditResult, document: Mapping[str, Any], impact: Sequence[ImpactTable] = ()
) -> dict[str, str]:
    """Return the tables of an audit as CSV text.

    Parameters
    ----------
    result : AuditResult
    document : mapping
        Of `audit_document`.
    impact : sequence of ImpactTable, optional

    Returns
    -------
    dict of str to str
        File name to content: ``numbers.csv`` and ``effects.csv``; of the worst case ``curve.csv``, ``harm_by_value.csv``,
        ``twins_free.csv`` and, for ε > 0, ``twins_budget.csv``; ``measures.csv`` with an evaluation, ``impact_ratios.csv``
        with impact tables.

    Notes
    -----
    Text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    frames = {"numbers": numbers_frame(document)}
    frames |= {} if result.effects is None else {"effects": result.effects}
    if result.worst_case is not None:
        frames |= {
            "curve": pd.DataFrame({name: document["curve"][name] for name in ("eps", "gap", "lambda")}),
            "harm_by_value": result.unfair_map.by_value,
            "twins_free": result.pure_map.top(len(result.pure_map.people)),
        }
        if result.eps > 0:
            frames["twins_budget"] = result.unfair_map.top(len(result.unfair_map.people))
    if document["evaluation"] is not None:
        frames["measures"] = pd.DataFrame(document["evaluation"]["measures"])
    if impact:
        frames["impact_ratios"] = impact_frame(impact)
    return {f"{name}.csv": csv_text(frame) for name, frame in frames.items()}


def numbers_frame(document: Mapping[str, Any]) -> pd.DataFrame:
    """Return an audit's numbers, one a row, with their intervals if they have one."""
    numbers = document["numbers"]
    flat = {name: value for name, value in numbers.items() if name != "sensitive_only"}
    only = numbers["sensitive_only"]
    if only is not None:
        names = ", ".join(only["columns"])
        flat[f"changed_decisions, only {names}"] = only["changed_decisions"]
        flat |= {} if only["gap"] is None else {f"gap, only {names}": only["gap"]}
    rows = [
        {"quantity": name, **(value if isinstance(value, Mapping) else {"value": value})}
        for name, value in flat.items()
    ]
    return pd.DataFrame(rows, columns=["quantity", "value", "low", "high", "confidence"])


def impact_frame(impact: Sequence[ImpactTable]) -> pd.DataFrame:
    """Return impact tables one below the other, the people of unknown category in a row of their own."""
    rows: list[dict[str, Any]] = []
    for table in impact:
        said = {"attribute": table.attribute, "kind": table.kind, "outcome": table.outcome}
        rows += [said | asdict(row) for row in table.rows]
        if table.unknown:
            rows.append(said | {"category": "unknown category", "people": table.unknown, "excluded": True})
    return pd.DataFrame(rows)
