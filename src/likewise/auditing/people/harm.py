"""Who is harmed: a few rules in the words of the table, and the harm by value of each column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.support.frontier import Floats
from likewise.texts import Said

__all__ = ["HarmRule", "harm_by_value", "harm_rules"]

_BINS = 5


@dataclass(frozen=True)
class HarmRule:
    """One group of people, described in words, with how much worse than others it fares.

    Parameters
    ----------
    conditions : tuple of str
        All of them hold for the group, such as ``"relationship is Wife"`` or ``"age > 34.5"``.
    support : int
        How many people it describes.
    share : float
        Their share of all people.
    mean_harm : float
        Mean increase of their loss in the worst case.
    lift : float
        `mean_harm` over the mean harm of everybody.
    """

    conditions: tuple[str, ...]
    support: int
    share: float
    mean_harm: float
    lift: float

    def __str__(self) -> str:
        who = " and ".join(self.conditions) or "everybody"
        return f"{who}: {self.support} people ({self.share:.1%}), mean harm {self.mean_harm:.3f}, lift {self.lift:.1f}"


def harm_rules(
    people: pd.DataFrame, harm: Floats, *, max_depth: int = 3, min_share: float = 0.01, top: int = 6
) -> tuple[HarmRule, ...]:
    """Describe who is harmed most by the leaves of a shallow regression tree over the people's columns.

    Parameters
    ----------
    people : DataFrame of shape (n, p)
        In original units.
    harm : array of shape (n,)
        Increase of each person's loss in the worst case.
    max_depth : int, default=3
        At most so many conditions per rule.
    min_share : float, default=0.01
        No rule for a smaller share of the people.
    top : int, default=6
        How many rules, the most harmed first.

    Returns
    -------
    tuple of HarmRule
        Empty where nobody is harmed.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F"] * 50 + ["M"] * 50, "age": [30] * 100})
    >>> print(harm_rules(people, np.repeat([0.4, 0.0], 50))[0])
    sex is F: 50 people (50.0%), mean harm 0.400, lift 2.0
    """
    from sklearn.tree import DecisionTreeRegressor

    overall = float(np.mean(harm))
    if overall <= 0:
        return ()
    matrix, questions = _questions(people)
    smallest = max(1, round(min_share * len(people)))
    tree = DecisionTreeRegressor(max_depth=max_depth, min_samples_leaf=smallest, random_state=0)
    tree.fit(matrix, harm)
    leaves = tree.apply(matrix)
    rules = []
    for leaf, path in _paths(tree.tree_):
        inside = leaves == leaf
        mean = float(harm[inside].mean())
        rules.append(
            HarmRule(
                conditions=tuple(_words(path, questions)),
                support=int(inside.sum()),
                share=float(inside.mean()),
                mean_harm=mean,
                lift=mean / overall,
            )
        )
    rules.sort(key=lambda rule: (-rule.mean_harm, rule.conditions))
    return tuple(rule for rule in rules[:top] if rule.mean_harm > 0)


def harm_by_value(people: pd.DataFrame, harm: Floats, changed_decision: Any) -> pd.DataFrame:
    """Tabulate the harm by value of every column (numbers in quantile bins).

    Parameters
    ----------
    people : DataFrame of shape (n, p)
        In original units.
    harm : array of shape (n,)
        Increase of each person's loss in the worst case.
    changed_decision : bool array of shape (n,)
        Whether the decision differs in the worst case.

    Returns
    -------
    DataFrame
        Columns ``column, value, people, mean_harm, lift, flipped``, in the order of the table's columns.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"]})
    >>> harm_by_value(people, np.array([0.2, 0.0]), [True, False])["lift"].tolist()
    [2.0, 0.0]
    """
    overall = float(np.mean(harm))
    parts = []
    for name in people.columns:
        values = people[name]
        if _is_number(values) and values.nunique() > _BINS:
            values = pd.qcut(values, _BINS, duplicates="drop")
        table = pd.DataFrame(
            {"value": values.astype(object).map(str).to_numpy(), "harm": harm, "flipped": changed_decision}
        )
        grouped = table.groupby("value", sort=True).agg(
            people=("harm", "size"), mean_harm=("harm", "mean"), flipped=("flipped", "mean")
        )
        grouped.insert(0, "column", name)
        parts.append(grouped.reset_index())
    everything = pd.concat(parts, ignore_index=True)
    everything["lift"] = everything["mean_harm"] / overall if overall > 0 else 0.0
    return everything[["column", "value", "people", "mean_harm", "lift", "flipped"]]


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


_LARGEST = float(np.finfo(np.float32).max) / 2


@dataclass(frozen=True)
class _Question:
    column: str
    category: str | None  # None: a number is compared with a threshold
    otherwise: str | None = None  # the other of two categories


def _questions(people: pd.DataFrame) -> tuple[Floats, list[_Question]]:
    """Numbers as they are, one indicator per category."""
    columns: list[Floats] = []
    questions: list[_Question] = []
    for name in people.columns:
        values = people[name]
        if _is_number(values):
            # The tree reads float32; what is beyond it is only larger.
            columns.append(np.clip(values.to_numpy(dtype=float, na_value=np.nan), -_LARGEST, _LARGEST))
            questions.append(_Question(str(name), None))
            continue
        words = values.astype(object).map(str)
        categories = sorted(words.unique())
        other = categories[0] if len(categories) == 2 else None
        for category in categories if other is None else categories[1:]:
            columns.append((words == category).to_numpy(dtype=float))
            questions.append(_Question(str(name), category, other))
    return np.column_stack(columns), questions


Path = tuple[tuple[int, bool, float], ...]


def _paths(tree: Any, node: int = 0, path: Path = ()) -> Iterator[tuple[int, Path]]:
    """Every leaf with the (feature, went right, threshold) that lead to it."""
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        yield node, path
        return
    feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
    yield from _paths(tree, left, (*path, (feature, False, threshold)))
    yield from _paths(tree, right, (*path, (feature, True, threshold)))


def _words(path: Path, questions: list[_Question]) -> Iterator[str]:
    """Conditions in words; several thresholds on one number become one interval."""
    said_to_be = {questions[f].column for f, right, _ in path if questions[f].category is not None and right}
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for feature, right, threshold in path:
        question = questions[feature]
        if question.category is None:
            side, choose = (low, max) if right else (high, min)
            side[question.column] = choose(side.get(question.column, threshold), threshold)
        elif right:
            yield Said("rule.is", column=question.column, value=question.category)
        elif question.otherwise is not None:
            yield Said("rule.is", column=question.column, value=question.otherwise)
        elif question.column not in said_to_be:
            yield Said("rule.is_not", column=question.column, value=question.category)
    for column in dict.fromkeys([*low, *high]):
        if column in low and column in high:
            yield Said("rule.between", column=column, low=low[column], high=high[column])
        elif column in low:
            yield Said("rule.above", column=column, low=low[column])
        else:
            yield Said("rule.below", column=column, high=high[column])
