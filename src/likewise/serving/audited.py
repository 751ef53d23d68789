"""One audit that can be shown, and whose model can be asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from likewise.report.provenance import Provenance, SourceFile
from likewise.tables import MemoryFile

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.parts.search_bar import Heard
    from likewise.domains import TabularDomain
    from likewise.evaluation import Evaluation
    from likewise.fair_metrics import FairMetric
    from likewise.models import Model

__all__ = ["Audited", "Question", "TableAuditor", "hashed"]


@dataclass(frozen=True)
class Question:
    """What is asked about an uploaded table.

    Parameters
    ----------
    target : str
        The column that the model predicts.
    sensitive : tuple of str
        Columns that should not decide.
    positive : str or None
        The value of the target that counts as 1.
    seconds : float or None
        How long to search; None until it has settled.
    """

    target: str
    sensitive: tuple[str, ...]
    positive: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit with everything that its page needs.

    Parameters
    ----------
    title : str
        Heading of the page.
    result : AuditResult
    model : Model
        As it was audited: takes the table, or rows that the domain encodes.
    domain : TabularDomain
        Which rows can exist.
    metric : FairMetric
    people : DataFrame
        Those audited, in original units and in the order of the audit.
    labels : array
        Of these people.
    sensitive : tuple of str
    evaluation : Evaluation or None
    diagnoses : sequence
    notes : tuple of str
        What was done on the way, a line each.
    provenance : Provenance or None
        When, of which table and model.
    """

    title: str
    result: AuditResult
    model: Model
    domain: TabularDomain
    metric: FairMetric
    people: pd.DataFrame
    labels: Any
    sensitive: tuple[str, ...]
    evaluation: Evaluation | None = None
    diagnoses: Sequence[Any] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None


def hashed(table: Path | MemoryFile) -> SourceFile:
    """Return name and hash of a table, whether it is a file or came by itself."""
    if isinstance(table, MemoryFile):
        return SourceFile(table.name, hashlib.sha256(table.data).hexdigest())
    return SourceFile.of(table)


class TableAuditor(Protocol):
    """Audits the server's model on a table that was uploaded."""

    def __call__(self, table: MemoryFile, question: Question, hear: Heard) -> Audited:
        """Audit; `hear` is told how far it is, and raises KeyboardInterrupt to end it."""
