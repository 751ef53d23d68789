"""Everything that an audit leaves for others, in one folder that is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from likewise.auditing.audit_result import AuditResult
from likewise.core.errors import InputError
from likewise.core.files import atomic_folder
from likewise.evaluation import Evaluation, ImpactTable
from likewise.report.document import audit_document
from likewise.report.evidence.csv_bundle import csv_tables
from likewise.report.evidence.evidence_file import EVIDENCE, Evidence, figures_of
from likewise.report.evidence.junit import junit_xml
from likewise.report.evidence.local_law_144 import impact_page
from likewise.report.evidence.model_card import model_card
from likewise.report.evidence.sarif import sarif_log
from likewise.report.provenance import Provenance

__all__ = ["check_folder", "evidence_files", "write_evidence"]


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
    )
    with atomic_folder(target) as temporary:
        for file, text in {**files, EVIDENCE: evidence.to_json()}.items():
            path = temporary / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
    return target


def evidence_files(
    result: AuditResult,
    document: Mapping[str, Any],
    impact: Sequence[ImpactTable],
    impact_notes: Sequence[str] = (),
) -> dict[str, str]:
    """Return every file of the evidence but evidence.json: name to text.

    Parameters
    ----------
    result : AuditResult
    document : mapping
        Of `audit_document`, of the same result.
    impact, impact_notes
        As in `write_evidence`.
    """
    log = sarif_log(document)
    files = {
        "model_card.md": model_card(document, impact),
        "junit.xml": junit_xml(document),
        "audit.sarif": json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    if impact:
        people = document["numbers"]["people"]
        about = f"Measured on the {people:,} people audited: {document['name'] or 'the model'}."
        files["impact_ratios.md"] = impact_page(impact, about=about, notes=impact_notes)
    tables = csv_tables(result, document, impact)
    return files | {f"tables/{file}": text for file, text in tables.items()}


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
            f"{str(folder)!r} exists already. Choose another name, or replace it (--force, overwrite=True)."
        )
