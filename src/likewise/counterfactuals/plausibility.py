"""Plausibility of counterparts: distance to real people, and combinations of values that real people lack.

How far is the nearest real person, compared with how far real people are from their nearest other? And does the counterpart
combine values that real people never combine? A woman called husband is near many husbands, and no person all the same:
distances alone do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, FloatArray, check_share
from likewise.core.errors import InputError
from likewise.core.frames import to_pandas
from likewise.core.messages import Message
from likewise.core.text import text_table
from likewise.counterfactuals.edited_rows import MadeTwins
from likewise.counterfactuals.rules import Forbidden, Rules, ValueMap
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics.neighbours import NearestPlaces

# Rules that a table itself shows: combinations with the attribute that chance would have made, and nobody
# has.


# A column with more values is not a category for rules.
MAX_VALUES = 50
# So many people would have to have a combination, were the columns independent: that nobody has it if 20 are expected has a
# probability of 2·10⁻⁹ then. A share of the expected number may be seen all the same: tables have slips.
_MIN_EXPECTED, _MAX_SEEN = 20.0, 0.01


@dataclass(frozen=True)
class SeenRule:
    """A combination that the table lacks, and what supports the rule."""

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
        """The rules: a map if there is a counterpart, and the combination as forbidden."""
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


def learn_rules(people: Any, attribute: str) -> LearnedRules:
    """Find values of other columns that do not go together with values of one attribute.

    Parameters
    ----------
    people : table of n people
    attribute : str
        The column that counterparts change.

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
    frame = to_pandas(people, owner=owner, name="people", needed=[attribute])
    categories = [name for name in frame.columns if name != attribute and _is_category(frame[name])]
    if not _is_category(frame[attribute]) and frame[attribute].nunique() > MAX_VALUES:
        raise InputError(f"{owner}: {attribute!r} has too many values for rules. Name a column of groups.")
    found: list[SeenRule] = []
    for column in categories:
        counts = pd.crosstab(frame[attribute], frame[column])
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(int(counts.to_numpy().sum()), 1)
        rare = (counts.to_numpy() <= _MAX_SEEN * expected) & (expected >= _MIN_EXPECTED)
        for s, v in np.argwhere(rare).tolist():
            allowed = list(counts.columns[~rare[s] & (counts.to_numpy()[s] > 0)])
            value, other = counts.index[s], counts.columns[v]
            others = [name for name in categories if name != column]
            becomes = _counterpart(frame, {attribute: value}, column, other, allowed, others)
            seen = int(counts.to_numpy()[s, v]), float(expected[s, v])
            found.append(SeenRule(attribute, value, column, other, *seen, becomes))
    return LearnedRules(tuple(found), len(frame))


def _is_category(column: pd.Series[Any]) -> bool:
    return getattr(column.dtype, "kind", "O") not in "iufM" and column.nunique() <= MAX_VALUES


def _counterpart(
    frame: pd.DataFrame, own: dict[str, Any], column: str, other: Any, allowed: list[Any], others: list[Any]
) -> Any:
    """The value most alike: whose people are spread over the other columns most as those of `other` are."""
    if not allowed:
        return None
    ((attribute, value),) = own.items()
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
        its = len(theirs) / max(int((frame[column] == candidate).sum()), 1)
        alike = (alike / len(others) if others else 1.0) * its
        if alike > most:
            best, most = candidate, alike
    return best


IMPLAUSIBLE = Message("twins.unusable.implausible")


@dataclass(frozen=True, eq=False)
class Plausibility:
    """What real people look like.

    Parameters
    ----------
    level : float
        Share of real people who are plausible by their distance.
    limit : float
        The squared distance to the nearest other person that so many real people stay within.
    rules : Rules
        Combinations with the attribute that the people lack, as `learn_rules` finds them.
    domain : TabularDomain
        How rows become places.
    neighbours : NearestPlaces
        The real people.

    Examples
    --------
    >>> roles, ages = ["Wife"] * 45 + ["Husband"] * 45, [*range(30, 75)] * 2
    >>> people = pd.DataFrame({"sex": ["F"] * 45 + ["M"] * 45, "role": roles, "age": ages})
    >>> known = learn_plausibility(people, "sex")
    >>> women = people.iloc[45:48].assign(sex="F")  # called husband all the same
    >>> known.plausible(women).tolist(), known.plausible(women.assign(role="Wife")).tolist()
    ([False, False, False], [True, True, True])
    """

    level: float
    limit: float
    rules: Rules
    domain: TabularDomain
    neighbours: NearestPlaces

    def plausible(self, rows: pd.DataFrame, person: Any = None) -> BoolArray:
        """Whether each row could be a person, (n,).

        Parameters
        ----------
        rows : DataFrame of n rows
        person : int array of shape (n,), optional
            Positions, among the real people, of those whose counterparts the rows are. A counterpart is not plausible
            because the person is near: they are left out.
        """
        broken = self.rules.broken(rows)
        far = self.squared_distance(rows, person) > self.limit
        return np.asarray(~broken & ~far)

    def of_twins(self, made: MadeTwins, person: Any = None) -> BoolArray:
        """Whether each counterpart that is compared could be a person, (variants, n); True for all others.

        `person` is as in `plausible`, (n,), or (variants, n) if it differs by variant.
        """
        left_out = None if person is None else np.broadcast_to(person, made.usable.shape)
        valid = np.ones_like(made.usable)
        for number, table in enumerate(made.tables):
            some = np.flatnonzero(made.compared[number])
            if len(some):
                valid[number, some] = self.plausible(
                    table.iloc[some], None if left_out is None else left_out[number, some]
                )
        return valid

    def squared_distance(self, rows: pd.DataFrame, person: Any = None) -> FloatArray:
        """Squared distance of each row from the nearest real person, (n,); the person they are a twin of left out."""
        k = 1 if person is None else 2
        index, squared = self.neighbours.query(self.domain.encode_array(rows), k)
        if person is None:
            return squared[:, 0]
        itself = index[:, 0] == np.asarray(person)
        return np.where(itself, squared[:, 1], squared[:, 0])


def learn_plausibility(people: Any, attribute: str, *, level: float = 0.95) -> Plausibility:
    """Learn what real people look like.

    Parameters
    ----------
    people : table of n people
    attribute : str
        The column that counterparts change.
    level : float in (0, 1), default=0.95
        Share of the real people whose distance to the nearest other one is called plausible.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 100, "age": rng.normal(40, 5, 200)})
    >>> model = learn_plausibility(people, "sex")
    >>> bool(abs(model.plausible(people, np.arange(200)).mean() - 0.95) < 0.01)
    True
    >>> model.plausible(pd.DataFrame({"sex": ["F"], "age": [99.0]})).tolist()
    [False]
    """
    owner = "learn_plausibility"
    frame = to_pandas(people, owner=owner, name="people")
    check_share(level, owner=owner, name="level")
    if len(frame) < 2:
        raise InputError(
            f"{owner}: what real people look like cannot be learned from {len(frame)} of them. Pass more people; in a "
            "study of few, those to learn from as reference=."
        )
    domain = TabularDomain.from_frame(frame)
    places = domain.encode_array(frame)
    neighbours = NearestPlaces(places)
    # The same search for real people as for counterparts: beyond some thousand people it looks at most cells, not all.
    index, squared = neighbours.query(places, 2)
    nearest = np.where(index[:, 0] == np.arange(len(frame)), squared[:, 1], squared[:, 0])
    limit = float(np.quantile(nearest, level, method="higher"))
    return Plausibility(level, limit, learn_rules(frame, attribute).rules, domain, neighbours)


def without_implausible(made: MadeTwins, valid: BoolArray, reason: str = IMPLAUSIBLE) -> MadeTwins:
    """Return the same counterparts with the implausible ones unusable, and why."""
    dropped = made.compared & ~valid
    why = dict(made.why_not)
    if dropped.any():
        why[reason] = dropped | why.get(reason, np.zeros_like(dropped))
    return MadeTwins(made.tables, made.variants, made.own, made.usable & ~dropped, why)
