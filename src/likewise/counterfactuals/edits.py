"""Edits that make counterparts: values of single columns, all combinations, or several columns together."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from likewise.core.checks import BoolArray
from likewise.core.errors import InputError, bad_parameter, did_you_mean, listed
from likewise.counterfactuals.cells import AttributeColumn, Table, find_attribute

# 0/1 columns that stand for one attribute: exchanged one by one they would make people who cannot exist.


_SEPARATOR = re.compile(r"[_=:.\- ]")


def one_hot_groups(
    named: Sequence[Any], columns: Mapping[Any, BoolArray], *, owner: str
) -> list[tuple[Any, ...]]:
    """Find the named columns that belong together."""
    left = [name for name in named if name in columns]
    groups: list[tuple[Any, ...]] = []
    prefixes = {
        str(name)[: found.end()]
        for name in left
        for found in _SEPARATOR.finditer(str(name))
        if 0 < found.start() < len(str(name)) - 1
    }
    for prefix in sorted(prefixes, key=len):
        everyone = [name for name in columns if str(name).startswith(prefix)]
        mine = [name for name in left if str(name).startswith(prefix)]
        if mine and len(everyone) > len(mine) and _ones(columns, everyone) == (1, 1):
            missing = [str(name) for name in everyone if name not in named]
            if missing:
                raise InputError(
                    f"{owner}: the columns {', '.join(map(str, everyone[:12]))} are one attribute (one 1 in each row), and "
                    f"{', '.join(missing[:12])} is not among those named, so people would have two values or none. "
                    "Name all of them as sensitive, or keep the attribute in one column."
                )
        if len(mine) > 1 and _ones(columns, mine)[1] <= 1:
            groups.append(tuple(mine))
            left = [name for name in left if name not in mine]
    if len(left) > 1 and _ones(columns, left) == (1, 1):
        return [*groups, tuple(left)]
    while left:
        first = left.pop(0)
        other = next((name for name in left if _ones(columns, [first, name]) == (1, 1)), None)
        if other is not None:
            left.remove(other)
            groups.append((first, other))
    return groups


def as_zeros_and_ones(values: Sequence[Any], codes: Any) -> BoolArray | None:
    """Return a column of two values as bools, if they are 0 and 1; None for another column."""
    if len(values) != 2 or any(isinstance(value, str) or value not in (0, 1) for value in values):
        return None
    return np.asarray(np.asarray(codes) == list(values).index(1))


def _ones(columns: Mapping[Any, BoolArray], names: Sequence[Any]) -> tuple[int, int]:
    """The least and the greatest number of ones in a row of these columns."""
    count = np.sum([columns[name] for name in names], axis=0)
    return int(count.min()), int(count.max())


# Beyond these a study is nearly always a slip: a numeric column with "all", or too many columns at once.
MAX_VALUES = 100
MAX_VARIANTS = 1000


@dataclass(frozen=True)
class Edit:
    """One column and the values its counterparts get.

    Parameters
    ----------
    column : str
        The column to edit; its position (an int) in a plain array.
    values : sequence, optional
        The values to try; all those seen in the column by default.
    consequences : Consequences, optional
        What changes along with the column: rules and a causal graph, see `likewise.counterfactuals.Consequences`. By default
        nothing does.

    Examples
    --------
    >>> Edit("relationship", ("Husband", "Wife"))
    Edit(column='relationship', values=('Husband', 'Wife'))
    """

    column: Any
    values: Sequence[Any] | None = None
    consequences: Any = field(default=None, repr=False)

    def metric_learner(self, *, owner: str) -> Any:
        """Return the learner of a fair metric under which people and their counterparts are comparable.

        So an edit with consequences can stand wherever a metric can: ``SenSRClassifier(metric=Edit(...))``.
        """
        maker = maker_with(self)
        if not hasattr(maker, "metric_learner"):
            raise InputError(
                f"{owner}: an Edit is a metric only with consequences, which say what else twins differ in. Pass "
                f"Edit({self.column!r}, consequences=Consequences(...)), or for the column and what goes with it "
                f"AttributeSubspace([{self.column!r}])."
            )
        return maker.metric_learner(owner="Edit")


def maker_with(edit: Edit) -> Any:
    """Return the maker of twins that an edit's consequences stand for, or that stands in their place."""
    return edit.consequences.maker(edit) if hasattr(edit.consequences, "maker") else edit.consequences


Variant: TypeAlias = Mapping[str, Any]
Edits: TypeAlias = "Mapping[str, Any] | Edit | Sequence[str | Edit | Variant | Sequence[Variant]]"
# What edits come to: columns with values, and lists of columns that change together. Counterparts are all combinations.
EditParts: TypeAlias = "tuple[Edit | tuple[Variant, ...], ...]"


def check_combinations(total: int, *, owner: str) -> None:
    """Refuse more combinations of values than are tried."""
    if total > MAX_VARIANTS:
        raise InputError(
            f"{owner}: the edited columns have {total:,} combinations of values; at most {MAX_VARIANTS:,} are tried. "
            "Edit fewer columns, or list fewer values: edits={'age': [25, 45, 65]}."
        )


def resolve_edits(
    edits: Edits, table: Table, *, owner: str, allow_new: bool = False
) -> tuple[list[dict[str, Any]], dict[str, AttributeColumn]]:
    """Spell out every twin that the edits ask for, checked against the table."""
    factors = read_edits(edits, owner=owner)
    names = edited_columns(factors)
    attributes = {name: find_attribute(table, name, owner=owner) for name in names}
    choices: list[list[dict[str, Any]]] = []
    columns = {name: (attribute.values, attribute.codes) for name, attribute in attributes.items()}
    factors = one_hot_together(factors, columns, owner=owner)
    for factor in factors:
        if isinstance(factor, Edit):
            values = _values(factor, attributes[factor.column], owner)
            choices.append([{factor.column: value} for value in values])
        else:
            choices.append([dict(variant) for variant in factor])
    check_combinations(math.prod(map(len, choices)), owner=owner)
    for name in names:
        asked = [v[name] for choice in choices for v in choice if name in v]
        attribute = attributes[name]
        if attribute.encoded and len(attribute.cells[0]) == 1:
            # ``sex_Male`` answers to "Female" if the edits ask for "Male" and one other value.
            unknown = [value for value in dict.fromkeys(asked) if value not in attribute.values]
            if len(unknown) == 1 and attribute.values[1] in asked and attribute.values[0] not in asked:
                attributes[name] = replace(attribute, values=(unknown[0], attribute.values[1]))
    variants: list[dict[str, Any]] = []
    for parts in itertools.product(*choices):
        variant = {k: v for part in parts for k, v in part.items()}
        variant = {k: _known(attributes[k], v, owner, allow_new) for k, v in variant.items()}
        if variant not in variants:
            variants.append(variant)
    if len(variants) < 2:
        raise InputError(
            f"{owner}: 'edits' makes {len(variants)} twin of each person; two or more are needed to compare. "
            "List at least two values (a column edited to all its values must have two)."
        )
    return variants, attributes


def one_hot_together(
    parts: EditParts, columns: Mapping[Any, tuple[Sequence[Any], Any]], *, owner: str
) -> EditParts:
    """Exchange 0/1 columns that stand for one attribute together, in the combinations that occur."""
    alone = [
        part.column
        for part in parts
        if isinstance(part, Edit)
        and (part.values is None or isinstance(part.values, str))
        and part.consequences is None
    ]
    found = {name: as_zeros_and_ones(*column) for name, column in columns.items()}
    bits = {name: cells for name, cells in found.items() if cells is not None}
    kept: list[Edit | tuple[Variant, ...]] = list(parts)
    for group in one_hot_groups(alone, bits, owner=owner):
        variants = tuple(
            {
                name: next(value for value in columns[name][0] if bool(value) == cell)
                for name, cell in zip(group, pattern, strict=True)
            }
            for pattern in np.unique(np.stack([bits[name] for name in group], axis=1), axis=0).tolist()
        )
        at = next(i for i, part in enumerate(kept) if isinstance(part, Edit) and part.column == group[0])
        kept[at] = variants
        kept = [part for part in kept if not (isinstance(part, Edit) and part.column in group)]
    return tuple(kept)


def read_edits(edits: Any, *, owner: str) -> EditParts:
    """Read edits in any of the ways they can be written; the one language of studies, audits and trainings."""
    parts = tuple(_parts(edits, owner))
    edited_columns(parts, owner=owner)
    return parts


def edited_columns(parts: EditParts, *, owner: str = "edits") -> list[Any]:
    """Return the columns that are edited, each once, or raise if two parts edit the same one."""
    names: list[Any] = []
    for part in parts:
        mine = [part.column] if isinstance(part, Edit) else list(dict.fromkeys(k for v in part for k in v))
        twice = [name for name in mine if name in names]
        if twice:
            raise InputError(
                f"{owner}: 'edits' edits column {twice[0]!r} twice. "
                "Put columns that change together into one list of dicts."
            )
        names += mine
    return names


def _parts(edits: Any, owner: str) -> list[Edit | tuple[Variant, ...]]:
    if isinstance(edits, Edit):
        return [edits]
    if hasattr(edits, "make") and isinstance(getattr(edits, "edit", None), Edit):  # a maker of counterparts
        return [replace(edits.edit, consequences=edits)]
    if isinstance(edits, Mapping):
        return [Edit(column, values) for column, values in edits.items()]
    if isinstance(edits, str) or not isinstance(edits, Iterable):
        raise _bad_edits(owner, edits)
    parts = list(edits)
    if parts and all(isinstance(part, Mapping) for part in parts):
        return [tuple(parts)]
    found: list[Edit | tuple[Variant, ...]] = []
    for part in parts:
        if isinstance(part, Edit):
            found.append(part)
        elif isinstance(part, (str, int, np.integer)) and not isinstance(part, bool):
            found.append(Edit(part))
        elif isinstance(part, (list, tuple)) and part and all(isinstance(v, Mapping) for v in part):
            found.append(tuple(part))
        else:
            raise _bad_edits(owner, part)
    return found


def cells_of(variant: Variant, attributes: Mapping[str, AttributeColumn]) -> dict[str, Any]:
    """Return what one variant writes in which column."""
    cells: dict[str, Any] = {}
    for name, value in variant.items():
        attribute = attributes[name]
        if value in attribute.values:
            cells |= attribute.cells[attribute.values.index(value)]
        else:
            cells[name] = value
    return cells


def _bad_edits(owner: str, got: Any) -> InputError:
    return bad_parameter(
        owner,
        "edits",
        "a dict of column -> values, an Edit, or a list of Edits or of dicts (columns set together)",
        got,
        'For example edits={"sex": ["Female", "Male"]}.',
    )


def _values(edit: Edit, attribute: AttributeColumn, owner: str) -> Sequence[Any]:
    asked = edit.values
    if asked is None or (isinstance(asked, str) and asked == "all"):
        if len(attribute.values) > MAX_VALUES:
            raise InputError(
                f"{owner}: column {edit.column!r} has {len(attribute.values):,} values, too many to try all "
                f"(at most {MAX_VALUES}). List the values to try: edits={{{edit.column!r}: [...]}}."
            )
        return attribute.values
    if isinstance(asked, (str, bytes)) or not isinstance(asked, Iterable):
        allowed = f"a list of values for {edit.column!r}, or 'all'"
        raise bad_parameter(owner, "edits", allowed, asked, f"Write [{asked!r}, ...].")
    return list(asked)


def _known(attribute: AttributeColumn, value: Any, owner: str, allow_new: bool) -> Any:
    if any(value == seen for seen in attribute.values):
        return value
    if allow_new and not attribute.encoded:
        return value
    hint = "" if attribute.encoded else " If the value is meant, pass allow_new=True."
    raise InputError(
        f"{owner}: {value!r} never occurs in column {attribute.name!r}{did_you_mean(value, attribute.values)}. "
        f"Its values: {listed([repr(seen) for seen in attribute.values])}.{hint}"
    )
