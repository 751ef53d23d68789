"""What is counted of question 1: who would lose and who would gain the favourable decision, by what is recorded of them.

Everything is counts by decision, so that which decision is the favourable one can be said afterwards, and so that the
counts of parts of a table add up to those of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.core.checks import BoolArray, IntArray
from likewise.core.exact_sum import ExactSum, Moments
from likewise.core.plain import beside, plain_cell
from likewise.data.missing_values import MISSING_WORD
from likewise.models.matching import as_recorded

if TYPE_CHECKING:
    from likewise.auditing.results.sensitive import Attribute, Enumeration

COLUMNS = ("attribute", "recorded", "instead", "people", "lose", "gain")
NUMBER_COLUMNS = ("attribute", "recorded", "instead", "people", "lower", "higher", "change")
ANY, OTHER, ANOTHER = "any value", "any other value", "another value"
LESS, MORE = "a lower value", "a higher value"
# Combinations of several attributes that are counted, people listed of each decision.
MAX_COMBINATIONS, MAX_LISTED = 24, 5000
LOWER, HIGHER = "lower", "higher"


@dataclass(frozen=True)
class ChangedPeople:
    """How many people are decided differently when only the sensitive columns change.

    Parameters
    ----------
    count, n : int
        So many of n people.
    share : float
    interval : tuple of float
        Of the share among people like those audited.
    exact : bool
        Whether every value that occurs in the table or is declared was tried; else the count is a lower bound.
    confidence : float, default=0.95
        Of the interval.

    Examples
    --------
    >>> print(ChangedPeople(411, 9045, 411 / 9045, (0.0412, 0.0499), True))
    411 of 9,045 (4.5%, 95% interval 4.1% to 5.0%)
    """

    count: int
    n: int
    share: float
    interval: tuple[float, float]
    exact: bool
    confidence: float = 0.95

    def __str__(self) -> str:
        low, high = (f"{100 * end:.1f}%" for end in self.interval)
        start = "" if self.exact else "at least "
        level = f"{100 * self.confidence:g}% interval"
        return f"{start}{self.count:,} of {self.n:,} ({100 * self.share:.1f}%, {level} {low} to {high})"


@dataclass(frozen=True)
class Transition:
    """People decided `before` who would be decided `after`; None: anything else than before.

    Of a model that predicts numbers: people who would be predicted `after` ("lower" or "higher").
    """

    before: Any
    after: Any
    people: int


@dataclass(frozen=True)
class Exchange:
    """People recorded with one value of an attribute, and their decisions if another one were recorded.

    `single`: one attribute; else values of all of them together. `total` is the sum of the changes of predicted numbers.
    """

    attribute: str
    recorded: Any
    instead: Any
    people: int
    transitions: tuple[Transition, ...] = ()
    single: bool = True
    total: Any = None

    @property
    def changed(self) -> int:
        """People who would be decided differently, or predicted another number."""
        wanted = (None,) if self.total is None else (LOWER, HIGHER)
        return sum(one.people for one in self.transitions if one.after in wanted)

    def predicted(self, side: str) -> int:
        """People who would be predicted lower or higher."""
        return sum(one.people for one in self.transitions if one.after == side)

    def lose(self, favourable: Any) -> int:
        """People who would lose the favourable decision."""
        return sum(one.people for one in self.transitions if one.after is None and one.before == favourable)

    def gain(self, favourable: Any) -> int:
        """People who would gain the favourable decision."""
        return sum(
            one.people
            for one in self.transitions
            if one.after is not None and one.after == favourable and one.before != favourable
        )


@dataclass(frozen=True)
class Outcome:
    """What everybody would get if everybody were recorded with the same values: decisions and how many people get each."""

    values: tuple[Any, ...]
    decisions: tuple[tuple[Any, int], ...]
    people: int
    total: Any = None


@dataclass(frozen=True)
class GroupCount:
    """People with one value of an attribute, one decision and one label, and how many of them can get another decision."""

    column: str
    value: Any
    decision: Any
    people: int
    changed: int
    label: Any = None
    total: Any = None


@dataclass(frozen=True)
class Counterpart:
    """What would have to be recorded of a person for another decision, and how many attributes that changes."""

    twin: dict[str, Any]
    decision: Any
    changes: int


@dataclass(frozen=True)
class ChangedPerson:
    """Somebody who is decided differently when only sensitive columns change: as they are, and what would change it.

    `person` counts the people audited from 0; `row` is where they are in the user's table. If there are more than two
    decisions, `others` has the least change for each further one that is possible.
    """

    person: int
    cells: dict[str, Any]
    twin: dict[str, Any]
    decision: Any
    twin_decision: Any
    changes: int = 1
    row: Any = None
    others: tuple[Counterpart, ...] = ()

    def decided(self, wanted: Any) -> ChangedPerson:
        """Return the person beside the counterpart who is decided so, if there is one."""
        one = next((one for one in self.others if one.decision == wanted), None)
        if one is None or self.decision == wanted:
            return self
        return replace(self, twin=one.twin, twin_decision=one.decision, changes=one.changes)


@dataclass(frozen=True)
class SensitiveSums:
    """What becomes of people when only the sensitive columns change, added up."""

    columns: tuple[str, ...]
    attributes: tuple[str, ...]
    n: int
    changed: int
    groups: tuple[GroupCount, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    people: tuple[ChangedPerson, ...] = ()
    shift: Moments | None = None
    exact: bool = True
    unmoved: frozenset[str] = frozenset()
    telling: bool = True
    # What is added to people's losses at most, if losses were asked for.
    harm: Moments | None = None

    @classmethod
    def of(cls, found: Enumeration) -> SensitiveSums:
        """Count what was found."""
        changed, shift = found.changed, None
        if not found.problem.decides:
            # How far each person's predicted number moves at most.
            moved = found.answers[found.group] - found.own[:, None]
            shift = Moments.of(np.nanmax(np.abs(np.c_[moved, np.zeros(len(moved))]), axis=1))
        return cls(
            found.columns,
            tuple(one.name for one in found.attributes),
            found.problem.n,
            int(changed.sum()),
            _groups(found, changed),
            (*_singles(found), *_combined(found)),
            _outcomes(found),
            _first(_listed(found)),
            shift,
            found.exact,
            found.unmoved,
            found.telling,
            None if found.harm is None else Moments.of(found.harm),
        )

    def merge(self, other: SensitiveSums) -> SensitiveSums:
        """Return the sums of both."""
        return replace(
            self,
            n=self.n + other.n,
            harm=None if self.harm is None or other.harm is None else self.harm.merge(other.harm),
            changed=self.changed + other.changed,
            groups=_merged((*self.groups, *other.groups), lambda g: (g.column, g.value, g.decision, g.label)),
            exchanges=_merged(
                (*self.exchanges, *other.exchanges), lambda x: (x.attribute, x.recorded, x.instead)
            ),
            outcomes=_merged((*self.outcomes, *other.outcomes), lambda o: o.values),
            people=_first((*self.people, *other.people)),
            shift=None if self.shift is None or other.shift is None else self.shift.merge(other.shift),
            exact=self.exact and other.exact,
            unmoved=self.unmoved & other.unmoved,
            telling=self.telling and other.telling,
        )


def _merged(parts: Iterable[Any], key: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Add up the counts of different people."""
    total: dict[Any, Any] = {}
    for one in parts:
        known = total.get(key(one))
        total[key(one)] = one if known is None else _added(known, one)
    return tuple(total.values())


def _added(one: Any, two: Any) -> Any:
    more: dict[str, Any] = {"people": one.people + two.people}
    if one.total is not None:
        more["total"] = one.total + two.total
    if isinstance(one, GroupCount):
        more["changed"] = one.changed + two.changed
    elif isinstance(one, Outcome):
        counts = Counter[Any](dict(one.decisions))
        counts.update(dict(two.decisions))
        more["decisions"] = tuple(counts.items())
    else:
        moves = Counter[tuple[Any, Any]]()
        for move in (*one.transitions, *two.transitions):
            moves[move.before, move.after] += move.people
        more["transitions"] = tuple(Transition(*pair, count) for pair, count in moves.items())
    return replace(one, **more)


def _first(people: Iterable[ChangedPerson]) -> tuple[ChangedPerson, ...]:
    """Keep the people of each decision whom the fewest columns move, and of numbers those whose number changes most."""
    kept: dict[Any, list[ChangedPerson]] = {}
    for one in sorted(people, key=_rank):
        mine = kept.setdefault(None if isinstance(one.decision, float) else one.decision, [])
        if len(mine) < MAX_LISTED:
            mine.append(one)
    return tuple(one for decision in sorted(kept, key=str) for one in kept[decision])


def _rank(one: ChangedPerson) -> tuple[float, int, int]:
    far = abs(one.twin_decision - one.decision) if isinstance(one.decision, float) else 0.0
    return -far, one.changes, one.person


# ---- counting --------------------------------------------------------------------------------------------


def _names(found: Enumeration) -> list[Any]:
    """The names of the decisions, by position."""
    classes = found.problem.coordinates.model.classes_
    return [] if classes is None else [plain_cell(value) for value in classes]


def _singles(found: Enumeration) -> Iterable[Exchange]:
    for one, answers in zip(found.attributes, found.alone, strict=True):
        codes, labels = _recorded(one)
        if one.numbers is not None:
            there, tried = np.flatnonzero(~one.lacking), np.asarray(one.labels, dtype=float)
            gone, none = np.flatnonzero(one.lacking), -1 if found.problem.decides else np.nan
            for label, beyond in ((LESS, np.less), (MORE, np.greater)) if len(there) else ():
                inside = beyond(tried, one.numbers[:, None])
                yield _exchange(found, one.name, ANY, label, there, np.where(inside, answers, none))
            if len(gone):
                yield _exchange(found, one.name, MISSING_WORD, OTHER, gone, answers)
            continue
        for code, label in enumerate(labels):
            rows = np.flatnonzero(codes == code)
            for position, value in enumerate(one.shown):
                if len(rows) and position != code:
                    yield _exchange(found, one.name, label, one.labels[value], rows, answers[:, [value]])


def _recorded(one: Attribute) -> tuple[IntArray, list[Any]]:
    """What is recorded of each person, as a position among labels: the values shown, another one, none."""
    place = np.full(len(one.labels) + 1, len(one.shown), dtype=np.int64)
    place[one.shown] = np.arange(len(one.shown))
    codes = np.where(one.lacking, len(one.shown) + 1, place[one.own])
    return codes, [*(one.labels[value] for value in one.shown), ANOTHER, MISSING_WORD]


def _combined(found: Enumeration) -> Iterable[Exchange]:
    """Values of all attributes together, if at least two of them change."""
    parts = found.attributes
    count = np.prod([len(one.shown) for one in parts])
    if len(parts) < 2 or any(one.many for one in parts) or count > MAX_COMBINATIONS:
        return
    recorded = [_recorded(one) for one in parts]
    codes = np.stack([mine for mine, _ in recorded], axis=1)
    name, everything = " × ".join(one.name for one in parts), found.answers[found.group]
    for own in np.unique(codes, axis=0):
        rows = np.flatnonzero((codes == own).all(axis=1))
        said = ", ".join(str(labels[code]) for code, (_, labels) in zip(own, recorded, strict=True))
        for which, values in enumerate(found.combinations):
            place = [np.flatnonzero(one.shown == value) for one, value in zip(parts, values, strict=True)]
            if any(not len(at) for at in place):
                continue
            if sum(int(at[0]) != code for at, code in zip(place, own, strict=True)) < 2:
                continue
            instead = ", ".join(str(one.labels[value]) for one, value in zip(parts, values, strict=True))
            yield replace(_exchange(found, name, said, instead, rows, everything[:, [which]]), single=False)


def _exchange(
    found: Enumeration, attribute: str, recorded: Any, instead: Any, rows: IntArray, answers: Any
) -> Exchange:
    """Count what becomes of some people under any of the answers given for each, (n, values)."""
    mine, own = answers[rows], found.own[rows]
    if not found.problem.decides:
        change = np.where(np.isnan(mine), 0.0, mine - own[:, None])
        slack = found.problem.tolerance or _rounding(own)
        lower, higher = (change < -slack).any(axis=1), (change > slack).any(axis=1)
        moves = (Transition(None, LOWER, int(lower.sum())), Transition(None, HIGHER, int(higher.sum())))
        largest = change[np.arange(len(rows)), np.abs(change).argmax(axis=1)]
        return Exchange(attribute, recorded, instead, len(rows), moves, total=ExactSum.of(largest))
    names, moved = _names(found), (mine >= 0) & (mine != own[:, None])
    any_moved, counts = moved.any(axis=1), []
    for code in np.unique(own[any_moved]):
        inside = any_moved & (own == code)
        counts.append(Transition(names[code], None, int(inside.sum())))
        for after in range(len(names)):
            people = int((moved[inside] & (mine[inside] == after)).any(axis=1).sum())
            if people:
                counts.append(Transition(names[code], names[after], people))
    return Exchange(attribute, recorded, instead, len(rows), tuple(counts))


def _rounding(values: Any) -> float:
    return 1e-9 * (1.0 + float(np.abs(values).max(initial=0.0)))


def _outcomes(found: Enumeration) -> tuple[Outcome, ...]:
    parts = found.attributes
    shown = np.prod([len(one.shown) for one in parts])
    if any(one.many for one in parts) or shown > 4 * MAX_COMBINATIONS:
        return ()
    names, weight = _names(found), np.bincount(found.group, minlength=len(found.answers))
    listed = []
    for which, values in enumerate(found.combinations):
        if not all(value in one.shown for one, value in zip(parts, values, strict=True)):
            continue
        said = tuple(one.labels[value] for one, value in zip(parts, values, strict=True))
        answers = found.answers[:, which]
        if names:
            people = np.bincount(answers[answers >= 0], weight[answers >= 0], len(names)).astype(int)
            counts = tuple((name, int(n)) for name, n in zip(names, people, strict=True))
            listed.append(Outcome(said, counts, int(people.sum())))
        else:
            everybody = answers[found.group]
            there = everybody[~np.isnan(everybody)]
            listed.append(Outcome(said, (), len(there), ExactSum.of(there)))
    return tuple(listed)


def _groups(found: Enumeration, changed: BoolArray) -> tuple[GroupCount, ...]:
    problem, names, counted = found.problem, _names(found), []
    labelled = problem.labels if names and problem.labelled else np.zeros(problem.n, dtype=np.int64)
    labels, label_codes = np.unique(labelled, return_inverse=True)
    decision = found.own if names else np.zeros(problem.n, dtype=np.int64)
    for one in found.attributes:
        codes, values = _recorded(one)
        if one.edges is not None and one.numbers is not None:
            # A number with many values is told apart by ranges.
            step = 1 if (one.numbers % 1 == 0).all() else 0
            ranges = zip(one.edges + step, one.edges[1:], strict=False)
            between = [f"{low:.6g} – {high:.6g}" if low < high else f"{high:.6g}" for low, high in ranges]
            values = [f"≤ {one.edges[0]:.6g}", *between, f"> {one.edges[-1]:.6g}", MISSING_WORD]
            codes = np.where(one.lacking, len(values) - 1, np.searchsorted(one.edges, one.numbers))
        keys = np.stack([codes, decision, label_codes.ravel()], axis=1)
        patterns, at = np.unique(keys, axis=0, return_inverse=True)
        for k, (value, decided, label) in enumerate(patterns):
            inside = at.ravel() == k
            counted.append(
                GroupCount(
                    one.name,
                    values[value],
                    names[decided] if names else None,
                    int(inside.sum()),
                    int(changed[inside].sum()),
                    plain_cell(labels[label]) if names and problem.labelled else None,
                    None if names else ExactSum.of(found.own[inside]),
                )
            )
    return tuple(counted)


def _listed(found: Enumeration) -> tuple[ChangedPerson, ...]:
    """People whose decision changes, each beside the counterpart who differs least."""
    names, own = _names(found), found.own
    values, changes, after = _least(found)
    chosen = np.flatnonzero(changes < _NEVER)
    if names:
        order = np.lexsort((chosen, changes[chosen]))
        kept = [chosen[order][own[chosen[order]] == code][:MAX_LISTED] for code in np.unique(own[chosen])]
        chosen = np.concatenate([chosen[:0], *kept])
    else:
        chosen = chosen[np.argsort(-np.abs(after[chosen] - own[chosen]), kind="stable")][:MAX_LISTED]
    listed = tuple(_people(found, chosen, values[chosen], changes[chosen], after[chosen]))
    return listed if len(names) <= 2 else _with_others(found, chosen, after[chosen], listed)


# More attributes than there are: no counterpart is decided so.
_NEVER = 127


def _least(found: Enumeration, to: int | None = None) -> tuple[IntArray, IntArray, Any]:
    """Values of everybody's counterpart with another decision (`to`) who differs least, how many change, and its answer."""
    problem, flips = found.problem, found.flips
    if to is not None:
        flips = flips & (found.answers[found.group] == to)
    if not problem.counts_changes:
        slack = _rounding(found.own)
        flips = np.abs(np.nan_to_num(found.answers[found.group] - found.own[:, None])) > slack
    cost = np.where(flips, found.differs, _NEVER)
    best = cost.argmin(axis=1)
    values, changes = found.combinations[best].copy(), cost[np.arange(problem.n), best].astype(int)
    after = found.answers[found.group, best].copy()
    for k, answers in enumerate(found.alone if problem.decides else ()):
        # People another cell of whom is missing have counterparts that the combinations do not hold.
        differ = (answers >= 0) & (answers != found.own[:, None])
        differ = differ if to is None else differ & (answers == to)
        for person in np.flatnonzero(differ.any(axis=1) & (changes > 1)):
            value = int(differ[person].argmax())
            values[person], changes[person] = -1, 1
            values[person, k], after[person] = value, answers[person, value]
    return values, changes, after


def _with_others(
    found: Enumeration, chosen: IntArray, after: Any, listed: tuple[ChangedPerson, ...]
) -> tuple[ChangedPerson, ...]:
    """Add the least change for every further decision."""
    others: list[list[Counterpart]] = [[] for _ in chosen]
    for code, name in enumerate(_names(found)):
        values, changes, _ = _least(found, code)
        for at in np.flatnonzero((changes[chosen] < _NEVER) & (after != code)):
            person = int(chosen[at])
            others[at].append(Counterpart(_twin(found, person, values[person]), name, int(changes[person])))
    return tuple(replace(one, others=tuple(more)) for one, more in zip(listed, others, strict=True))


def _twin(found: Enumeration, person: int, values: IntArray) -> dict[str, Any]:
    """The sensitive cells of a counterpart that are not the person's own."""
    return {
        str(part.name): plain_cell(part.values[one.codes[value, f]])
        for one, value in zip(found.attributes, values, strict=True)
        for f, part in enumerate(one.fields)
        if value >= 0 and one.codes[value, f] not in (-1, part.codes[person])
    }


def _people(
    found: Enumeration, chosen: IntArray, values: IntArray, changes: IntArray, after: Any
) -> Iterable[ChangedPerson]:
    problem, names = found.problem, _names(found)
    if not len(chosen):
        return
    rows = problem.rows
    people = problem.coordinates.original(rows.iloc[chosen] if hasattr(rows, "iloc") else rows[chosen])
    people = as_recorded(problem.coordinates.model, people)
    columns = {str(name): [plain_cell(cell) for cell in people[name].tolist()] for name in people.columns}
    for one in found.attributes:
        for part in one.fields:
            # A plain array has no names, and shows its columns as x0, x1, …
            cells = columns.get(str(part.name)) or columns[f"x{part.name}"]
            for place in np.flatnonzero(one.lacking[chosen]):
                cells[place] = MISSING_WORD
    for at, person in enumerate(chosen):
        twin = _twin(found, person, values[at])
        own, then = (
            (names[found.own[person]], names[after[at]])
            if names
            else (float(found.own[person]), float(after[at]))
        )
        mine = {name: column[at] for name, column in columns.items()}
        number = problem.first + int(person)
        yield ChangedPerson(number, mine, twin, own, then, int(changes[at]), row=number)


# ---- tables ----------------------------------------------------------------------------------------------


def effects_table(exchanges: Sequence[Exchange], favourable: Any) -> pd.DataFrame:
    """Return the exchanges as a table: single attributes before combinations, and those that change most first.

    Without a favourable decision nobody is known to lose or gain: these columns hold None.
    """
    numbers = any(one.total is not None for one in exchanges)
    rows = []
    for one in exchanges:
        counts: list[Any]
        if numbers:
            counts = [one.predicted(LOWER), one.predicted(HIGHER), one.total / one.people]
            size = abs(one.total)
        else:
            counts = [None, None] if favourable is None else [one.lose(favourable), one.gain(favourable)]
            size = one.changed if favourable is None else sum(counts)
        rows.append(
            ((not one.single, -size), [one.attribute, one.recorded, one.instead, one.people, *counts])
        )
    rows.sort(key=lambda row: (*row[0], *map(str, row[1][:3])))
    names = NUMBER_COLUMNS if numbers else COLUMNS
    table = pd.DataFrame([cells for _, cells in rows], columns=list(names), dtype=object)
    whole = [name for name in names[3:6] if numbers or favourable is not None or name == "people"]
    return table.astype(dict.fromkeys(whole, "int64") | ({"change": float} if numbers else {}))


def outcomes_table(attributes: Sequence[str], outcomes: Sequence[Outcome], favourable: Any) -> pd.DataFrame:
    """Return what everybody would get if everybody were recorded with the same values."""
    rows = []
    for one in outcomes:
        cells: dict[str, Any] = {"people": one.people}
        if one.total is not None:
            cells["mean"] = one.total / one.people
        elif favourable is not None:
            got = dict(one.decisions).get(favourable, 0)
            cells |= {"favourable": got, "share": got / one.people if one.people else None}
        else:
            cells |= {str(decision): count for decision, count in one.decisions}
        rows.append(
            {beside(name, cells): value for name, value in zip(attributes, one.values, strict=True)} | cells
        )
    return pd.DataFrame(rows)


def rates_table(groups: Sequence[GroupCount], favourable: Any, *, labelled: bool) -> pd.DataFrame:
    """Return how often people with each value get the favourable decision, and how often the decision is wrong.

    `impact_ratio` compares the rate with the highest one of the attribute; `false_negative_rate` is the share of those
    labelled favourable who do not get it, `false_positive_rate` the share of the others who do.
    """
    rows: dict[tuple[str, Any], dict[str, Any]] = {}
    for one in groups:
        row = rows.setdefault(
            (one.column, one.value),
            {"attribute": one.column, "value": one.value, "people": 0, "changed": 0, "got": 0, "wrong": 0}
            | {"total": 0.0, "deserved": 0, "missed": 0, "undue": 0},
        )
        row["people"] += one.people
        row["changed"] += one.changed
        row["total"] += 0.0 if one.total is None else one.total
        got, deserved = one.decision == favourable, one.label == favourable
        row["got"] += one.people * got
        row["wrong"] += one.people * (one.decision != one.label)
        row["deserved"] += one.people * deserved
        row["missed"] += one.people * (deserved and not got)
        row["undue"] += one.people * (got and not deserved)
    numbers = any(one.total is not None for one in groups)
    found = []
    for row in rows.values():
        shown = {key: row[key] for key in ("attribute", "value", "people", "changed")}
        if numbers:
            found.append(shown | {"mean": row["total"] / row["people"]})
            continue
        if favourable is not None:
            shown |= {"favourable": row["got"], "rate": row["got"] / row["people"]}
            best = max(
                one["got"] / one["people"] for one in rows.values() if one["attribute"] == row["attribute"]
            )
            shown["impact_ratio"] = shown["rate"] / best if best else None
        if labelled:
            shown["error_rate"] = row["wrong"] / row["people"]
        if labelled and favourable is not None:
            others = row["people"] - row["deserved"]
            shown["false_negative_rate"] = row["missed"] / row["deserved"] if row["deserved"] else None
            shown["false_positive_rate"] = row["undue"] / others if others else None
        found.append(shown)
    return pd.DataFrame(found)
