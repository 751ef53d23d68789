"""One case: a model, people and the names of sensitive columns, brought together and audited.

Python, the command line, the server, the integrations and `improve` all use this preparation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.sources import StreamedPeople, open_people
from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError, LikewiseError, bad_parameter
from likewise.core.frames import check_columns, declared_encoded, is_frame, to_pandas
from likewise.core.text import folded
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns, read_edits
from likewise.data.case import (
    WIDEST_AUDIT,
    People,
    TableRequest,
    check_varied,
    planned_domain,
    plans_of,
    take_people,
)
from likewise.data.missing_values import MissingCells
from likewise.data.opening import TableChoices
from likewise.data.target import find_value, unique_values
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
from likewise.fair_metrics.learner import ready_metric
from likewise.models.convert import as_model
from likewise.models.matching import (
    Matched,
    MissingCellsModel,
    match_model,
    model_columns,
    name_classes,
    refuse_missing,
    why_not_missing,
)
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.partitions.engine import Engine
    from likewise.auditing.progress import OnProgress
    from likewise.auditing.results.audit_result import AuditResult
    from likewise.auditing.results.unfair_map import UnfairMap
    from likewise.data.tabular import TabularDomain
    from likewise.evaluation.summary import Evaluation

# A sensitive column with more values than this has no groups to compare.
MAX_GROUPS = 20
_SPOUSES = {"Husband", "Wife"}


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
    """Everything an audit needs, and what was asked of it."""

    matched: Matched
    # What is audited: a table, or the path of Parquet files with the name of their target as `y`.
    frame: Any
    y: Any
    metric: FairMetric
    sensitive: Sequence[str]
    edits: EditParts = ()
    eps: float | Mapping[str, float] = 0.1
    delta: float | None = None
    confidence: float = 0.95
    search: Any = "auto"
    seed: int = 0
    budget: float | None = None
    tolerance: float | None = None
    # People in memory: all, or a sample of the files.
    people: Any = None
    labels: Any = None
    # Their sensitive columns as they are in the table, missing cells included.
    told: pd.DataFrame | None = None
    gaps: MissingCells | None = None
    notes: tuple[str, ...] = ()


# Model and people.


def loaded_model(model: Any, frame: pd.DataFrame | None = None, loss: Any = None) -> LoadedModel:
    """Return a model of Python as the preparation takes it; one that was fitted on a table with words takes the table."""
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, Model):
        return LoadedModel(model if loss is None else model.with_loss(loss), "import path")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and frame is not None and set(names) <= set(frame.columns):
        words = any(frame[name].dtype.kind not in "biuf" for name in names)
        if words and not as_model(model, loss=loss or "zero_one").takes_frame:
            model = as_model(model, loss=loss or "cross_entropy", takes_frame=True)
    return LoadedModel(model, "import path")


def table_request(
    loaded: LoadedModel | None, metric: Any = None, needed: Sequence[str] = (), **choices: Any
) -> TableRequest:
    """Return what is asked of a table, with what the model and the metric know of its columns."""
    used, width, encoder = (None, None, None) if loaded is None else model_columns(loaded)
    return TableRequest(
        needed=(*needed, *metric_columns(metric)),
        used=used,
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
    positive: Any = None,
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

    matched = match_model(
        loaded,
        people.filled,
        make_domain=make_domain,
        widen=people.widened,
        immutable=immutable,
        needed=(*needed, *metric_columns(metric)),
        encoder=getattr(metric, "feature_map", None),
        takes=takes,
        loss=loss,
    )
    if not matched.model.loss.regression:
        try:
            matched = _with_class_names(matched, people.values, positive)
        except InputError:
            if not lenient or positive is not None:
                raise
    found = _settle_missing(matched, people, missing, immutable)
    said = (*people.notes, *([matched.note] if matched.note else ()), *found.notes)
    return replace(found, notes=said)


def _with_class_names(matched: Matched, values: Sequence[Any], positive: Any) -> Matched:
    if not values:
        return matched
    different = unique_values(list(values))
    chosen = None if positive is None else find_value(different, positive, what="--positive: the target")
    return replace(matched, model=name_classes(matched.model, different, chosen))


def _settle_missing(matched: Matched, people: People, policy: str, immutable: Sequence[str]) -> MatchedPeople:
    """Keep missing cells if the model takes them, else fill them or say what to do; ids and texts go to it as they are."""
    gaps = None if people.missing is None else people.missing.of(matched.columns)
    if gaps is None:
        return MatchedPeople(matched, matched, people, people.frame)
    if gaps.held:
        held = MissingCells({}, gaps.held)
        matched = replace(matched, model=MissingCellsModel(matched.model, held))
        people = replace(people, frame=held.filled(people.frame), missing=MissingCells(gaps.fills))
    if not gaps.fills:
        return MatchedPeople(matched, matched, people, people.frame, gaps)
    own = people.frame[list(matched.columns)]
    why = why_not_missing(matched.model, own)
    named = folded([repr(name) for name in gaps.columns], most=5)
    if why is not None:
        if policy == "keep":
            raise refuse_missing(own, why)
        note = (
            f"missing values in {named} were filled with the median or the most frequent value, since the model does "
            "not take them (--missing chooses)."
        )
        return MatchedPeople(matched, matched, people, people.filled, MissingCells({}, gaps.held), (note,))
    kept = MissingCells(gaps.fills)
    marked = kept.marked(people.frame)
    columns = (*matched.columns, *kept.marks)
    domain = planned_domain(marked, people.plans, columns, [*immutable, *kept.marks])
    wrapped = replace(matched, model=MissingCellsModel(matched.model, kept), domain=domain, columns=columns)
    note = f"missing values in {named} went to the model as they are; twins lack what their person lacks."
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
                f"--metric columns frees the columns of --sensitive, and {said}. Leave --metric out."
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
    """Load a fair metric of a file; the word "columns" stays, and so does None."""
    if path is None or (str(path) == "columns" and not path.exists()):
        return None if path is None else "columns"
    if not path.is_file():
        raise InputError(
            f"--metric: there is no file {str(path)!r}. `likewise learn-metric` writes one; --metric columns frees just "
            "the sensitive columns."
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
    *,
    sensitive: Sequence[str],
    metric: Any = None,
    edits: EditParts = (),
    immutable: Sequence[str] = (),
    owner: str = "audit",
    domain: TabularDomain | None = None,
    takes: str = "auto",
    loss: Any = "auto",
    positive: Any = None,
    missing: str = "auto",
    **asked: Any,
) -> Case:
    """Bring a model and people together; `asked` are the fields of `Case` that say what is asked."""
    found = match_people(
        loaded,
        people,
        immutable=immutable,
        needed=(*sensitive, *immutable, *edited_columns(edits)),
        metric=metric,
        domain=domain,
        takes=takes,
        loss=loss,
        positive=positive,
        missing=missing,
    )
    if isinstance(metric, str) and metric == "columns":
        found = _with_unused(found, sensitive)
    fitted = build_metric(
        metric, people.filled, sensitive, found.plain.domain, told=people.frame, owner=owner
    )
    labels = people.labels
    if labels is None:
        # Whether a decision changes does not depend on labels; losses are then those against the decisions.
        labels = found.matched.decide(found.frame)
    audited, y = (people.path, people.target) if isinstance(people, StreamedPeople) else (found.frame, labels)
    return Case(
        found.matched,
        audited,
        y,
        fitted,
        tuple(sensitive),
        edits,
        people=found.frame,
        labels=labels,
        told=people.frame[list(sensitive)],
        gaps=found.gaps,
        notes=found.notes,
        **asked,
    )


class _Unused:
    """Rows of a table with columns that the model does not use, as the model takes them."""

    def __init__(self, matched: Matched) -> None:
        self._matched = matched

    def restored(self, table: pd.DataFrame) -> Any:
        rows = table[list(self._matched.columns)]
        return rows if self._matched.model.takes_frame else self._matched.domain.encode_array(rows)


def _with_unused(found: MatchedPeople, sensitive: Sequence[str]) -> MatchedPeople:
    """Add sensitive columns that the model does not use, so that the answer is "no decision changes", not an error."""
    matched = found.matched
    outside = [name for name in sensitive if name not in matched.columns]
    if not outside or isinstance(found.people, StreamedPeople):
        return found
    columns = tuple(name for name in found.frame.columns if name in {*matched.columns, *outside})
    fixed = [column.name for column in matched.domain.columns_ if column.immutable]
    filled = found.people.filled
    frame = found.frame.assign(**{name: filled[name] for name in outside})
    domain = planned_domain(frame, found.people.plans, columns, fixed)
    wrapped = replace(
        matched,
        model=MissingCellsModel(matched.model, _Unused(matched)),  # type: ignore[arg-type]
        domain=domain,
        columns=columns,
    )
    return replace(found, matched=wrapped, plain=wrapped, frame=frame)


# The audit.


def audit_case(
    case: Case,
    *,
    progress: bool | OnProgress = False,
    engine: Engine | None = None,
    map_folder: str | Path | None = None,
    **choices: Any,
) -> AuditResult:
    """Audit a case; `choices` are further parameters of `audit`."""
    from likewise.auditing.auditor import audit

    matched, metric = case.matched, case.metric
    known = {column.name for column in matched.domain.columns_ if not column.immutable}
    single = {column.name for column in matched.domain.columns_ if len(column.categories) <= 1}
    streamed = isinstance(case.frame, Path)
    if not streamed:
        check_varied(case.frame, [name for name in case.sensitive if name in single])
    edited = edited_columns(case.edits)
    result = audit(
        matched.model,
        case.frame if streamed else case.frame[list(matched.columns)],
        case.y,
        metric=metric,
        domain=matched.domain,
        eps=metric.budget(case.eps) if isinstance(case.eps, Mapping) else case.eps,
        delta=case.delta,
        search=case.search,
        edits=[*(name for name in case.sensitive if name in known and name not in edited), *case.edits],
        budget_seconds=case.budget,
        confidence=case.confidence,
        random_state=case.seed,
        tolerance=case.tolerance if matched.model.loss.regression else None,
        engine=engine,
        map_folder=map_folder,
        progress=progress,
        **choices,
    )
    return _with_gaps(result, case.gaps, case.tolerance or 0.0)


def unbroken(result: AuditResult) -> AuditResult:
    """Return a result; raise KeyboardInterrupt if Ctrl-C ended its search, since half an audit looks fairer than it is."""
    if any(getattr(reason, "key", None) == "reason.broken_off" for reason in result.reasons):
        raise KeyboardInterrupt
    return result


def _with_gaps(result: AuditResult, gaps: MissingCells | None, tolerance: float) -> AuditResult:
    """Return a result whose people and twins have their missing cells again, and whose close predictions are one decision."""
    if not tolerance and (gaps is None or not (gaps.fills or gaps.held)):
        return result
    sensitive = result.sensitive
    if gaps is not None and sensitive is not None and sensitive.example is not None:
        cells = dict(sensitive.example.cells)
        for name, mark in zip(gaps.columns, gaps.marks, strict=True):
            if cells.pop(mark, False):
                cells[name] = None
        cells |= {name: str(kept[int(cells[name])]) for name, kept in gaps.held.items()}
        sensitive = replace(sensitive, example=replace(sensitive.example, cells=cells))
    return replace(
        result,
        sensitive=sensitive,
        unfair_map=_map_with_gaps(result.unfair_map, gaps, tolerance),
        pure_map=_map_with_gaps(result.pure_map, gaps, tolerance),
    )


def _map_with_gaps(unfair: UnfairMap, gaps: MissingCells | None, tolerance: float) -> UnfairMap:
    from likewise.auditing.results.unfair_map import make_unfair_map

    people, twins = unfair.people, unfair.twins
    if gaps is not None:
        people, twins = gaps.restored(people), gaps.restored(twins)
    keys = ("label", "loss", "twin_loss", "decision", "twin_decision", "squared_distance", "person")
    known: dict[str, Any] = {key: unfair.outcomes[key].to_numpy() for key in keys}
    return make_unfair_map(people, twins, **known, total=unfair.total, tolerance=tolerance)


def audit_table(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Sequence[str],
    favourable: Any = None,
    metric: Any = None,
    domain: Any = None,
    eps: float | Mapping[str, float] | None = None,
    delta: float | None = None,
    search: Any = "auto",
    loss: Any = None,
    edits: Any = None,
    encoded: bool | None = None,
    missing: str = "auto",
    budget_seconds: float | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    tolerance: float | None = None,
    **choices: Any,
) -> AuditResult:
    """Audit a table whose sensitive columns are named: what `audit` does if `sensitive_features` is given."""
    if y is None and delta is not None:
        raise InputError(
            "audit: 'delta' limits what is added to the mean loss, which needs labels. Pass 'y'."
        )
    if encoded or declared_encoded(X):
        raise InputError(
            "audit: 'sensitive_features' names columns of a table in original units, and 'X' is encoded. Pass the table."
        )
    metric = "columns" if metric is None else metric
    if eps is None:
        eps = 0.0 if isinstance(metric, str) and metric == "columns" else 0.1
    case = python_case(
        model,
        X,
        y,
        sensitive_features=sensitive_features,
        metric=metric,
        domain=domain,
        loss=loss,
        edits=edits,
        missing=missing,
        favourable=favourable,
        eps=eps,
        delta=delta,
        search=search,
        budget=budget_seconds,
        confidence=confidence,
        seed=random_state,
        tolerance=tolerance,
    )
    result = audit_case(case, **choices)
    more = {"labelled": y is not None} | ({} if favourable is None else {"favourable": favourable})
    return replace(result, assumptions=(*result.assumptions, *case.notes), settings=result.settings | more)


def python_case(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Sequence[str],
    owner: str = "audit",
    metric: Any = "columns",
    loss: Any = None,
    edits: Any = None,
    missing: str = "auto",
    favourable: Any = None,
    immutable: Sequence[str] = (),
    domain: Any = None,
    **asked: Any,
) -> Case:
    """Bring a model, a table and labels of Python together, as the command line does with files."""
    if isinstance(sensitive_features, str) or not len(sensitive_features):
        raise bad_parameter(
            owner, "sensitive_features", allowed="a list of columns, such as ['sex']", got=sensitive_features
        )
    names = tuple(sensitive_features)
    parts = () if edits is None else read_edits(edits, owner=owner)
    parts = tuple(
        part
        for part in parts
        if not (isinstance(part, Edit) and part == Edit(part.column) and part.column in names)
    )
    choices = TableChoices(missing=missing)
    needed = (*names, *immutable, *edited_columns(parts))
    if isinstance(X, (str, Path)):
        loaded = loaded_model(model, loss=loss)
        asking = table_request(loaded, metric, needed, target=y, choices=choices, keeps_missing=True)
        people = open_people(Path(X), asking)
    else:
        frame = named_table(X, owner)
        check_columns(frame, needed, owner=owner, name="X")
        if y is not None:
            y = check_labels(y, owner=owner, min_classes=1)
            check_same_length(owner, X=frame, y=y)
        loaded = loaded_model(model, frame, loss)
        asking = table_request(loaded, metric, needed, target="y", choices=choices, keeps_missing=True)
        asking = replace(asking, used=asking.used or _used_by(loaded, frame, asking))
        people = take_people(frame, y, asking, name="X")
    return prepare_case(
        loaded,
        people,
        sensitive=names,
        metric=metric,
        edits=parts,
        immutable=immutable,
        owner=owner,
        domain=domain,
        loss="auto" if loss is None else loss,
        positive=favourable,
        missing=missing,
        **asked,
    )


def named_table(X: Any, owner: str) -> pd.DataFrame:
    """Return a table with named columns, or raise."""
    if not is_frame(X):
        raise bad_parameter(
            owner,
            "X",
            allowed="a table with named columns",
            got=f"a {type(X).__name__}",
            remedy="Pass a DataFrame, so that the sensitive columns can be found by name.",
        )
    return to_pandas(X, owner=owner, name="X")


def _used_by(loaded: LoadedModel, frame: pd.DataFrame, asked: TableRequest) -> tuple[str, ...] | None:
    """Return all columns if a function does not answer, or answers differently, without those that look like ids or text."""
    native = loaded.native
    if not callable(native) or hasattr(native, "predict") or hasattr(native, "forward"):
        return None
    from likewise.data.case import choose_columns

    kept = list(choose_columns(frame, replace(asked, widest=None), "X", [])[0].columns)
    if len(kept) == frame.shape[1]:
        return None
    some = frame.head(50)
    try:
        without = np.asarray(native(some[kept]), dtype=float)
        same = np.array_equal(without, np.asarray(native(some), dtype=float), equal_nan=True)
    except Exception:  # whatever a function raises about a column that is not there
        same = False
    return None if same else tuple(map(str, frame.columns))


# What stands beside an audit: accuracy, group gaps, studies, what the metric hides.


def as_edits(frame: pd.DataFrame, edits: Mapping[str, Sequence[str]]) -> tuple[Edit, ...]:
    """Return edits with the values that the table's columns hold for words of the command line."""
    found = []
    for column, words in edits.items():
        values = unique_values(frame[column].dropna())
        named = (find_value(values, word, what=f"--edit: column {column!r}") for word in words)
        found.append(Edit(column, tuple(named)))
    return tuple(found)


def evaluate_case(case: Case) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Accuracy, consistency and group gaps of a model on people, and why some of them are not known.

    What cannot be computed on a table is left out with its reason, and stops nothing.
    """
    from likewise.evaluation.summary import evaluate

    matched, frame = case.matched, case.people
    if matched.model.loss.regression:
        return None, ("accuracy and group gaps are n/a: the model predicts numbers.",)
    groups = [name for name in case.sensitive if 2 <= frame[name].nunique() <= MAX_GROUPS]
    empty = _without_group_gap(frame, case.labels, groups)
    unknown = [f"the group gaps of {name} are n/a: {why}." for name, why in empty.items()]
    attributes = [name for name in groups if name not in empty]
    studies = _studies(groups, case.edits, matched.columns)
    for asked, compared in ((attributes, studies), (attributes, {}), ((), {})):
        try:
            found = evaluate(
                matched.decide,
                frame,
                np.asarray(case.labels),
                attributes=list(asked),
                studies=compared,
                confidence=case.confidence,
                random_state=case.seed,
            )
        except LikewiseError as error:
            unknown.append(f"some measures are n/a: {error}")
        else:
            return found, tuple(dict.fromkeys(unknown))
    return None, tuple(dict.fromkeys(unknown))


def _without_group_gap(frame: pd.DataFrame, y: Any, groups: Sequence[str]) -> dict[str, str]:
    """Columns whose group gaps are not known because a group has nobody of a class, and which group and class."""
    found = {}
    labels = np.asarray(y)
    for name in groups:
        if frame[name].isna().any():
            found[name] = f"{name} is missing for {int(frame[name].isna().sum()):,} people"
        for value in frame[name].dropna().unique():
            missing = set(labels.tolist()) - set(labels[(frame[name] == value).to_numpy()].tolist())
            if missing:
                found[name] = f"nobody is {name} = {value} and {min(missing, key=str)}"
                break
    return found


def _studies(groups: Sequence[str], edits: EditParts, columns: Sequence[str]) -> dict[str, Any]:
    """Correspondence studies of each edit and of all sensitive columns together; those of the paper have its names."""
    studies: dict[str, Any] = {}
    for part in edits:
        if isinstance(part, Edit) and part.values is not None:
            words = " ↔ ".join(str(value) for value in part.values)
            name = "S-Con" if set(part.values) == _SPOUSES else f"{part.column}: {words}"
            studies[name] = part
    seen = [name for name in groups if name in columns]
    if seen:
        paper = set(seen) == {"sex", "race"}
        studies["GR-Con" if paper else f"consistency ({' × '.join(seen)})"] = dict.fromkeys(seen)
    return studies


def diagnose_metric(
    metric: Any, frame: pd.DataFrame, sensitive: Sequence[str], seed: int
) -> tuple[list[Any], tuple[str, ...]]:
    """What the metric still tells of each sensitive column, and why that is not known of some."""
    from likewise.fair_metrics import diagnose

    found, unknown = [], []
    for name in sensitive:
        try:
            found.append(diagnose(metric, frame, name, random_state=seed))
        except LikewiseError as error:
            unknown.append(f"what the metric hides of {name} is n/a: {error}")
    return found, tuple(unknown)
