"""Word vectors in memory: a word in, its vector out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_same_length
from likewise.core.errors import InputError, bad_parameter

__all__ = ["WordVectors"]


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """A few thousand words and their vectors.

    Parameters
    ----------
    words : tuple of str
        Each word once.
    vectors : ndarray of shape (len(words), dim)
        One row per word, in the same order; kept as float32.

    Examples
    --------
    >>> import numpy as np
    >>> lookup = WordVectors(("good", "bad"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> lookup["bad"], "ugly" in lookup, lookup.dim
    (array([0., 1.], dtype=float32), False, 2)
    >>> lookup.take(["bad", "good"]).shape
    (2, 2)
    """

    words: tuple[str, ...]
    vectors: FloatArray
    _rows: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "vectors", np.asarray(self.vectors, dtype=np.float32))
        if self.vectors.ndim != 2:
            raise bad_parameter(
                "WordVectors", "vectors", allowed="a matrix", got=f"{self.vectors.ndim} dimension(s)"
            )
        check_same_length("WordVectors", words=self.words, vectors=self.vectors)
        rows = {word: row for row, word in enumerate(self.words)}
        if len(rows) < len(self.words):
            raise InputError("WordVectors: 'words' has a word twice. Keep one vector per word.")
        object.__setattr__(self, "_rows", rows)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> FloatArray:
        row: FloatArray = self.take([word])[0]
        return row

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words of {self.dim} dimensions)"

    def take(self, words: Iterable[str]) -> FloatArray:
        """Return a copy of the vectors of `words`, one row each.

        Parameters
        ----------
        words : iterable of str
            All of them must be known; ask with ``word in vectors``.

        Returns
        -------
        ndarray of float32 of shape (number of words, dim)
        """
        wanted = list(words)
        missing = [word for word in wanted if word not in self._rows]
        if missing:
            close = difflib.get_close_matches(str(missing[0]), self.words, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            shown = ", ".join(repr(word) for word in missing[:5]) + (", …" if len(missing) > 5 else "")
            raise InputError(
                f"WordVectors: no vector for {len(missing)} of {len(wanted)} word(s): {shown}.{hint} "
                "Ask first with `word in vectors`."
            )
        return self.vectors[[self._rows[word] for word in wanted]]
