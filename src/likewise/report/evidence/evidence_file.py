"""evidence.json: where an audit's figures come from and what they are, checked before anyone uses them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError
from likewise.core.plain_forms import Fields, ListOf, MapOf, Maybe, OneOf, check_form, is_scalar
from likewise.evaluation import ImpactTable
from likewise.report.plain import plain

__all__ = ["EVIDENCE", "Evidence", "compare_figures", "figures_of", "read_evidence"]

EVIDENCE = "evidence.json"
KIND = "likewise.evidence"
SCHEMA_VERSION = 1
# Larger files are no evidence of one audit.
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
        where the audit was not made by the command, so that it cannot be replayed.
    inputs : mapping
        ``"model"``, ``"table"`` and other files the audit read, to their path as it was given and its SHA-256; None
        for a hash where there is no file.
    impact : sequence of mapping
        The impact tables.
    files : mapping
        The other files of the evidence, to their SHA-256.
    """

    figures: Mapping[str, Any]
    name: str | None = None
    provenance: Mapping[str, Any] | None = None
    options: Mapping[str, Sequence[str]] | None = None
    inputs: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    impact: Sequence[Mapping[str, Any]] = ()
    files: Mapping[str, str] = field(default_factory=dict)

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
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


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
        The file is no evidence, is damaged, or of a newer version.

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
    if not file.is_file():
        raise InputError(
            f"There is no file {str(file)!r}. `likewise audit --evidence DIR` writes DIR/{EVIDENCE}."
        )
    if file.stat().st_size > _MOST_BYTES:
        raise FormatError(f"{file.name}: more than {_MOST_BYTES:,} bytes are no evidence of one audit.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
        check_form(document, _FORM, "the evidence")
        for name, value in document["figures"].items():
            if not is_scalar(value) or (isinstance(value, float) and not math.isfinite(value)):
                raise FormatError(f"figure {name!r} must be a number, a word or null")
    except FormatError as error:
        raise FormatError(f"{file.name} is no evidence that this version can read: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file.name} is no JSON file, or a damaged one: {error}.") from error
    run = document["run"] or {"options": None, "inputs": {}}
    return Evidence(
        document["figures"],
        document["name"],
        document["provenance"],
        run["options"],
        run["inputs"],
        document["impact"],
        document["files"],
    )


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
    _flatten("test", document["test"], found)
    for bracket in document["certificate"]["brackets"]:
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
    raise FormatError(f"{text} is no number")
