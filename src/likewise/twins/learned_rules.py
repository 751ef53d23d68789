"""Rules that a table itself shows: combinations with the attribute that chance would have made, and nobody has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import check_number
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, to_pandas
from likewise.core.text import text_table
from likewise.twins.rules import Forbidden, Rules, ValueMap

__all__ = ["LearnedRules", "SeenRule", "learn_rules"]

# A column with more values is no category that rules speak of.
MAX_VALUES = 50


@dataclass(frozen=True)
class SeenRule:
    """A combination that the table lacks, and what supports the rule.

    Parameters
    ----------
    attribute, value : object
        The edited column and its value.
    column, other : object
        The other column and the value nobody, or nearly nobody, has together with it.
    seen : int
        How many people have both.
    expected : float
        How many would, were the two columns independent.
    becomes : object or None
        What `other` becomes in a twin: the value most alike among those that people with `value` have.
    """

    attribute: str
    value: Any
    column: str
    other: Any
    seen: int
    expected: float
    becomes: Any


@dataclass(frozen=True)
class LearnedRules:
    """Rules learned from a table, each with its support.

    Parameters
    ----------
    found : tuple of SeenRule
    n_people : int

    Examples
    --------
    >>> roles = ["Husband"] * 60 + ["Wife"] * 60 + ["Child"] * 80
    >>> people = pd.DataFrame({"sex": ["M"] * 60 + ["F"] * 60 + ["M", "F"] * 40, "role": roles})
    >>> print(learn_rules(people, "sex"))
    Among 200 people, nobody or hardly anybody is
    sex  column  value    seen  expected  becomes
    F    role    Husband     0      30.0     Wife
    M    role    Wife        0      30.0  Husband
    """

    found: tuple[SeenRule, ...]
    n_people: int

    @property
    def rules(self) -> Rules:
        """The rules: a map where there is a counterpart, and the combination as forbidden."""
        maps: dict[tuple[Any, str], dict[Any, Any]] = {}
        for rule in self.found:
            if rule.becomes is not None:
                maps.setdefault((rule.value, rule.column), {})[rule.other] = rule.becomes
        attribute = self.found[0].attribute if self.found else ""
        return Rules(
            tuple(ValueMap({attribute: value}, column, values) for (value, column), values in maps.items()),
            (),
            tuple(Forbidden({rule.attribute: rule.value, rule.column: rule.other}) for rule in self.found),
        )

    def __str__(self) -> str:
        if not self.found:
            return f"Among {self.n_people:,} people every combination that chance would make was seen."
        header = [self.found[0].attribute, "column", "value", "seen", "expected", "becomes"]
        rows = [
            [str(r.value), r.column, str(r.other), f"{r.seen:,}", f"{r.expected:,.1f}", str(r.becomes)]
            for r in self.found
        ]
        table = text_table(header, rows, left=(0, 1, 2))
        return f"Among {self.n_people:,} people, nobody or hardly anybody is\n{table}"


def learn_rules(
    people: Any, attribute: str, *, min_expected: float = 20.0, max_seen: float = 0.01
) -> LearnedRules:
    """Find values of other columns that do not go together with values of one attribute.

    Parameters
    ----------
    people : table of n people
    attribute : str
        The column that twins change.
    min_expected : float, default=20
        How many people would have to have the combination, were the columns independent: below it absence says little.
        (Nobody where 20 are expected has a probability of 2·10⁻⁹ under independence.)
    max_seen : float in [0, 1), default=0.01
        Share of the expected number that may be seen all the same: tables have slips.

    Returns
    -------
    LearnedRules

    Examples
    --------
    >>> people = pd.DataFrame({"sex": ["F"] * 50 + ["M"] * 50, "role": ["Wife"] * 50 + ["Husband"] * 50})
    >>> for rule in learn_rules(people, "sex").rules.forbidden:
    ...     print(rule)
    nobody has sex = F and role = Husband
    nobody has sex = M and role = Wife
    """
    owner = "learn_rules"
    frame = to_pandas(people, owner=owner, name="people")
    check_columns(frame, [attribute], owner=owner, name="people")
    check_number(min_expected, owner=owner, name="min_expected", low=0, open_low=True)
    check_number(max_seen, owner=owner, name="max_seen", low=0, high=1, open_high=True)
    categories = [name for name in frame.columns if name != attribute and _is_category(frame[name])]
    if not _is_category(frame[attribute]) and frame[attribute].nunique() > MAX_VALUES:
        raise InputError(f"{owner}: {attribute!r} has too many values for rules. Name a column of groups.")
    found: list[SeenRule] = []
    for column in categories:
        counts = pd.crosstab(frame[attribute], frame[column])
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(int(counts.to_numpy().sum()), 1)
        rare = (counts.to_numpy() <= max_seen * expected) & (expected >= min_expected)
        for s, v in np.argwhere(rare).tolist():
            allowed = list(counts.columns[~rare[s] & (counts.to_numpy()[s] > 0)])
            value, other = counts.index[s], counts.columns[v]
            others = [name for name in categories if name != column]
            becomes = _counterpart(frame, attribute, value, column, other, allowed, others)
            found.append(
                SeenRule(
                    attribute,
                    value,
                    column,
                    other,
                    int(counts.to_numpy()[s, v]),
                    float(expected[s, v]),
                    becomes,
                )
            )
    return LearnedRules(tuple(found), len(frame))


def _is_category(column: pd.Series[Any]) -> bool:
    numbers = getattr(column.dtype, "kind", "O") in "iufM" and not isinstance(
        column.dtype, pd.CategoricalDtype
    )
    return not numbers and column.nunique() <= MAX_VALUES


def _counterpart(
    frame: pd.DataFrame,
    attribute: str,
    value: Any,
    column: str,
    other: Any,
    allowed: list[Any],
    others: list[Any],
) -> Any:
    """The value most alike: whose people are spread over the other columns most as those of `other` are."""
    if not allowed:
        return None
    mine = frame[frame[column] == other]
    best, most = None, -1.0
    for candidate in allowed:
        theirs = frame[(frame[column] == candidate) & (frame[attribute] == value)]
        alike = 0.0
        for name in others:
            p = mine[name].value_counts(normalize=True)
            q = theirs[name].value_counts(normalize=True).reindex(p.index).fillna(0.0)
            alike += float(np.minimum(p, q).sum())
        # A value that is the group's own, as the missing one is the others', is the likelier counterpart.
        own = len(theirs) / max(int((frame[column] == candidate).sum()), 1)
        alike = (alike / len(others) if others else 1.0) * own
        if alike > most:
            best, most = candidate, alike
    return best
