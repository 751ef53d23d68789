"""What the user says each column is, in a few words: a mapping, or a TOML file that `likewise inspect` writes."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import narwhals.stable.v1 as nw

from likewise.core.errors import FormatError, InputError, bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.domains.choices import check_scale
from likewise.domains.curve import Curve, ScaleName

__all__ = ["ColumnPlan", "PlanKind", "apply_plans", "read_plans"]

PlanKind = Literal["number", "integer", "category", "left out", "target"]
# Kinds that are no features.
APART = ("left out", "target")
_SCALARS = (str, bool, int, float)


@dataclass(frozen=True)
class ColumnPlan:
    """How one column is to be read.

    Parameters
    ----------
    kind : {"number", "integer", "category", "left out", "target"}
        What its values are; the last two are no features.
    range : pair of float, optional
        Least and greatest value that can exist, None for an open end; default: those of the table.
    values : tuple, optional
        Categories that can exist besides those of the table.
    immutable : bool, default=False
        Whether no twin may differ in it.
    scale : {"linear", "signed log", "rank", "value or not"} or Curve, optional
        Of numbers and integers, as in `TabularDomain`; None leaves it linear. A curve was learned elsewhere.

    Examples
    --------
    >>> ColumnPlan("integer", range=(18, None))
    ColumnPlan(kind='integer', range=(18, None), values=None, immutable=False, scale=None)
    """

    kind: PlanKind
    range: tuple[float | None, float | None] | None = None
    values: tuple[Any, ...] | None = None
    immutable: bool = False
    scale: ScaleName | Curve | None = None


def read_plans(columns: Any, *, owner: str) -> dict[str, ColumnPlan]:
    """Read what the user says of columns.

    Parameters
    ----------
    columns : mapping or path
        Column to `ColumnPlan`, to the name of a kind, or to a mapping with the fields of one; or a TOML file of these.
    owner : str
        For error messages.

    Returns
    -------
    dict of str to ColumnPlan

    Examples
    --------
    >>> read_plans({"sex": "category", "age": {"kind": "integer", "range": [18, 90]}}, owner="audit")["age"].range
    (18, 90)
    """
    source = f"{owner}: columns"
    if isinstance(columns, (str, os.PathLike)):
        path = Path(columns)
        source = f"{owner}: {path.name}"
        if not path.is_file():
            raise InputError(f"{owner}: there is no file {str(path)!r}. `likewise inspect TABLE` writes one.")
        try:
            columns = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(f"{owner}: {path.name} is no TOML file: {error}.") from error
    if not isinstance(columns, Mapping):
        raise bad_parameter(
            owner, "columns", allowed="a dict from column names, or the path of a TOML file", got=columns
        )
    return {str(name): _plan(said, f"{source}[{name!r}]") for name, said in columns.items()}


def _plan(said: Any, where: str) -> ColumnPlan:
    if isinstance(said, ColumnPlan):
        return said
    fields = {"kind": said} if isinstance(said, str) else said
    if not isinstance(fields, Mapping) or "kind" not in fields:
        raise InputError(f'{where} must say its kind: kind = "number", "integer", "category" or "left out".')
    known = ("kind", "range", "values", "immutable", "scale")
    for key in fields:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(known)}."
            raise InputError(f"{where} has an unknown key {str(key)!r}.{hint}")
    kind: Any = fields["kind"]
    values, immutable = fields.get("values"), fields.get("immutable", False)
    if kind not in get_args(PlanKind):
        raise InputError(f"{where}: kind must be one of {', '.join(get_args(PlanKind))}, got {kind!r}.")
    if not isinstance(immutable, bool):
        raise InputError(f"{where}: immutable must be true or false, got {immutable!r}.")
    if values is not None and (
        isinstance(values, str)
        or not isinstance(values, (list, tuple))
        or not all(isinstance(v, _SCALARS) for v in values)
    ):
        raise InputError(f"{where}: values must be a list of words or numbers, got {values!r}.")
    if (values is not None and kind != "category") or (
        fields.get("range") is not None and kind == "category"
    ):
        raise InputError(f"{where}: 'values' are for categories, 'range' is for numbers and integers.")
    scale = fields.get("scale")
    if scale is not None:
        scale = check_scale(scale, "scale", owner=where)
        if kind not in ("number", "integer"):
            raise InputError(f"{where}: 'scale' is for numbers and integers, and this is {_article(kind)}.")
    values = None if values is None else tuple(values)
    return ColumnPlan(kind, _range(fields.get("range"), where), values, immutable, scale)


def _range(pair: Any, where: str) -> tuple[float | None, float | None] | None:
    if pair is None:
        return None
    # TOML knows no null: an open end is an infinite one.
    usable = isinstance(pair, (list, tuple)) and len(pair) == 2
    if not usable or not all(end is None or (isinstance(end, (int, float)) and end == end) for end in pair):
        raise InputError(
            f"{where}: range must be [lowest, highest], with -inf or inf for an open end, got {pair!r}."
        )
    return pair[0], pair[1]


def apply_plans(
    frame: Any, columns: Any, given: Mapping[str, Any], *, owner: str
) -> tuple[Any, dict[str, Any]]:
    """Return the features of a table and the parameters of a `TabularDomain` that columns were planned with.

    Parameters
    ----------
    frame : table of any library
    columns : mapping or path
        As `read_plans` takes them.
    given : mapping
        Parameters given besides: ``immutable``, ``ranges``, ``integers``, ``categories``, ``scales``; they win.
    owner : str
        For error messages.

    Returns
    -------
    frame : table of the same library
        Without what is left out.
    parameters : dict
    """
    plans = read_plans(columns, owner=owner)
    table = to_pandas(frame, owner=owner)
    check_columns(
        table, [name for name, plan in plans.items() if plan.kind not in APART], owner=f"{owner}, 'columns'"
    )
    apart = [name for name, plan in plans.items() if plan.kind in APART and name in table.columns]
    used = {name: plan for name, plan in plans.items() if plan.kind not in APART}
    for name, plan in used.items():
        if plan.kind != "category" and table[name].dtype.kind not in "iuf":
            raise InputError(
                f"{owner}: 'columns' says that {name!r} is {_article(plan.kind)}, but its dtype {table[name].dtype} "
                "holds no numbers. Convert it first, or call it a category."
            )
    floats = [name for name in used if table[name].dtype.kind == "f"]
    parameters = {
        "immutable": [*given["immutable"], *(n for n, p in used.items() if p.immutable)],
        "integers": [*(given["integers"] or ()), *(n for n in floats if used[n].kind == "integer")],
        "ranges": {n: p.range for n, p in used.items() if p.range is not None} | dict(given["ranges"] or {}),
        "categories": {n: p.values for n, p in used.items() if p.kind == "category"}
        | dict(given["categories"] or {}),
        "scales": {n: p.scale for n, p in used.items() if p.scale is not None}
        | dict(given.get("scales") or {}),
    }
    rest = nw.from_native(frame, eager_only=True).drop(apart).to_native() if apart else frame
    return rest, {name: value or None if name != "immutable" else value for name, value in parameters.items()}


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
