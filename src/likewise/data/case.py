"""People of a table: the columns used and their types, labels, and the treatment of missing cells."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from likewise.core.errors import InputError
from likewise.core.frames import check_columns, same_words, with_columns
from likewise.core.text import option, truncated
from likewise.data.one_hot import match_one_hot
from likewise.data.opening import TableChoices
from likewise.data.target import binary_labels
from likewise.data.text_tables import is_number

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from likewise.data.column import ColumnPlan
    from likewise.data.missing_values import MissingCells
    from likewise.data.opening import MemoryFile
    from likewise.data.table_files import ReadTable
    from likewise.data.tabular import TabularDomain
    from likewise.data.type_inference import InferredColumn

# Encoded columns of an audited table: model and metric meet in matrices of that many rows and columns.
WIDEST_AUDIT = 4000
# Encoded cells (rows × width) that a table may become: 1 GB of doubles.
MOST_CELLS = 2**27

# How the places of people in the user's table are counted: lines of a text file from 1, with its header; rows from 1,
# without it; labels of a frame's index, and if these only count from 0: positions, said as rows from 1.
Counted: TypeAlias = Literal["line", "row", "position", "index"]


@dataclass(frozen=True)
class TableRequest:
    """What a verb wants of a table: the user's choices, and what the model and the metric know of its columns."""

    target: str | None = None
    favourable: Any = None
    choices: TableChoices = field(default_factory=TableChoices)
    needed: tuple[str, ...] = ()
    used: tuple[str, ...] | None = None
    # What to ask of a model that may take the table and does not say its columns.
    ask: Callable[[Any], Any] | None = None
    width: int | None = None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    sample: int | None = None
    seed: int = 0
    widest: int | None = None
    keeps_missing: bool = False


@dataclass(frozen=True, eq=False)
class TableSteps:
    """How rows of a table become people, as learned from the whole table: a part of it gives the same people."""

    columns: tuple[str, ...]
    # Columns with words in the place of dates, decimals and the like.
    words: Mapping[str, pd.Series[Any]] = field(default_factory=dict)
    # What fills gaps at once, for whatever model; with `category` words get a category of their own.
    fills: Mapping[str, Any] = field(default_factory=dict)
    category: bool = False

    def people(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows of the table, with the cells that the user calls missing missing, as people."""
        from likewise.data.missing_values import MissingCells, own_category

        found = _in_words(frame[list(self.columns)], self.words)
        return own_category(found, self.fills) if self.category else MissingCells(self.fills).filled(found)


@dataclass(frozen=True, eq=False)
class People:
    """Rows of a table, with their labels."""

    frame: pd.DataFrame
    labels: np.ndarray[Any, Any] | None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    missing: MissingCells | None = None
    notes: tuple[str, ...] = ()
    # Where each of them is in the user's table, how these places are counted, and how many rows the table has.
    places: Any = None
    counted: Counted = "index"
    # Their rows in the user's table, from 0.
    positions: Any = None
    supplied: int | None = None
    sampled: bool = False
    steps: TableSteps | None = None
    # How many they are, if the frame is a sample.
    total: int | None = None

    @property
    def filled(self) -> pd.DataFrame:
        """The people with missing cells filled."""
        return self.frame if self.missing is None else self.missing.filled(self.frame)

    @property
    def values(self) -> list[Any]:
        """The different labels, in the order in which they occur."""
        return [] if self.labels is None else list(dict.fromkeys(self.labels.tolist()))

    def take(self, rows: Any) -> People:
        """Return some of the people."""
        labels = None if self.labels is None else self.labels[rows]
        places = None if self.places is None else self.places[rows]
        positions = None if self.positions is None else self.positions[rows]
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return replace(self, frame=frame, labels=labels, places=places, positions=positions)

    def domain(self, columns: Sequence[str] | None = None, immutable: Sequence[str] = ()) -> TabularDomain:
        """Return the domain of some columns, by default of all."""
        return planned_domain(self.filled, self.plans, columns, immutable)

    def widened(self, domain: TabularDomain) -> TabularDomain:
        """Return a domain that contains these people too."""
        return domain.widened(self.filled[[column.name for column in domain.columns_]])


def planned_domain(
    frame: pd.DataFrame,
    plans: Mapping[str, ColumnPlan],
    columns: Sequence[str] | None = None,
    immutable: Sequence[str] = (),
) -> TabularDomain:
    """Return the domain of some columns of a table, each read as planned."""
    from likewise.data.tabular import TabularDomain

    names = list(frame.columns) if columns is None else list(columns)
    known = {name: plans[name] for name in names if name in plans}
    check_finite(frame[names])
    fixed = tuple(name for name in immutable if name in names)
    return TabularDomain.from_frame(frame[names], immutable=fixed, columns=known)


def check_finite(frame: pd.DataFrame) -> None:
    """Refuse infinite numbers."""
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and np.isinf(column).any():
            count, row = int(np.isinf(column).sum()), int(np.argmax(np.isinf(column)))
            raise InputError(
                f"Column {name!r} has {count:,} infinite values, the first in row {row}. Leave the column out "
                f"({option('ignore', name)}), or empty these cells, so that they are missing ones ({option('missing')})."
            )


def check_varied(frame: pd.DataFrame, sensitive: Sequence[str], people: People | None = None) -> None:
    """Refuse a sensitive column with one value: then "no decision changes" would say nothing."""
    supplied = None if people is None or people.sampled or people.total else people.supplied
    for name in sensitive:
        values = frame[name].dropna().unique()
        if len(values) < 2:
            said = f"one value only ({values[0]})" if len(values) else "no value"
            if supplied is not None and supplied > len(frame):
                said += f" among {len(frame):,} of {supplied:,} people (the others lack a label or a value)"
            raise InputError(
                f"The sensitive column {name!r} has {said}, so there is no other to compare with. Name another "
                f"column ({option('sensitive')}), or pass a table with people of other values."
            )


# Reading a table.


def read_people(path: Path | MemoryFile, asked: TableRequest, found: ReadTable | None = None) -> People:
    """Read a table of people from a file, if it was not read already."""
    from likewise.data.table_files import read_table

    choices, target = asked.choices, asked.target
    found = found or read_table(path, choices)
    check_names(found.frame, path.name, asked)
    frame = with_empty_cells(found.frame, choices)
    features = frame if target is None else frame.drop(columns=[target])
    labels = None if target is None else frame[target]
    people = take_people(features, labels, asked, name=path.name, notes=found.notes)
    header = choices.header is not False
    if one_line_each(path, len(features) + header):
        return replace(people, places=people.places + 1 + header, counted="line")
    return replace(people, places=people.places + 1, counted="row")


def one_line_each(path: Path | MemoryFile, lines: int) -> bool:
    """Whether a text file has exactly so many lines, so that rows can be found by their line."""
    return (
        PurePath(path.name).suffix.lower() in (".csv", ".tsv", ".txt", ".data") and count_lines(path) == lines
    )


def count_lines(path: Path | MemoryFile) -> int:
    """Return the number of lines of a text file, read a block at a time."""
    with io.BytesIO(path.data) if hasattr(path, "data") else path.open("rb") as stream:
        lines, last = 0, b"\n"
        while block := stream.read(2**22):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


def with_empty_cells(frame: pd.DataFrame, choices: TableChoices, *, part: bool = False) -> pd.DataFrame:
    """Return a table in which the values that the user calls missing (`--read empty`, `--columns`) are missing cells.

    A `part` of a table need not have any.
    """
    from likewise.data.column import read_plans

    said = {} if choices.columns is None else read_plans(choices.columns, owner="--columns")
    changed = {}
    for name, column in frame.items():
        plan = said.get(str(name))
        marks = {str(mark) for mark in (*choices.empty, *(plan.empty if plan else ()))}
        if not marks:
            continue
        if column.dtype.kind in "iuf":
            gone = column.isin([float(mark) for mark in marks if is_number(mark)])
        else:
            gone = column.notna() & column.astype(str).str.strip().isin({mark.strip() for mark in marks})
        if gone.any():
            changed[str(name)] = column.mask(gone)
    if choices.empty and not changed and not part:
        raise InputError(
            f"{option('empty')}: no cell of the table is {' or '.join(choices.empty)}. `likewise inspect` shows the values."
        )
    return with_columns(frame, changed)


def take_people(
    features: pd.DataFrame,
    labels: Any,
    asked: TableRequest,
    *,
    name: str,
    notes: Sequence[str] = (),
    fills: Mapping[str, Any] | None = None,
) -> People:
    """Choose the columns of a table in memory and deal with missing cells; people without a label are left out.

    `fills` is what fills the gaps of columns, if these are rows of a larger table.
    """
    import pandas as pd

    from likewise.data.column import ColumnPlan
    from likewise.data.missing_values import MissingCells, in_words

    index, said = features.index, list(notes)
    features = features.reset_index(drop=True)
    if labels is not None:
        labels = pd.Series(labels).reset_index(drop=True)
        unknown = labels.isna()
        if unknown.all():
            raise InputError(
                f"{name}: the target {asked.target!r} is missing for everybody. Name another ({option('target')})."
            )
        if unknown.any():
            said.append(f"left out {int(unknown.sum()):,} people whose target {asked.target!r} is missing.")
            features = features[~unknown]
    features, plans = choose_columns(features, asked, name, said)
    held = [name for name, plan in plans.items() if plan.kind == "left out"]
    plans |= {name: ColumnPlan("integer", immutable=True) for name in held}
    exchanged = {n: in_words(features[n]) for n in plans if asked.keeps_missing and n not in held}
    words = {n: found for n, found in exchanged.items() if found is not None}
    features = _in_words(features, words)
    features, missing, filled = _without_gaps(features, asked, name, said, held, fills)
    steps = TableSteps(tuple(plans), words, filled, asked.choices.missing == "category")
    features = replace(steps, words={}).people(features)
    if words:
        missing = replace(missing or MissingCells({}), words=words)
    sampled = asked.sample is not None and asked.sample < len(features)
    if asked.sample is not None and sampled:
        rng = np.random.default_rng(asked.seed)
        features = features.iloc[np.sort(rng.choice(len(features), size=asked.sample, replace=False))]
    kept = None
    if labels is not None:
        kept = binary_labels(labels.loc[features.index].to_numpy(), asked.favourable)
    return People(
        features.reset_index(drop=True),
        kept,
        plans,
        missing,
        tuple(said),
        index.to_numpy()[features.index.to_numpy()],
        positions=features.index.to_numpy(),
        counted="position" if index.equals(pd.RangeIndex(len(index))) else "index",
        supplied=len(index),
        sampled=sampled,
        steps=steps,
    )


def _in_words(features: pd.DataFrame, words: Mapping[str, pd.Series[Any]]) -> pd.DataFrame:
    """Return a table with words in the place of dates, decimals and the like."""
    import pandas as pd

    new = {}
    for name, known in words.items():
        word_of = dict(zip(known.iloc[:-1], known.index, strict=False))
        cells = zip(features[name], features[name].isna(), strict=True)
        told = [None if gap else word_of[cell] for cell, gap in cells]
        new[name] = pd.Series(told, index=features.index, dtype=object)
    return with_columns(features, new)


def check_names(frame: pd.DataFrame, owner: str, asked: TableRequest) -> None:
    """Refuse columns that the table does not have, or that were given two parts to play."""
    target, choices = asked.target, asked.choices
    for name in asked.needed:
        if name == target or name in choices.ignore:
            what = "the target" if name == target else f"left out ({option('ignore')})"
            raise InputError(
                f"Column {name!r} is {what}, so it cannot be a sensitive, immutable or edited one too."
            )
    if target in choices.ignore:
        raise InputError(
            f"Column {target!r} is the target, so it cannot be left out ({option('ignore')}) too."
        )
    predicted = [] if target is None else [target]
    check_columns(frame, [*predicted, *asked.needed], owner=owner, name="table")
    for named, names in choices.named.items():
        if named != option("ignore"):
            check_columns(frame, names, owner=named, name="table")


def _without_gaps(
    table: pd.DataFrame,
    asked: TableRequest,
    owner: str,
    notes: list[str],
    held: Sequence[str],
    fills: Mapping[str, Any] | None,
) -> tuple[pd.DataFrame, MissingCells | None, Mapping[str, Any]]:
    """Say what becomes of missing cells as the user chose, but for columns that are held as they are.

    The rows that stay, the cells that stay missing, and what the others are filled with.
    """
    from likewise.data.missing_values import drop_missing, find_missing

    policy, frame = asked.choices.missing, table.drop(columns=list(held))
    nothing = find_missing(table[list(held)], held) if held else None
    gaps = [str(name) for name, some in frame.isna().any().items() if some]
    if not gaps:
        return table, nothing, {}
    named = truncated([repr(name) for name in gaps], most=5)
    if policy == "drop":
        whole = drop_missing(frame, owner=owner)
        notes.append(f"left out {len(frame) - len(whole):,} people with missing values in {named}.")
        return table.loc[whole.index], nothing, {}
    found = find_missing(table, held, fills)
    if policy == "category":
        notes.append(f"missing values in {named} became '(missing)', or the median of a number.")
        return table, nothing, found.fills
    if asked.keeps_missing and policy in ("auto", "keep"):
        return table, found, {}
    if policy == "keep":
        raise InputError(
            f"{owner} has missing values in {named}, and what is learned here cannot keep them. Choose what stands in "
            f"for them: {option('missing', 'impute')}, {option('missing', 'category')} or {option('missing', 'drop')}."
        )
    notes.append(
        f"missing values in {named} were filled with the median or the most frequent value ({option('missing')} chooses)."
    )
    return table, nothing, found.fills


# Columns that take part, and what they are.


def planned_looks(
    frame: pd.DataFrame, choices: TableChoices, plans: Mapping[str, ColumnPlan] | None = None
) -> tuple[InferredColumn, ...]:
    """Return how every column will be read: as the user says, as the model or metric says, or as it looks."""
    from likewise.data.column import ColumnPlan, read_plans
    from likewise.data.type_inference import infer_types

    said = {} if choices.columns is None else read_plans(choices.columns, owner="--columns")
    named = [name for name, plan in said.items() if plan.kind not in ("left out", "target")]
    check_columns(frame, named, owner="--columns", name="table")
    known = {**(plans or {}), **said}
    known |= {name: ColumnPlan("category") for name in choices.categorical}
    known |= {
        name: replace(known.get(name, ColumnPlan("integer")), kind="integer", values=None)
        for name in choices.integer
    }
    found = []
    for look in infer_types(frame):
        plan = known.get(look.name)
        if look.name in choices.keep and (plan or look.plan).kind == "left out":
            plan = plain_plan(frame[look.name])
        if plan is not None:
            look = replace(look, plan=plan, why=look.why if plan.kind == look.plan.kind else "")
        found.append(look)
    return tuple(found)


def plain_plan(series: pd.Series[Any]) -> ColumnPlan:
    """Return what a column is by its dtype alone."""
    from likewise.data.column import ColumnPlan

    if series.dtype.kind in "iu":
        return ColumnPlan("integer")
    return ColumnPlan("number" if series.dtype.kind == "f" else "category")


def plans_of(encoder: Any) -> dict[str, ColumnPlan]:
    """What the encoder of a metric or a model takes each column for; nothing if there is no encoder."""
    from likewise.data.column import ColumnPlan

    kinds: dict[str, Any] = {"categorical": "category", "continuous": "number", "integer": "integer"}
    return {
        column.name: ColumnPlan(kinds[column.kind], values=column.categories or None, scale=column.curve)
        for column in getattr(encoder, "columns_", ())
    }


def choose_columns(
    frame: pd.DataFrame, asked: TableRequest, owner: str, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, ColumnPlan]]:
    """Return the columns that take part, and what each is; the notes say which are left out.

    An id, a date or a text that the model takes keeps the kind "left out": it goes to the model, and is not encoded.
    """
    from likewise.data.column import ColumnPlan

    choices, needed, used = asked.choices, asked.needed, asked.used
    if used is None and asked.width == frame.shape[1] and all(d.kind in "biuf" for d in frame.dtypes):
        # A model of as many numbers that does not name them was made on all of them.
        used = tuple(frame.columns)
    if used is None and asked.ask is not None and not choices.only:
        used = _read_by(asked.ask, frame, asked)
    categories: tuple[str, ...] = ()
    if used is not None:
        used, categories = _used_columns(used, frame, notes)
    wanted = set(used if used is not None else frame.columns) | set(needed)
    if choices.only:
        wanted &= {*choices.only, *needed, *(used or ())}
    nested = {str(name) for name in frame.columns if name in wanted and not _are_cells(frame[name])}
    for name in sorted(nested & {*needed, *(used or ())}):
        raise InputError(
            f"{owner}: column {name!r} holds lists, dicts or sets, which cannot be told apart as values. Write them as text, or "
            f"as a column for each part, or leave the column out ({option('ignore', name)})."
        )
    names = [str(name) for name in frame.columns if name in wanted and name not in nested]
    rest = [repr(str(name)) for name in frame.columns if name not in wanted]
    if rest and used is not None:
        notes.append(f"the model does not use {truncated(rest, most=3)}; left out.")
    must = {*needed, *(used or ()), *choices.only}
    plans, out = {}, [f"{name!r} (lists, dicts or sets)" for name in sorted(nested)]
    known = {name: ColumnPlan("category") for name in categories}
    known |= {name: plan for name, plan in asked.plans.items() if name in wanted}
    for look in planned_looks(frame[names], choices, known):
        if look.plan.kind not in ("left out", "target"):
            plans[look.name] = look.plan
        elif look.name in must:
            held = (
                asked.keeps_missing and look.name not in needed and frame[look.name].dtype.kind not in "biuf"
            )
            plans[look.name] = ColumnPlan("left out") if held else plain_plan(frame[look.name])
        else:
            out.append(f"{look.name!r}" + (f" ({look.why})" if look.why else ""))
    if out:
        how = option("keep", "COLUMN")
        notes.append(f"left out {truncated(out)}." + (f" `{how}` takes one all the same." if how else ""))
    if not plans:
        raise InputError(
            f"{owner} has no columns besides the target that could be used. `likewise inspect` shows why."
        )
    _check_size(frame, plans, owner, min(len(frame), asked.sample or len(frame)), asked.widest)
    return frame[list(plans)], plans


def _read_by(ask: Callable[[Any], Any], frame: pd.DataFrame, asked: TableRequest) -> tuple[str, ...] | None:
    """Return all columns if a model does not answer, or answers differently, without those that look like ids or text."""
    import pandas as pd

    kept = list(choose_columns(frame, replace(asked, ask=None, widest=None), "", [])[1])
    if len(kept) == frame.shape[1]:
        return None
    some = frame.head(50)
    try:
        same = pd.Series(np.asarray(ask(some[kept]))).equals(pd.Series(np.asarray(ask(some))))
    except Exception:  # whatever a model raises about a column that is not there
        same = False
    return None if same else tuple(map(str, frame.columns))


def _are_cells(column: pd.Series[Any]) -> bool:
    """Whether every cell of a column is a value that can be counted."""
    try:
        return column.dtype != object or bool(set(column))
    except TypeError:
        return False


def _used_columns(
    names: Sequence[str], frame: pd.DataFrame, notes: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of the table that a model's names stand for, and those that are one-hot in the model."""
    if all(name in frame.columns for name in names):
        return tuple(names), ()
    one_hot = match_one_hot(names, frame)
    if one_hot is not None:
        gaps = [repr(c) for c in one_hot.places if c not in one_hot.missing and frame[c].isna().any()]
        if gaps:
            said = "are 0 in all the model's columns of theirs, as get_dummies writes them."
            notes.append(f"missing cells of {truncated(gaps)} {said}")
        return one_hot.columns, tuple(one_hot.places)
    alike = [next((str(c) for c in frame.columns if same_words(c, name)), name) for name in names]
    check_columns(frame, alike, owner="The model", name="X")
    return tuple(alike), ()


def _check_size(
    frame: pd.DataFrame, plans: Mapping[str, ColumnPlan], owner: str, rows: int, widest: int | None
) -> None:
    """Raise if the encoded table would fill the memory: a category takes a column for each of its values."""
    width = {
        name: int(frame[name].nunique()) if plan.kind == "category" else 1 for name, plan in plans.items()
    }
    total = sum(width.values())
    if total * rows <= MOST_CELLS and total <= (widest or total):
        return
    most = max(width, key=lambda name: width[name])
    if width[most] > 1000:
        what = (
            f"column {most!r} alone has {width[most]:,} categories. Leave it out ({option('ignore', most)})"
        )
    else:
        what = f"take fewer columns ({option('only')})"
    if widest is not None and total > widest:
        raise InputError(
            f"{owner} has {total:,} encoded columns (one for each number and category), and an audit measures distances "
            f"in at most {widest:,}; {what}."
        )
    raise InputError(
        f"{owner}: {rows:,} people with {total:,} encoded columns would fill the memory; {what}, or take fewer people "
        f"({option('sample')})."
    )
