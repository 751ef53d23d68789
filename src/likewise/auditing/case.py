"""One case: a model, people and the names of sensitive columns, brought together and audited.

Python, the command line, the server, the integrations and `improve` all use this preparation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.partitions.tables import ParquetTable
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import with_columns
from likewise.core.messages import Message
from likewise.core.plain import plain_cell
from likewise.core.text import option, truncated
from likewise.counterfactuals.edits import edited_columns
from likewise.data.case import WIDEST_AUDIT, People, TableRequest, check_varied, planned_domain, plans_of
from likewise.data.missing_values import MISSING_WORD, MissingCells
from likewise.data.target import find_value, unique_values
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.models.matching import (
    Matched,
    MissingCellsModel,
    frame_question,
    match_model,
    model_columns,
    name_classes,
    predicts_numbers,
    refuse_missing,
    why_not_missing,
)
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel

if TYPE_CHECKING:
    import pandas as pd

    from likewise.data.tabular import TabularDomain


@dataclass(frozen=True, eq=False)
class MatchedPeople:
    """A model that can be asked about people, missing cells included."""

    matched: Matched
    # The same before missing cells were marked: what can be read and proved is about people without them.
    plain: Matched
    people: People
    frame: pd.DataFrame
    gaps: MissingCells | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Case:
    """A model and people that fit together, and what is asked of them."""

    found: MatchedPeople
    # Its edits are parts.
    request: AuditRequest
    sensitive: Sequence[str]
    # The favourable outcome as the user wrote it.
    favourable: Any = None
    # The name of the user's table, if it is a file.
    source: str | None = None
    owner: str = "audit"

    @property
    def matched(self) -> Matched:
        """The model, missing cells included."""
        return self.found.matched

    @property
    def people(self) -> pd.DataFrame:
        """People in memory, as the model takes them: all, or a sample of the files."""
        return self.found.frame

    @property
    def told(self) -> pd.DataFrame:
        """Their sensitive columns as they are in the table, missing cells included."""
        return self.found.people.frame[list(self.sensitive)]

    @cached_property
    def labels(self) -> Any:
        """Labels; without any, the decisions if losses are asked for: whether a decision changes depends on neither."""
        known = self.found.people.labels
        return self.matched.decide(self.people) if known is None and self.request.worst_case else known

    @property
    def table(self) -> ParquetTable | None:
        """The files, which hold their labels themselves, if people are read part by part."""
        from likewise.auditing.sources import StreamedPeople

        people = self.found.people
        if not isinstance(people, StreamedPeople):
            return None
        return people.audited(self.matched.columns, self.sensitive, self.people, self.labels)

    @cached_property
    def metric(self) -> FairMetric:
        """Who is comparable with whom; learned when it is first asked for, on people without missing cells."""
        people, domain = self.found.people, self.found.plain.domain
        asked = self.request.metric
        return build_metric(asked, people.filled, self.sensitive, domain, told=people.frame, owner=self.owner)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table, and values that are declared and that nobody audited has."""
        notes = list(self.found.notes)
        for column in self.matched.domain.columns_:
            sensitive = column.name in self.sensitive
            seen = set(self.found.people.frame[column.name].dropna().unique()) if sensitive else set()
            unused = [repr(plain_cell(value)) for value in column.categories if seen and value not in seen]
            if unused:
                notes.append(
                    f"nobody in the table has {column.name!r} {truncated(unused, most=5)}, which is declared (a category of "
                    "the column, or of the model's encoder): counterparts were given it all the same."
                )
        return tuple(notes)


# Model and people.

# How many people a function is tried on; labels with more different numbers than this are quantities, not classes.
_TRIED, _MOST_CLASSES = 256, 20


def table_request(
    loaded: LoadedModel | None, metric: Any = None, needed: Sequence[str] = (), **choices: Any
) -> TableRequest:
    """Return what is asked of a table, with what the model and the metric know of its columns."""
    used, width, encoder = (None, None, None) if loaded is None else model_columns(loaded)
    if loaded is not None and choices.get("favourable") is not None:
        own = loaded.model.known_classes
        if own is not None and len(own) > 2:
            # Labels are cut in two for a model that decides between two; this one has names for all of them.
            choices["favourable"] = None
    return TableRequest(
        needed=(*needed, *metric_columns(metric)),
        used=used,
        ask=None if loaded is None else frame_question(loaded),
        width=width,
        plans=plans_of(encoder) | plans_of(getattr(metric, "feature_map", None)),
        **{"widest": WIDEST_AUDIT, **choices},
    )


def metric_columns(metric: Any) -> tuple[str, ...]:
    """Columns of the table that a metric reads."""
    return tuple(column.name for column in getattr(getattr(metric, "feature_map", None), "columns_", ()))


def match_people(
    loaded: LoadedModel,
    people: People,
    *,
    immutable: Sequence[str] = (),
    needed: Sequence[str] = (),
    metric: Any = None,
    domain: TabularDomain | None = None,
    takes: str = "auto",
    loss: Any = "auto",
    favourable: Any = None,
    missing: str = "auto",
    lenient: bool = False,
) -> MatchedPeople:
    """Find out how a model takes people, call its classes as the target's values, and settle missing cells.

    `lenient`: if the model's classes and the target's values cannot be matched, the model keeps its own names.
    """

    def make_domain(used: Sequence[str]) -> TabularDomain:
        if domain is None:
            return people.domain(used, immutable)
        names = [column.name for column in domain.columns_]
        return people.widened(domain) if set(names) == set(used) else people.domain(used, immutable)

    held = None if people.missing is None else people.missing.stand_ins
    # Labels are quantities if there are more different numbers than classes of anything.
    quantities = len(people.values) > _MOST_CLASSES and all(
        isinstance(v, (int, float)) for v in people.values
    )
    if loss == "auto" and favourable is None and (not people.values or quantities):
        some = people.filled.head(_TRIED)
        numbers = quantities and _is_regressor(loaded.native)
        if numbers or predicts_numbers(loaded, some if held is None else held.restored(some)):
            loss = "squared"
    matched = match_model(
        loaded,
        people.filled,
        held=held,
        make_domain=make_domain,
        widen=people.widened,
        immutable=immutable,
        needed=(*needed, *metric_columns(metric)),
        encoder=getattr(metric, "feature_map", None),
        takes=takes,
        loss=loss,
    )
    if domain is not None and {column.name for column in domain.columns_} == set(matched.columns):
        matched = replace(matched, encoding_assumed=False)
    if not matched.model.loss.regression:
        try:
            matched = _with_class_names(matched, people.values, favourable)
        except InputError:
            if not lenient or favourable is not None:
                raise
    found = _settle_missing(matched, people, missing, immutable)
    if favourable is not None and not found.matched.model.loss.regression:
        _check_numbering(found, loaded)
    said = (
        *_own_word_notes(found, missing),
        *people.notes,
        *([matched.note] if matched.note else ()),
        *found.notes,
    )
    return replace(found, notes=said)


def _is_regressor(native: Any) -> bool:
    from sklearn.base import BaseEstimator, is_regressor

    return isinstance(native, BaseEstimator) and is_regressor(native)


def _with_class_names(matched: Matched, values: Sequence[Any], favourable: Any) -> Matched:
    if not values:
        return matched
    different, chosen = unique_values(list(values)), None
    if favourable is not None:
        own = matched.model.known_classes
        classes = [] if own is None else own.tolist()
        # A small table may lack people with a label that the model decides for.
        named = set(map(str, different)) <= set(map(str, classes))
        chosen = find_value(
            classes if named else different, favourable, what=f"{option('favourable')}: the target"
        )
    return replace(matched, model=name_classes(matched.model, different, chosen))


def _check_numbering(found: MatchedPeople, loaded: LoadedModel) -> None:
    """Refuse to call class 1 by the favourable label if the model's decisions say that class 0 is meant."""
    labels, model = found.people.labels, found.matched.model
    own, named = loaded.model.known_classes, model.known_classes
    if labels is None or named is None or len(named) != 2 or (own is not None and set(named) & set(own)):
        return
    agrees = found.matched.decide(found.frame) == np.asarray(labels)
    of_label = [agrees[np.asarray(labels) == value] for value in named]
    few = min(map(len, of_label))
    # Three standard errors of a balanced accuracy by chance.
    if few and float(np.mean([part.mean() for part in of_label])) < 0.5 - 1.06 / np.sqrt(few):
        first, second = map(repr, named.tolist())
        raise InputError(
            f"{option('favourable')}: the model only numbers its classes, and if class 1 were {second} it would contradict "
            f"the labels of {1 - agrees.mean():.0%} of the people: class 1 seems to be {first}. Pass labels with the numbers "
            f"that the model was trained with, and the number of the favourable class."
        )


def _own_word_notes(found: MatchedPeople, policy: str) -> tuple[str, ...]:
    """Say if a model that takes missing cells decides differently about the word that was put in their place."""
    model, frame = found.matched.model, found.frame
    if policy != "category" or not model.takes_frame or model.loss.regression:
        return ()
    written = {name: frame[name].astype(object) == MISSING_WORD for name in found.matched.columns}
    written = {name: there for name, there in written.items() if there.any()}
    if not written:
        return ()
    some = np.any([there.to_numpy() for there in written.values()], axis=0)
    bare = with_columns(frame, {name: frame[name].mask(there) for name, there in written.items()})[some]
    if why_not_missing(model, bare[list(found.matched.columns)]) is not None:
        return ()
    other = int((found.matched.decide(bare) != found.matched.decide(frame[some])).sum())
    if not other:
        return ()
    return (
        f"the model takes missing cells itself, and decides differently about {other:,} of {int(some.sum()):,} people if "
        f"{MISSING_WORD!r} is written there: unless it was trained with this word, choose {option('missing', 'keep')}.",
    )


def _settle_missing(matched: Matched, people: People, policy: str, immutable: Sequence[str]) -> MatchedPeople:
    """Keep missing cells if the model takes them, else fill them or say what to do; ids and texts go to it as they are."""
    gaps = None if people.missing is None else people.missing.of(matched.columns)
    if gaps is None:
        return MatchedPeople(matched, matched, people, people.frame)
    if gaps.held or gaps.words:
        held = gaps.stand_ins
        matched = replace(matched, model=MissingCellsModel(matched.model, held))
        people = replace(people, frame=held.filled(people.frame), missing=gaps.gaps)
    if not gaps.fills:
        return MatchedPeople(matched, matched, people, people.frame, gaps)
    own = people.frame[list(matched.columns)]
    why = why_not_missing(matched.model, own)
    named = truncated([repr(name) for name in gaps.columns], most=5)
    if why is not None:
        if policy == "keep":
            raise refuse_missing(own, why)
        note = (
            f"missing values in {named} were filled with the median or the most frequent value, since the model does "
            f"not take them ({option('missing')} chooses)."
        )
        return MatchedPeople(matched, matched, people, people.filled, gaps.stand_ins, (note,))
    kept = gaps.gaps
    marked = kept.marked(people.frame)
    columns = (*matched.columns, *kept.marks)
    domain = planned_domain(marked, people.plans, columns, [*immutable, *kept.marks])
    wrapped = replace(matched, model=MissingCellsModel(matched.model, kept), domain=domain, columns=columns)
    note = f"missing values in {named} went to the model as they are; in sensitive columns every value was tried."
    return MatchedPeople(wrapped, matched, people, marked, gaps, (note,))


# Who is comparable.


def fit_metric(
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    domain: TabularDomain,
    *,
    plain: bool = False,
    told: pd.DataFrame | None = None,
) -> AttributeSubspace | ExpertSubspace:
    """Free the sensitive columns alone (`plain`), or learn their subspace: also what predicts them.

    A sensitive column that is not in the domain can only be learned, through what predicts it.
    """
    known = [column.name for column in domain.columns_]
    outside = [name for name in sensitive if name not in known]
    if plain:
        if outside or not sensitive:
            said = f"the model does not use {outside[0]!r}" if outside else "no column is named"
            raise InputError(
                f"{option('metric', 'columns')} frees the columns of {option('sensitive')}, and {said}. Leave {option('metric')} out."
            )
        return ExpertSubspace(list(sensitive), domain=domain).fit(frame[known])
    values = frame if told is None else told
    check_varied(values, sensitive)
    apart = [name for name in sensitive if name in outside or values[name].isna().any()]
    learner = AttributeSubspace(list(sensitive), domain=domain)
    return learner.fit(frame[known], sensitive_features=values[apart] if apart else None)


def build_metric(
    metric: Any,
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    domain: TabularDomain,
    *,
    told: pd.DataFrame | None = None,
    owner: str = "audit",
) -> FairMetric:
    """Return a metric from a metric, a learner, or a word: "columns" or "learned" (the default)."""
    if isinstance(metric, FairMetric):
        return metric
    if metric is None or isinstance(metric, str):
        if metric not in (None, "columns", "learned"):
            raise bad_parameter(
                owner, "metric", allowed="'columns', 'learned' or a FairMetric", got=repr(metric)
            )
        return fit_metric(frame, sensitive, domain, plain=metric == "columns", told=told).metric_
    if hasattr(metric, "metric_"):
        ready: FairMetric = metric.metric_
        return ready
    own = frame[[column.name for column in domain.columns_]]
    return ready_metric(metric, own, owner=owner, encoder=domain)


def read_metric(path: Path | None) -> FairMetric | str | None:
    """Load a fair metric of a file; the words "columns" and "learned" stay, and so does None."""
    if path is None or (str(path) in ("columns", "learned") and not path.exists()):
        return None if path is None else str(path)
    if not path.is_file():
        raise InputError(
            f"--metric: there is no file {str(path)!r}. `likewise learn-metric` writes one; --metric columns frees just "
            "the sensitive columns, --metric learned also what predicts them."
        )
    metric = FairMetric.load(path)
    if metric.feature_map is None:
        raise InputError(
            f"--metric: {path.name} does not say how a table is encoded. Learn it on the table: likewise learn-metric."
        )
    return metric


def prepare_case(
    loaded: LoadedModel,
    people: People,
    request: AuditRequest,
    *,
    sensitive: Sequence[str],
    immutable: Sequence[str] = (),
    owner: str = "audit",
    takes: str = "auto",
    favourable: Any = None,
    missing: str = "auto",
    source: str | None = None,
) -> Case:
    """Bring a model and people together; `request` has the edits as parts, and a loss or None."""
    check_varied(people.frame, [name for name in sensitive if people.frame[name].isna().all()], people)
    found = match_people(
        loaded,
        people,
        immutable=immutable,
        needed=(*sensitive, *immutable, *edited_columns(request.edits or ())),
        metric=request.metric,
        domain=request.domain,
        takes=takes,
        loss="auto" if request.loss is None else request.loss,
        favourable=favourable,
        missing=missing,
    )
    if isinstance(request.metric, str) and request.metric == "columns":
        found = with_unused(found, sensitive)
    return Case(found, request, tuple(sensitive), favourable, source, owner)


class _ModelRows:
    """Rows of a table, which may have more columns than the model uses, as the model takes them."""

    # No column of its own says that a cell is missing.
    columns: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def __init__(self, matched: Matched) -> None:
        self._matched = matched

    def restored(self, table: pd.DataFrame) -> Any:
        rows = table[list(self._matched.columns)]
        return rows if self._matched.model.takes_frame else self._matched.domain.encode_array(rows)


def table_model(matched: Matched) -> Model:
    """Return a matched model as one that takes the raw table, whatever rows it takes itself."""
    return MissingCellsModel(matched.model, _ModelRows(matched))  # type: ignore[arg-type]


def with_unused(found: MatchedPeople, sensitive: Sequence[str]) -> MatchedPeople:
    """Add sensitive columns that the model does not use, so that the answer is "no decision changes", not an error."""
    matched = found.matched
    outside = [name for name in sensitive if name not in matched.columns]
    if not outside:
        return found
    columns = tuple(name for name in found.frame.columns if name in {*matched.columns, *outside})
    fixed = [column.name for column in matched.domain.columns_ if column.immutable]
    filled = found.people.filled
    frame = with_columns(found.frame, {name: filled[name] for name in outside})
    domain = planned_domain(frame, found.people.plans, columns, fixed)
    wrapped = replace(matched, model=table_model(matched), domain=domain, columns=columns)
    return replace(found, matched=wrapped, plain=wrapped, frame=frame)


# The result in the user's own terms.


def with_encoding(matched: Matched, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Say first if nobody said how the rows of a table become the numbers that a network takes."""
    if not matched.encoding_assumed:
        return findings
    # Which input is which column is then assumed too.
    rest = (finding for finding in findings if finding.kind != "unread")
    return (Finding("encoding", Message("gate.encoding")), *rest)
