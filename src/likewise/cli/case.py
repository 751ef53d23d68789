"""One audit of the command line: a matched model, people, a metric; solved, evaluated, and ready to be shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.options import TableChoices, parse_budget
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import check_columns
from likewise.core.text import folded

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.partitions.engine import Engine
    from likewise.auditing.progress import OnProgress
    from likewise.data.column import ColumnPlan
    from likewise.data.missing_values import MissingCells
    from likewise.data.opening import MemoryFile
    from likewise.data.tabular import TabularDomain
    from likewise.data.type_inference import InferredColumn
    from likewise.evaluation.summary import Evaluation
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
    from likewise.models.matching import Matched

# Which columns of a table take part, and what they are: the user's word, what others need, and what they
# look like.


# Encoded columns of an audited table: model and metric meet in matrices of that many rows and columns.
WIDEST_AUDIT = 4000
# Encoded cells (rows × width) that a table may become: 1 GB of doubles.
MOST_CELLS = 2**27


@dataclass(frozen=True)
class AuditRequest:
    """What is asked of a table."""

    target: str | None = None
    positive: str | None = None
    choices: TableChoices = field(default_factory=TableChoices)
    needed: tuple[str, ...] = ()
    used: tuple[str, ...] | None = None
    width: int | None = None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    sample: int | None = None
    seed: int = 0
    widest: int | None = None


def planned_looks(
    frame: pd.DataFrame, choices: TableChoices, plans: Mapping[str, ColumnPlan] | None = None
) -> tuple[InferredColumn, ...]:
    """Return how every column will be read: as the user says, as is known from elsewhere, or as it looks."""
    from likewise.data.column import ColumnPlan, read_plans
    from likewise.data.type_inference import infer_types

    said = {} if choices.columns is None else read_plans(choices.columns, owner="--columns")
    check_columns(
        frame,
        [n for n, p in said.items() if p.kind not in ("left out", "target")],
        owner="--columns",
        name="table",
    )
    known = {**(plans or {}), **said}
    known |= {name: ColumnPlan("category") for name in choices.categorical}
    known |= {
        name: replace(known.get(name, ColumnPlan("integer")), kind="integer", values=None)
        for name in choices.integer
    }
    kept = set(choices.keep)
    found = []
    for look in infer_types(frame):
        plan = known.get(look.name)
        if look.name in kept and (plan or look.plan).kind == "left out":
            plan = plain_plan(frame[look.name])
        found.append(
            look
            if plan is None
            else replace(look, plan=plan, why=look.why if plan.kind == look.plan.kind else "")
        )
    return tuple(found)


def choose_columns(
    frame: pd.DataFrame, asked: AuditRequest, owner: str, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, ColumnPlan]]:
    """Return the columns that take part, and what each is; what is left out is said in the notes."""
    choices, needed, used = asked.choices, asked.needed, asked.used
    if used is None and asked.width == frame.shape[1] and all(d.kind in "biuf" for d in frame.dtypes):
        # A model of so many numbers, which does not say which: it was made on all of them.
        used = tuple(frame.columns)
    wanted = set(used if used is not None else frame.columns) | set(needed)
    if choices.only:
        wanted &= {*choices.only, *needed, *(used or ())}
    names = [str(name) for name in frame.columns if name in wanted]
    rest = [repr(str(name)) for name in frame.columns if name not in wanted]
    if rest and used is not None:
        notes.append(f"the model does not use {folded(rest)}; left out.")
    must = {*needed, *(used or ()), *choices.only}
    kinds, out = {}, []
    for look in planned_looks(frame[names], choices, {n: p for n, p in asked.plans.items() if n in wanted}):
        if look.plan.kind not in ("left out", "target"):
            kinds[look.name] = look.plan
        elif look.name in must:
            kinds[look.name] = plain_plan(frame[look.name])
        else:
            out.append(f"{look.name!r}" + (f" ({look.why})" if look.why else ""))
    if out:
        notes.append(f"left out {folded(out)}. `--read keep=COLUMN` takes one all the same.")
    if not kinds:
        raise InputError(
            f"{owner} has no columns besides the target that could be used. `likewise inspect` shows why."
        )
    _check_size(frame, kinds, owner, min(len(frame), asked.sample or len(frame)), asked.widest)
    return frame[list(kinds)], kinds


def plain_plan(series: pd.Series[Any]) -> ColumnPlan:
    """Return what a column is by its dtype alone."""
    from likewise.data.column import ColumnPlan

    if series.dtype.kind in "iu":
        return ColumnPlan("integer")
    return ColumnPlan("number" if series.dtype.kind == "f" else "category")


def _check_size(
    frame: pd.DataFrame, kinds: Mapping[str, ColumnPlan], owner: str, rows: int, widest: int | None
) -> None:
    """Raise where the encoded table would fill the memory: a category takes a column for each of its values."""
    width = {
        name: int(frame[name].nunique()) if plan.kind == "category" else 1 for name, plan in kinds.items()
    }
    total = sum(width.values())
    if total * rows <= MOST_CELLS and total <= (widest or total):
        return
    most = max(width, key=lambda name: width[name])
    if width[most] > 1000:
        what = f"column {most!r} alone has {width[most]:,} categories. Leave it out (--read ignore={most})"
    else:
        what = "take fewer columns (--read only)"
    if widest is not None and total > widest:
        raise InputError(
            f"{owner} has {total:,} encoded columns (one for each number and category), and an audit measures distances "
            f"in at most {widest:,}; {what}."
        )
    raise InputError(
        f"{owner}: {rows:,} people with {total:,} encoded columns would fill the memory; {what}, or take fewer people "
        "(--sample)."
    )


# Values of the target: words of the command line as values, one class against the rest, numbers that are no
# classes.


# Whole numbers with more values than this, or any broken number, are asked about before they become classes.
MOST_CLASSES = 10
_LIMIT = re.compile(r"\s*(>=|<=|>|<)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


def find_value(values: Any, text: str, *, what: str) -> Any:
    """Return the value that is written as `text`: 1 for "1" and "1.0", True for "True"."""
    found = list(values)
    for value in found:
        if _written(value) == text or str(value) == text:
            return value
    for value in found:
        if isinstance(value, (bool, np.bool_)) and text.lower() == str(value).lower():
            return value
    shown = folded([repr(_written(value)) for value in found], most=12)
    raise InputError(f"{what} has no value {text!r}. Its values: {shown}.")


def binary_labels(labels: np.ndarray[Any, Any], positive: str | None) -> np.ndarray[Any, Any]:
    """Return labels as they are, or, where there are more than two and one is positive, that one and the rest."""
    if positive is None:
        return labels
    limit = _LIMIT.fullmatch(positive)
    if limit is not None and np.asarray(labels).dtype.kind in "biuf":
        sign, number = limit.group(1), float(limit.group(2))
        amounts = np.asarray(labels, dtype=float)
        inside = {
            ">": amounts > number,
            ">=": amounts >= number,
            "<": amounts < number,
            "<=": amounts <= number,
        }
        return np.where(inside[sign], positive, f"not {positive}")
    values = unique_values(labels)
    chosen = find_value(values, positive, what="--positive: the target")
    if len(values) <= 2:
        return labels
    return np.where(labels == chosen, str(positive), f"not {positive}")


def check_classes(labels: np.ndarray[Any, Any], target: str, *, accepted: bool = False) -> None:
    """Raise unless the target's values are classes that somebody may mean to learn."""
    values = unique_values(labels)
    if len(values) < 2:
        raise InputError(
            f"The target {target!r} has one value only ({values[0]!r}), so there is nothing to learn. Name another --target."
        )
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        broken = any(value != int(value) for value in numbers if np.isfinite(value)) and len(values) > 2
        if broken or (len(values) > MOST_CLASSES and not accepted):
            middle = numbers[len(numbers) // 2]
            more = "" if broken else "; pass --classes if each of them is a class"
            raise InputError(
                f"The target {target!r} holds numbers ({folded([repr(v) for v in numbers], most=3)}), and a classifier "
                f"learns classes. Cut it in two with a limit, such as --positive '>={middle:g}'{more}, or name another "
                "--target."
            )
        return
    if len(values) > max(MOST_CLASSES * 10, 100) or (
        len(values) > MOST_CLASSES and len(values) > 0.5 * len(labels)
    ):
        raise InputError(
            f"The target {target!r} has {len(values):,} different values for {len(labels):,} people, so it is no class. "
            "Name another --target, or one of its values: --positive VALUE."
        )


def unique_values(labels: Any) -> list[Any]:
    """Return the different labels in order, as plain Python values."""
    import pandas as pd

    values = pd.unique(pd.Series(labels))
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return sorted(plain, key=lambda value: (str(type(value)), value))


def _written(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def told_by_columns(frame: Any, labels: np.ndarray[Any, Any], target: str) -> tuple[str, ...]:
    """Return a note where a column alone tells the target: a model that leans on it looks better than it is."""
    from likewise.data.leakage import leaking_columns

    told = leaking_columns(frame, labels)
    if not told:
        return ()
    names = sorted(told, key=lambda name: -told[name])
    shown = folded([repr(name) for name in names])
    alone = f"{shown} alone tells" if len(names) == 1 else f"each of {shown} alone tells"
    ignored = " ".join(f"--read ignore={shlex.quote(name)}" for name in names)
    return (
        f"{alone} {target!r} of nearly everybody (balanced accuracy {told[names[0]]:.2f}). If it is known only "
        f"afterwards, leave it out: {ignored}",
    )


# The people of a table: features apart from the target, columns chosen, missing cells dealt with.


@dataclass(frozen=True, eq=False)
class People:
    """Rows of a table."""

    frame: pd.DataFrame
    labels: np.ndarray[Any, Any] | None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    missing: MissingCells | None = None
    notes: tuple[str, ...] = ()

    def take(self, rows: Any) -> People:
        """Return some of the people."""
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), labels=labels)

    def domain(self, columns: Sequence[str] | None = None, immutable: Sequence[str] = ()) -> TabularDomain:
        """Return the domain of some columns, by default of all."""
        return planned_domain(self.frame, self.plans, columns, immutable)


def planned_domain(
    frame: pd.DataFrame,
    plans: Mapping[str, ColumnPlan],
    columns: Sequence[str] | None = None,
    immutable: Sequence[str] = (),
) -> TabularDomain:
    """Return the domain of some columns of a table whose columns are known."""
    from likewise.data.tabular import TabularDomain

    names = list(frame.columns) if columns is None else list(columns)
    known = {name: plans[name] for name in names if name in plans}
    check_finite(frame[names])
    return TabularDomain.from_frame(frame[names], immutable=tuple(immutable), columns=known)


def check_finite(frame: pd.DataFrame) -> None:
    """Refuse infinite numbers, with what to do on the command line."""
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and np.isinf(column).any():
            count, row = int(np.isinf(column).sum()), int(np.argmax(np.isinf(column)))
            raise InputError(
                f"Column {name!r} has {count:,} infinite values, the first in row {row}. Leave the column out (--read "
                f"ignore={name}), or empty these cells, so that --read missing=HOW applies to them."
            )


def chosen_by_class(labels: Any, share: float, seed: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which people a share of every class is, drawn with a seed; at least one of each."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), dtype=bool)
    for label in dict.fromkeys(np.asarray(labels).tolist()):
        own = np.flatnonzero(labels == label)
        chosen[rng.permutation(own)[: max(1, round(share * len(own)))]] = True
    return chosen


def read_people(path: Path | MemoryFile, asked: AuditRequest, *, keeps_missing: bool = False) -> People:
    """Read a table of people."""
    from likewise.data.table_files import read_table

    choices, target = asked.choices, asked.target
    found = read_table(path, choices.reading, ignore=choices.ignore)
    frame, notes = found.frame, list(found.notes)
    _check_names(frame, path.name, target, choices, asked.needed)
    if target is not None and frame[target].isna().any():
        gaps = int(frame[target].isna().sum())
        frame = frame[frame[target].notna()]
        notes.append(f"left out {gaps:,} people whose target {target!r} is missing.")
        if not len(frame):
            raise InputError(
                f"{path.name}: the target {target!r} is missing for everybody. Name another --target."
            )
    features = frame if target is None else frame.drop(columns=[target])
    features, kinds = choose_columns(features, asked, path.name, notes)
    features, missing = _without_gaps(features, choices.policy, keeps_missing, path.name, notes)
    if asked.sample is not None and asked.sample < len(features):
        rng = np.random.default_rng(asked.seed)
        features = features.iloc[np.sort(rng.choice(len(features), size=asked.sample, replace=False))]
    labels = None if target is None else frame.loc[features.index, target].to_numpy()
    return People(features.reset_index(drop=True), labels, kinds, missing, tuple(notes))


def _check_names(
    frame: pd.DataFrame, owner: str, target: str | None, choices: TableChoices, needed: Sequence[str]
) -> None:
    ignored = set(choices.ignore)
    for name in needed:
        if name == target or name in ignored:
            what = "the target" if name == target else "left out (--read ignore)"
            raise InputError(
                f"Column {name!r} is {what}, so it cannot be a sensitive, immutable or edited one too."
            )
    if target in ignored:
        raise InputError(f"Column {target!r} is the target, so it cannot be left out (--read ignore) too.")
    if target is not None:
        check_columns(frame, [target], owner=owner, name="table")
    check_columns(frame, needed, owner=owner, name="table")
    for option, names in choices.named.items():
        if option != "--read ignore":
            check_columns(frame, names, owner=option, name="table")


def _without_gaps(
    frame: pd.DataFrame, policy: str, keeps: bool, owner: str, notes: list[str]
) -> tuple[pd.DataFrame, MissingCells | None]:
    """Deal with missing cells as the user chose."""
    from likewise.data.missing_values import drop_missing, find_missing, own_category

    gaps = [str(name) for name, some in frame.isna().any().items() if some]
    if not gaps:
        return frame, None
    named = folded([repr(name) for name in gaps], most=5)
    if policy == "drop":
        whole = drop_missing(frame, owner=owner)
        notes.append(f"left out {len(frame) - len(whole):,} people with missing values in {named}.")
        return whole, None
    if policy == "category":
        notes.append(f"missing values in {named} became '(missing)', or the median of a number.")
        return own_category(frame), None
    if keeps and policy in ("auto", "keep"):
        return frame, find_missing(frame)
    if policy == "keep":
        raise InputError(
            f"{owner} has missing values in {named}, and what is learned here cannot keep them. Choose what stands in "
            "for them: --read missing=impute, --read missing=category or --read missing=drop."
        )
    notes.append(
        f"missing values in {named} were filled with the median or the most frequent value (--read missing=HOW chooses)."
    )
    return find_missing(frame).filled(frame), None


def as_column_values(frame: pd.DataFrame, edits: dict[str, list[str]]) -> dict[str, list[Any]]:
    """Return edits with the values that the table's columns hold for the words of the command line."""
    found: dict[str, list[Any]] = {}
    for column, words in edits.items():
        kept = frame[column].dropna().drop_duplicates().tolist()
        values = sorted(kept, key=lambda value: (str(type(value)), value))
        found[column] = [find_value(values, word, what=f"--edit: column {column!r}") for word in words]
    return found


# A sensitive column with more values than this has no groups to compare.
MAX_GROUPS = 20
_SPOUSES = {"Husband", "Wife"}


@dataclass(frozen=True, eq=False)
class Case:
    """Everything an audit needs."""

    matched: Matched
    frame: Any
    y: Any
    metric: FairMetric
    sensitive: Sequence[str]
    edits: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    eps: str = "0.1"
    delta: float | None = None
    confidence: float = 0.95
    search: str = "auto"
    seed: int = 0
    budget: float | None = None
    gaps: MissingCells | None = None
    told: pd.DataFrame | None = None
    tolerance: float | None = None


def call_classes(matched: Matched, values: Any, positive: str | None) -> Matched:
    """Return the same with the model's classes called as the target's values are; see `name_classes`."""
    from likewise.models.matching import name_classes

    different = unique_values(values)
    chosen = None if positive is None else find_value(different, positive, what="--positive: the target")
    return replace(matched, model=name_classes(matched.model, different, chosen))


def is_plain(metric: Path | None) -> bool:
    """Whether the user asked for the metric in which just the sensitive columns are free, by its word."""
    return metric is not None and str(metric) == "columns" and not metric.exists()


def read_metric(path: Path | None) -> FairMetric | None:
    """Load a fair metric, or say that the file is none; None where none is named, or only by the word "columns"."""
    if path is None or is_plain(path):
        return None
    from likewise.fair_metrics import FairMetric

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


def metric_columns(metric: FairMetric | None) -> tuple[str, ...]:
    """Columns of the table that a metric reads."""
    return tuple(column.name for column in getattr(getattr(metric, "feature_map", None), "columns_", ()))


def plans_of(encoder: Any) -> dict[str, Any]:
    """What a metric or a model that encodes tables takes each column for; nothing where there is no encoder."""
    from likewise.data.column import ColumnPlan

    found = {}
    for column in getattr(encoder, "columns_", ()):
        values = column.categories or None
        kind = {"categorical": "category", "continuous": "number"}.get(column.kind, column.kind)
        found[column.name] = ColumnPlan(kind, values=values, scale=column.curve)
    return found


def check_varied(frame: pd.DataFrame, sensitive: Sequence[str]) -> None:
    """Refuse a sensitive column with one value: nobody has a twin with another, and "nobody changes" would say nothing."""
    for name in sensitive:
        values = frame[name].dropna().unique()
        if len(values) < 2:
            said = f"one value only ({values[0]})" if len(values) else "no value"
            raise InputError(
                f"The sensitive column {name!r} has {said}, so nobody has a twin with another. Name another --sensitive, "
                "or pass a table with people of other values."
            )


def fit_metric(
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    domain: TabularDomain,
    *,
    plain: bool = False,
    told: pd.DataFrame | None = None,
) -> AttributeSubspace | ExpertSubspace:
    """Learn the sensitive subspace of some columns; those that the domain lacks only through their proxies."""
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace

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


def solve_case(
    case: Case,
    *,
    progress: bool | OnProgress = False,
    engine: Engine | None = None,
    map_folder: Path | None = None,
) -> AuditResult:
    """Run the audit of a case."""
    from likewise.auditing import audit
    from likewise.counterfactuals.edits import Edit

    matched, metric = case.matched, case.metric
    known = {column.name for column in matched.domain.columns_ if not column.immutable}
    single = {column.name for column in matched.domain.columns_ if len(column.categories) <= 1}
    if not isinstance(case.frame, Path):
        check_varied(case.frame, [name for name in case.sensitive if name in single])
    budget = parse_budget(case.eps)
    return audit(
        matched.model,
        case.frame if isinstance(case.frame, Path) else case.frame[list(matched.columns)],
        case.y,
        metric=metric,
        domain=matched.domain,
        eps=budget if isinstance(budget, float) else metric.budget(budget),
        delta=case.delta,
        search=case.search,
        edits=[
            *(name for name in case.sensitive if name in known and name not in case.edits),
            *(Edit(column, tuple(values)) for column, values in case.edits.items()),
        ],
        budget_seconds=case.budget,
        confidence=case.confidence,
        random_state=case.seed,
        tolerance=case.tolerance if matched.model.loss.regression else None,
        engine=engine,
        map_folder=map_folder,
        progress=progress,
    )


def unbroken(result: AuditResult) -> AuditResult:
    """Return a result, or stop where Ctrl-C broke its search off: beside others, half an audit looks fairer than it is."""
    if any(getattr(reason, "key", None) == "reason.broken_off" for reason in result.reasons):
        raise KeyboardInterrupt
    return result


def evaluate_case(
    matched: Matched,
    frame: pd.DataFrame,
    y: Any,
    *,
    sensitive: Sequence[str],
    edits: Mapping[str, Sequence[Any]],
    confidence: float,
    seed: int,
) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Accuracy, consistency and group gaps of a model on people, and why some of them are not known.

    These stand beside an audit: what cannot be computed on a table is left out with its reason, and stops nothing.
    """
    from likewise.evaluation.summary import evaluate

    if matched.model.loss.regression:
        return None, ("accuracy and group gaps are n/a: the model predicts numbers.",)
    groups = [name for name in sensitive if 2 <= frame[name].nunique() <= MAX_GROUPS]
    empty = nobody_there(frame, y, groups)
    unknown = [f"the group gaps of {name} are n/a: {why}." for name, why in empty.items()]
    attributes = [name for name in groups if name not in empty]
    studies = studies_of(groups, edits, matched.columns)
    for asked, compared in ((attributes, studies), (attributes, {}), ((), {})):
        try:
            found = evaluate(
                matched.decide,
                frame,
                np.asarray(y),
                attributes=list(asked),
                studies=compared,
                confidence=confidence,
                random_state=seed,
            )
        except LikewiseError as error:
            unknown.append(f"some measures are n/a: {error}")
        else:
            return found, tuple(dict.fromkeys(unknown))
    return None, tuple(dict.fromkeys(unknown))


def nobody_there(frame: pd.DataFrame, y: Any, groups: Sequence[str]) -> dict[str, str]:
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


def studies_of(
    groups: Sequence[str], edits: Mapping[str, Sequence[Any]], columns: Sequence[str]
) -> dict[str, Any]:
    """Correspondence studies: one for each edit, and one for all sensitive columns together.

    Those of the paper get its names.
    """
    from likewise.counterfactuals.edits import Edit

    studies: dict[str, Any] = {}
    for column, values in edits.items():
        words = " ↔ ".join(str(value) for value in values)
        studies["S-Con" if set(values) == _SPOUSES else f"{column}: {words}"] = Edit(column, tuple(values))
    seen = [name for name in groups if name in columns]
    if seen:
        paper = set(seen) == {"sex", "race"}
        studies["GR-Con" if paper else f"consistency ({' × '.join(seen)})"] = dict.fromkeys(seen)
    return studies


def diagnose_metric(
    metric: FairMetric | AttributeSubspace | ExpertSubspace,
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    seed: int,
) -> tuple[list[Any], tuple[str, ...]]:
    """What the metric still tells of each sensitive column, how stable it is where its learner is given; why not."""
    from likewise.fair_metrics import diagnose

    found, unknown = [], []
    for name in sensitive:
        try:
            found.append(diagnose(metric, frame, name, random_state=seed))
        except LikewiseError as error:
            unknown.append(f"what the metric hides of {name} is n/a: {error}")
    return found, tuple(unknown)
