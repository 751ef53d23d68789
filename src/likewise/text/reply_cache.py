"""Replies of a scorer on disk: a call is paid once, and a run replays from its file."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any

from likewise.core.errors import FormatError

__all__ = ["ReplyCache"]

_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
  scorer TEXT NOT NULL, version TEXT NOT NULL, digest TEXT NOT NULL, repeat INTEGER NOT NULL, reply TEXT NOT NULL,
  PRIMARY KEY (scorer, version, digest, repeat)
) WITHOUT ROWID
"""


class ReplyCache:
    """Replies kept in a SQLite file that only its owner can read; of the texts it holds digests alone.

    Parameters
    ----------
    path : path-like or None, default=None
        The file, made where there is none. None keeps replies in memory.

    Examples
    --------
    >>> with ReplyCache() as cache:
    ...     cache.put("judge", "1", "Dear all", 0, 0.75)
    ...     cache.get("judge", "1", "Dear all", 0), cache.get("judge", "2", "Dear all", 0)
    ((0.75,), None)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None:
            # Before SQLite opens it, so that there is no moment in which others can read it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            Path(path).chmod(0o600)
        self.path = path
        self._base = sqlite3.connect(":memory:" if path is None else os.fspath(path))
        try:
            with self._base:
                self._base.execute(_TABLE)
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise FormatError(
                f"{path} is no file of replies ({error}). Name another, or remove it."
            ) from error

    def get(self, scorer: str, version: str, text: str, repeat: int) -> tuple[Any] | None:
        """Return the reply in a tuple, or None where there is none."""
        row = self._base.execute(
            "SELECT reply FROM replies WHERE scorer = ? AND version = ? AND digest = ? AND repeat = ?",
            (scorer, version, _digest(text), repeat),
        ).fetchone()
        return None if row is None else (json.loads(row[0]),)

    def put(self, scorer: str, version: str, text: str, repeat: int, reply: Any) -> None:
        """Keep a reply; it is on disk when this returns."""
        row = (scorer, version, _digest(text), repeat, json.dumps(reply))
        with self._base:
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
