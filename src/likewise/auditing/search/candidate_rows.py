"""The candidates of an audit: rows as they are, twins with sensitive columns edited, and their consequences.

Candidates are described by whose row they are and which edit was made, and become rows only when asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.editable_rows import (
    EditableFrame,
    EditableRows,
    Field,
    check_may_change,
)
from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.counterfactuals.edits import Edit, EditParts, check_combinations, edited_columns

if TYPE_CHECKING:
    from likewise.counterfactuals.edited_rows import TwinMaker


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate rows by number: whose row, and which edit.

    The first candidates are the rows as they are, in their order.
    """

    people: EditableRows
    fields: tuple[Field, ...]
    combinations: IntArray
    source: IntArray
    edit: IntArray
    made: tuple[Any, ...] = ()
    maker: TwinMaker | None = None

    def __len__(self) -> int:
        return len(self.source)

    def settled_edits(self, edits: EditParts) -> EditParts:
        """Return the edits with the values that these rows gave them, so that other rows cannot change them."""
        values = {field.name: tuple(field.values) for field in self.fields}
        found: list[Any] = []
        for part in edits:
            if isinstance(part, Edit):
                part = replace(part, values=values[part.column])
                if part.consequences is not None and self.maker is not None:
                    part = replace(part, consequences=self.maker)
            found.append(part)
        return tuple(found)

    def take(self, index: Any) -> Any:
        """Make some candidates, as the kind of table the audited rows are."""
        from likewise.counterfactuals.cells import put_rows

        chosen = np.asarray(index, dtype=np.int64)
        rows, edit = self.source[chosen], self.edit[chosen]
        edited = (edit >= 0) & (edit < len(self.combinations))
        codes = np.full((len(rows), len(self.fields)), -1)
        codes[edited] = self.combinations[edit[edited]]
        table = self.people.rewrite(rows, list(zip(self.fields, codes.T, strict=True)))
        for number, twins in enumerate(self.made):
            at = np.flatnonzero(edit == len(self.combinations) + number)
            table = put_rows(table, twins.iloc[rows[at]], at)
        return table


def plan_candidates(
    people: EditableRows,
    edits: EditParts,
    *,
    fixed: Sequence[Hashable] = (),
    owner: str = "audit",
    carry: bool = False,
) -> Candidates:
    """List the candidates that rows give rise to."""
    names = edited_columns(edits, owner=owner)
    check_may_change(names, fixed)
    fields = tuple(people.field(name, _values(edits, name)) for name in names)
    combinations = _combinations(edits, fields)
    rows = np.arange(people.n_rows)
    source: list[IntArray] = [rows]
    edit = [np.full(len(rows), -1)]
    own = np.stack([field.codes for field in fields], axis=1) if fields else np.zeros((len(rows), 0))
    for k, combination in enumerate(combinations):
        mine: IntArray = np.flatnonzero(((own != combination) & (combination >= 0)).any(axis=1))
        source.append(mine)
        edit.append(np.full(len(mine), k))
    made: tuple[Any, ...] = ()
    maker: TwinMaker | None = None
    if carry and any(isinstance(part, Edit) and part.consequences is not None for part in edits):
        made, maker, compared = _carried(people, edits, fixed, owner)
        for k, some in enumerate(compared):
            source.append(some)
            edit.append(np.full(len(some), len(combinations) + k))
    return Candidates(people, fields, combinations, np.concatenate(source), np.concatenate(edit), made, maker)


def _carried(
    people: EditableRows, edits: EditParts, fixed: Sequence[Hashable], owner: str
) -> tuple[tuple[Any, ...], TwinMaker, list[IntArray]]:
    """Twins with the consequences of the one edit that has some: tables, their maker, and whose are to be compared."""
    if not isinstance(people, EditableFrame):
        raise InputError(
            f"{owner}: an Edit with consequences needs the people in their own columns. Pass the raw table as X, and a "
            "model that takes it."
        )
    from likewise.counterfactuals.edited_rows import ready_maker

    carrying = [part for part in edits if isinstance(part, Edit) and part.consequences is not None]
    maker = ready_maker(carrying if len(carrying) > 1 else carrying[0], people.frame, owner=owner)
    assert maker is not None
    frozen = [name for name in getattr(maker, "moved_", ()) if name in fixed]
    if frozen:
        raise InputError(
            f"{owner}: column {frozen[0]!r} follows from {carrying[0].column!r}, but the domain says that it may not "
            "change. Leave it out of the graph, or out of the domain's 'immutable'."
        )
    made = maker.make(people.frame)
    return made.tables, maker, [np.flatnonzero(mask) for mask in made.compared]


def _values(edits: EditParts, name: Hashable) -> list[Any] | None:
    """Values that the edits ask for in one column; None for all there are."""
    for part in edits:
        if isinstance(part, Edit) and part.column == name:
            every = part.values is None or (isinstance(part.values, str) and part.values == "all")
            return None if every else part.values  # type: ignore[return-value]
    asked = [v[name] for part in edits if not isinstance(part, Edit) for v in part if name in v]  # type: ignore[index]
    return list(dict.fromkeys(asked))


def _combinations(edits: EditParts, fields: tuple[Field, ...]) -> IntArray:
    """Every edit as one row of codes, one for each field; −1 leaves the field as it is."""
    if not fields:
        return np.zeros((0, 0), dtype=np.int64)
    place = {field.name: k for k, field in enumerate(fields)}
    choices: list[list[dict[int, int]]] = []
    for part in edits:
        if isinstance(part, Edit):
            at = place[part.column]
            choices.append([{at: code} for code in range(len(fields[at].values))])
        else:
            choices.append(
                [
                    {place[name]: fields[place[name]].code_of(value) for name, value in variant.items()}
                    for variant in part
                ]
            )
    total = math.prod(map(len, choices))
    check_combinations(total, owner="audit")
    rows = np.full((total, len(fields)), -1, dtype=np.int64)
    for row, parts in zip(rows, itertools.product(*choices), strict=True):
        for codes in parts:
            for at, code in codes.items():
                row[at] = code
    return rows
