"""The paper's sentiment task: opinion words, the names that should not matter, and two sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import FormatError, InputError, bad_parameter
from likewise.datasets.bundled import SplitRows, open_bundled, split_indices
from likewise.datasets.vectors import WordVectors, read_word_vectors
from likewise.datasets.words import (
    GENDER_PAIRS,
    SENTENCES,
    capitalised,
    evaluation_names,
    opinion_words,
    read_names,
    sentence_tokens,
    unique,
)

OWNER = "load_sentiment"


class Coverage(NamedTuple):
    """How many entries of a word list have a vector.

    Examples
    --------
    >>> Coverage(found=48, total=50)
    Coverage(found=48, total=50)
    """

    found: int
    total: int


@dataclass(frozen=True, eq=False, repr=False)
class SentimentData(SplitRows):
    """Opinion words as vectors with their sentiment, and everything to judge a classifier of them.

    Parameters
    ----------
    words : ndarray of str of shape (n,)
        Opinion words, positive ones first.
    X : ndarray of float32 of shape (n, dim)
        Their vectors.
    y : ndarray of int of shape (n,)
        1 for a positive word, 0 for a negative one.
    name_words : ndarray of str of shape (m,)
        First names from which to learn the fair metric, in lower case.
    name_vectors : ndarray of float32 of shape (m, dim)
        Their vectors.
    evaluation_names : DataFrame of k rows
        Columns name, race ("white" or "black") and gender ("female" or "male"): the names of Caliskan et
        al. that have a vector.
    evaluation_vectors : ndarray of float32 of shape (k, dim)
        Their vectors, row by row.
    sentences : tuple of str
        The two sentences of the cuisine gap, Italian first.
    sentence_vectors : ndarray of float32 of shape (2, dim)
        Mean of the vectors of their words.
    gender_pairs : tuple of (str, str)
        Keys in `vectors` of (female, male) words that define a gender direction, for hard debiasing.
    vectors : WordVectors
        Lookup of every word that was read.
    coverage : dict of str to Coverage
        For each list, how many entries have a vector and how many there are.
    train_index, test_index : ndarray of int
        Row numbers of the two parts of `X`.
    split : int
        Number of the split.

    Examples
    --------
    >>> from likewise.datasets import load_sentiment
    >>> data = load_sentiment()
    >>> data
    SentimentData(6233 words of 100 dimensions, 4263 names, 86 evaluation names, split 0: 5609 train, 624 test)
    >>> data.coverage["white names"], data.coverage["black names"]
    (Coverage(found=48, total=50), Coverage(found=38, total=50))
    """

    words: np.ndarray[Any, np.dtype[np.str_]]
    X: FloatArray
    y: IntArray
    name_words: np.ndarray[Any, np.dtype[np.str_]]
    name_vectors: FloatArray
    evaluation_names: pd.DataFrame
    evaluation_vectors: FloatArray
    sentences: tuple[str, str]
    sentence_vectors: FloatArray
    gender_pairs: tuple[tuple[str, str], ...]
    vectors: WordVectors
    coverage: dict[str, Coverage]
    train_index: IntArray
    test_index: IntArray
    split: int

    test_share = 0.1  # section 4.1: 90%/10% train/test splits

    def __repr__(self) -> str:
        return (
            f"SentimentData({len(self.words)} words of {self.X.shape[1]} dimensions, {len(self.name_words)} "
            f"names, {len(self.evaluation_names)} evaluation names, split {self.split}: "
            f"{len(self.train_index)} train, {len(self.test_index)} test)"
        )


def load_sentiment(
    vectors: str | PathLike[str] | WordVectors | None = None,
    names: str | PathLike[str] | Iterable[str] = "census",
    *,
    exclude_evaluation_names: bool = True,
    split: int = 0,
) -> SentimentData:
    """Load the sentiment task of the paper's section 4.1.

    Parameters
    ----------
    vectors : path-like, WordVectors or None, default=None
        None takes the bundled GloVe 6B vectors (100 dimensions, stored as float16, the words of this task
        only). A path names your own file: GloVe text, word2vec text or binary, or an npz with the arrays
        ``words`` and ``vectors``; plain or gzipped. It is read once in bounded memory; use `with_split` for
        further splits. The paper used glove.42B.300d.
    names : "census", path-like or iterable of str, default="census"
        The list of names for the fair metric: the bundled US Census list, the path of a CSV file such as
        New York City's Popular Baby Names (which the paper used), or names.
    exclude_evaluation_names : bool, default=True
        Leave the evaluation names out of the list for the metric, so that the test is on names never seen.
        The paper left the 32 that overlap in.
    split : int, default=0
        Which seeded 90/10 split; the paper's protocol uses ten, 0 to 9.

    Returns
    -------
    SentimentData
        A fresh copy on every call.

    Notes
    -----
    Words in both lists of the lexicon (three of them), words without a vector and repeated words are left
    out; `coverage` counts what was found. Some names are opinion words too (grace, joy): they stay in both
    lists, as in the paper.

    *Cased files.* Where a file has more of the names with a capital than without (GoogleNews), every name
    is looked up with a capital only, so that the name Hope is not taken for the word hope; else in lower
    case only. Opinion words are looked up in lower case.

    *Sentences.* What follows an apostrophe is dropped ("Let's" is "let"); a sentence is the mean of its
    words' vectors. Words after the first are looked up as spelt, then in lower case.

    The bundled vectors have 48 of the 50 white and 38 of the 50 black names of Caliskan et al. (2017); the
    paper's had 49 and 45.

    Sources: M. Hu and B. Liu (2004), opinion lexicon, CC BY 4.0; J. Pennington, R. Socher and C. Manning
    (2014), GloVe 6B, PDDL 1.0; A. Caliskan, J. Bryson and A. Narayanan (2017), names; US Census Bureau
    (1990), first names, public domain.

    Examples
    --------
    >>> data = load_sentiment()
    >>> data.X.shape, data.sentence_vectors.shape
    ((6233, 100), (2, 100))
    >>> set(data.name_words) & set(data.evaluation_names["name"])
    set()
    """
    positive, negative = opinion_words()
    people = evaluation_names()
    name_list = read_names(names, owner=OWNER)
    if exclude_evaluation_names:
        excluded = set(people["name"])
        name_list = tuple(name for name in name_list if name not in excluded)
    lists = _Lists(positive, negative, name_list, people)
    lookup = _lookup(vectors, lists)
    _check_lexicon(lookup, positive + negative)
    return _assemble(lists, lookup, split)


class _Lists(NamedTuple):
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    names: tuple[str, ...]
    people: pd.DataFrame

    def every_name(self) -> tuple[str, ...]:
        return unique([*self.people["name"], *self.names])

    def vocabulary(self) -> tuple[str, ...]:
        """Every spelling that may be looked up."""
        names = self.every_name()
        sentence = [spelling for text in SENTENCES for token in sentence_tokens(text) for spelling in token]
        gender = [spelling for pair in GENDER_PAIRS for word in pair for spelling in (word, word.lower())]
        capitals = [capitalised(name) for name in names]
        return unique([*self.positive, *self.negative, *names, *capitals, *sentence, *gender])


def _assemble(lists: _Lists, lookup: WordVectors, split: int) -> SentimentData:
    spelling = _name_spelling(lists.every_name(), lookup)
    words = [word for word in lists.positive + lists.negative if word in lookup]
    n_positive = sum(word in lookup for word in lists.positive)
    names = [name for name in lists.names if spelling[name] in lookup]
    people = lists.people[[spelling[name] in lookup for name in lists.people["name"]]]
    people = people.reset_index(drop=True)
    _check_names(names, people)
    train, test = split_indices(len(words), split, test_share=SentimentData.test_share, owner=OWNER)
    coverage = {
        "positive words": Coverage(n_positive, len(lists.positive)),
        "negative words": Coverage(len(words) - n_positive, len(lists.negative)),
        "names": Coverage(len(names), len(lists.names)),
    }
    for race in ("white", "black"):
        found, total = (int((table["race"] == race).sum()) for table in (people, lists.people))
        coverage[f"{race} names"] = Coverage(found, total)
    pairs = ((_spelt(female, lookup), _spelt(male, lookup)) for female, male in GENDER_PAIRS)
    return SentimentData(
        words=np.array(words),
        X=lookup.take(words),
        y=np.repeat(np.array([1, 0], dtype=np.int64), [n_positive, len(words) - n_positive]),
        name_words=np.array(names),
        name_vectors=lookup.take(spelling[name] for name in names),
        evaluation_names=people,
        evaluation_vectors=lookup.take(spelling[name] for name in people["name"]),
        sentences=SENTENCES,
        sentence_vectors=np.stack([_sentence_vector(sentence, lookup) for sentence in SENTENCES]),
        gender_pairs=tuple((female, male) for female, male in pairs if female in lookup and male in lookup),
        vectors=lookup,
        coverage=coverage,
        train_index=train,
        test_index=test,
        split=int(split),
    )


def _lookup(vectors: str | PathLike[str] | WordVectors | None, lists: _Lists) -> WordVectors:
    if vectors is None:
        words, matrix = _bundled()
        return WordVectors(words, matrix.copy())
    if isinstance(vectors, WordVectors):
        return vectors
    if isinstance(vectors, (str, PathLike)):
        return read_word_vectors(vectors, lists.vocabulary(), owner=OWNER)
    raise bad_parameter(
        OWNER,
        "vectors",
        "None, the path of a vectors file, or WordVectors",
        type(vectors).__name__,
        "Read a file with read_word_vectors(path, words), or pass its path.",
    )


@cache
def _bundled() -> tuple[tuple[str, ...], FloatArray]:
    """Unpack the bundled vectors once per process; callers get copies."""
    with open_bundled("glove_6b_100d_words.npz") as stream, np.load(stream, allow_pickle=False) as arrays:
        return tuple(arrays["words"].tolist()), arrays["vectors"].astype(np.float32)


def _check_lexicon(lookup: WordVectors, words: tuple[str, ...]) -> None:
    found = sum(word in lookup for word in words)
    if 2 * found < len(words):
        raise FormatError(
            f"{OWNER}: 'vectors' lacks most words: it has {found:,} of the {len(words):,} opinion words, and "
            "at least half are needed. Pass vectors of English words, such as glove.6B.300d.txt, or None for "
            "the bundled ones."
        )


def _name_spelling(names: tuple[str, ...], lookup: WordVectors) -> dict[str, str]:
    """Map each name to its spelling in the file: with a capital if most names have one, else without."""
    capitals = {name: capitalised(name) for name in names}
    n_capital = sum(capital in lookup for capital in capitals.values())
    n_lower = sum(name in lookup for name in names)
    return capitals if n_capital > n_lower else {name: name for name in names}


def _check_names(names: list[str], people: pd.DataFrame) -> None:
    if not names:
        raise InputError(
            f"{OWNER}: no name of 'names' has a vector once the evaluation names are left out. Pass a longer "
            "list, or exclude_evaluation_names=False."
        )
    for column, values in (("race", ("white", "black")), ("gender", ("female", "male"))):
        absent = [value for value in values if not (people[column] == value).any()]
        if absent:
            raise FormatError(
                f"{OWNER}: 'vectors' has none of the {' and '.join(absent)} evaluation names, so no "
                f"{column} gap can be measured. Pass vectors that cover first names, or None for the "
                "bundled ones."
            )


def _sentence_vector(sentence: str, lookup: WordVectors) -> FloatArray:
    tokens = [first if first in lookup else second for first, second in sentence_tokens(sentence)]
    absent = [token for token in tokens if token not in lookup]
    if absent:
        raise FormatError(
            f"{OWNER}: 'vectors' has no vector for {', '.join(map(repr, absent))} of the sentence "
            f"{sentence!r}. Pass vectors that cover everyday words, or None for the bundled ones."
        )
    mean: FloatArray = lookup.take(tokens).mean(axis=0)
    return mean


def _spelt(word: str, lookup: WordVectors) -> str:
    return word if word in lookup else word.lower()
