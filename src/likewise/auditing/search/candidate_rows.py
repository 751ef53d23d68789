"""The candidates of an audit: rows as they are, twins with sensitive columns edited, twins whose proxies go along.

Candidates are described by whose row they are and which edit was made, and become rows only when asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.auditing.editable_rows import EditableFrame, EditableRows, Field, check_combinations
from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError, bad_parameter
from likewise.counterfactuals.edits import Edit, EditParts, edited_columns

if TYPE_CHECKING:
    from likewise.counterfactuals.edited_rows import TwinMaker

# Columns that give a sensitive one away, and what to write there so that a twin stays a plausible person.


RULED_OUT = 0.05  # observed over expected count
MIN_EXPECTED = 5.0


def find_counterparts(sensitive: Field, proxy: Field, context: Sequence[Field]) -> IntArray | None:
    """Return what becomes of each proxy value when the sensitive one changes."""
    together = _counts(sensitive, proxy)
    total = together.sum()
    expected = together.sum(axis=1, keepdims=True) * together.sum(axis=0) / max(total, 1.0)
    ruled_out = (expected >= MIN_EXPECTED) & (together < RULED_OUT * expected)
    if not ruled_out.any():
        return None
    n_s, n_p = together.shape
    became = np.tile(np.arange(n_p), (n_s, n_s, 1))
    for s in range(n_s):
        for t in range(n_s):
            for p in np.flatnonzero(ruled_out[t] & ~ruled_out[s] & (together[s] > 0)):
                possible = (together[t] > 0) & ~ruled_out[t]
                mirror = possible & ruled_out[s]
                choice = np.flatnonzero(mirror if mirror.any() else possible)
                if s != t and len(choice):
                    score = _log_posterior(sensitive, proxy, context, s=s, p=int(p), t=t)
                    became[s, t, p] = choice[np.argmax(score[choice])]
    return became if (became != np.arange(n_p)).any() else None


def given_counterparts(
    sensitive: Field, proxy: Field, mapping: Mapping[Hashable, Any], *, owner: str
) -> IntArray:
    """Return the same array for a mapping that the user wrote, whatever the change of the sensitive value is."""
    if not isinstance(mapping, Mapping):
        raise InputError(
            f"{owner}: 'proxies' must give a dict of value to counterpart for {proxy.name!r}, got {mapping!r}."
        )
    n_s, n_p = len(sensitive.values), len(proxy.values)
    became = np.tile(np.arange(n_p), (n_s, n_s, 1))
    for old, new in mapping.items():
        became[:, :, proxy.code_of(old, owner=owner)] = proxy.code_of(new, owner=owner)
    became[np.arange(n_s), np.arange(n_s)] = np.arange(n_p)
    return became


def _counts(first: Field, second: Field) -> FloatArray:
    shape = len(first.values), len(second.values)
    known = (first.codes >= 0) & (second.codes >= 0)
    flat = first.codes[known] * shape[1] + second.codes[known]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _log_posterior(
    sensitive: Field, proxy: Field, context: Sequence[Field], *, s: int, p: int, t: int
) -> FloatArray:
    """Mean log probability of each proxy value among people with t, in the context of people with s and p."""
    here = (sensitive.codes == s) & (proxy.codes == p)
    there = Field(proxy.name, proxy.values, np.where(sensitive.codes == t, proxy.codes, -1))
    prior = np.bincount(there.codes[there.codes >= 0], minlength=len(proxy.values)) + 1.0
    score = np.log(prior / prior.sum())
    for column in context:
        share = np.bincount(column.codes[here & (column.codes >= 0)], minlength=len(column.values))
        likelihood = _counts(there, column) + 1.0
        likelihood /= likelihood.sum(axis=1, keepdims=True)
        score = score + np.log(likelihood) @ (share / max(share.sum(), 1))
    return np.asarray(score)


@dataclass(frozen=True, eq=False)
class Counterpart:
    """How one proxy column follows one sensitive column."""

    sensitive: int
    proxy: Field
    became: IntArray

    def settled(self) -> Counterpart:
        """Return the rule without the rows it was found on."""
        return replace(self, proxy=replace(self.proxy, codes=self.proxy.codes[:0]))

    def mapping(self, fields: Sequence[Field]) -> dict[tuple[Any, Any], dict[Any, Any]]:
        """Return in words what changes: (old, new) sensitive value to {old: new} proxy value."""
        values, levels = fields[self.sensitive].values, self.proxy.values
        return {
            (values[s], values[t]): {levels[p]: levels[q] for p, q in enumerate(self.became[s, t]) if p != q}
            for s, t in itertools.permutations(range(len(values)), 2)
            if (self.became[s, t] != np.arange(len(levels))).any()
        }


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate rows by number: whose row, and which edit.

    The first candidates are the rows as they are, in their order.
    """

    people: EditableRows
    fields: tuple[Field, ...]
    combinations: IntArray
    counterparts: tuple[Counterpart, ...]
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
        first = 2 * len(self.combinations)
        plain = np.where(edit >= first, -1, edit) if self.made else edit
        table = self.people.rewrite(rows, self._changes(rows, plain) if self.fields else ())
        for number, twins in enumerate(self.made):
            at = np.flatnonzero(edit == first + number)
            table = put_rows(table, twins.iloc[rows[at]], at)
        return table

    def _changes(self, rows: IntArray, edit: IntArray) -> list[tuple[Field, IntArray]]:
        e = len(self.combinations)
        edited, follows = edit >= 0, edit >= e
        target = self.combinations[np.where(edited, edit % max(e, 1), 0)]
        target = np.where(edited[:, None], target, -1)
        # A value that stays is not written anew, so that rounding of the encoding does not move it.
        new = [
            (f, np.where(target[:, k] == f.codes[rows], -1, target[:, k])) for k, f in enumerate(self.fields)
        ]
        proxies: dict[Hashable, tuple[Field, IntArray]] = {}
        for part in self.counterparts:
            field, codes = proxies.get(part.proxy.name, (part.proxy, part.proxy.codes[rows]))
            codes = np.where(follows, follow(part, self.fields, rows, target, codes), codes)
            proxies[part.proxy.name] = field, codes
        moved = [(f, np.where(follows & (c != f.codes[rows]), c, -1)) for f, c in proxies.values()]
        return new + moved


def follow(
    part: Counterpart, fields: Sequence[Field], rows: IntArray, target: IntArray, codes: IntArray
) -> IntArray:
    """Codes of a proxy after the sensitive columns took their `target` codes of shape (k, fields)."""
    s, t = fields[part.sensitive].codes[rows], target[:, part.sensitive]
    known = (s >= 0) & (t >= 0) & (codes >= 0)
    return np.where(known, part.became[s, t, codes], codes)


def plan_candidates(
    people: EditableRows,
    edits: EditParts,
    *,
    proxies: Any = "auto",
    fixed: Sequence[Hashable] = (),
    owner: str = "audit",
    carry: bool = False,
) -> Candidates:
    """List the candidates that rows give rise to."""
    names = edited_columns(edits, owner=owner)
    frozen = [name for name in names if name in fixed]
    if frozen:
        raise InputError(
            f"{owner}: column {frozen[0]!r} is to be edited, but the domain says that it may not change. "
            "Leave it out of 'edits', or out of the domain's 'immutable'."
        )
    fields = tuple(people.field(name, _values(edits, name), owner=owner) for name in names)
    combinations = _combinations(edits, fields, owner)
    parts = _counterparts(people, fields, proxies, fixed, owner)
    rows = np.arange(people.n_rows)
    source: list[IntArray] = [rows]
    edit = [np.full(len(rows), -1)]
    own = np.stack([field.codes for field in fields], axis=1) if fields else np.zeros((len(rows), 0))
    changed: list[IntArray] = [
        np.flatnonzero(((own != combination) & (combination >= 0)).any(axis=1))
        for combination in combinations
    ]
    for k, some in enumerate(changed):
        source.append(some)
        edit.append(np.full(len(some), k))
    for k, some in enumerate(changed if parts else []):
        target = np.broadcast_to(combinations[k], (len(some), len(fields)))
        moves = [follow(p, fields, some, target, p.proxy.codes[some]) != p.proxy.codes[some] for p in parts]
        some = some[np.any(moves, axis=0)]
        source.append(some)
        edit.append(np.full(len(some), len(combinations) + k))
    made: tuple[Any, ...] = ()
    maker: TwinMaker | None = None
    if carry and any(isinstance(part, Edit) and part.consequences is not None for part in edits):
        made, maker, compared = _carried(people, edits, fixed, owner)
        for k, some in enumerate(compared):
            source.append(some)
            edit.append(np.full(len(some), 2 * len(combinations) + k))
    return Candidates(
        people, fields, combinations, parts, np.concatenate(source), np.concatenate(edit), made, maker
    )


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


def _combinations(edits: EditParts, fields: tuple[Field, ...], owner: str) -> IntArray:
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
                    {
                        place[name]: fields[place[name]].code_of(value, owner=owner)
                        for name, value in variant.items()
                    }
                    for variant in part
                ]
            )
    total = math.prod(map(len, choices))
    check_combinations(total, owner=owner)
    rows = np.full((total, len(fields)), -1, dtype=np.int64)
    for row, parts in zip(rows, itertools.product(*choices), strict=True):
        for codes in parts:
            for at, code in codes.items():
                row[at] = code
    return rows


def _counterparts(
    people: EditableRows, fields: tuple[Field, ...], proxies: Any, fixed: Sequence[Hashable], owner: str
) -> tuple[Counterpart, ...]:
    if proxies is None or not fields:
        return ()
    names = [field.name for field in fields]
    if isinstance(proxies, tuple):
        return tuple(
            replace(p, proxy=people.field(p.proxy.name, p.proxy.values, owner=owner)) for p in proxies
        )
    if isinstance(proxies, Mapping):
        return tuple(
            Counterpart(k, field, given_counterparts(fields[k], field, mapping, owner=owner))
            for sensitive, columns in proxies.items()
            for k in [_position(sensitive, names, owner)]
            for column, mapping in columns.items()
            for field in [people.field(_free(column, fixed, owner), owner=owner)]
        )
    if proxies != "auto":
        raise bad_parameter(
            owner,
            "proxies",
            allowed="'auto', None, or a dict",
            got=proxies,
            remedy='For example {"sex": {"relationship": {"Husband": "Wife", "Wife": "Husband"}}}.',
        )
    others = [people.field(name, owner=owner) for name in people.categorical() if name not in names]
    found = []
    for k, field in enumerate(fields):
        if (field.codes < 0).any():  # some values only, such as quartiles: counts of them say little
            continue
        for proxy in others:
            if proxy.name in fixed:
                continue
            became = find_counterparts(field, proxy, [other for other in others if other is not proxy])
            if became is not None:
                found.append(Counterpart(k, proxy, became))
    return tuple(found)


def _position(name: Hashable, names: list[Hashable], owner: str) -> int:
    if name not in names:
        raise bad_parameter(
            owner, "proxies", allowed=f"a dict whose keys are sensitive columns ({names})", got=repr(name)
        )
    return names.index(name)


def _free(column: Hashable, fixed: Sequence[Hashable], owner: str) -> Hashable:
    if column in fixed:
        raise InputError(
            f"{owner}: 'proxies' changes column {column!r}, which the domain says may not change."
        )
    return column
