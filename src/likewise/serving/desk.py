"""The desk where tables are handed in and audited, one at a time, and where results are kept until the server ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from likewise.core.errors import InputError, LikewiseError
from likewise.serving.audited import Audited, Question, TableAuditor
from likewise.serving.limits import Limits
from likewise.serving.row_scores import RowScores
from likewise.serving.turns import BusyError
from likewise.serving.uploads import Upload, open_upload

__all__ = ["Desk", "Job", "Kept"]

State = Literal["running", "cancelling", "cancelled", "done", "failed"]


@dataclass(frozen=True, eq=False)
class Kept:
    """A finished audit.

    Parameters
    ----------
    number : int
    title : str
    page : str
        The page itself.
    scores : RowScores
        What the panel of the page asks.
    notes : tuple of str
    """

    number: int
    title: str
    page: str
    scores: RowScores
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class Job:
    """An audit that runs or ran.

    Parameters
    ----------
    number : int
    name : str
        Of the table.
    clock : callable
    """

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

    def hear(self, stage: str, share: float | None) -> None:
        """Take note of how far the audit is; end it where it was cancelled."""
        if self._cancelled.is_set():
            raise KeyboardInterrupt
        if stage != self.stage:
            self.stage, self._stage_began = stage, self.clock()
        self.share = share

    def cancel(self) -> None:
        """Have it end at the next sign of life."""
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
        """Of the present step, by what was done so far; None where that is not known yet."""
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


class Desk:
    """Uploads, the one audit that may run, and results.

    Parameters
    ----------
    auditor : TableAuditor or None
        None where tables cannot be uploaded.
    keep : callable (number, Audited) -> Kept
        Makes the page.
    limits : Limits
    """

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
            number, self.upload = self._numbers, None
        found = open_upload(number, name, data, self._limits)
        with self._lock:
            self.upload = found
        return found

    def start(self, table: Any, question: Question) -> Job:
        """Begin an audit of the table that was handed in last.

        Raises
        ------
        BusyError
            One is running.
        InputError
            The table is not there any more, or the question does not fit it.
        """
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
            audited = self.auditor(upload.file, question, job.hear)
            job.hear("Writing the page", None)
            kept = self._keep(job.number, audited)
        except KeyboardInterrupt:
            job.end("cancelled")
        except (LikewiseError, OSError) as error:
            job.end("failed", str(error))
        except MemoryError:
            job.end("failed", "There is not enough memory for this table. Take fewer people.")
        except BaseException as error:
            line = (str(error).strip().splitlines() or ["nothing was said"])[0][:200]
            job.end("failed", f"Something unforeseen happened ({type(error).__name__}: {line}).")
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
        if name not in names:
            raise InputError(f"{upload.file.name} has no column {name!r}.")
    if not question.sensitive:
        raise InputError("Choose at least one column that should not decide.")
    if question.target in question.sensitive:
        raise InputError(f"{question.target!r} is what the model predicts, so it cannot be sensitive too.")
