"""Word vectors: in memory, and read out of files of any size."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from likewise.core.checks import FloatArray, check_same_length
from likewise.core.errors import FormatError, InputError, bad_parameter, did_you_mean, listed
from likewise.core.files import check_file
from likewise.datasets.words import unique


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
            raise bad_parameter("WordVectors", "vectors", "a matrix", f"{self.vectors.ndim} dimension(s)")
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
            shown = listed([repr(word) for word in missing], 5) + did_you_mean(missing[0], self.words)
            raise InputError(
                f"WordVectors: no vector for {len(missing)} of {len(wanted)} word(s): {shown}. "
                "Ask first with `word in vectors`."
            )
        return self.vectors[[self._rows[word] for word in wanted]]


# Read the vectors of a few words out of a file of any size, in one pass and bounded memory.


Rows: TypeAlias = "Iterator[tuple[str, FloatArray]]"

CHUNK = 1 << 20  # bytes held at once
SNIFF = 1 << 16  # bytes that decide the format
MAX_WORD = 1 << 12  # no word is longer; a longer one means that the file is something else
MAX_DIM = 100_000
EXPECTED = (
    "Expected GloVe text (a word and its numbers per line), word2vec text or binary (the same after a line "
    "with two counts), or an npz with the arrays 'words' and 'vectors'; plain or gzipped."
)


class _Format(NamedTuple):
    kind: str  # "npz", "text" or "binary"
    dim: int
    announced: int | None  # rows the header announces


def read_word_vectors(
    path: str | PathLike[str], words: Iterable[str], *, owner: str = "read_word_vectors"
) -> WordVectors:
    r"""Read the vectors of `words` from a GloVe, word2vec or npz file.

    Parameters
    ----------
    path : path-like
        GloVe text, word2vec text (also fastText ``.vec``), word2vec binary, or an npz with the arrays
        ``words`` (strings) and ``vectors`` (one row each); plain or gzipped. The bytes decide which.
    words : iterable of str
        The words to keep. The file is read once, a megabyte at a time, and reading stops when all of them
        have been met, so memory does not grow with the file.
    owner : str, default="read_word_vectors"
        For error messages.

    Returns
    -------
    WordVectors
        Of the words that the file has, in the order of `words`; the first vector of a word counts.

    Raises
    ------
    FormatError
        The file is not one of these formats, is damaged, or holds pickled objects (never loaded).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.txt"
    >>> _ = path.write_text("good 1 0\nbad 0 1\nugly 2 2\n")
    >>> read_word_vectors(path, ["bad", "good", "odd"]).words
    ('bad', 'good')
    """
    wanted = unique(words)
    where = check_file(path, owner=owner, remedy="'vectors' is the path of a vectors file.")
    found: dict[str, FloatArray] = {}
    missing = set(wanted)
    with ExitStack() as stack:
        try:
            layout, stream = _open(where, stack)
            for word, vector in _rows(layout, stream, missing):
                if word not in missing:
                    continue
                if not np.isfinite(vector).all():
                    raise _BadFileError(f"the vector of {word!r} has values that are not finite")
                found[word] = vector
                missing.discard(word)
                if not missing:
                    break
        except _BadFileError as error:
            raise FormatError(f"{owner}: {where.name} cannot be read: {error}.") from error
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
            raise FormatError(
                f"{owner}: {where.name} is damaged or cut short ({error}). Fetch it again."
            ) from error
    dim = len(next(iter(found.values()))) if found else layout.dim
    kept = [word for word in wanted if word in found]
    matrix = np.empty((len(kept), dim), dtype=np.float32)
    for row, word in enumerate(kept):
        matrix[row] = found[word]
    return WordVectors(tuple(kept), matrix)


class _BadFileError(Exception):
    """What is wrong with the file; the reader adds whose parameter it was and which file."""


def _open(path: Path, stack: ExitStack) -> tuple[_Format, IO[bytes]]:
    """Find the format from the first bytes and return a stream at the start of the file."""
    with path.open("rb") as raw:
        gzipped = raw.read(2) == b"\x1f\x8b"

    def opened() -> IO[bytes]:
        raw = stack.enter_context(path.open("rb"))
        if not gzipped:
            return raw
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb"))
        return io.BufferedReader(unpacked, CHUNK)

    return _sniff(opened().read(SNIFF)), opened()


def _sniff(head: bytes) -> _Format:
    if head[:4] == b"PK\x03\x04":
        return _Format("npz", 0, None)
    first, _, rest = head.partition(b"\n")
    tokens = first.split()
    if len(tokens) == 2 and all(token.isdigit() for token in tokens):
        count, dim = int(tokens[0]), int(tokens[1])
        if not (count and 0 < dim <= MAX_DIM):
            raise _BadFileError(f"its header announces {count} words of {dim} numbers")
        numbers = rest.partition(b"\n")[0].split()[1:6]
        return _Format("text" if _numeric(numbers[: max(1, len(numbers) - 1)]) else "binary", dim, count)
    if 3 <= len(tokens) <= MAX_DIM and b"\n" in head and _numeric(tokens[1:]):
        return _Format("text", len(tokens) - 1, None)
    raise _BadFileError(f"it is not a file of word vectors. {EXPECTED[:-1]}")


def _numeric(tokens: list[bytes]) -> bool:
    try:
        [float(token) for token in tokens]
    except ValueError:
        return False
    return bool(tokens)


def _rows(layout: _Format, stream: IO[bytes], wanted: set[str]) -> Rows:
    if layout.kind == "npz":
        return _npz_rows(stream, wanted)
    return (_text_rows if layout.kind == "text" else _binary_rows)(stream, layout, wanted)


def _text_rows(stream: IO[bytes], layout: _Format, wanted: set[str]) -> Rows:
    if layout.announced is not None:
        stream.readline()
    keys = {word.encode("utf-8") for word in wanted}
    limit = MAX_WORD + 64 * layout.dim  # no number takes 64 characters
    place = 0
    while line := stream.readline(limit):
        place += 1
        if len(line) >= limit and not line.endswith(b"\n"):
            raise _BadFileError(f"row {place} has no end. {EXPECTED[:-1]}")
        key = line[: line.find(b" ")]
        if key not in keys:
            continue
        parts = line.split()
        if len(parts) > layout.dim + 1:
            continue  # a word with spaces in it, such as ". . ." in GloVe 840B, that begins like ours
        if len(parts) <= layout.dim or not _numeric(parts[1:]):
            raise _BadFileError(
                f"row {place} ({key.decode('utf-8')!r}) should have {layout.dim} numbers and has not. "
                "Is the file damaged or cut short? Fetch it again"
            )
        yield key.decode("utf-8"), np.array([float(part) for part in parts[1:]], dtype=np.float32)
    if layout.announced is not None and place < layout.announced:
        raise EOFError(f"it ends after {place} of {layout.announced} words")


def _binary_rows(stream: IO[bytes], layout: _Format, wanted: set[str]) -> Rows:
    stream.readline()
    keys = {word.encode("utf-8") for word in wanted}
    size = 4 * layout.dim
    buffer, start = b"", 0
    for place in range(layout.announced or 0):
        space = buffer.find(b" ", start)
        while space < 0 or space + 1 + size > len(buffer):
            if space < 0 and len(buffer) - start > MAX_WORD:
                raise _BadFileError(f"word {place + 1} has no end. {EXPECTED[:-1]}")
            more = stream.read(max(CHUNK, size))
            if not more:
                raise EOFError(f"it ends after {place} of {layout.announced} words")
            buffer, start = buffer[start:] + more, 0
            space = buffer.find(b" ")
        # Some writers end each vector with a line break, some do not.
        key = buffer[start:space].lstrip(b"\n")
        if len(key) > MAX_WORD:
            raise _BadFileError(f"word {place + 1} has no end. {EXPECTED[:-1]}")
        start = space + 1 + size
        if key in keys:
            yield key.decode("utf-8"), np.frombuffer(buffer, "<f4", layout.dim, space + 1).copy()


def _npz_rows(stream: IO[bytes], wanted: set[str]) -> Rows:
    """Walk the two arrays of an npz side by side, without unpacking either of them whole."""
    with zipfile.ZipFile(stream) as archive:
        names = set(archive.namelist())
        if not {"words.npy", "vectors.npy"} <= names:
            have = ", ".join(sorted(name.removesuffix(".npy") for name in names)[:8])
            raise _BadFileError(
                f"as an npz it needs the arrays 'words' and 'vectors' and has: {have or 'nothing'}. "
                "A zip of a text file has to be unpacked first"
            )
        with archive.open("words.npy") as words, archive.open("vectors.npy") as vectors:
            word_shape, word_type = _npy_header(words, "words")
            shape, number_type = _npy_header(vectors, "vectors")
            if word_type.kind not in "US" or len(word_shape) != 1:
                raise _BadFileError("its array 'words' is not a list of strings")
            if number_type.kind != "f" or len(shape) != 2 or shape[0] != word_shape[0] or not shape[1]:
                raise _BadFileError(
                    f"its array 'vectors' should be floating with one row per word, and is "
                    f"{number_type} of shape {shape} for {word_shape[0]} words"
                )
            step = max(1, CHUNK // max(word_type.itemsize, shape[1] * number_type.itemsize))
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                keys = _take(words, word_type, rows)
                block = _take(vectors, number_type, rows * shape[1]).reshape(rows, shape[1])
                texts = np.char.decode(keys, "utf-8") if word_type.kind == "S" else keys
                for row, text in enumerate(texts.tolist()):
                    if text in wanted:
                        yield text, block[row].astype(np.float32)


def _npy_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
    except ValueError as error:
        raise _BadFileError(f"its array {name!r} is damaged ({error})") from error
    if dtype.hasobject:
        raise _BadFileError(
            f"its array {name!r} holds pickled objects, which are never loaded because they can run code. "
            f"Save it with a plain dtype: numpy.savez(path, words=numpy.array(words, dtype=str), "
            "vectors=numpy.array(vectors, dtype='float32'))"
        )
    if fortran and len(shape) > 1:
        raise _BadFileError(
            f"its array {name!r} is stored column by column. Save numpy.ascontiguousarray({name})"
        )
    return shape, dtype


def _take(stream: IO[bytes], dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    data = stream.read(dtype.itemsize * count)
    if len(data) < dtype.itemsize * count:
        raise EOFError("an array of the npz ends early")
    return np.frombuffer(data, dtype, count)
