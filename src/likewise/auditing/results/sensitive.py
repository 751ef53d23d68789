"""Twins that differ in the sensitive columns and in nothing else: what needs no learned metric to be believed.

For any model the worst of these twins is found by asking about all of them, or about a fine choice where a number has too
many values (`sensitive_values`). A learned metric adds more (directions that give the attribute away are free as well),
but that rests on what was learned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.coordinates import Coordinates, tabular
from likewise.auditing.dual.frontier import Floats, Frontier
from likewise.auditing.editable_rows import MAX_VALUES, EditableFrame, EditableRows
from likewise.auditing.results.effects import SingleChanges
from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.core.frames import with_columns
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns
from likewise.data.missing_values import MISSING_WORD

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.candidate_rows import Candidates

# Which values the sensitive columns of twins are given: all that can exist if they are few, else a fine
# choice of them.


# A whole number with up to so many values is given each of them.
ALL_WHOLE = 128
# Of another number: points of the grid, and quantiles of the table's values.
GRID, QUANTILES = 65, 64
# Twins of one person, and of everybody together where that leaves `ALL_WHOLE` of each person, at most; at least so many
# values of each number.
MAX_TWINS, MAX_ROWS, LEAST = 1000, 3_000_000, 5


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """The edits of the sensitive columns, with the values that they are given."""

    edits: EditParts
    exact: bool = True
    wider: bool = False
    bands: dict[str, Floats] = field(default_factory=dict)
    # The values that occur of a number with few.
    few: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def sensitive_values(problem: AuditProblem) -> SensitiveValues:
    """Choose the values of the sensitive columns; nothing is asked of the model."""
    edits, rows = problem.sensitive_edits, problem.editable()
    open_parts = [part for part in edits if isinstance(part, Edit) and _takes_all(part)]
    columns = {part.column: rows.numbers(part.column) for part in open_parts}
    numbers = {name: found for name, found in columns.items() if found is not None}
    settled = {
        part.column: tuple(rows.field(part.column, owner="audit").values)
        for part in open_parts
        if part.column not in numbers
    }
    others = prod(_count(part, settled) for part in edits if _column(part) not in numbers)
    n = problem.n if problem.total is None else problem.total
    room = min(MAX_TWINS, max(ALL_WHOLE, MAX_ROWS // max(n, 1))) / max(others, 1)
    most = max(LEAST, int(room ** (1.0 / len(numbers)) + 1e-9)) if numbers else 0
    cuts = _cuts(problem.coordinates) if numbers else {}
    exact, bands, few = problem.repeats, dict[str, Floats](), dict[str, tuple[Any, ...]]()
    for name, own in numbers.items():
        values, every = _numbers(problem.coordinates, rows, name, own, cuts.get(str(name), []))
        kept = _thinned(values, most)
        exact &= every and len(kept) == len(values)
        settled[name] = tuple(kept)
        if len(np.unique(own)) > MAX_VALUES:
            bands[str(name)] = np.unique(np.quantile(own, [0.25, 0.5, 0.75], method="nearest"))
        else:
            few[str(name)] = tuple(rows.writable(name, np.unique(own)))
    chosen = tuple(
        replace(part, values=settled[part.column])
        if isinstance(part, Edit) and part.column in settled
        else part
        for part in edits
    )
    return SensitiveValues(chosen, exact, bool(numbers), bands, few)


def _takes_all(part: Edit) -> bool:
    return part.values is None or (isinstance(part.values, str) and part.values == "all")


def _column(part: Any) -> Any:
    return part.column if isinstance(part, Edit) else None


def _count(part: Any, settled: dict[Any, tuple[Any, ...]]) -> int:
    if not isinstance(part, Edit):
        return len(part)
    return len(settled.get(part.column, part.values or ()))


def _numbers(
    place: Coordinates, rows: EditableRows, name: Any, own: Floats, cuts: list[float]
) -> tuple[list[Any], bool]:
    """Values of one number in its own units, rising, and whether they are all that can exist."""
    lower, upper, whole = _range(place, name, own)
    seen = np.unique(own)
    if len(seen) <= 2 and tabular(place.domain) is None:
        # A plain array does not say so, but a column of two values is a category.
        return rows.writable(name, seen), True
    if whole and upper - lower < ALL_WHOLE:
        return rows.writable(name, np.arange(lower, upper + 1.0)), True
    cut = np.asarray([c for c in cuts if lower <= c <= upper], dtype=np.float64)
    ends = np.concatenate([[lower], cut, [upper]])
    sides = [cut + 1.0 if whole else np.nextafter(cut, np.inf), (ends[1:] + ends[:-1]) / 2.0]
    few = seen if len(seen) <= QUANTILES else np.quantile(own, np.linspace(0, 1, QUANTILES), method="nearest")
    values = np.concatenate([ends, *sides, np.linspace(lower, upper, GRID), few])
    values = np.unique(np.floor(values) if whole else values)
    return rows.writable(name, values[(values >= lower) & (values <= upper)]), False


def _range(place: Coordinates, name: Any, own: Floats) -> tuple[float, float, bool]:
    """Least and greatest value that can exist, and whether only whole numbers can."""
    lower, upper, whole = -np.inf, np.inf, bool((own % 1 == 0).all())
    known = tabular(place.domain)
    if known is not None:
        column = next((one for one in known.columns_ if one.name == str(name)), None)
        if column is not None:
            lower, upper, whole = column.lower, column.upper, column.kind == "integer"
    elif isinstance(name, (int, np.integer)) and hasattr(place.domain, "bounds"):
        width = max(int(name) + 1, place.domain.n_features or 0)
        lower, upper = (float(np.broadcast_to(ends, (width,))[name]) for ends in place.domain.bounds())
    lower = lower if np.isfinite(lower) else float(own.min())
    upper = upper if np.isfinite(upper) else float(own.max())
    return (float(np.ceil(lower)), float(np.floor(upper)), True) if whole else (lower, upper, False)


def _cuts(place: Coordinates) -> dict[str, list[float]]:
    """The last value that each split of a readable tree ensemble sends left, by column."""
    try:
        encoded = place.takes in ("encoded", "own")
        family = family_of(place.model, place.domain, encoded=encoded, own=place.own)
        return family.trees.thresholds(TableLayout.of(place.domain)) if isinstance(family, TreeFamily) else {}
    except InputError:
        return {}


def _thinned(values: list[Any], most: int) -> list[Any]:
    """So many of the values, evenly, with both ends."""
    if len(values) <= most:
        return values
    return [values[i] for i in np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]


_BATCH = 16_384
# Twins asked about first to see whether a column is read, and a change of loss that is not rounding.
_FIRST_ASKED, _CLEAR = 64, 1e-6


@dataclass(frozen=True)
class ChangedPerson:
    """Somebody who is decided differently when only sensitive columns change."""

    person: int
    cells: dict[str, Any]
    twin: dict[str, Any]
    decision: Any
    twin_decision: Any
    rank: tuple[float, ...] = ()


@dataclass(frozen=True)
class ChangedGroup:
    """People with one value of a sensitive column and one decision, and how many of them get another one."""

    column: str
    value: Any
    decision: Any
    people: int
    changed: int


@dataclass(frozen=True, eq=False)
class SensitiveTwins:
    """What becomes of each person when only the sensitive columns change (the field's *ceteris paribus*)."""

    columns: tuple[str, ...]
    harm: Floats
    changed: np.ndarray[Any, np.dtype[np.bool_]]
    groups: tuple[ChangedGroup, ...] = ()
    examples: dict[tuple[str, Any], ChangedPerson] = field(default_factory=dict)
    exact: bool = True
    unmoved: frozenset[str] = frozenset()
    telling: bool = True
    rows: Any = None
    frontier: Frontier | None = None
    free: Any = None
    singles: SingleChanges | None = None

    def added_to(self, support: Support) -> Support:
        """Return a support with these twins, so that a search that tries fewer values does not know of less."""
        return support if self.frontier is None else support.with_source(self.rows, self.frontier, self.free)


def sensitive_twins(problem: AuditProblem) -> SensitiveTwins | None:
    """Ask the model about every twin of everybody that differs in the columns called sensitive only.

    People whose sensitive cell is missing are given every value of the column.
    """
    from likewise.auditing.search.candidate_rows import plan_candidates

    chosen = problem.values or sensitive_values(problem)
    edits, place = chosen.edits, problem.coordinates
    if not edits:
        return None
    people = problem.editable(fill_missing=True)
    plan = plan_candidates(people, edits, proxies=None, fixed=place.fixed_names(), owner="audit")
    if len(plan) == problem.n:
        return None
    lacking = np.any([people.missing(part.name) for part in plan.fields], axis=0)
    units = _Units(plan, edits)
    singles = SingleChanges(problem, plan, chosen) if problem.decides else None
    harm, changed = np.zeros(problem.n), np.zeros(problem.n, dtype=bool)
    free = np.zeros(problem.n, dtype=bool)
    flips: list[_Flips] = []
    points: list[tuple[Any, ...]] = []
    for start in range(problem.n, len(plan), _BATCH):
        number = np.arange(start, min(start + _BATCH, len(plan)))
        table = plan.take(number)
        x = place.encoded(table)
        possible = np.flatnonzero(place.possible(x))
        if not len(possible):
            continue
        person, shown = plan.source[number], place.for_model(table)
        worse = place.model.losses(shown, problem.labels[person]) - problem.base_loss[person]
        np.maximum.at(harm, person[possible], worse[possible])
        at = possible[:0]
        if problem.counts_changes:
            decided = place.model.predict(shown)
            at = possible[problem.differ(decided, person)[possible]]
            changed[person[at]] = True
            if singles is not None:
                singles.note(number, units.differs(number), decided, possible)
                flips.append(_Flips(number[at], person[at], np.abs(worse[at]), np.asarray(decided)[at]))
        clear = possible[
            np.abs(worse[possible]) > _CLEAR * (1.0 + np.abs(problem.base_loss[person[possible]]))
        ]
        units.note_moved(number[np.union1d(clear, at)])
        if chosen.wider:
            worst = _worst(person[possible], worse[possible])
            kept = np.unique(np.concatenate([possible[worst], at]))
            # The metric and the domain have missing cells stay missing.
            kept = kept[~lacking[person[kept]]]
            distance = problem.squared_distance(x[kept], person[kept])
            points.append((person[kept], distance, (worse + problem.base_loss[person])[kept], number[kept]))
            free[person[np.intersect1d(at, kept[distance == 0])]] |= problem.decides
    names = tuple(str(name) for name in edited_columns(edits))
    grouped = _grouped(plan, chosen)
    groups = _groups(problem, grouped, changed) if problem.decides else ()
    examples = _examples(problem, plan, grouped, flips)
    unmoved = units.unmoved(problem)
    telling = chosen.exact and bool(unmoved) and _shows_small_changes(problem)
    frontier = _frontier(problem, points) if points else None
    return SensitiveTwins(
        names, harm, changed, groups, examples, chosen.exact, unmoved, telling, plan, frontier, free, singles
    )


def _shows_small_changes(problem: AuditProblem) -> bool:
    """Whether the model answers with more than decisions, or probabilities that were rounded to certainty."""
    place = problem.coordinates
    if not place.model.gives_probabilities:
        return True
    own = place.model.outputs(place.for_model(problem.rows))
    return bool(((own == 0) | (own == 1)).all(axis=1).mean() <= 0.5)


class _Units:
    """Sensitive columns that change together, and whether any prediction was seen to depend on each."""

    def __init__(self, plan: Candidates, edits: EditParts) -> None:
        self.plan = plan
        self.names = [edited_columns((part,)) for part in edits]
        self.moved = np.zeros(len(edits), dtype=bool)
        place = {field.name: k for k, field in enumerate(plan.fields)}
        self._fields = [[place[name] for name in names] for names in self.names]

    def note_moved(self, number: IntArray) -> None:
        """Note the units by which some twins, whose prediction clearly changes, differ in nothing else."""
        if self.moved.all() or not len(number):
            return
        differs = self.differs(number)
        self.moved |= differs[differs.sum(axis=1) == 1].any(axis=0)

    def unmoved(self, problem: AuditProblem) -> frozenset[str]:
        """Return the columns on which no prediction depends, to the bit, for any person and combination that is tried."""
        rest = [unit for unit in np.flatnonzero(~self.moved) if not self._moves(problem, unit)]
        return frozenset(str(name) for unit in rest for name in self.names[unit])

    def _moves(self, problem: AuditProblem, unit: Any) -> bool:
        """Whether any twin is predicted otherwise than the same twin with one unit's own values.

        Both are asked about at the same place of a batch of the same size and layout, so that rounding is the same.
        """
        place, plan = problem.coordinates, self.plan
        start, size = problem.n, _FIRST_ASKED
        while start < len(plan):
            number = np.arange(start, min(start + size, len(plan)))
            start, size = start + size, min(4 * size, _BATCH)
            number = number[self.differs(number)[:, unit]]
            rows, target = plan.source[number], plan.combinations[plan.edit[number]]
            table = plan.people.rewrite(rows, list(zip(plan.fields, target.T, strict=True)))
            possible = place.possible(place.encoded(table)) if len(number) else np.zeros(0, dtype=bool)
            if not possible.any():
                continue
            rows, target = rows[possible], target[possible]
            back = target.copy()
            for k in self._fields[unit]:
                own = plan.fields[k].codes[rows]
                back[:, k] = own if isinstance(plan.people, EditableFrame) else -1
            asked, again = (
                place.model.outputs(
                    place.for_model(plan.people.rewrite(rows, list(zip(plan.fields, codes.T, strict=True))))
                )
                for codes in (target, back)
            )
            if (asked != again).any():
                return True
        return False

    def differs(self, number: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which units of some candidates differ from their person's own, (k, units)."""
        target, rows = self.plan.combinations[self.plan.edit[number]], self.plan.source[number]
        own = np.stack([field.codes[rows] for field in self.plan.fields], axis=1)
        other = (target != own) & (target >= 0)
        return np.stack([other[:, fields].any(axis=1) for fields in self._fields], axis=1)


def _worst(person: IntArray, worse: Floats) -> IntArray:
    """Positions of the worst row of each person."""
    order = np.lexsort((worse, person))
    last = np.append(person[order][1:] != person[order][:-1], True)
    return np.asarray(order[last])


def _frontier(problem: AuditProblem, points: list[tuple[Any, ...]]) -> Frontier:
    row, distance, loss, number = (np.concatenate(part) for part in zip(*points, strict=True))
    return Frontier.from_points(
        base_loss=problem.base_loss, row=row, squared_distance=distance, loss=loss, candidate=number
    )


class _Flips(NamedTuple):
    """Candidates that are decided differently: their numbers, whose they are, how far off in loss, the decision."""

    number: IntArray
    person: IntArray
    far: Floats
    decision: np.ndarray[Any, Any]


class _Grouped(NamedTuple):
    """How people are told apart by one sensitive column: its values, or ranges of a number with many."""

    name: str
    labels: tuple[Any, ...]
    codes: IntArray


def _grouped(plan: Candidates, chosen: SensitiveValues) -> list[_Grouped]:
    found = []
    for part in plan.fields:
        edges = chosen.bands.get(str(part.name))
        own = plan.people.numbers(part.name) if edges is not None else None
        labels, codes = part.values, part.codes
        if edges is not None and own is not None:
            above, upto = [f"> {edge:.6g}" for edge in edges], [f"≤ {edge:.6g}" for edge in edges]
            between = [f"{low}, {high}" for low, high in zip(above, upto[1:], strict=False)]
            labels, codes = (upto[0], *between, above[-1]), np.searchsorted(edges, own)
        missing = plan.people.missing(part.name)
        if missing.any():
            labels, codes = (*labels, MISSING_WORD), np.where(missing, len(labels), codes)
        found.append(_Grouped(str(part.name), labels, codes))
    return found


def _groups(problem: AuditProblem, grouped: list[_Grouped], changed: Any) -> tuple[ChangedGroup, ...]:
    decisions, code = np.unique(problem.decisions, return_inverse=True)
    found = []
    for part in grouped:
        for value in range(len(part.labels)):
            for decision in range(len(decisions)):
                inside = (part.codes == value) & (code == decision)
                if inside.any():
                    counts = int(inside.sum()), int(changed[inside].sum())
                    found.append(
                        ChangedGroup(
                            part.name, _cell(part.labels[value]), _cell(decisions[decision]), *counts
                        )
                    )
    return tuple(found)


def _examples(
    problem: AuditProblem, plan: Any, grouped: list[_Grouped], flips: list[_Flips]
) -> dict[tuple[str, Any], ChangedPerson]:
    """For each sensitive value the person whose twin says most: few columns changed, that one, far in loss."""
    if not sum(len(part.number) for part in flips):
        return {}
    number, person, far, decision = (np.concatenate(columns) for columns in zip(*flips, strict=True))
    far = np.round(
        far, 9
    )  # so that sums in another order, of other parts of the table, choose the same person
    target = plan.combinations[plan.edit[number] % len(plan.combinations)]
    own = np.stack([part.codes[person] for part in plan.fields], axis=1)
    moved = (target != own) & (target >= 0)
    many = moved.sum(axis=1)
    best: dict[tuple[str, Any], int] = {}
    ranks: dict[tuple[str, Any], tuple[float, ...]] = {}
    for k, part in enumerate(grouped):
        for value in range(len(part.labels)):
            inside = np.flatnonzero(part.codes[person] == value)
            if len(inside):
                keys = (person[inside], -far[inside], ~moved[inside, k], many[inside])
                at = int(inside[np.lexsort(keys)[0]])
                key = part.name, _cell(part.labels[value])
                best[key] = at
                who = problem.first + int(person[at])
                ranks[key] = (float(many[at]), float(not moved[at, k]), -float(far[at]), float(who))
    chosen = np.asarray(list(best.values()), dtype=np.int64)
    people = problem.coordinates.original(plan.take(person[chosen]))
    if problem.missing is not None:
        people = problem.missing.restored(people)
        lacking = {str(k.name): people[str(k.name)].astype(object).fillna(MISSING_WORD) for k in plan.fields}
        people = with_columns(people, lacking)
    return {
        key: ChangedPerson(
            problem.first + int(person[at]),
            {str(name): _cell(people[name].iloc[row]) for name in people.columns},
            {
                str(part.name): _cell(part.values[target[at, k]])
                for k, part in enumerate(plan.fields)
                if moved[at, k]
            },
            _cell(problem.decisions[person[at]]),
            _cell(decision[at]),
            ranks[key],
        )
        for row, (key, at) in enumerate(best.items())
    }


def _cell(value: Any) -> Any:
    """One cell as a plain Python value, so that it can be written to a file."""
    value = value.item() if isinstance(value, np.generic) else value
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
