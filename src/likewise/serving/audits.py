"""Audits of a model in Python: of people in memory, and of tables that are uploaded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from likewise.auditing.auditor import audit_case
from likewise.auditing.case import Case, prepare_case, table_request
from likewise.auditing.case_evaluation import evaluate_case
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.sources import loaded_model
from likewise.core.frames import check_columns
from likewise.data.case import People, read_people, take_people
from likewise.data.opening import MemoryFile
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.models.matching import model_columns
from likewise.models.model_files import LoadedModel
from likewise.report.provenance import Provenance, SourceFile

if TYPE_CHECKING:
    from likewise.auditing import AuditResult
    from likewise.auditing.worst_case import OnProgress
    from likewise.evaluation.summary import Evaluation

# One audit that can be shown, and whose model can be asked.


@dataclass(frozen=True)
class Question:
    """What is asked about an uploaded table."""

    target: str | None
    sensitive: tuple[str, ...]
    favourable: str | None = None
    sample: int | None = None
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit with everything that its page needs."""

    title: str
    result: AuditResult
    case: Case
    evaluation: Evaluation | None
    provenance: Provenance
    notes: tuple[str, ...] = ()


def hashed(table: Path | MemoryFile) -> SourceFile:
    """Return name and hash of a table, whether it is a file or came by itself."""
    if isinstance(table, MemoryFile):
        return SourceFile(table.name, hashlib.sha256(table.data).hexdigest())
    return SourceFile.of(table)


class TableAuditor(Protocol):
    """Audits the server's model on a table that was uploaded."""

    def __call__(self, table: MemoryFile, question: Question, on_progress: OnProgress) -> Audited:
        """Audit; `on_progress` is called with how far it is, and raises KeyboardInterrupt to end it."""


# A function that is called by one thread at a time, whatever it does inside.


def one_caller(native: Any) -> Any:
    """Return a model that a page and an audit may ask at the same time.

    Only functions are changed: what they share is not known. The libraries' own models can be asked by several threads,
    and a model file in a process of its own answers one question after the other anyway.
    """
    known = hasattr(native, "predict") or hasattr(native, "forward")
    return _OneCaller(native) if callable(native) and not known else native


class _OneCaller:
    """A function behind a lock; everything else about it is as it was."""

    def __init__(self, function: Any) -> None:
        self._function, self._lock = function, threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("__self__", "__name__"):
            raise AttributeError(name)
        return getattr(self._function, name)


@dataclass(frozen=True, eq=False)
class FrameAuditor:
    """Audits one model on one table after the other.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        A function gets the table.
    name : str
        For headings.
    metric : FairMetric, optional
        Who is comparable with whom: adds the question about people a little apart.
    domain : TabularDomain, optional
        Which rows can exist; made from each table if it is not given.
    immutable : sequence of str
        Columns that no counterpart may differ in.
    eps : float, optional
        As in `audit`.
    random_state : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> people = pd.DataFrame({"skill": np.arange(20) / 10, "sex": ["F", "M"] * 10})
    >>> score = lambda table: 1 / (1 + np.exp(1 - table["skill"] - (table["sex"] == "M")))
    >>> auditor = FrameAuditor(score, "a biased score")
    >>> audited = auditor.audit(people, None, ["sex"])
    >>> audited.title, audited.result.changed.count
    ('Audit of a biased score', 10)
    """

    model: Any
    name: str
    metric: FairMetric | None = None
    domain: TabularDomain | None = None
    immutable: Sequence[str] = ()
    eps: float | None = None
    random_state: int = 0
    budget_seconds: float | None = None

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns that the model reads, if it says so."""
        return model_columns(self._loaded(None))[0]

    def __call__(self, table: MemoryFile, question: Question, on_progress: OnProgress) -> Audited:
        """Audit an uploaded table; see `TableAuditor`."""
        on_progress(f"Reading {table.name}", None)
        loaded = self._loaded(None)
        asked = table_request(
            loaded,
            self.metric,
            (*question.sensitive, *self.immutable),
            target=question.target,
            favourable=question.favourable,
            sample=question.sample,
            seed=self.random_state,
            keeps_missing=True,
        )
        case = self._case(
            loaded,
            read_people(table, asked),
            question.sensitive,
            favourable=question.favourable,
            limit=question.limit,
        )
        title = f"Audit of {self.name} on {table.name}"
        return self._audited(case, title, on_progress, table, target=question.target)

    def audit(
        self,
        people: pd.DataFrame,
        y: Any,
        sensitive: Sequence[str],
        on_progress: OnProgress | bool = False,
        favourable: Any = None,
    ) -> Audited:
        """Audit people in memory."""
        _tell(on_progress, "Preparing")
        needed = (*sensitive, *self.immutable)
        check_columns(people, needed, owner="serve", name="X")
        loaded = self._loaded(people)
        request = table_request(loaded, self.metric, needed, target="y", keeps_missing=True)
        case = self._case(loaded, take_people(people, y, request, name="X"), sensitive, favourable=favourable)
        return self._audited(case, f"Audit of {self.name}", on_progress)

    def _loaded(self, people: pd.DataFrame | None) -> LoadedModel:
        return loaded_model(one_caller(self.model), people)

    def _case(
        self,
        loaded: LoadedModel,
        people: People,
        sensitive: Sequence[str],
        *,
        favourable: Any = None,
        limit: float | None = None,
    ) -> Case:
        # The paper's audit runs only if it was asked for.
        alone = self.metric is None and not self.eps
        request = AuditRequest.of(
            metric="columns" if self.metric is None else self.metric,
            domain=self.domain,
            eps=self.eps if self.eps is not None else 0.0 if alone else 0.1,
            random_state=self.random_state,
            budget_seconds=self.budget_seconds,
            limit=limit,
            worst_case=not alone,
        )
        return prepare_case(
            loaded,
            people,
            request,
            sensitive=sensitive,
            immutable=self.immutable,
            favourable=favourable,
            owner="serve",
        )

    def _audited(
        self,
        case: Case,
        title: str,
        on_progress: OnProgress | bool,
        table: MemoryFile | None = None,
        *,
        target: str | None = None,
    ) -> Audited:
        result = audit_case(case, target=target, progress=on_progress)
        _tell(on_progress, "Evaluating")
        evaluation, unknown = evaluate_case(case)
        made = Provenance.now(seed=self.random_state)
        made = replace(made, tables=() if table is None else (hashed(table),))
        return Audited(title, result, case, evaluation, made, (*case.notes, *unknown))


def _tell(on_progress: OnProgress | bool, stage: str) -> None:
    if callable(on_progress):
        on_progress(stage, None)
