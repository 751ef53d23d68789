"""Tables that are handed in and audited, one at a time; results are kept until the server ends."""

from __future__ import annotations

import asyncio
import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from likewise.core.errors import FormatError, InputError, LikewiseError, ModelError, first_line_of
from likewise.core.text import command_line, join_words, truncated
from likewise.data.encoding import build_table, category_codes
from likewise.data.opening import MemoryFile, OpenedFile, open_file
from likewise.data.table_files import read_table
from likewise.data.tabular import TabularDomain
from likewise.data.type_inference import infer_types
from likewise.models import Model
from likewise.models.matching import MissingCellsModel
from likewise.serving.audits import Audited, Question, TableAuditor
from likewise.serving.gate import Limits

# One thing at a time: work that a browser asks for waits its turn, and too much of it is refused.


T = TypeVar("T")


class BusyError(LikewiseError):
    """So much is waiting already that nothing more is taken."""


class SerialWorker:
    """A thread that does one piece of work after the other."""

    def __init__(self, name: str, waiting: int) -> None:
        self._queue: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(waiting)
        # A daemon, unlike the threads of an executor: the end of the server does not wait for a model that never answers.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work in its turn, and return or raise what it does."""
        if self._thread.ident is None:
            self._thread.start()
        done: Future[T] = Future()
        try:
            self._queue.put_nowait((work, done))
        except queue.Full as error:
            raise BusyError(
                "The model has more questions than it can answer. Try again in a moment."
            ) from error
        return await asyncio.wrap_future(done)

    def _work(self) -> None:
        while True:
            work, done = self._queue.get()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)
            except BaseException as error:  # a model that ends its process does not end the server
                done.set_exception(ModelError(f"The model raised {type(error).__name__}."))
            del work, done


# Rows from a page, as JSON gives them, and what the model says about them.


@dataclass(frozen=True, eq=False)
class RowScores:
    """A model that is asked about rows of plain cells."""

    model: Model
    domain: TabularDomain
    most: int = 1_000

    def score(self, rows: Any) -> list[list[float]]:
        """Return the probability of every class for every row."""
        table = self.table(rows)
        asked = table if self.model.takes_frame else self.domain.encode_array(table)
        probabilities: list[list[float]] = self.model.predict_proba(asked).tolist()
        return probabilities

    def table(self, rows: Any) -> Any:
        """Return rows as a table with the columns and types that the model is used to, if they can exist."""
        encoding = self.domain.encoding_
        self._check(rows, len(encoding.names))
        cells = pd.DataFrame(
            {
                name: pd.Series([row[at] for row in rows], dtype=object)
                for at, name in enumerate(encoding.names)
            }
        )
        if isinstance(self.model, MissingCellsModel):
            gaps = self.model.missing
            cells = gaps.marked(cells.drop(columns=list(gaps.marks))).astype(object)
        try:
            wrong = self.domain.validate(cells)
        except OverflowError as error:
            raise InputError("rows: a number is too large.") from error
        for one in wrong[:1]:
            value = "missing" if one.value is None else f"{str(one.value)[:60]} is {one.reason}"
            raise InputError(f"{one.column}: {value}.")
        columns = [self.domain.column(name) for name in encoding.names]
        parts = {
            c.name: category_codes(cells[c.name], c.categories)
            if c.kind == "categorical"
            else cells[c.name].to_numpy(dtype=np.float64)
            for c in columns
        }
        return build_table(columns, parts, encoding.library)

    def _check(self, rows: Any, width: int) -> None:
        if not isinstance(rows, list) or not rows:
            raise InputError("rows: send a list of at least one row.")
        if len(rows) > self.most:
            raise InputError(
                f"rows: at most {self.most:,} can be asked about at once, and {len(rows):,} came."
            )
        for row in rows:
            if not isinstance(row, list) or len(row) != width:
                raise InputError(f"rows: every row must be a list of {width} cells.")
            if not all(cell is None or isinstance(cell, (str, bool, int, float)) for cell in row):
                raise InputError("rows: a cell must be a number, a word, true, false or null.")


# An uploaded table: checked against the limits before it is read, its columns listed for a choice.


# Different values that are listed of a column, for the choice of the one that counts as 1.
_VALUES = 12
_LONGEST_NAME = 200
_SMALLER = "Upload a random part of it."


@dataclass(frozen=True, eq=False)
class Upload:
    """An uploaded table that can be audited."""

    number: int
    file: MemoryFile
    people: int
    columns: list[dict[str, Any]]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON, without its rows."""
        return {
            "table": self.number,
            "name": self.file.name,
            "people": self.people,
            "columns": self.columns,
            "notes": list(self.notes),
        }


# Options of the command line in advice, as the page calls them; a sentence about any other is left out.
_ON_PAGE = {
    r"--sensitive( COLUMN)?": "sensitive column",
    r"--target( COLUMN)?": "column that the model predicts",
    r"--favourable( VALUE)?:?": "the favourable value",
    r"--sample( \d+)?": "a smaller sample",
}
_OPTION = re.compile(r"(?<!\w)--[a-z]|`likewise |likewise learn-metric")


def page_words(said: str) -> str:
    """Return a sentence of the library without options of the command line, which a page does not have.

    Examples
    --------
    >>> page_words("All rows have a missing value. Leave them out with --read ignore=NAME. Name another --target.")
    'All rows have a missing value. Name another column that the model predicts.'
    """
    for option, words in _ON_PAGE.items():
        said = re.sub(option, words, said)
    sentences = re.split(r"(?<=[.!?]) +", said)
    kept = [one for one in sentences if not _OPTION.search(one)]
    return " ".join(kept) or _OPTION.split(said)[0].rstrip(" ,:;(") + "."


def open_upload(
    number: int, name: str, data: bytes, limits: Limits, needed: Sequence[str] | None = None
) -> Upload:
    """Read a table that a browser sent; `needed` are the columns that the model reads, if they are known."""
    short = "".join(c if c.isprintable() else " " for c in name).strip()[:_LONGEST_NAME] or "the table"
    file = MemoryFile(short, data, largest=limits.unpacked_bytes)
    opened = open_file(file)
    if opened.kind == "CSV":
        # Lines and cells are counted before a parser makes columns of them; lines inside of quotes count too.
        text = opened.source
        assert isinstance(text, bytes)  # it came without a path
        lines = max(text.count(b"\n"), text.count(b"\r"))
        header = re.split(rb"[\r\n]", text, maxsplit=1)[0]
        cells = 1 + max(header.count(sign) for sign in (b",", b";", b"\t", b"|"))
        _check_size(opened.name, max(lines - 1, 0), cells, limits)
    elif opened.kind == "Parquet":
        _check_parquet(opened, limits)
    else:
        raise FormatError(f"{short} is {opened.kind}. Upload CSV or Parquet.")
    with command_line():
        found = read_table(file)
    _check_size(short, len(found.frame), found.frame.shape[1], limits)
    _check_table(short, found.frame, needed)
    columns = [_column(found.frame[look.name], look.plan.kind) for look in infer_types(found.frame)]
    return Upload(number, file, len(found.frame), columns, tuple(map(page_words, found.notes)))


def _check_table(name: str, frame: pd.DataFrame, needed: Sequence[str] | None) -> None:
    """Raise if a file that could be read is not a table of people, or not one for this model."""
    rows, columns = frame.shape
    if rows < 2 or columns < 2:
        found = f"{rows} row{'s' * (rows != 1)} and {columns} column{'s' * (columns != 1)}"
        raise InputError(
            f"{name} does not look like a table of people: {found} were read. A table has a line of column names, then "
            "one line per person."
        )
    # A column that the model was fitted on as 0/1 columns, such as sex_Male, is in the table as sex.
    known = tuple(f"{column}_" for column in frame.columns)
    missing = [one for one in needed or () if one not in frame and not one.startswith(known)]
    if missing:
        raise InputError(
            f"{name} lacks {truncated(missing, 5)}, which the model reads. The table has: {join_words([str(one)[:60] for one in frame.columns[:20]])}."
        )


def _column(series: pd.Series[Any], kind: str) -> dict[str, Any]:
    different = series.dropna().unique()
    few = len(different) <= _VALUES
    return {
        "name": str(series.name),
        "kind": kind,
        "values": sorted(_written(value) for value in different.tolist()) if few else None,
        "missing": int(series.isna().sum()),
    }


def _written(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)[:_LONGEST_NAME]


def _check_size(name: str, people: int, columns: int, limits: Limits) -> None:
    for what, found, most in (
        ("people", people, limits.people),
        ("columns", columns, limits.columns),
        ("cells", people * columns, limits.cells),
    ):
        if found > most:
            raise InputError(
                f"{name} has {found:,} {what}, and this server takes {most:,} at most. {_SMALLER}"
            )


def _check_parquet(file: OpenedFile, limits: Limits) -> None:
    """Look at what a Parquet file says of itself; what it would become is looked at when it is read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.ParquetFile(file.stream()).metadata
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(f"{file.name} is not a readable Parquet table: {first_line_of(error)}.") from error
    _check_size(file.name, metadata.num_rows, metadata.num_columns, limits)


State = Literal["running", "cancelling", "cancelled", "done", "failed"]


@dataclass(frozen=True, eq=False)
class Kept:
    """A finished audit."""

    number: int
    title: str
    page: str
    scores: RowScores
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class Job:
    """An audit that runs or ran."""

    number: int
    name: str
    clock: Callable[[], float] = time.monotonic
    state: State = "running"
    stage: str = "Reading"
    share: float | None = None
    error: str | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._began = self._stage_began = self.clock()
        self._ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing runs any more."""
        return self.state in ("cancelled", "done", "failed")

    def on_progress(self, stage: str, share: float | None) -> None:
        """Take note of how far the audit is; end it if it was cancelled."""
        if self._cancelled.is_set():
            raise KeyboardInterrupt
        if stage != self.stage:
            self.stage, self._stage_began = stage, self.clock()
        self.share = share

    def cancel(self) -> None:
        """End it at its next report of progress."""
        self._cancelled.set()
        if not self.over:
            self.state = "cancelling"

    def end(self, state: State, error: str | None = None) -> None:
        """Take note of how it ended; a cancelled one is cancelled whatever it came to."""
        self._ended = self.clock()
        self.state = "cancelled" if self._cancelled.is_set() else state
        self.error = None if self._cancelled.is_set() else error

    @property
    def seconds_left(self) -> float | None:
        """Of the present step, by what was done so far; None if that is not known yet."""
        if self.over or self.share is None or self.share < 0.02:
            return None
        gone = self.clock() - self._stage_began
        return gone * (1.0 - self.share) / self.share

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        until = self.clock() if self._ended is None else self._ended
        return {
            "job": self.number,
            "name": self.name,
            "state": self.state,
            "stage": self.stage,
            "share": self.share,
            "seconds": round(until - self._began, 1),
            "left": None if self.seconds_left is None else round(self.seconds_left, 1),
            "error": self.error,
            "page": f"/audits/{self.number}" if self.state == "done" else None,
        }


class JobQueue:
    """Uploads, the one audit that may run, and results."""

    def __init__(
        self, auditor: TableAuditor | None, keep: Callable[[int, Audited], Kept], limits: Limits
    ) -> None:
        self.auditor, self._keep, self._limits = auditor, keep, limits
        self._lock = threading.Lock()
        self._numbers = 0
        self.results: dict[int, Kept] = {}
        self.upload: Upload | None = None
        self.job: Job | None = None

    def show(self, audited: Audited) -> Kept:
        """Keep an audit that was made before the server began, as number 0."""
        self.results[0] = self._keep(0, audited)
        return self.results[0]

    def take(self, name: str, data: bytes) -> Upload:
        """Read a table that was handed in; it takes the place of the one before."""
        with self._lock:
            if self.job is not None and not self.job.over:
                raise BusyError("An audit is running. Wait for its end, or cancel it, before the next table.")
            self._numbers += 1
            # What became of an earlier audit is not said beside the next table.
            number, self.upload, self.job = self._numbers, None, None
        found = open_upload(number, name, data, self._limits, getattr(self.auditor, "columns", None))
        with self._lock:
            self.upload = found
        return found

    def start(self, table: Any, question: Question) -> Job:
        """Begin an audit of the table that was handed in last."""
        with self._lock:
            if self.job is not None and not self.job.over:
                raise BusyError("An audit is running. Wait for its end, or cancel it.")
            if self.auditor is None or self.upload is None or self.upload.number != table:
                raise InputError("This table is not here any more. Choose the file again.")
            _check_question(question, self.upload)
            job = self.job = Job(self.upload.number, self.upload.file.name)
            work = threading.Thread(
                target=self._run, args=(job, self.upload, question), name="likewise audit", daemon=True
            )
        work.start()
        return job

    def _run(self, job: Job, upload: Upload, question: Question) -> None:
        assert self.auditor is not None  # `start` looked
        try:
            with command_line():  # whose words `page_words` knows
                audited = self.auditor(upload.file, question, job.on_progress)
            job.on_progress("Writing the page", None)
            kept = self._keep(job.number, audited)
        except KeyboardInterrupt:
            job.end("cancelled")
        except (LikewiseError, OSError) as error:
            job.end("failed", page_words(str(error)))
        except MemoryError:
            job.end("failed", "There is not enough memory for this table. Take fewer people.")
        except BaseException as error:
            job.end(
                "failed", f"Something unforeseen happened ({type(error).__name__}: {first_line_of(error)})."
            )
        else:
            with self._lock:
                if not job._cancelled.is_set():
                    self.results[job.number] = kept
                    while len(self.results) > self._limits.results:
                        del self.results[next(number for number in self.results if number)]
            job.end("done")


def _check_question(question: Question, upload: Upload) -> None:
    names = {column["name"] for column in upload.columns}
    for name in (question.target, *question.sensitive):
        if name is not None and name not in names:
            raise InputError(f"{upload.file.name} has no column {name!r}.")
    if not question.sensitive:
        raise InputError("Choose at least one sensitive column.")
    if question.favourable is not None and question.target is not None:
        values = next(one["values"] for one in upload.columns if one["name"] == question.target)
        if values is not None and question.favourable not in values:
            raise InputError(
                f"{question.target!r} is never {question.favourable!r}. Choose one of its values."
            )
    if question.target in question.sensitive:
        raise InputError(f"{question.target!r} is what the model predicts, so it cannot be sensitive too.")
