"""Sentiment gaps of section 4.1 of the paper: race, gender and cuisine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import BoolArray, FloatArray, check_labels, check_same_length, check_share, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import Interval, Measure
from likewise.core.text import text_table

# Names that data sets use for the paper's N_0 and N_1; the first of each pair is the one subtracted from.
_RACES = (
    {"caucasian", "white", "european american", "0", "false"},
    {"african american", "black", "1", "true"},
)
_GENDERS = ({"female", "f", "woman", "women", "0", "false"}, {"male", "m", "man", "men", "1", "true"})


@dataclass(frozen=True, eq=False)
class SentimentGaps:
    """Differences in mean sentiment between groups of names, and between two kinds of sentence.

    Parameters
    ----------
    race, gender, cuisine : Measure
        Signed, as in the formula of section 4.1: Caucasian minus African-American names, female minus male
        names, and the first sentence (Italian food) minus the second (Mexican food). The paper's Table 1
        prints their sizes: see `absolute`. `cuisine` is NaN if no sentences were scored, and its interval
        is NaN for a single pair of sentences, which says nothing about others.

    Examples
    --------
    >>> gaps = sentiment_gaps([3.0, 1.0, 0.0, 2.0], ["white", "white", "black", "black"], ["f", "m", "f", "m"])
    >>> gaps.absolute["race gap"], gaps.absolute["gender gap"]
    (1.0, 0.0)
    """

    race: Measure
    gender: Measure
    cuisine: Measure

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The three, in the order of the paper's table."""
        return (self.race, self.gender, self.cuisine)

    @property
    def absolute(self) -> dict[str, float]:
        """Size of each gap by name, as the paper's table prints it."""
        return {measure.name: abs(measure.value) for measure in self.measures}

    def __str__(self) -> str:
        rows = [
            [m.name, *(f"{number:.3f}" for number in (m.value, abs(m.value), m.low, m.high))]
            for m in self.measures
        ]
        return text_table(["", "gap", "size", "low", "high"], rows)


def sentiment_gap(scores_0: Any, scores_1: Any) -> float:
    """Mean score of the first group of words minus that of the second (section 4.1).

    Parameters
    ----------
    scores_0, scores_1 : array-like of shape (n,), or (n, 2)
        Logit of the positive class minus logit of the negative class, or the two logits (negative class
        first) themselves.

    Returns
    -------
    float

    Examples
    --------
    >>> sentiment_gap([1.0, 3.0], [0.5])
    1.5
    >>> sentiment_gap([[0.0, 1.0], [0.0, 3.0]], [[0.0, 0.5]])
    1.5
    """
    owner = "sentiment_gap"
    first = _scores(scores_0, owner=owner, name="scores_0")
    second = _scores(scores_1, owner=owner, name="scores_1")
    return float(first.mean() - second.mean())


def sentiment_gap_interval(scores_0: Any, scores_1: Any, *, confidence: float = 0.95) -> Interval:
    """Welch's confidence interval of `sentiment_gap`.

    Parameters
    ----------
    scores_0, scores_1 : array-like of shape (n,), or (n, 2)
        As in `sentiment_gap`.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    Interval
        NaN ends for a group of one word.

    Examples
    --------
    >>> low, high = sentiment_gap_interval([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    >>> low < 1 < high
    True
    """
    owner = "sentiment_gap_interval"
    check_share(confidence, owner=owner, name="confidence")
    first = _scores(scores_0, owner=owner, name="scores_0")
    second = _scores(scores_1, owner=owner, name="scores_1")
    return _welch(first, second, confidence)


def sentiment_gaps(
    scores: Any,
    race: Any,
    gender: Any,
    sentences: Any = None,
    *,
    race_order: tuple[Any, Any] | None = None,
    gender_order: tuple[Any, Any] | None = None,
    confidence: float = 0.95,
) -> SentimentGaps:
    """Race, gender and cuisine gap of a sentiment classifier (section 4.1 of the paper).

    Parameters
    ----------
    scores : array-like of shape (n,), or (n, 2)
        Score of every name: logit of the positive class minus logit of the negative class, or both logits.
    race, gender : array-like of shape (n,)
        Of every name.
    sentences : array-like of shape (2,), (k, 2), or logits of shape (2, 2) or (k, 2, 2), optional
        Scores of the two sentences, Italian first; or of k such pairs. A 2 × 2 array is read as the logits of
        one pair, as `scores` would be.
    race_order, gender_order : tuple of two values, optional
        Which value is subtracted from and which is subtracted. By default the usual words for them (and 0, 1)
        are known: Caucasian − African-American, female − male.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    SentimentGaps

    Examples
    --------
    >>> gaps = sentiment_gaps([3.0, 1.0, 0.0, 2.0], ["white", "white", "black", "black"], ["f", "m", "f", "m"],
    ...                       sentences=[1.0, -1.0])
    >>> gaps.race.value, gaps.gender.value, gaps.cuisine.value
    (1.0, 0.0, 2.0)
    """
    owner = "sentiment_gaps"
    values = _scores(scores, owner=owner, name="scores")

    def of_names(name: str, labels: Any, order: Any, known: Any) -> Measure:
        first = _is_first(labels, order, known, len(values), owner=owner, name=name)
        parts = values[first], values[~first]
        interval = sentiment_gap_interval(*parts, confidence=confidence)
        return Measure.of(f"{name} gap", sentiment_gap(*parts), interval)

    differences = _sentence_differences(sentences, owner)
    cuisine = Measure("cuisine gap", np.nan, np.nan, np.nan, "welch")
    if len(differences):
        interval = _welch(differences, np.zeros(0), confidence)
        cuisine = Measure.of("cuisine gap", float(differences.mean()), interval)
    return SentimentGaps(
        race=of_names("race", race, race_order, _RACES),
        gender=of_names("gender", gender, gender_order, _GENDERS),
        cuisine=cuisine,
    )


def _welch(first: FloatArray, second: FloatArray, confidence: float) -> Interval:
    """Of a difference of means by Student's t with Welch's degrees of freedom; of one mean if `second` is empty."""
    from scipy.special import stdtrit

    groups = [group for group in (first, second) if len(group)]
    if min(len(group) for group in groups) < 2:
        return Interval(np.nan, np.nan, confidence, "welch")
    parts = np.array([group.var(ddof=1) / len(group) for group in groups])
    freedom = np.array([len(group) - 1 for group in groups])
    middle, variance = float(first.mean() - (second.mean() if len(second) else 0.0)), float(parts.sum())
    if variance == 0.0:  # equal scores say nothing about how others spread
        return Interval(np.nan, np.nan, confidence, "welch")
    quantile = float(stdtrit(variance**2 / float((parts**2 / freedom).sum()), (1 + confidence) / 2))
    return Interval(middle - quantile * variance**0.5, middle + quantile * variance**0.5, confidence, "welch")


def _scores(values: Any, *, owner: str, name: str) -> FloatArray:
    scores = to_numpy(values)
    if scores.dtype.kind not in "biuf" or (scores.ndim != 1 and scores.shape[1:] != (2,)):
        allowed = "numbers of shape (n,), or logits of two classes of shape (n, 2)"
        got = f"an array of shape {scores.shape} and type {scores.dtype}"
        raise bad_parameter(owner, name, allowed, got)
    scores = scores.astype(float)
    if len(scores) == 0:
        raise InputError(f"{owner}: {name!r} is empty. Pass the score of at least one word.")
    if not np.isfinite(scores).all():
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise InputError(f"{owner}: {name!r} is not finite at row {row}. Check the model's output there.")
    return scores if scores.ndim == 1 else np.asarray(scores[:, 1] - scores[:, 0])


def _is_first(
    labels: Any, order: tuple[Any, Any] | None, known: Any, n: int, *, owner: str, name: str
) -> BoolArray:
    """Whether each name belongs to the group that is subtracted from."""
    values = check_labels(labels, owner=owner, name=name)
    check_same_length(owner, scores=range(n), **{name: values})
    seen = np.unique(values).tolist()
    if order is None:
        sides = [[v for v in seen if str(v).casefold().replace("-", " ") in side] for side in known]
        if len(seen) != 2 or len(sides[0]) != 1 or len(sides[1]) != 1:
            raise bad_parameter(
                owner,
                name,
                "two values whose order is known",
                ", ".join(map(repr, seen[:5])),
                f"Pass {name}_order=(first, second): the gap is first − second.",
            )
        order = (sides[0][0], sides[1][0])
    if len(order) != 2 or sorted(map(str, order)) != sorted(map(str, seen)):
        allowed = f"the two values in {name!r} ({', '.join(map(repr, seen))})"
        raise bad_parameter(owner, f"{name}_order", allowed, order)
    return np.asarray(values == order[0])


def _sentence_differences(sentences: Any, owner: str) -> FloatArray:
    """Score of the first minus the second sentence for each pair: (k,), empty if there are none."""
    if sentences is None:
        return np.empty(0)
    scores = to_numpy(sentences)
    if scores.shape == (2,) or scores.shape == (2, 2):
        first, second = _scores(scores, owner=owner, name="sentences")
        return np.array([first - second])
    if scores.ndim not in (2, 3) or scores.shape[1:] not in ((2,), (2, 2)) or len(scores) == 0:
        allowed = "scores of two sentences, of shape (2,), or of k pairs, of shape (k, 2)"
        raise bad_parameter(owner, "sentences", allowed, f"an array of shape {scores.shape}")
    flat = scores.reshape(-1) if scores.ndim == 2 else scores.reshape(-1, 2)
    pairs = _scores(flat, owner=owner, name="sentences").reshape(-1, 2)
    return np.asarray(pairs[:, 0] - pairs[:, 1])
