"""Words and names of the sentiment study, at one size whatever file they come from; read once per process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise.core.checks import FloatArray
from likewise.datasets.sentiment import SentimentData, load_sentiment
from likewise.datasets.vectors import WordVectors
from likewise.report.provenance import hash_of


@dataclass(frozen=True, eq=False)
class SentimentWords:
    """The task as the methods get it."""

    data: SentimentData
    scale: float


class _File(NamedTuple):
    """A file as it is now, so that a changed file is read again."""

    path: str
    size: int
    changed: int


def digest(path: str) -> str:
    """Return the SHA-256 of a file, which is read once as long as it stays the same."""
    return _digest_of(_file(path))


@lru_cache(maxsize=8)
def _digest_of(file: _File) -> str:
    return str(hash_of(file.path))


def sentiment_words(vectors: str | None = None, names: str | None = None) -> SentimentWords:
    """Load words, names and sentences, at the size of the bundled vectors.

    Vectors of a file are multiplied by one number, so that the root mean square of a coordinate over the opinion
    words is that of the bundled GloVe vectors. The paper's search moves each coordinate by fixed steps (Adam) and
    has a fixed budget ε, so what its numbers mean depends on how large a coordinate is.
    """
    return _read(*(None if path is None else _file(path) for path in (vectors, names)))


def _file(path: str) -> _File:
    # The loader raises for a file that does not exist, and says what it was for.
    found = Path(path).stat() if Path(path).is_file() else None
    return _File(path, -1, -1) if found is None else _File(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _read(vectors: _File | None, names: _File | None) -> SentimentWords:
    name_list = "census" if names is None else names.path
    if vectors is None:
        return SentimentWords(load_sentiment(names=name_list), 1.0)
    raw = load_sentiment(vectors.path, names=name_list)
    scale = _size(_read(None, None).data.X) / _size(raw.X)
    lookup = WordVectors(raw.vectors.words, raw.vectors.vectors * np.float32(scale))
    return SentimentWords(load_sentiment(lookup, names=name_list), scale)


def _size(rows: FloatArray) -> float:
    """Root mean square of a coordinate."""
    return float(np.sqrt(np.square(rows, dtype=float).mean()))


def debiased(data: SentimentData, names: str | None = None) -> SentimentData:
    """Return the task with every word vector hard-debiased against gender (Bolukbasi et al. 2016).

    All words become vectors of one length, as theirs do: the root mean square length of the opinion words, so that
    a network sees rows of the same size as every other method's. Sentences are means of debiased words.
    """
    import pandas as pd

    from likewise.mitigation.hard_debias import HardDebias

    words = list(data.vectors.words)
    columns = [f"v{i}" for i in range(data.vectors.dim)]
    table = pd.DataFrame(data.vectors.vectors.astype(float), index=words, columns=columns)
    transformer = HardDebias(data.gender_pairs, equality=data.gender_pairs)
    moved: Any = transformer.fit_transform(table)
    length = _size(data.X) * np.sqrt(data.X.shape[1])
    lookup = WordVectors(tuple(words), moved.to_numpy() * length)
    return load_sentiment(lookup, names="census" if names is None else names, split=data.split)


def leading_directions(rows: FloatArray, count: int) -> FloatArray:
    """Return the `count` directions that hold most of the rows' squared length, (count, d).

    Not centred: the rows themselves are directions, as the names are in the paper's SenSR-E.
    """
    directions = np.linalg.svd(rows.astype(float), full_matrices=False)[2][:count]
    # The sign of a singular vector is arbitrary.
    peak = np.abs(directions).argmax(axis=1)
    return np.asarray(directions * np.sign(directions[np.arange(len(directions)), peak])[:, None])
