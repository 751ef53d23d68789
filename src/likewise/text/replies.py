"""Replies of scorers: rate-limited calls, a cache on disk, and their reading as a score and a decision."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from likewise.core.checks import check_number
from likewise.core.errors import (
    FormatError,
    InputError,
    LikewiseError,
    ModelError,
    NotConvergedError,
    bad_parameter,
)
from likewise.core.files import check_file

# Calls that cost money: rate-limited, repeated if the server is busy, never more than the cap.


_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class BudgetError(NotConvergedError):
    """The cap on calls was reached; what was paid for is kept.

    Examples
    --------
    >>> from likewise.text import CallLimits, NameSwap, audit_texts
    >>> try:
    ...     audit_texts(len, ["Emily wrote it."], edits=[NameSwap(names=("Lakisha",))], limits=CallLimits(max_calls=1))
    ... except BudgetError:
    ...     print("stopped before the cap")
    stopped before the cap
    """


@dataclass(frozen=True)
class CallLimits:
    """How a scorer may be called.

    Parameters
    ----------
    max_calls : int or None, default=None
        No call is made beyond so many in this run; a call that failed counts, since it may have been paid.
    per_second : float or None, default=None
        Calls per second at most.
    retries : int, default=6
        How often to try one text again when the server is busy or cannot be reached.
    first_wait, longest_wait : float, default=1.0, 60.0
        Seconds before the first retry, doubled each time up to the longest; a server that says how long to
        wait (Retry-After) is believed up to the longest.

    Examples
    --------
    >>> CallLimits(max_calls=100, per_second=2.0).wait(3)
    8.0
    """

    max_calls: int | None = None
    per_second: float | None = None
    retries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        owner = "CallLimits"
        if self.max_calls is not None and self.max_calls < 0:
            raise bad_parameter(owner, "max_calls", "an int >= 0 or None", self.max_calls)
        if self.per_second is not None and not self.per_second > 0:
            raise bad_parameter(owner, "per_second", "a number > 0 or None", self.per_second)
        if self.retries < 0:
            raise bad_parameter(owner, "retries", "an int >= 0", self.retries)
        for name in ("first_wait", "longest_wait"):
            check_number(getattr(self, name), owner=owner, name=name, low=0.0)

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait after attempt number `attempt` (0 is the first)."""
        return float(min(self.first_wait * 2.0**attempt, self.longest_wait))


@dataclass(eq=False)
class LimitedCaller:
    """Calls a scorer within limits."""

    scorer: Callable[[str], Any]
    limits: CallLimits = field(default_factory=CallLimits)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    calls: int = 0
    _next: float = 0.0

    def __call__(self, text: str) -> Any:
        """Ask for one text."""
        for attempt in range(self.limits.retries + 1):
            self._respect_limits()
            try:
                return self.scorer(text)
            except LikewiseError:
                raise
            except Exception as error:
                last = error
                _close(error)
                if not is_temporary(error):
                    raise ModelError(f"The scorer failed: {type(error).__name__}: {error}") from error
                if attempt < self.limits.retries:
                    self.sleep(_retry_after(error, self.limits) or self.limits.wait(attempt))
        raise NotConvergedError(
            f"The scorer failed {self.limits.retries + 1} times in a row ({type(last).__name__}: {last}). What was "
            "scored so far is in the cache: run again later."
        ) from last

    def _respect_limits(self) -> None:
        limits = self.limits
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetError(
                f"The cap of {limits.max_calls} calls is reached. What was scored so far is in the cache, if one was "
                "given: run again with a larger cap to go on."
            )
        if limits.per_second is not None:
            now = self.clock()
            if now < self._next:
                self.sleep(self._next - now)
            self._next = max(now, self._next) + 1.0 / limits.per_second
        self.calls += 1


def is_temporary(error: Exception) -> bool:
    """Whether a failure may pass: the server is busy or broken, or cannot be reached."""
    status = _status(error)
    if status is not None:
        return status in _TRY_AGAIN
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)):
        return False
    return isinstance(error, (OSError, TimeoutError)) or "Timeout" in type(error).__name__


def _status(error: Exception) -> int | None:
    """HTTP status of an error of urllib (code), requests and httpx (response.status_code) or an API client."""
    for owner, name in (
        (error, "status_code"),
        (error, "code"),
        (getattr(error, "response", None), "status_code"),
    ):
        value = getattr(owner, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _retry_after(error: Exception, limits: CallLimits) -> float | None:
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
    try:
        return min(float(headers["Retry-After"]), limits.longest_wait) if headers is not None else None
    except (KeyError, TypeError, ValueError):
        return None


def _close(error: Exception) -> None:
    """Close the connection that an error of urllib still holds."""
    close = getattr(error, "close", None)
    if callable(close):
        close()


def plain_reply(reply: Any) -> Any:
    """Return a reply as plain JSON values, as it goes to the cache."""
    if hasattr(reply, "detach"):  # a torch tensor, without importing torch
        reply = reply.detach().cpu().numpy()
    if isinstance(reply, (np.ndarray, np.generic)):
        reply = np.asarray(reply).squeeze().tolist()
    if isinstance(reply, (list, tuple)):
        values = [plain_reply(value) for value in reply]
        return values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if isinstance(reply, dict):
        return {str(key): plain_reply(value) for key, value in reply.items()}
    if reply is None or isinstance(reply, (bool, int, float, str)):
        return reply
    raise ModelError(
        f"The scorer answered with {type(reply).__name__}; a number, probabilities or a label is needed."
    )


def score_of_reply(
    reply: Any, *, favourable: Any = None, threshold: float | None = None
) -> tuple[float, str | None]:
    """Return the score and the decision that a reply stands for."""
    decision: str | None = None
    if isinstance(reply, dict):
        reply = [reply]
    if isinstance(reply, str) or reply is None:
        if favourable is None:
            raise bad_parameter("audit_texts", "favourable", "the label that counts as 1, if the scorer answers labels", None)  # fmt: skip
        score, decision = float(reply == favourable), str(reply)
    elif isinstance(reply, list) and reply and all(isinstance(one, dict) for one in reply):
        score, decision = _labelled(reply, favourable)
    elif isinstance(reply, list):
        if not reply or not all(isinstance(one, (int, float)) for one in reply):
            raise ModelError(f"The scorer answered {reply!r}; a list of probabilities is needed.")
        place = len(reply) - 1 if favourable is None else int(favourable)
        score, decision = float(reply[place]), str(int(np.argmax(reply)))
    else:
        score = float(reply)
    if not math.isfinite(score):
        raise ModelError(f"The scorer answered {reply!r}, which is not finite.")
    if threshold is not None:
        decision = "yes" if score >= threshold else "no"
    return score, decision


def _labelled(reply: list[dict[str, Any]], favourable: Any) -> tuple[float, str]:
    try:
        scores = {one["label"]: float(one["score"]) for one in reply}
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"The scorer answered {reply!r}; label and score of each are needed.") from error
    if favourable not in scores:
        raise ModelError(
            f"The scorer gave scores of {', '.join(map(str, scores))}, not of favourable={favourable!r}. Let it give all "
            "labels (transformers: top_k=None)."
        )
    return scores[favourable], str(max(scores, key=lambda label: scores[label]))


# Replies of a scorer on disk: a call is paid once, and a run replays from its file.


_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
  scorer TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL, repeat INTEGER NOT NULL, reply TEXT NOT NULL,
  PRIMARY KEY (scorer, version, digest, repeat)
) WITHOUT ROWID
"""


_COLUMNS = ["scorer", "version", "digest", "repeat", "reply"]
_SQLITE = b"SQLite format 3\0"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class ReplyCache:
    """Replies kept in a SQLite file that only its owner can read; of the texts it holds digests alone.

    Parameters
    ----------
    path : path-like or None, default=None
        The file, made if there is none. None keeps replies in memory.

    Examples
    --------
    >>> with ReplyCache() as cache:
    ...     cache.put("judge", "1", "Dear all", 0, 0.75)
    ...     cache.get("judge", "1", "Dear all", 0), cache.get("judge", "2", "Dear all", 0)
    ((0.75,), None)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        made = path is not None and not Path(path).exists()
        if path is not None and not made:
            if check_file(path, owner="cache", empty=True).stat().st_size:
                with Path(path).open("rb") as file:
                    _check_kind(path, file.read(len(_SQLITE)) == _SQLITE, "it is another kind of file")
        elif path is not None:
            # Before SQLite makes it, so that there is no moment in which others can read it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self.path = path
        self._base = sqlite3.connect(":memory:" if path is None else os.fspath(path))
        try:
            with self._readable(), self._base:
                self._base.execute(_TABLE)
                columns = [row[1] for row in self._base.execute("PRAGMA table_info(replies)")]
                _check_kind(path, columns == _COLUMNS, "its table has other columns")
        except BaseException:
            if path is not None and made:
                Path(path).unlink(missing_ok=True)
            raise
        if path is not None:
            # It is one of ours: others need not read it.
            Path(path).chmod(0o600)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Say of the file what SQLite and JSON say of its bytes."""
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError, FormatError) as error:
            self._base.close()
            if isinstance(error, FormatError):
                raise
            # A full disk or another process says nothing against the replies in the file, which may have been paid for.
            if getattr(error, "sqlite_errorcode", _DAMAGED[0]) & 0xFF not in _DAMAGED:
                raise InputError(
                    f"{self.path} cannot be used now: {error}. What it holds is kept; run the command again when it can."
                ) from error
            _check_kind(self.path, False, str(error))

    def get(self, scorer: str, version: str, text: str, repeat: int) -> tuple[Any] | None:
        """Return the reply in a tuple, or None if there is none."""
        with self._readable():
            row = self._base.execute(
                "SELECT reply FROM replies WHERE scorer = ? AND version = ? AND digest = ? AND repeat = ?",
                (scorer, version, _digest(text), repeat),
            ).fetchone()
            return None if row is None else (json.loads(row[0]),)

    def put(self, scorer: str, version: str, text: str, repeat: int, reply: Any) -> None:
        """Keep a reply; it is on disk when this returns."""
        row = (scorer, version, _digest(text), repeat, json.dumps(reply))
        with self._readable(), self._base:
            self._base.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        return int(self._base.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_kind(path: str | os.PathLike[str] | None, right: bool, why: str) -> None:
    if not right:
        raise FormatError(f"{path} is not a file of replies ({why}). Name another, or remove it.")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
