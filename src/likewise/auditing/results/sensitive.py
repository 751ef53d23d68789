"""Question 1: counterparts that differ in the sensitive columns and in nothing else, asked about one by one.

Every combination of sensitive values is tried, or a fine choice if a number has too many values (`sensitive_values`).
The model is asked once about each distinct pair of (rest of the row, combination); everything else is counted from that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.editable_rows import (
    MAX_VALUES,
    EditableArray,
    EditableFrame,
    EditableRows,
    Field,
)
from likewise.auditing.people import APART, AuditedPeople, TableCoordinates, differ_alike, tabular
from likewise.core.checks import BoolArray, FloatArray, IntArray
from likewise.core.errors import InputError
from likewise.core.plain import plain_cell
from likewise.counterfactuals.edits import Edit, EditParts, check_combinations, edited_columns
from likewise.data.tabular import TabularDomain

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
    bands: dict[str, FloatArray] = field(default_factory=dict)
    # The values that occur of a number with few.
    few: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def sensitive_values(problem: AuditedPeople) -> SensitiveValues:
    """Choose the values of the sensitive columns; nothing is asked of the model."""
    edits, rows = problem.sensitive_edits, problem.editable()
    open_columns = [
        part.column
        for part in edits
        if isinstance(part, Edit)
        and (part.values is None or (isinstance(part.values, str) and part.values == "all"))
    ]
    columns = {name: rows.numbers(name) for name in open_columns}
    numbers = {name: found for name, found in columns.items() if found is not None}
    settled = {name: tuple(rows.field(name).values) for name in open_columns if name not in numbers}
    others = prod(
        len(settled.get(part.column, part.values or ())) if isinstance(part, Edit) else len(part)
        for part in edits
        if not (isinstance(part, Edit) and part.column in numbers)
    )
    n = problem.n if problem.total is None else problem.total
    room = min(MAX_TWINS, max(ALL_WHOLE, MAX_ROWS // max(n, 1))) / max(others, 1)
    most = max(LEAST, int(room ** (1.0 / len(numbers)) + 1e-9)) if numbers else 0
    cuts = _cuts(problem.coordinates) if numbers else {}
    exact, bands, few = problem.repeats, dict[str, FloatArray](), dict[str, tuple[Any, ...]]()
    for name, own in numbers.items():
        values, every = _numbers(problem.coordinates, rows, name, own, cuts.get(str(name), []))
        kept = values
        if len(values) > most:
            # So many of them, evenly, with both ends.
            at = np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))
            kept = [values[k] for k in at]
        exact &= every and len(kept) == len(values)
        if len(np.unique(own)) > MAX_VALUES:
            bands[str(name)] = np.unique(np.quantile(own, [0.25, 0.5, 0.75], method="nearest"))
        else:
            few[str(name)] = tuple(rows.writable(name, np.unique(own)))
            kept = sorted({*kept, *few[str(name)]})
        settled[name] = tuple(kept)
    chosen = tuple(
        replace(part, values=settled[part.column])
        if isinstance(part, Edit) and part.column in settled
        else part
        for part in edits
    )
    return SensitiveValues(chosen, exact, bands, few)


def _numbers(
    place: TableCoordinates, rows: EditableRows, name: Any, own: FloatArray, cuts: list[float]
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


def _range(place: TableCoordinates, name: Any, own: FloatArray) -> tuple[float, float, bool]:
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


def _cuts(place: TableCoordinates) -> dict[str, list[float]]:
    """The last value that each split of a readable tree ensemble sends left, by column."""
    from likewise.auditing.bounds.families import family_of
    from likewise.auditing.bounds.regions import TableLayout
    from likewise.auditing.bounds.trees import TreeFamily

    try:
        encoded = place.takes in ("encoded", "own")
        family = family_of(place.model, place.domain, encoded=encoded, own=place.own)
        return family.trees.thresholds(TableLayout.of(place.domain)) if isinstance(family, TreeFamily) else {}
    except InputError:
        return {}


# Rows that the model is asked about at once, and pairs of (row, combination) whose answers are held at once.
BATCH, _BLOCK = 65_536, 2_000_000
# A counterpart who cannot exist, among the codes of decisions.
IMPOSSIBLE = -2
# A change of an answer that is not rounding.
_CLEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Attribute:
    """One sensitive attribute, a column or 0/1 columns that change together: what it may be, and what people are."""

    name: str
    labels: tuple[Any, ...]
    fields: tuple[Field, ...]
    codes: IntArray  # of each value, one for each field; -1 leaves the cell
    own: IntArray  # the value of each person; -1 if it is missing, or a number that is not tried
    lacking: BoolArray
    shown: IntArray  # the values that are counted one by one
    edges: FloatArray | None = None  # of the ranges that people are grouped by, for a number with many values
    numbers: FloatArray | None = None

    @property
    def changes(self) -> bool:
        """Whether any of its values is another one than somebody has."""
        return any(
            bool((self.codes[self.codes[:, f] >= 0, f][:, None] != np.unique(part.codes)).any())
            for f, part in enumerate(self.fields)
        )

    @property
    def many(self) -> bool:
        """Whether its values are too many to be counted one by one."""
        return self.edges is not None


class Enumeration:
    """The model's answers about everybody with every combination of sensitive values.

    ``answers[group[i], e]`` is the decision (a class's position; a number for a regression) about person i with
    combination e, and ``alone[k][i, v]`` the one if attribute k alone has its value v. The model is asked once about
    each distinct pair of (rest of the row, combination). `worst` is the highest loss of each person's counterparts, and
    `worst_at` its combination, if losses were asked for.
    """

    def __init__(
        self,
        problem: AuditedPeople,
        people: EditableRows,
        attributes: tuple[Attribute, ...],
        *,
        exact: bool,
        losses: bool,
    ) -> None:
        self.problem, self.people, self.attributes, self.exact = problem, people, attributes, exact
        self._shape = [len(one.codes) for one in attributes]
        # (combinations, attributes): positions of values
        every = np.unravel_index(np.arange(prod(self._shape)), self._shape)
        self.combinations: IntArray = np.stack(every, axis=1).astype(np.int64)
        # A cell that some combination leaves as it is belongs to the rest of the row.
        written = [
            part for one in attributes for f, part in enumerate(one.fields) if (one.codes[:, f] >= 0).all()
        ]
        self.group, self._first = _distinct_rests(people, written, problem.n)
        size, decides = (len(self._first), len(self.combinations)), problem.decides
        self._none = np.int16(IMPOSSIBLE) if decides else np.float64(np.nan)
        self.answers: np.ndarray[Any, Any] = np.full(size, self._none)
        self._outputs, self.own = problem.outputs, problem.decided.copy()
        self.worst: FloatArray | None = problem.base_loss.copy() if losses else None
        self.worst_at: IntArray | None = np.zeros(problem.n, dtype=np.int64) if losses else None
        # Whether a decision comes with the outputs that it follows from; else decisions alone are half the work.
        self._graded = losses or not decides or problem.coordinates.model.decides_by_outputs
        # Whether every combination of possible values is possible, so that counterparts need not be checked.
        self._certain = type(problem.coordinates.domain) is TabularDomain
        self._moved = np.zeros(len(attributes), dtype=bool)
        order = np.argsort(self.group, kind="stable")
        ends = np.searchsorted(self.group[order], np.arange(size[0] + 1))
        step = max(1, _BLOCK // size[1])
        for start in range(0, size[0], step):
            stop = min(start + step, size[0])
            self._ask_block(start, stop, order[ends[start] : ends[stop]])
        still = [one for k, one in enumerate(attributes) if not self._moved[k] and not self._moves(k)]
        self.unmoved = frozenset(str(part.name) for one in still for part in one.fields)
        # Decisions alone, and probabilities that were rounded to certainty, do not show small changes.
        graded = problem.coordinates.model.gives_probabilities
        sure = ((self._outputs == 0) | (self._outputs == 1)).all(axis=1)
        self.telling = exact and bool(self.unmoved) and (not graded or float(sure.mean()) <= 0.5)
        self.alone = self._ask_alone()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the sensitive columns."""
        return tuple(str(field.name) for one in self.attributes for field in one.fields)

    @property
    def harm(self) -> FloatArray | None:
        """How much the loss of each person grows at most."""
        return None if self.worst is None else np.maximum(self.worst - self.problem.base_loss, 0.0)

    @property
    def flips(self) -> BoolArray:
        """Whose decision is another one with which combination, (n, combinations)."""
        return self._differ(self.answers[self.group])

    def _differ(self, answers: Any) -> BoolArray:
        """Which of the answers about each person are another decision than theirs, (n, any)."""
        if self.problem.decides:
            return np.asarray((answers >= 0) & (answers != self.own[:, None]))
        if not self.problem.counts_changes:
            return np.zeros(answers.shape, dtype=bool)
        return np.asarray(np.abs(np.nan_to_num(answers - self.own[:, None])) > self.problem.tolerance)

    @property
    def changed(self) -> BoolArray:
        """Whose decision some combination changes."""
        found = np.asarray(self.flips.any(axis=1))
        for answers in self.alone:
            found |= self._differ(answers).any(axis=1)
        return found

    @property
    def differs(self) -> np.ndarray[Any, Any]:
        """How many attributes each combination changes of each person, (n, combinations)."""
        total = np.zeros((self.problem.n, len(self.combinations)), dtype=np.int8)
        for k, one in enumerate(self.attributes):
            total += self.combinations[:, k] != one.own[:, None]
        return total

    def __len__(self) -> int:
        return self.problem.n * len(self.combinations)

    def take(self, index: Any) -> Any:
        """Make counterparts by number: all of the first person come first."""
        person, which = np.divmod(np.asarray(index, dtype=np.int64), len(self.combinations))
        return self.rewritten(person, self.combinations[which])

    def rewritten(self, rows: IntArray, values: IntArray) -> Any:
        """Return copies of rows with the attributes at some of their values, (rows, attributes); -1 leaves one as it is."""
        new = []
        for at, one in zip(values.T, self.attributes, strict=True):
            new += [
                (part, np.where(at < 0, -1, one.codes[np.maximum(at, 0), f]))
                for f, part in enumerate(one.fields)
            ]
        return self.people.rewrite(rows, new)

    def decided(self, index: Any) -> Any:
        """The decisions about counterparts by number."""
        person, which = np.divmod(np.asarray(index, dtype=np.int64), len(self.combinations))
        found, classes = self.answers[self.group[person], which], self.problem.coordinates.model.classes_
        return found if classes is None else np.asarray(classes[np.maximum(found, 0)])

    def _ask_block(self, start: int, stop: int, person: IntArray) -> None:
        count = len(self.combinations)
        shape, width = (stop - start, count), self._outputs.shape[1] if self._graded else 0
        outputs = np.full((*shape, width), np.nan)
        known = np.zeros(shape, dtype=bool)
        # People as they are were asked about already; not who has none of the combinations, or a cell that was filled.
        own = np.stack([one.own[person] for one in self.attributes], axis=1)
        mine = person[(own >= 0).all(axis=1)]
        at = np.ravel_multi_index(tuple(own[(own >= 0).all(axis=1)].T), self._shape)
        where = self.group[mine] - start, at
        outputs[where], known[where] = self._outputs[mine, :width], True
        same = np.full((len(mine), len(self.attributes)), -1)
        self.own[mine] = self._confirmed(
            self._first[self.group[mine]], self._outputs[mine], self.own[mine], mine, same
        )
        self.answers[self.group[mine], at] = self.own[mine]
        group, which = np.nonzero(~known)
        for begin in range(0, len(group), BATCH):
            g, e = group[begin : begin + BATCH], which[begin : begin + BATCH]
            someone = self._first[start + g]
            answer, decided, possible = self._ask(someone, self.combinations[e])
            if answer is not None:
                outputs[g[possible], e[possible]] = answer[possible]
            self.answers[start + g[possible], e[possible]] = decided[possible]
        if not self._graded:
            answers = self.answers[start:stop]
            outputs = np.where(answers == IMPOSSIBLE, np.nan, answers)[..., None]
        # The attributes on which some answer clearly depends, with everything else the same.
        grid = outputs.reshape(-1, *self._shape, outputs.shape[-1])
        for k in np.flatnonzero(~self._moved):
            with np.errstate(invalid="ignore"):
                high, low = (f(grid, axis=k + 1, initial=e, where=~np.isnan(grid)) for f, e in _RANGE)
                self._moved[k] = bool((high - low > _CLEAR * (1.0 + np.abs(low))).any())
        if self.worst is not None and self.worst_at is not None:
            self._note_worst(outputs, person, start, self.worst, self.worst_at)

    def _ask(self, rows: IntArray, values: IntArray) -> tuple[FloatArray | None, Any, BoolArray]:
        """Outputs (if they are wanted) and decisions about people with these values, and who of them can exist."""
        table = self.rewritten(rows, values)
        outputs, decided = (
            self.problem.ask(table) if self._graded else (None, self.problem.decisions_of(table))
        )
        return outputs, self._confirmed(rows, outputs, decided, rows, values), self._possible(table)

    def _possible(self, table: Any) -> BoolArray:
        place = self.problem.coordinates
        if self._certain:
            return np.ones(len(table), dtype=bool)
        return place.possible(place.encoded(table))

    def _confirmed(
        self, person: IntArray, outputs: FloatArray | None, decided: Any, rows: IntArray, values: IntArray
    ) -> Any:
        """Decisions about rewritten rows, those of their people where the difference is the rounding of another batch.

        The last bits of an answer depend on how many rows are asked about at once. If two decisions differ and the answers
        hardly do, both are asked about again at the same place of batches of the same size.
        """
        if not self.problem.decides:
            return decided
        doubt = np.flatnonzero(decided != self.own[person])
        if not len(doubt):
            return decided
        mine = self._outputs[person[doubt]]
        if outputs is None:
            there = self.problem.outputs_of(self.rewritten(rows[doubt], values[doubt]))
        else:
            there = outputs[doubt]
        # A model that only decides does not show how near it is.
        near = (np.abs(there - mine) <= APART * (1.0 + np.abs(mine))).all(axis=1) | (there.max(axis=1) == 1.0)
        doubt = doubt[near]
        if not len(doubt):
            return decided
        found, person, rows, values = np.array(decided), person[doubt], rows[doubt], values[doubt]
        same = ~differ_alike(
            lambda table: self.problem.ask(table)[1],
            self.rewritten(rows, values),
            self.rewritten(person, np.full_like(values, -1)),
        )
        found[doubt[same]] = self.own[person[same]]
        return found

    def _note_worst(
        self, outputs: FloatArray, person: IntArray, start: int, worst: FloatArray, worst_at: IntArray
    ) -> None:
        problem = self.problem
        for begin in range(0, len(person), size := max(1, _BLOCK // len(self.combinations))):
            some = person[begin : begin + size]
            shown = outputs[self.group[some] - start]
            flat = shown.reshape(-1, shown.shape[-1])
            real = ~np.isnan(flat).any(axis=1)
            loss = np.full(len(flat), -np.inf)
            labels = np.repeat(problem.labels[some], len(self.combinations))
            loss[real] = problem.coordinates.model.losses_of(flat[real], labels[real])
            each = loss.reshape(len(some), -1)
            if problem.coordinates.model.loss.wants == "decisions":
                same = self.answers[self.group[some]] == self.own[some, None]
                each = np.where(same, problem.base_loss[some, None], each)
            top = each.argmax(axis=1)
            worst_at[some] = top
            worst[some] = np.maximum(worst[some], each[np.arange(len(some)), top])

    def _ask_alone(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Return the answers about everybody with one attribute changed alone, (n, values) for each."""
        found, n = [], self.problem.n
        own = np.stack([one.own for one in self.attributes], axis=1)
        for k, one in enumerate(self.attributes):
            others = np.delete(own, k, axis=1)
            on_grid = (others >= 0).all(axis=1)
            answers = np.full((n, len(one.codes)), self._none)
            for value in range(len(one.codes)):
                at = np.maximum(own, 0)
                at[:, k] = value
                place = np.ravel_multi_index(tuple(at.T), self._shape)
                answers[on_grid, value] = self.answers[self.group[on_grid], place[on_grid]]
                rest = np.flatnonzero(~on_grid & (one.own != value))
                for begin in range(0, len(rest), BATCH):
                    some = rest[begin : begin + BATCH]
                    values = np.full((len(some), len(self.attributes)), -1)
                    values[:, k] = value
                    _, decided, possible = self._ask(some, values)
                    answers[some[possible], value] = decided[possible]
            found.append(answers)
        return tuple(found)

    def _moves(self, k: int) -> bool:
        """Whether any answer depends on an attribute, to the bit.

        Counterparts with and without it are asked about at the same place of a batch of the same size and layout, so
        that rounding is the same.
        """
        one, count = self.attributes[k], len(self.combinations)
        start, size = 0, 64
        while start < len(self._first) * count:
            number = np.arange(start, min(start + size, len(self._first) * count))
            start, size = start + size, min(4 * size, BATCH)
            rows, values = self._first[number // count], self.combinations[number % count]
            differs = values[:, k] != one.own[rows]
            rows, values = rows[differs], values[differs]
            if not len(rows):
                continue
            possible = self._possible(self.rewritten(rows, values))
            rows, values = rows[possible], values[possible]
            if not len(rows):
                continue
            back = values.copy()
            back[:, k] = one.own[rows] if isinstance(self.people, EditableFrame) else -1
            asked, again = (self.problem.ask(self.rewritten(rows, some))[0] for some in (values, back))
            if (asked != again).any():
                return True
        return False


_RANGE = ((np.max, -np.inf), (np.min, np.inf))


def enumerate_sensitive(problem: AuditedPeople, *, losses: bool = False) -> Enumeration | None:
    """Ask the model about everybody with every combination of the values of the columns called sensitive.

    None if there is nothing to exchange. With `losses` the worst loss of each person is noted as well.
    """
    chosen = problem.values or sensitive_values(problem)
    people = problem.editable(fill_missing=True)
    attributes = tuple(_attribute(problem, people, part, chosen) for part in chosen.edits)
    check_combinations(prod(len(one.codes) for one in attributes), owner="audit")
    if not any(one.changes for one in attributes):
        return None
    return Enumeration(problem, people, attributes, exact=chosen.exact, losses=losses)


def _attribute(problem: AuditedPeople, people: EditableRows, part: Any, chosen: SensitiveValues) -> Attribute:
    names = edited_columns((part,))
    edges = numbers = few = None
    mine: tuple[Field, ...]
    if isinstance(part, Edit):
        mine = (people.field(part.column, part.values),)
        labels = tuple(plain_cell(value) for value in mine[0].values)
        if len(set(labels)) < len(labels):  # shortened, two of them would be counted as one
            labels = tuple(str(value) for value in mine[0].values)
        codes = np.arange(len(labels))[:, None]
        few, edges = chosen.few.get(str(part.column)), chosen.bands.get(str(part.column))
        numbers = None if edges is None else people.numbers(part.column)
    else:
        values = {name: dict.fromkeys(one[name] for one in part if name in one) for name in names}
        mine = tuple(people.field(name, list(values[name])) for name in names)
        labels = tuple(map(_variant_words, part))
        codes = np.array([[f.code_of(one[f.name]) if f.name in one else -1 for f in mine] for one in part])
    shown = np.array(
        [k for k in range(len(labels)) if few is None or mine[0].values[k] in few], dtype=np.int64
    )
    cells = np.stack([one.codes for one in mine], axis=1)
    own = np.full(problem.n, -1)
    for k in range(len(codes) - 1, -1, -1):
        own[((cells == codes[k]) | (codes[k] < 0)).all(axis=1)] = k
    lacking = np.any([people.missing(name) for name in names], axis=0)
    absent = problem.absent
    if absent is not None and len(absent) == problem.n:
        # Missing before the table was filled for a model that does not take missing cells.
        lacking |= (
            absent[[str(name) for name in names if str(name) in absent]].to_numpy(dtype=bool).any(axis=1)
        )
    name, labels = _in_short(names, labels)
    return Attribute(name, labels, mine, codes, own, lacking, shown, edges, numbers)


def _in_short(names: Sequence[Any], labels: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Name 0/1 columns by what their names begin with, and their values by the rest: sex_F and sex_M are F and M of sex."""
    first, *others = words = [str(name) for name in names]
    starts = [first[: found.end()] for found in re.finditer(r"(?<=.)[_=:. -](?=.)", first)]
    alike = [
        start for start in starts if all(len(word) > len(start) and word.startswith(start) for word in others)
    ]
    if not others or not alike:
        return ", ".join(words), labels
    start = alike[-1]
    short = tuple(label[len(start) :] if label in words else label for label in labels)
    return start.rstrip("_=:. -") or start, short


def _variant_words(variant: Any) -> str:
    """The name of the one 0/1 column that is on, or all cells."""
    on = [str(name) for name, value in variant.items() if value == 1]
    if len(on) <= 1 and all(value in (0, 1) for value in variant.values()):
        return on[0] if on else "none of these"
    return ", ".join(f"{name} = {value}" for name, value in variant.items())


def _distinct_rests(people: EditableRows, fields: list[Field], n: int) -> tuple[IntArray, IntArray]:
    """Number people by what is left of their row without the sensitive cells, and name the first of each number."""
    if isinstance(people, EditableFrame):
        marks = [people.marks[str(part.name)] for part in fields if str(part.name) in people.marks]
        rest = people.frame.drop(columns=[*(str(part.name) for part in fields), *marks])
    else:
        assert isinstance(people, EditableArray)
        taken = np.concatenate([np.zeros(0, dtype=np.int64), *(people.places(part) for part in fields)])
        rest = pd.DataFrame(np.delete(people.array, taken, axis=1))
    if not rest.shape[1]:
        return np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64)
    codes = np.stack([pd.factorize(rest[name], use_na_sentinel=False)[0] for name in rest], axis=1)
    group = np.zeros(n, dtype=np.int64)
    for column in codes.T:
        group = pd.factorize(group * (int(column.max()) + 1) + column)[0]
    return group, np.unique(group, return_index=True)[1]
