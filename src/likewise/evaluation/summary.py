"""`evaluate`: accuracy, consistency and group gaps in one table, each with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import IntArray, check_same_length, check_share
from likewise.core.decisions import check_model, check_pair, decide
from likewise.core.errors import InputError
from likewise.core.frames import is_frame
from likewise.core.intervals import Interval, Measure, mean_share_interval, proportion_interval
from likewise.core.text import text_table
from likewise.counterfactuals.cells import Table, find_attribute
from likewise.counterfactuals.correspondence import CorrespondenceStudy, correspondence_study
from likewise.counterfactuals.edits import Edit, Edits
from likewise.evaluation.groups import GroupGaps, group_gaps_by_attribute, groups_by_attribute
from likewise.evaluation.impact import selection_measures


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Share of people whose label is predicted.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.75
    """
    truth, decided = check_pair(y_true, y_pred, owner="accuracy")
    return float(np.mean(truth == decided))


def accuracy_interval(y_true: Any, y_pred: Any, *, confidence: float = 0.95) -> Interval:
    """Exact confidence interval of `accuracy` (see `proportion_interval`).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    Interval

    Examples
    --------
    >>> low, high = accuracy_interval([0, 0, 0, 1] * 100, [0, 0, 0, 0] * 100)
    >>> 0.70 < low < 0.75 < high < 0.80
    True
    """
    truth, decided = check_pair(y_true, y_pred, owner="accuracy_interval")
    return proportion_interval(int(np.sum(truth == decided)), len(truth), confidence=confidence)


def balanced_accuracy(y_true: Any, y_pred: Any) -> float:
    """Mean over the classes of the share of the class that is predicted (the paper's B-Acc, Appendix D.5).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels; two or more classes in `y_true`.

    Returns
    -------
    float
        Equals `sklearn.metrics.balanced_accuracy_score`.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    truth, decided = check_pair(y_true, y_pred, owner="balanced_accuracy", min_classes=2)
    right, people = _recalls(truth, decided)
    # Balanced Acc = (1/|C|) Σ_c P(Ŷ = c | Y = c), Appendix D.5.
    return float(np.mean(right / people))


def balanced_accuracy_interval(y_true: Any, y_pred: Any, *, confidence: float = 0.95) -> Interval:
    """Confidence interval of `balanced_accuracy`: the exact intervals of the classes' recalls combined.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    Interval

    Examples
    --------
    >>> low, high = balanced_accuracy_interval([0, 1] * 100, [0, 1, 0, 0] * 50)
    >>> low < 0.75 < high
    True
    """
    owner = "balanced_accuracy_interval"
    check_share(confidence, owner=owner, name="confidence")
    truth, decided = check_pair(y_true, y_pred, owner=owner, min_classes=2)
    return mean_share_interval(*_recalls(truth, decided), confidence=confidence)


def _recalls(truth: Any, decided: Any) -> tuple[IntArray, IntArray]:
    """How many of each class are recognised, and how many there are."""
    classes, code = np.unique(truth, return_inverse=True)
    right = np.bincount(code[truth == decided], minlength=len(classes))
    return right.astype(np.int64), np.bincount(code).astype(np.int64)


_PAPER_ATTRIBUTES = ("sex", "race")
_SPOUSES = ("Husband", "Wife")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Measures of a model on one set of people; `print` shows them as a table.

    Parameters
    ----------
    measures : tuple of Measure
        In the order shown. Look one up by name: ``evaluation["S-Con"].value``.
    n_people : int
        How many people it rests on.
    confidence : float
        Level of the intervals.
    studies : dict
        Name to `CorrespondenceStudy`: who flipped.
    gaps : dict
        Attribute to `GroupGaps`: the rates behind the gaps.
    unmeasured : tuple of str
        Sensitive features that have no gaps, and why.

    Examples
    --------
    >>> evaluation = evaluate([1, 0, 1, 0] * 50, None, [1, 0, 0, 0] * 50)
    >>> evaluation["accuracy"].value, list(evaluation.values)
    (0.75, ['accuracy', 'balanced accuracy'])
    >>> print(evaluation)
    200 people         value    95% interval
    accuracy           0.750  [0.684, 0.808]
    balanced accuracy  0.833  [0.779, 0.871]
    """

    measures: tuple[Measure, ...]
    n_people: int
    confidence: float
    studies: dict[str, CorrespondenceStudy] = field(default_factory=dict)
    gaps: dict[str, GroupGaps] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Name to value."""
        return {measure.name: measure.value for measure in self.measures}

    @property
    def frame(self) -> pd.DataFrame:
        """The measures as a table: value, low, high and method by name."""
        rows = [(m.value, m.low, m.high, m.method) for m in self.measures]
        names = pd.Index([m.name for m in self.measures], name="measure")
        return pd.DataFrame(rows, index=names, columns=["value", "low", "high", "method"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers: what is not measured, and why."""
        return (*self.unmeasured, *(note for gap in self.gaps.values() for note in gap.notes))

    def __getitem__(self, name: str) -> Measure:
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(f"no measure {name!r}; there are: {', '.join(self.values)}")

    def __str__(self) -> str:
        ends = [f"[{m.low:.3f}, {m.high:.3f}]" if np.isfinite(m.low) else "unknown" for m in self.measures]
        rows = [[m.name, f"{m.value:.3f}", both] for m, both in zip(self.measures, ends, strict=True)]
        header = [f"{self.n_people:,} people", "value", f"{self.confidence:.0%} interval"]
        return "\n".join([text_table(header, rows), *self.notes])


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Sequence[str | Sequence[str]] | str | None = None,
    favourable: Any = None,
    studies: Mapping[str, Edits | CorrespondenceStudy] | None = None,
    encode: Callable[[Any], Any] | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Evaluate a model, or predictions, on a table of people.

    Every interval holds for small groups, rare errors and equal rates: exact ones of shares, and combinations of these
    for balanced accuracy, gaps, differences and ratios.

    Parameters
    ----------
    model : object with `predict`, callable, or array-like of shape (n,)
        The model, or its predicted labels. Predictions alone cannot tell what would be decided about counterfactuals,
        so they have no correspondence studies (pass finished ones in `studies`).
    X : pandas, polars or arrow table of n people, or None
        Original or encoded columns. None is enough for the accuracies of predictions.
    y : array-like of shape (n,)
        True labels, as the model predicts them.
    sensitive_features : str, or sequence of str or of tuples of str, optional
        Columns for the group gaps (see `group_gaps_by_attribute`). Default: ``sex`` and ``race`` if the table has
        them. A column with one group only is left out, and said in the notes.
    favourable : object, optional
        The favourable decision. With it the selection rates of the groups are compared: the largest difference and the
        smallest ratio.
    studies : mapping, optional
        Name to the edits of a correspondence study, or to a study already made. Default: ``"S-Con"`` if the table has
        husbands and wives, and the combinations of all sensitive features (``"GR-Con"`` for sex and race, as in the
        paper).
    encode : callable, optional
        Applied to a table before the model sees it, such as ``domain.encode``.
    confidence : float in (0, 1), default=0.95
        Of each interval by itself.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 100, "pay": [1, 2, 3, 4] * 50})
    >>> evaluation = evaluate(lambda t: (t["pay"] + (t["sex"] == "M") > 3).astype(int), people, [0, 0, 1, 1] * 50,
    ...                       favourable=1)
    >>> evaluation["consistency (sex)"].value, evaluation["Gap_max sex"].value, evaluation["selection ratio sex"].value
    (0.75, 1.0, 0.0)
    """
    owner = "evaluate"
    is_model = hasattr(model, "predict") or callable(model)
    table = None if X is None else Table.of(X, owner=owner, name="X")
    predictions = model
    if is_model or is_frame(model) or isinstance(model, (str, bytes)) or not hasattr(model, "__len__"):
        check_model(model, owner=owner)
    if is_model:
        if table is None:
            raise InputError(
                f"{owner}: a model needs a table to decide about, and 'X' is None. Pass the table."
            )
        rows = table.native if encode is None else encode(table.native)
        predictions = decide(model, rows, table.n_rows, owner=owner)
    check_same_length(owner, y=y, **{"the predictions": predictions})
    if table is not None:
        check_same_length(owner, X=range(table.n_rows), y=y)
    named = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    chosen: list[str | Sequence[str]] = list(named or [])
    if named is None and table is not None:
        chosen = [name for name in _PAPER_ATTRIBUTES if _has_values(table, name)]
    if table is None and chosen:
        raise InputError(
            f"{owner}: 'sensitive_features' need a table to be looked up in, and 'X' is None. Pass the table."
        )
    single = [name for name in chosen if isinstance(name, str)] if table is not None else []
    alone = [name for name in single if len(find_attribute(table, name, owner=owner).values) < 2]  # type: ignore[arg-type]
    chosen = [name for name in chosen if name not in alone]
    finished = _studies(model if is_model else None, table, studies, chosen, encode)
    gaps = group_gaps_by_attribute(y, predictions, X, chosen) if chosen else {}
    measures = [
        Measure.of(
            "accuracy", accuracy(y, predictions), accuracy_interval(y, predictions, confidence=confidence)
        ),
        Measure.of(
            "balanced accuracy",
            balanced_accuracy(y, predictions),
            balanced_accuracy_interval(y, predictions, confidence=confidence),
        ),
    ]
    for name, study in finished.items():
        measures.append(Measure.of(name, study.consistency, study.interval(confidence=confidence)))
    for gap in gaps.values():
        measures.extend(gap.measures(confidence=confidence)[:2])
    if favourable is not None:
        selected = np.asarray(predictions) == favourable
        for name, group in groups_by_attribute(X, chosen, owner=owner).items():
            measures.extend(selection_measures(selected, group, attribute=name, confidence=confidence))
    unmeasured = tuple(f"{name}: one group only, so there are no gaps." for name in alone)
    return Evaluation(tuple(measures), len(predictions), confidence, finished, gaps, unmeasured)


def _has_values(table: Table, name: str, among: tuple[str, ...] | None = None) -> bool:
    """Whether the table has the attribute, with two values or more (of those asked for)."""
    try:
        values = find_attribute(table, name, owner="evaluate").values
    except InputError:
        if name in table.names:  # it is there, but with missing values: not to be passed over in silence
            raise
        return False
    return len(values if among is None else set(values) & set(among)) >= 2


def _studies(
    model: Any,
    table: Table | None,
    asked: Mapping[str, Any] | None,
    attributes: list[str | Sequence[str]],
    encode: Any,
) -> dict[str, CorrespondenceStudy]:
    if asked is None:
        asked = {}
        if model is not None and table is not None:
            if _has_values(table, "relationship", _SPOUSES):
                asked["S-Con"] = Edit("relationship", _SPOUSES)
            names = list(dict.fromkeys(n for a in attributes for n in ([a] if isinstance(a, str) else a)))
            if names:
                paper = set(names) == set(_PAPER_ATTRIBUTES)
                asked["GR-Con" if paper else f"consistency ({' × '.join(names)})"] = dict.fromkeys(names)
    finished: dict[str, CorrespondenceStudy] = {}
    for name, edits in asked.items():
        if isinstance(edits, CorrespondenceStudy):
            finished[name] = edits
        elif model is None or table is None:
            raise InputError(
                f"evaluate: study {name!r} needs decisions about counterfactuals, which predictions alone do not tell. "
                "Pass the model, or a finished CorrespondenceStudy."
            )
        else:
            finished[name] = correspondence_study(model, table.native, edits, encode=encode)
    return finished
