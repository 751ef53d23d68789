"""Audits of a model that is at hand in Python: of people in memory, and of tables that are uploaded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from likewise.auditing import audit
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import check_columns
from likewise.core.text import folded
from likewise.data.column import ColumnPlan
from likewise.data.missing_values import find_missing
from likewise.data.opening import MemoryFile
from likewise.data.table_files import read_table
from likewise.data.tabular import TabularDomain
from likewise.data.type_inference import infer_types
from likewise.evaluation.summary import evaluate
from likewise.fair_metrics import AttributeSubspace, FairMetric
from likewise.models.matching import match_model, name_classes
from likewise.models.model_files import LoadedModel
from likewise.report.provenance import Provenance, SourceFile

if TYPE_CHECKING:
    from likewise.auditing import AuditResult
    from likewise.auditing.progress import OnProgress
    from likewise.evaluation.summary import Evaluation
    from likewise.models import Model

# One audit that can be shown, and whose model can be asked.


@dataclass(frozen=True)
class Question:
    """What is asked about an uploaded table."""

    target: str
    sensitive: tuple[str, ...]
    positive: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Audited:
    """An audit with everything that its page needs."""

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

    def __call__(self, table: MemoryFile, question: Question, on_progress: OnProgress) -> Audited:
        """Audit; `hear` is told how far it is, and raises KeyboardInterrupt to end it."""


# A function that is called by one thread at a time, whatever it does inside.


def one_caller(native: Any) -> Any:
    """Return a model that a page and an audit may ask at the same time.

    Only functions are changed: nobody knows what they share. The libraries' own models can be asked by several threads,
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
        Who is comparable with whom; learned from the sensitive columns of each table where it is not given.
    domain : TabularDomain, optional
        Which rows can exist; made from each table where it is not given.
    immutable : sequence of str
        Columns that no twin may differ in.
    eps : float, default=0.1
    random_state : int, default=0

    Examples
    --------
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> people = pd.DataFrame({"skill": np.arange(20) / 10, "sex": ["F", "M"] * 10})
    >>> score = lambda table: 1 / (1 + np.exp(1 - table["skill"] - (table["sex"] == "M")))
    >>> auditor = FrameAuditor(score, "a biased score", ExpertSubspace(["sex"]).fit(people).metric_, eps=0.0)
    >>> audited = auditor.audit(people, [0, 1] * 10, ["sex"])
    >>> audited.title, audited.result.gap > 0
    ('Audit of a biased score', True)
    """

    model: Any
    name: str
    metric: FairMetric | None = None
    domain: TabularDomain | None = None
    immutable: Sequence[str] = ()
    eps: float = 0.1
    random_state: int = 0

    def __call__(self, table: MemoryFile, question: Question, on_progress: OnProgress) -> Audited:
        """Audit an uploaded table; see `TableAuditor`."""
        on_progress(f"Reading {table.name}", None)
        found = read_table(table)
        frame, target = found.frame, question.target
        check_columns(frame, [target, *question.sensitive], owner=table.name, name="table")
        frame = frame[frame[target].notna()].reset_index(drop=True)
        left = [
            look.name
            for look in infer_types(frame.drop(columns=target))
            if look.plan.kind == "left out" and look.name not in question.sensitive
        ]
        people = frame.drop(columns=[target, *left])
        notes = list(found.notes)
        if left:
            notes.append(f"left out {folded([repr(name) for name in left])}.")
        return self.audit(
            people,
            frame[target].to_numpy(),
            question.sensitive,
            on_progress,
            title=f"Audit of {self.name} on {table.name}",
            positive=_positive(frame[target], question.positive),
            seconds=question.seconds,
            notes=notes,
            table=table,
        )

    def audit(
        self,
        people: pd.DataFrame,
        y: Any,
        sensitive: Sequence[str],
        on_progress: OnProgress | bool = False,
        *,
        title: str | None = None,
        positive: Any = None,
        seconds: float | None = None,
        notes: Sequence[str] = (),
        table: MemoryFile | None = None,
    ) -> Audited:
        """Audit people in memory.

        Parameters
        ----------
        people : DataFrame
        y : array-like of shape (n,)
        sensitive : sequence of str
        on_progress : callable or bool
            As `progress` of `audit`.
        title : str, optional
        positive : object, optional
            The label that stands for class 1, where the model does not say its classes.
        seconds : float, optional
        notes : sequence of str
        table : MemoryFile, optional
            Where the people come from.
        """
        _tell(on_progress, "Preparing")
        check_columns(people, [*sensitive, *self.immutable], owner="serve", name="people")
        people = people.reset_index(drop=True)
        labels, said = np.asarray(y), list(notes)
        if people.isna().to_numpy().any():
            gaps = find_missing(people)
            people = gaps.filled(people)
            named = folded([repr(name) for name in gaps.columns], most=5)
            said.append(f"missing values in {named} were filled with the median or the most frequent value.")
        matched = match_model(
            LoadedModel(one_caller(self.model), "import path"),
            people,
            make_domain=lambda used: self._domain(people, used),
            widen=lambda domain: domain.widened(people[[c.name for c in domain.columns_]]),
            immutable=self.immutable,
            needed=tuple(sensitive),
        )
        values = sorted(pd.unique(pd.Series(labels)).tolist(), key=lambda value: (str(type(value)), value))
        model = name_classes(matched.model, values, positive)
        own = people[list(matched.columns)]
        metric = self.metric or _learned(matched.domain, people, sensitive)
        known = {column.name for column in matched.domain.columns_ if not column.immutable}
        result = audit(
            model,
            own,
            labels,
            metric=metric,
            domain=matched.domain,
            eps=self.eps,
            edits=[name for name in sensitive if name in known],
            budget_seconds=seconds,
            random_state=self.random_state,
            progress=on_progress,
        )
        _tell(on_progress, "Evaluating")
        evaluation = self._evaluation(model, matched.domain, own, labels, said)
        return Audited(
            title or f"Audit of {self.name}",
            result,
            model,
            matched.domain,
            metric,
            own,
            labels,
            tuple(sensitive),
            evaluation,
            notes=(*said, *([matched.note] if matched.note else [])),
            provenance=replace(
                Provenance.now(seed=self.random_state), tables=() if table is None else (hashed(table),)
            ),
        )

    def _evaluation(
        self, model: Model, domain: TabularDomain, people: pd.DataFrame, labels: Any, said: list[str]
    ) -> Evaluation | None:
        """Accuracy and consistency beside the audit; what a table does not tell is left out with its reason."""
        if model.loss.regression:
            return None

        def decide(frame: pd.DataFrame) -> Any:
            return model.predict(frame if model.takes_frame else domain.encode_array(frame))

        choices: tuple[dict[str, Any], ...] = ({}, {"attributes": [], "studies": {}})
        for chosen in choices:
            try:
                return evaluate(decide, people, labels, random_state=self.random_state, **chosen)
            except LikewiseError as error:
                said.append(f"some measures are n/a: {error}")
        return None

    def _domain(self, people: pd.DataFrame, used: Sequence[str]) -> TabularDomain:
        if self.domain is not None:
            return self.domain.widened(people[list(used)])
        fixed = tuple(name for name in self.immutable if name in used)
        plans: dict[str, ColumnPlan] = {
            look.name: look.plan for look in infer_types(people) if look.plan.kind != "left out"
        }
        known = {name: plan for name, plan in plans.items() if name in used}
        return TabularDomain.from_frame(people[list(used)], immutable=fixed, columns=known)


def _learned(domain: TabularDomain, people: pd.DataFrame, sensitive: Sequence[str]) -> FairMetric:
    known = [column.name for column in domain.columns_]
    outside = [name for name in sensitive if name not in known]
    learner = AttributeSubspace(list(sensitive), domain=domain)
    return learner.fit(people[known], sensitive_features=people[outside] if outside else None).metric_


def _positive(target: pd.Series[Any], written: str | None) -> Any:
    """The value of a target that a page calls by its text."""
    if written is None:
        return None
    for value in target.unique().tolist():
        whole = isinstance(value, float) and value.is_integer()
        if str(int(value) if whole else value) == written:
            return value
    raise InputError(f"The target {target.name!r} has no value {written!r}.")


def _tell(on_progress: OnProgress | bool, stage: str) -> None:
    if callable(on_progress):
        on_progress(stage, None)
