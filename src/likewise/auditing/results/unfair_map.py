"""The unfair map (paper, equation 6) as people read it: each person beside the twin that fares worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray
from likewise.core.frames import has_numbers, with_columns
from likewise.core.messages import Message
from likewise.core.text import truncated

# Who is harmed: a few rules in the words of the table, and the harm by value of each column.


_BINS = 5
_DEPTH, _LEAST_SHARE, _MOST_RULES = 3, 0.01, 6


@dataclass(frozen=True)
class HarmRule:
    """One group of people, described in words, with how much worse than others it fares."""

    conditions: tuple[str, ...]
    support: int
    share: float
    mean_harm: float
    lift: float

    def __str__(self) -> str:
        who = " and ".join(self.conditions) or "everybody"
        return f"{who}: {self.support} people ({self.share:.1%}), mean harm {self.mean_harm:.3f}, lift {self.lift:.1f}"


def harm_rules(people: pd.DataFrame, harm: FloatArray) -> tuple[HarmRule, ...]:
    """Describe who is harmed most by the leaves of a shallow regression tree over the people's columns."""
    from sklearn.tree import DecisionTreeRegressor

    overall = float(np.mean(harm))
    if overall <= 0:
        return ()
    matrix, questions = _questions(people)
    smallest = max(1, round(_LEAST_SHARE * len(people)))
    tree = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=smallest, random_state=0).fit(
        matrix, harm
    )
    leaves = tree.apply(matrix)
    rules = []
    for leaf, path in _paths(tree.tree_):
        inside = leaves == leaf
        mean = float(harm[inside].mean())
        said = tuple(_words(path, questions))
        rules.append(HarmRule(said, int(inside.sum()), float(inside.mean()), mean, mean / overall))
    rules.sort(key=lambda rule: (-rule.mean_harm, rule.conditions))
    return tuple(rule for rule in rules[:_MOST_RULES] if rule.mean_harm > 0)


def harm_by_value(people: pd.DataFrame, harm: FloatArray, changed_decision: Any) -> pd.DataFrame:
    """Tabulate the harm by value of every column (numbers in quantile bins)."""
    overall = float(np.mean(harm))
    parts = []
    for name in people.columns:
        values = people[name]
        if has_numbers(values) and values.nunique() > _BINS:
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


_LARGEST = float(np.finfo(np.float32).max) / 2


@dataclass(frozen=True)
class _Question:
    column: str
    category: str | None  # None: a number is compared with a threshold
    otherwise: str | None = None  # the other of two categories


def _questions(people: pd.DataFrame) -> tuple[FloatArray, list[_Question]]:
    """Numbers as they are, one indicator per category."""
    columns: list[FloatArray] = []
    questions: list[_Question] = []
    for name in people.columns:
        values = people[name]
        if has_numbers(values):
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
            yield Message("rule.is", column=question.column, value=question.category)
        elif question.otherwise is not None:
            yield Message("rule.is", column=question.column, value=question.otherwise)
        elif question.column not in said_to_be:
            yield Message("rule.is_not", column=question.column, value=question.category)
    for column in dict.fromkeys([*low, *high]):
        if column in low and column in high:
            yield Message("rule.between", column=column, low=low[column], high=high[column])
        elif column in low:
            yield Message("rule.above", column=column, low=low[column])
        else:
            yield Message("rule.below", column=column, high=high[column])


# Cells as people read them: numbers to the precision their column is written in, and only what differs.


_MOST_DECIMALS = 6


def column_decimals(column: pd.Series[Any]) -> int:
    """Return how many decimals write every value of a column, or about four digits where none of up to six do."""
    values = column.to_numpy(dtype=float, na_value=np.nan)
    values = values[np.isfinite(values)]
    for decimals in range(_MOST_DECIMALS + 1):
        if np.allclose(np.round(values, decimals), values, rtol=1e-12, atol=0):
            return decimals
    largest = float(np.abs(values).max(initial=0.0))
    return int(np.clip(3 - np.floor(np.log10(largest)), 0, 15)) if largest > 0 else 0


def rounded_like(frame: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose broken numbers have the precision of the same column of other people."""
    floats = [
        name for name in frame.columns if frame[name].dtype.kind == "f" and people[name].dtype.kind == "f"
    ]
    if not floats:
        return frame
    return with_columns(frame, {name: frame[name].round(column_decimals(people[name])) for name in floats})


def shown_cell(value: Any) -> str:
    """Return one cell in words: a whole number without decimals, nothing as "missing"."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.10g}"
    return str(value)


def differences_in_words(person: Mapping[str, Any], twin: Mapping[str, Any], most: int = 6) -> str:
    """Return the columns in which a twin differs, from what to what; a long list is folded."""
    pairs = [(name, shown_cell(person[name]), shown_cell(twin[name])) for name in person]
    moved = [f"{name}: {before} → {after}" for name, before, after in pairs if before != after]
    return ", ".join(moved) if len(moved) <= most else truncated(moved, most)


# Prefix of the twin's columns in `UnfairMap.frame`.
TWIN = "twin "

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class UnfairMap:
    """Every person with their worst comparable twin (their counterfactual), in original units.

    Parameters
    ----------
    people, twins : DataFrame of shape (n, p)
        Row i of `twins` is where the unfair map sends row i of `people`; the person again where they stay.
    outcomes : DataFrame of shape (n, 8)
        ``person`` (number of the audited row), ``label``, ``loss``, ``twin_loss``, ``harm`` (their difference),
        ``decision``, ``twin_decision``, ``squared_distance`` (fair distance spent) and ``changed`` (the columns
        that differ, in words).
    total : int
        How many people were audited; more than n where only the most harmed are kept.
    tolerance : float, default=0.0
        Predicted numbers that differ by no more are the same decision.

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F", "M"], "age": [30, 40]})
    >>> twins = pd.DataFrame({"sex": ["M", "M"], "age": [30, 40]})
    >>> unfair = make_unfair_map(
    ...     people, twins, label=[1, 0], loss=[0.1, 0.2], twin_loss=[0.9, 0.2], decision=[1, 0],
    ...     twin_decision=[0, 0], squared_distance=[0.0, 0.0],
    ... )
    >>> unfair.top(1)[["harm", "changed", "sex", "twin sex"]].to_dict("records")
    [{'harm': 0.8, 'changed': 'sex', 'sex': 'F', 'twin sex': 'M'}]
    """

    people: pd.DataFrame
    twins: pd.DataFrame
    outcomes: pd.DataFrame
    total: int
    tolerance: float = 0.0

    @property
    def frame(self) -> pd.DataFrame:
        """Outcomes, then the person's columns, then the twin's with the prefix ``"twin "``."""
        return pd.concat([self.outcomes, self.people, self.twins.add_prefix(TWIN)], axis=1)

    def top(self, k: int = 10) -> pd.DataFrame:
        """Return `k` people: first those whose decision changes, of these and of the others the most added loss first."""
        order = np.lexsort((-self.harm, ~self.flipped))[:k]
        return self.frame.iloc[order].reset_index(drop=True)

    @property
    def harm(self) -> FloatArray:
        """Increase of each person's loss at their twin, shape (n,)."""
        return self.outcomes["harm"].to_numpy(dtype=float)

    @cached_property
    def flipped(self) -> BoolArray:
        """Whether the twin gets another decision, shape (n,)."""
        own, other = (self.outcomes[key].to_numpy() for key in ("decision", "twin_decision"))
        if self.tolerance and own.dtype.kind in "iuf":
            return np.asarray(np.abs(own - other) > self.tolerance)
        return np.asarray(own != other)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """How often each column differs between person and twin, and the mean harm then."""
        differs = _differences(self.people, self.twins)
        counts = differs.sum(axis=0)
        harms = [float(self.harm[differs[:, j]].mean()) if counts[j] else 0.0 for j in range(len(counts))]
        table = pd.DataFrame(
            {
                "column": list(self.people.columns),
                "people": counts,
                "share": counts / len(differs),
                "mean_harm": harms,
            }
        )
        return table.sort_values(["people", "column"], ascending=[False, True], ignore_index=True)

    @cached_property
    def rules(self) -> tuple[HarmRule, ...]:
        """Who is harmed, as a few rules in words."""
        return harm_rules(self.people, self.harm)

    @cached_property
    def by_value(self) -> pd.DataFrame:
        """Harm by value of each column."""
        return harm_by_value(self.people, self.harm, self.flipped)


def make_unfair_map(
    people: pd.DataFrame,
    twins: pd.DataFrame,
    *,
    label: Any,
    loss: Any,
    twin_loss: Any,
    decision: Any,
    twin_decision: Any,
    squared_distance: Any,
    person: Any = None,
    total: int | None = None,
    tolerance: float = 0.0,
) -> UnfairMap:
    """Put persons and twins side by side and name the columns in which they differ."""
    people, twins = people.reset_index(drop=True), twins.reset_index(drop=True)
    loss, twin_loss = np.asarray(loss, dtype=float), np.asarray(twin_loss, dtype=float)
    # Many people differ from their twin in the same columns.
    patterns, which = np.unique(_differences(people, twins), axis=0, return_inverse=True)
    names = np.asarray(people.columns, dtype=object)
    changed = np.array([", ".join(map(str, names[row])) for row in patterns], dtype=object)
    outcomes = pd.DataFrame(
        {
            "person": np.arange(len(people)) if person is None else np.asarray(person),
            "label": np.asarray(label),
            "loss": loss,
            "twin_loss": twin_loss,
            "harm": twin_loss - loss,
            "decision": np.asarray(decision),
            "twin_decision": np.asarray(twin_decision),
            "squared_distance": np.asarray(squared_distance, dtype=float),
            "changed": changed[which.ravel()],
        }
    )
    return UnfairMap(people, twins, outcomes, len(people) if total is None else total, tolerance)


def _differences(people: pd.DataFrame, twins: pd.DataFrame) -> BoolArray:
    """Cells in which person and twin differ, (n, p); numbers to rounding."""
    columns = []
    for name in people.columns:
        a, b = people[name], twins[name]
        if pd.api.types.is_float_dtype(a) and pd.api.types.is_float_dtype(b):
            x, z = a.to_numpy(dtype=float), b.to_numpy(dtype=float)
            columns.append((np.abs(x - z) > _CLOSE * (1 + np.abs(x))) | (np.isnan(x) != np.isnan(z)))
        else:
            # Both in one, so that the values of a column are compared by their codes.
            codes = pd.factorize(pd.concat([a, b], ignore_index=True))[0]
            columns.append(codes[: len(a)] != codes[len(a) :])
    return np.column_stack(columns) if columns else np.zeros((len(people), 0), dtype=bool)
