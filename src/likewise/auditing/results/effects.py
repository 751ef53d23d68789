"""Who would lose and who would gain the favourable decision if one sensitive attribute were recorded differently.

The answers come from the enumeration of `sensitive_twins`; the model is asked again only about twins that it leaves out:
those of people another sensitive cell of whom is missing, or holds a number that is not among the values tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.editable_rows import Field
from likewise.core.checks import IntArray
from likewise.core.plain import plain_cell
from likewise.counterfactuals.edits import Edit, edited_columns
from likewise.data.missing_values import MISSING_WORD

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.results.sensitive import SensitiveValues
    from likewise.auditing.search.candidate_rows import Candidates

COLUMNS = ("attribute", "recorded", "instead", "people", "lose", "gain")
ANY, OTHER, ANOTHER = "any value", "any other value", "another value"
_BATCH = 16_384
# Marks among the codes of decisions: not asked yet, and a twin who cannot exist.
_UNKNOWN, _IMPOSSIBLE = -1, -2

Mask = np.ndarray[Any, np.dtype[np.bool_]]


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
        Whether every value that can exist was tried; else the count is a lower bound.
    confidence : float, default=0.95
        Of the interval.

    Examples
    --------
    >>> print(ChangedPeople(411, 9045, 411 / 9045, (0.0412, 0.0499), True))
    411 of 9,045 (4.5 %, 95 % interval 4.1 % to 5.0 %)
    """

    count: int
    n: int
    share: float
    interval: tuple[float, float]
    exact: bool
    confidence: float = 0.95

    def __str__(self) -> str:
        low, high = (f"{100 * end:.1f} %" for end in self.interval)
        start = "" if self.exact else "at least "
        level = f"{100 * self.confidence:g} % interval"
        return f"{start}{self.count:,} of {self.n:,} ({100 * self.share:.1f} %, {level} {low} to {high})"


@dataclass(frozen=True)
class Transition:
    """People decided `before` who would be decided `after`; None: anything else than before."""

    before: Any
    after: Any
    people: int


@dataclass(frozen=True)
class Exchange:
    """People recorded with one value of an attribute, and their decisions if another one were recorded."""

    attribute: str
    recorded: Any
    instead: Any
    people: int
    transitions: tuple[Transition, ...] = ()

    @property
    def changed(self) -> int:
        """People who would be decided differently."""
        return sum(one.people for one in self.transitions if one.after is None)

    def lose(self, favourable: Any) -> int:
        """People who would lose the favourable decision."""
        return sum(
            one.people for one in self.transitions if one.after is None and _same(one.before, favourable)
        )

    def gain(self, favourable: Any) -> int:
        """People who would gain the favourable decision."""
        return sum(
            one.people
            for one in self.transitions
            if one.after is not None and _same(one.after, favourable) and not _same(one.before, favourable)
        )


def _same(one: Any, two: Any) -> bool:
    return bool(one == two)


def merged_exchanges(parts: Iterable[Exchange]) -> tuple[Exchange, ...]:
    """Add up the exchanges of different people."""
    total: dict[tuple[str, Any, Any], Exchange] = {}
    for one in parts:
        key = one.attribute, one.recorded, one.instead
        known = total.get(key)
        if known is None:
            total[key] = one
            continue
        counts: dict[tuple[Any, Any], int] = {}
        for move in (*known.transitions, *one.transitions):
            counts[move.before, move.after] = counts.get((move.before, move.after), 0) + move.people
        moves = tuple(Transition(*pair, count) for pair, count in counts.items())
        total[key] = replace(known, people=known.people + one.people, transitions=moves)
    return tuple(total.values())


def effects_table(exchanges: Sequence[Exchange], favourable: Any) -> pd.DataFrame:
    """Return the exchanges as a table, those that change the most decisions first.

    Without a favourable decision nobody is known to lose or gain: these columns hold None.
    """
    rows = []
    for one in exchanges:
        lose, gain = (None, None) if favourable is None else (one.lose(favourable), one.gain(favourable))
        size = one.changed if lose is None or gain is None else lose + gain
        rows.append((size, [one.attribute, one.recorded, one.instead, one.people, lose, gain]))
    rows.sort(key=lambda row: (-row[0], row[1][0], str(row[1][1]), str(row[1][2])))
    table = pd.DataFrame([cells for _, cells in rows], columns=list(COLUMNS), dtype=object)
    counts = ["people"] if favourable is None else ["people", "lose", "gain"]
    return table.astype(dict.fromkeys(counts, "int64"))


def effects_words(exchanges: Sequence[Exchange] | None, favourable: Any, *, most: int = 3) -> list[str]:
    """Say the largest effects, one line each."""
    if not exchanges:
        return []
    if favourable is None:
        ranked = sorted((one for one in exchanges if one.changed), key=lambda one: -one.changed)
        return [
            f"{one.attribute} recorded {one.recorded}, instead {one.instead}: {one.changed:,} of {one.people:,} would be "
            "decided differently (no favourable decision is named)"
            for one in ranked[:most]
        ]
    table = effects_table(exchanges, favourable)
    found = table[table["lose"] + table["gain"] > 0].head(most)
    return [
        f"{attribute} recorded {recorded}, instead {instead}: {lose:,} would lose, {gain:,} would gain the favourable "
        f"decision (class {favourable})"
        for attribute, recorded, instead, _, lose, gain in found.itertuples(index=False, name=None)
    ]


@dataclass(eq=False)
class _Attribute:
    """One sensitive attribute: what it may be instead, and what the model says then, person by person."""

    name: str
    labels: list[Any]
    fields: tuple[Field, ...]
    codes: IntArray  # (variants, fields)
    variant: IntArray  # by position among the values that the enumeration tries; -1 if it is not counted
    own: IntArray  # each person's own variant; -1 if it is none of them
    lacking: Mask
    many: bool
    answers: np.ndarray[Any, np.dtype[np.int16]]


class SingleChanges:
    """Collects the decisions about twins that differ from their person in one attribute."""

    def __init__(self, problem: AuditProblem, plan: Candidates, chosen: SensitiveValues) -> None:
        self.problem, self.plan = problem, plan
        self._place = {part.name: k for k, part in enumerate(plan.fields)}
        self._shape = [
            len(plan.fields[self._place[part.column]].values) if isinstance(part, Edit) else len(part)
            for part in chosen.edits
        ]
        self.attributes = [self._attribute(part, chosen) for part in chosen.edits]
        self.classes: list[Any] = []

    def _attribute(self, part: Any, chosen: SensitiveValues) -> _Attribute:
        people, n = self.plan.people, self.problem.n
        names = edited_columns((part,))
        fields = tuple(self.plan.fields[self._place[name]] for name in names)
        many = False
        if isinstance(part, Edit):
            tried = fields[0].values
            many = str(part.column) in chosen.bands
            few = chosen.few.get(str(part.column))
            if few is not None:
                fields = (people.field(part.column, list(few), owner="audit"),)
            labels = [plain_cell(value) for value in fields[0].values]
            codes = np.arange(len(labels))[:, None]
            known = {value: k for k, value in enumerate(fields[0].values)}
            variant = np.array([known.get(value, -1) for value in tried], dtype=np.int64)
        else:
            labels = [_variant_words(one) for one in part]
            codes = np.array(
                [
                    [f.code_of(one[f.name], owner="audit") if f.name in one else -1 for f in fields]
                    for one in part
                ]
            )
            variant = np.arange(len(labels))
        cells = np.stack([field.codes for field in fields], axis=1)
        own = np.full(n, -1)
        for k in range(len(codes) - 1, -1, -1):
            own[((cells == codes[k]) | (codes[k] < 0)).all(axis=1)] = k
        lacking = np.any([people.missing(name) | self._absent(name) for name in names], axis=0)
        answers = np.full((n, len(labels)), _UNKNOWN, dtype=np.int16)
        return _Attribute(
            ", ".join(map(str, names)), labels, fields, codes, variant, own, lacking, many, answers
        )

    def _absent(self, name: Any) -> Mask:
        """Whether a cell was missing before the table was filled for a model that does not take missing cells."""
        absent = self.problem.absent
        known = absent is not None and str(name) in absent and len(absent) == self.problem.n
        return (
            absent[str(name)].to_numpy(dtype=bool)
            if absent is not None and known
            else np.zeros(self.problem.n, dtype=bool)
        )

    def note(self, number: IntArray, differs: Mask, decided: Any, possible: IntArray) -> None:
        """Note the decisions about some candidates; `differs` says by which attributes they differ."""
        code = np.full(len(number), _IMPOSSIBLE)
        code[possible] = self._codes(np.asarray(decided)[possible])
        tried = np.unravel_index(self.plan.edit[number], self._shape)
        alone = differs.sum(axis=1) == 1
        for k, one in enumerate(self.attributes):
            at = np.flatnonzero(alone & differs[:, k])
            variant = one.variant[tried[k][at]]
            at, variant = at[variant >= 0], variant[variant >= 0]
            one.answers[self.plan.source[number[at]], variant] = code[at]

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return what was found, after asking about the twins that the enumeration left out."""
        own = self._codes(self.problem.decisions)
        found: list[Exchange] = []
        for one in self.attributes:
            self._ask_rest(one)
            found += _counted(one, own, self.classes)
        return tuple(found)

    def _codes(self, decided: Any) -> IntArray:
        values = np.asarray(decided)
        if len(values):
            fresh = [value for value in pd.unique(values).tolist() if value not in self.classes]
            self.classes += fresh
        index = pd.Index(self.classes)
        return np.asarray(index.get_indexer(pd.Index(values.tolist(), dtype=index.dtype)), dtype=np.int64)

    def _ask_rest(self, one: _Attribute) -> None:
        place = self.problem.coordinates
        everybody = np.arange(self.problem.n)
        for variant in range(len(one.labels)):
            # A cell that is missing, but was filled for the model, has the filled value as its own.
            rest = everybody[(one.answers[:, variant] == _UNKNOWN) & (one.own != variant)]
            for start in range(0, len(rest), _BATCH):
                rows = rest[start : start + _BATCH]
                new = [
                    (field, np.full(len(rows), one.codes[variant, k])) for k, field in enumerate(one.fields)
                ]
                table = self.plan.people.rewrite(rows, new)
                possible = place.possible(place.encoded(table))
                code = np.full(len(rows), _IMPOSSIBLE)
                if possible.any():
                    code[possible] = self._codes(
                        np.asarray(place.model.predict(place.for_model(table)))[possible]
                    )
                one.answers[rows, variant] = code


def _variant_words(variant: Any) -> str:
    """The name of the one 0/1 column that is on, or all cells."""
    on = [str(name) for name, value in variant.items() if value == 1]
    zeros = all(value in (0, 1) for value in variant.values())
    if zeros and len(on) <= 1:
        return on[0] if on else "none of these"
    return ", ".join(f"{name} = {value}" for name, value in variant.items())


def _counted(one: _Attribute, own: IntArray, classes: list[Any]) -> list[Exchange]:
    names = [plain_cell(value) for value in classes]
    changed = (one.answers >= 0) & (one.answers != own[:, None])
    recorded = np.where(one.lacking, len(one.labels) + 1, np.where(one.own < 0, len(one.labels), one.own))
    if one.many:
        found = []
        for label, inside in ((ANY, ~one.lacking), (MISSING_WORD, one.lacking)):
            if inside.any():
                rows = np.flatnonzero(inside)
                reached = [(changed[rows] & (one.answers[rows] == c)).any(axis=1) for c in range(len(names))]
                moves = _transitions(own[rows], np.stack(reached, axis=1), changed[rows].any(axis=1), names)
                found.append(Exchange(one.name, label, OTHER, len(rows), moves))
        return found
    found = []
    for code, label in enumerate([*one.labels, ANOTHER, MISSING_WORD]):
        rows = np.flatnonzero(recorded == code)
        for variant, instead in enumerate(one.labels):
            if len(rows) and variant != code:
                moved, after = changed[rows, variant], one.answers[rows, variant]
                reached_one = moved[:, None] & (after[:, None] == np.arange(len(names)))
                moves = _transitions(own[rows], reached_one, moved, names)
                found.append(Exchange(one.name, label, instead, len(rows), moves))
    return found


def _transitions(before: IntArray, reached: Mask, moved: Mask, names: list[Any]) -> tuple[Transition, ...]:
    """Count people by their decision and by what it would become; `reached` has a column for each decision."""
    if not moved.any():
        return ()
    found = []
    for code in np.unique(before[moved]):
        mine = moved & (before == code)
        found.append(Transition(names[code], None, int(mine.sum())))
        counts = reached[mine].sum(axis=0)
        found += [Transition(names[code], names[c], int(counts[c])) for c in np.flatnonzero(counts)]
    return tuple(found)
