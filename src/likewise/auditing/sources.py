"""Where the people of an audit come from: a table of Python, a file, or Parquet files that are read part by part."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.case import Case, MatchedPeople, match_people, prepare_case, table_request
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.engine import Engine, LocalEngine
from likewise.auditing.partitions.tables import (
    ParquetTable,
    Rows,
    Sample,
    parquet_files,
    rows_with_gaps,
    survey,
    value_counts,
)
from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, declared_encoded, is_frame, to_pandas, with_columns
from likewise.core.text import option
from likewise.counterfactuals.edits import Edit, edited_columns, read_edits
from likewise.data.case import (
    Counted,
    People,
    TableRequest,
    TableSteps,
    check_names,
    choose_columns,
    count_lines,
    one_line_each,
    read_people,
    take_people,
    with_empty_cells,
)
from likewise.data.large_texts import write_parts
from likewise.data.missing_values import MissingCells, fill_of
from likewise.data.opening import MemoryFile, TableChoices, open_file
from likewise.data.table_files import ReadTable, read_table, table_rows
from likewise.data.target import binary_labels
from likewise.models.matching import with_own_names
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel

if TYPE_CHECKING:
    from likewise.core.checks import IntArray

# Above this many people a table is read part by part.
STREAM_ROWS = 100_000
# People drawn from a table in parts, on whom a metric is learned and a model is evaluated.
SAMPLE_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class StreamedPeople(People):
    """People in Parquet files; the frame is a sample of them that shows all that occurs."""

    table: ParquetTable | None = None
    # The missing cells of the files; those of the sample that a model is shown as ids and texts are filled by then.
    gaps: MissingCells | None = None
    random: Any = None
    target_values: tuple[Any, ...] = ()
    favourable: Any = None

    def audited(
        self, columns: Sequence[str], sensitive: Sequence[str], frame: pd.DataFrame, labels: Any
    ) -> ParquetTable:
        """Return the files as the audit reads them, given the sample as the model takes it."""
        assert self.table is not None
        assert self.steps is not None
        prepare = PreparedRows(
            self.steps, self.gaps, tuple(columns), tuple(sensitive), self.favourable, self.target_values
        )
        absent = self.frame[list(sensitive)].isna()
        rows = Rows(frame[list(columns)], labels, absent)
        return replace(self.table, prepare=prepare, sample=Sample(rows, self.random))


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """From rows of the files to what the model and the audit take: the steps of a table in memory."""

    steps: TableSteps
    missing: MissingCells | None
    columns: tuple[str, ...]
    sensitive: tuple[str, ...]
    favourable: Any
    target_values: tuple[Any, ...]

    def __call__(self, frame: pd.DataFrame, labels: Any) -> Rows:
        """Return some people as they are audited."""
        people = self.steps.people(frame)
        told = people[list(self.sensitive)].isna()
        whole = people if self.missing is None else self.missing.marked(people)
        y = None if labels is None else binary_labels(labels.to_numpy(), self.favourable, self.target_values)
        return Rows(whole[list(self.columns)], y, told)


class RowNumbers:
    """Where people are in the user's table, if some of its rows are left out: rows from 0, or places counted from `start`."""

    def __init__(self, dropped: IntArray, start: int = 0) -> None:
        # So many people come before each row that is left out.
        self._before, self._start = dropped - np.arange(len(dropped)), start

    def __getitem__(self, person: Any) -> Any:
        return person + np.searchsorted(self._before, person, side="right") + self._start


def open_people(path: Path | MemoryFile, asked: TableRequest, engine: Engine | None = None) -> People:
    """Read a table, or sample one that is too large for memory."""
    if not isinstance(path, Path):
        return read_people(path, asked)
    several = path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    if several:
        if asked.sample is not None:
            raise InputError(f"{option('sample')} takes one file. Pass one of the Parquet files.")
        return _stream(path, asked, engine)
    kind, most = open_file(path).kind, STREAM_ROWS if engine is None else 0
    if asked.sample is not None:
        return read_people(path, asked)
    if kind == "Parquet":
        if (table_rows(path) or 0) <= most:
            return read_people(path, asked)
        # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
        return _stream(Path(glob.escape(str(path))), asked, engine)
    if kind == "CSV":
        large = count_lines(path) > most
        return _converted(path, asked, engine) if large else read_people(path, asked)
    found = read_table(path, asked.choices)
    return (
        _converted(path, asked, engine, found) if len(found.frame) > most else read_people(path, asked, found)
    )


def _converted(
    path: Path, asked: TableRequest, engine: Engine | None, found: ReadTable | None = None
) -> People:
    """Write a large table of another format as Parquet, in a folder that is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file, choices = folder / "people.parquet", asked.choices
    counted: Counted = "row"
    if found is not None:
        found.frame.to_parquet(file, index=False, row_group_size=65_536)
        said, start = found.notes, 1
    else:
        rows, header, said = write_parts(open_file(path), choices, file)
        counted = "line" if one_line_each(path, rows + header) else "row"
        start = 1 + (header and counted == "line")
    people = _stream(
        file, replace(asked, choices=replace(choices, ignore=())), engine, name=path.name, text=found is None
    )
    assert people.table is not None
    note = f"{path.name} was written as Parquet in a temporary folder, to be read part by part."
    places = RowNumbers(people.table.dropped, start)
    return replace(people, notes=(*said, note, *people.notes), places=places, counted=counted)


def _stream(
    pattern: Path, asked: TableRequest, engine: Engine | None, *, name: str | None = None, text: bool = False
) -> StreamedPeople:
    """Draw a sample of Parquet files, and learn what a table in memory would tell of all of it; they may be made of text."""
    owner, target, choices = name or pattern.name, asked.target, asked.choices
    found = parquet_files(str(pattern))
    if not found:
        raise InputError(f"There is no Parquet file that fits {str(pattern)!r}. Check the path.")
    marked = bool(choices.empty or choices.columns)
    table = ParquetTable(
        found,
        target,
        ignore=tuple(choices.ignore),
        clean=partial(_cleaned, choices=choices, text=text) if marked or text else None,
    )
    nobody = pd.DataFrame(columns=pd.Index(table.names))
    check_names(nobody, owner, asked)
    check_columns(nobody, choices.ignore, owner=owner, name="table")
    parts = table.parts()
    supplied = sum(part.rows for part in parts)
    if not supplied:
        raise InputError(f"{owner} has no rows. Pass a table with people in it.")
    runner = engine or LocalEngine()
    runner.check(table.paths)
    drawn = np.random.default_rng(asked.seed).choice(supplied, size=min(SAMPLE_ROWS, supplied), replace=False)
    table, frame, numbers, seen = survey(runner, table, parts, np.sort(drawn))
    notes: list[str] = []
    features = frame if target is None else frame.drop(columns=[target])
    dropped = numbers[:0]
    if target is not None and target in seen.gaps:
        dropped = rows_with_gaps(runner, table, parts, [target])
        notes.append(f"left out {len(dropped):,} people whose target {target!r} is missing.")
    gaps = [str(n) for n in features.columns if n in seen.gaps]
    if choices.missing == "drop" and gaps:
        used = choose_columns(features, asked, owner, [])[1]
        without = rows_with_gaps(runner, table, parts, [n for n in gaps if n in used])
        more = len(np.setdiff1d(without, dropped))
        notes.append(f"left out {more:,} people with missing values.")
        dropped, gaps = np.union1d(dropped, without), []
    if len(dropped) == supplied:
        raise InputError(
            f"{owner}: nobody is left once people with missing values are left out. Pass {option('missing', 'impute')}, or name another target."
        )
    table = replace(table, dropped=dropped)
    stays = ~np.isin(numbers, dropped)
    labels = None if target is None else frame.loc[stays, target]
    few = supplied <= SAMPLE_ROWS
    # What fills the gaps of columns: the median or the most frequent value of everybody.
    counts = {} if few else value_counts(runner, table, table.parts(), gaps)
    fills = None if few else {name: fill_of(found, table.dtypes[name]) for name, found in counts.items()}
    people = take_people(features[stays], labels, asked, name=owner, fills=fills)
    missing = people.missing
    if missing is not None and missing.held and not few:
        # All values of the columns that go to the model as they are.
        counts = value_counts(runner, table, table.parts(), list(missing.held))
        held = {}
        for column, kept in missing.held.items():
            both = pd.concat([pd.Series(counts[column].index), pd.Series(kept)])
            held[column] = pd.Index(both.unique(), dtype=kept.dtype)
        missing = replace(missing, held=held)
    n = supplied - len(dropped)
    notes.append(f"{n:,} people are read part by part.")
    return StreamedPeople(
        people.frame,
        people.labels,
        people.plans,
        missing,
        (*notes, *people.notes),
        RowNumbers(dropped, 1),
        "row",
        RowNumbers(dropped),
        supplied,
        steps=people.steps,
        table=table,
        gaps=missing,
        total=n,
        random=np.isin(numbers[stays], drawn),
        target_values=() if labels is None else tuple(labels.drop_duplicates()),
        favourable=asked.favourable,
    )


def _cleaned(frame: pd.DataFrame, *, choices: TableChoices, text: bool) -> pd.DataFrame:
    """Empty the cells that the user calls missing; truth values of a text miss NaN, as in memory, and Parquet has None."""
    objects = {str(name): column for name, column in frame.items() if text and column.dtype == object}
    whole = with_columns(frame, {name: c.where(c.notna(), np.nan) for name, c in objects.items()})
    return with_empty_cells(whole, choices, part=True)


# A model and a table of Python, prepared as the command line does with files.


def loaded_model(model: Any, frame: pd.DataFrame | None = None, loss: Any = None) -> LoadedModel:
    """Return a model of Python as the preparation takes it; one that was fitted on a table with words takes the table."""
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, Model):
        return LoadedModel(model if loss is None else model.with_loss(loss), "import path")
    loaded = LoadedModel(model, "import path")
    names = None if isinstance(model, type) else getattr(model, "feature_names_in_", None)
    if names is not None and frame is not None and set(names) <= set(frame.columns):
        words = any(frame[name].dtype.kind not in "biuf" for name in names)
        if words and not (loaded.under(loss) if loss else loaded.model).takes_frame:
            return LoadedModel(loaded.under(loss or "auto", True), "import path")
    return loaded


def sensitive_names(names: Any, owner: str, *, some: bool = True) -> tuple[str, ...]:
    """Return the sensitive columns, each once, or raise if no list, or none of `some`, was passed."""
    values = isinstance(names, pd.Series) or is_frame(names)
    if isinstance(names, str) or values or not isinstance(names, Iterable) or (some and not len(names)):  # type: ignore[arg-type]
        allowed = "a list of names of columns of 'X', such as ['sex']"
        got = f"a {type(names).__name__} of values" if values else names
        raise bad_parameter(owner, "sensitive_features", allowed=allowed, got=got)
    return tuple(dict.fromkeys(map(str, names)))


def table_case(
    asked: AuditRequest,
    X: Any,
    y: Any,
    sensitive_features: Sequence[str],
    *,
    favourable: Any = None,
    missing: str = "auto",
    engine: Engine | None = None,
) -> Case:
    """Bring a model and a table of Python together, whose sensitive columns are named."""
    owner = "audit"
    names = sensitive_names(sensitive_features, owner)
    if y is None and asked.delta is not None:
        raise InputError(
            "audit: 'delta' limits what is added to the mean loss, which needs labels. Pass 'y'."
        )
    if asked.encoded or declared_encoded(X):
        raise InputError(
            "audit: 'sensitive_features' names columns of a table in original units, and 'X' is encoded. Pass the table."
        )
    # Sensitive columns are exchanged anyway.
    parts = tuple(
        part
        for part in (() if asked.edits is None else read_edits(asked.edits, owner=owner))
        if not (isinstance(part, Edit) and part == Edit(part.column) and part.column in names)
    )
    needed = (*names, *edited_columns(parts))
    choices = TableChoices(missing=missing)
    if isinstance(X, (str, Path)):
        if y is not None and not isinstance(y, str):
            allowed = "the name of the target column if 'X' is a path"
            remedy = "Pass the name, and as 'favourable' the value that counts as 1."
            raise bad_parameter(owner, "y", allowed=allowed, got=f"a {type(y).__name__}", remedy=remedy)
        loaded = loaded_model(asked.model, loss=asked.loss)
        request = table_request(loaded, asked.metric, needed, target=y, choices=choices, keeps_missing=True)
        people = open_people(Path(X), request, engine)
        if people.counted == "row":
            # As in a table that is read first: result.people["row"] is what `iloc` takes.
            people = replace(people, places=people.positions, counted="position")
    else:
        frame = named_table(X, owner)
        check_columns(frame, needed, owner=owner, name="X")
        if y is not None:
            indexed = isinstance(y, (pd.Series, pd.DataFrame)) and len(y) == len(frame)
            if indexed and not y.index.equals(frame.index):
                # By name and by position they would differ.
                unique = y.index.is_unique and frame.index.is_unique
                if unique and y.index.isin(frame.index).all():
                    raise InputError(
                        "audit: the index of 'y' has the labels of that of 'X' in another order. Pass y.loc[X.index] if they "
                        "name the same people, or y.to_numpy() if the rows belong together by their position."
                    )
            y = check_labels(y, owner=owner, min_classes=1, gaps=True)
            check_same_length(owner, X=frame, y=y)
        loaded = loaded_model(asked.model, frame, asked.loss)
        people = take_table(loaded, frame, y, needed, choices, asked.metric)
    ready = replace(asked, edits=parts)
    return prepare_case(loaded, people, ready, sensitive=names, favourable=favourable, missing=missing)


def match_table(
    model: Any, X: Any, y: Any, names: Sequence[str], *, missing: str, columns: Any = None, owner: str
) -> MatchedPeople:
    """Bring a model and a table of Python together for a question about decisions alone."""
    frame = named_table(X, owner)
    check_columns(frame, names, owner=owner, name="X")
    loaded = loaded_model(with_own_names(model, X), frame)
    people = take_table(loaded, frame, y, names, TableChoices(missing=missing, columns=columns))
    return match_people(loaded, people, needed=names, missing=missing)


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


def take_table(
    loaded: LoadedModel,
    frame: pd.DataFrame,
    y: Any,
    needed: Sequence[str],
    choices: TableChoices,
    metric: Any = None,
) -> People:
    """Take the people of a table in memory, with every column without which the model does not answer."""
    target = None if y is None else "y"
    request = table_request(loaded, metric, needed, target=target, choices=choices, keeps_missing=True)
    return take_people(frame, y, request, name="X")
