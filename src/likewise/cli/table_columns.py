"""Which columns of a table take part, and what they are: the user's word, what others need, and what they look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from likewise.cli.table_options import TableChoices
from likewise.core.errors import InputError
from likewise.core.frames import check_columns
from likewise.core.text import folded

if TYPE_CHECKING:
    import pandas as pd

    from likewise.domains.column_plan import ColumnPlan
    from likewise.tables import ColumnLook

__all__ = ["WIDEST_AUDIT", "Asked", "choose_columns", "plain_plan", "planned_looks"]

# Encoded columns of an audited table: model and metric meet in matrices of that many rows and columns.
WIDEST_AUDIT = 4000
# Encoded cells (rows × width) that a table may become: 1 GB of doubles.
MOST_CELLS = 2**27


@dataclass(frozen=True)
class Asked:
    """What is asked of a table.

    Parameters
    ----------
    target, positive : str or None
        The column to predict, and the value that counts as 1.
    choices : TableChoices
        What the user says about the table.
    needed : tuple of str
        Columns that must be there.
    used : tuple of str or None
        Columns that the model was made on, where it says so.
    width : int or None
        How many columns a model takes that does not say which.
    plans : mapping
        What is known of columns from elsewhere.
    sample, seed
        Take so many rows at random.
    widest : int or None
        Encoded columns that a table may have.
    """

    target: str | None = None
    positive: str | None = None
    choices: TableChoices = field(default_factory=TableChoices)
    needed: tuple[str, ...] = ()
    used: tuple[str, ...] | None = None
    width: int | None = None
    plans: Mapping[str, ColumnPlan] = field(default_factory=dict)
    sample: int | None = None
    seed: int = 0
    widest: int | None = None


def planned_looks(
    frame: pd.DataFrame, choices: TableChoices, plans: Mapping[str, ColumnPlan] | None = None
) -> tuple[ColumnLook, ...]:
    """Return how every column will be read: as the user says, as is known from elsewhere, or as it looks.

    Parameters
    ----------
    frame : DataFrame
    choices : TableChoices
    plans : mapping, optional
        What is known from elsewhere.
    """
    from likewise.domains.column_plan import ColumnPlan, read_plans
    from likewise.tables import look_at_columns

    said = {} if choices.columns is None else read_plans(choices.columns, owner="--columns")
    check_columns(
        frame,
        [n for n, p in said.items() if p.kind not in ("left out", "target")],
        owner="--columns",
        name="table",
    )
    known = {**(plans or {}), **said}
    known |= {name: ColumnPlan("category") for name in choices.categorical}
    known |= {
        name: replace(known.get(name, ColumnPlan("integer")), kind="integer", values=None)
        for name in choices.integer
    }
    kept = set(choices.keep)
    found = []
    for look in look_at_columns(frame):
        plan = known.get(look.name)
        if look.name in kept and (plan or look.plan).kind == "left out":
            plan = plain_plan(frame[look.name])
        found.append(
            look
            if plan is None
            else replace(look, plan=plan, why=look.why if plan.kind == look.plan.kind else "")
        )
    return tuple(found)


def choose_columns(
    frame: pd.DataFrame, asked: Asked, owner: str, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, ColumnPlan]]:
    """Return the columns that take part, and what each is; what is left out is said in the notes.

    Parameters
    ----------
    frame : DataFrame
        The features.
    asked : Asked
    owner : str
        The table's name.
    notes : list of str
        Gets a line for what was left out.
    """
    choices, needed, used = asked.choices, asked.needed, asked.used
    if used is None and asked.width == frame.shape[1] and all(d.kind in "biuf" for d in frame.dtypes):
        # A model of so many numbers, which does not say which: it was made on all of them.
        used = tuple(frame.columns)
    wanted = set(used if used is not None else frame.columns) | set(needed)
    if choices.only:
        wanted &= {*choices.only, *needed, *(used or ())}
    names = [str(name) for name in frame.columns if name in wanted]
    rest = [repr(str(name)) for name in frame.columns if name not in wanted]
    if rest and used is not None:
        notes.append(f"the model does not use {folded(rest)}; left out.")
    must = {*needed, *(used or ()), *choices.only}
    kinds, out = {}, []
    for look in planned_looks(frame[names], choices, {n: p for n, p in asked.plans.items() if n in wanted}):
        if look.plan.kind not in ("left out", "target"):
            kinds[look.name] = look.plan
        elif look.name in must:
            kinds[look.name] = plain_plan(frame[look.name])
        else:
            out.append(f"{look.name!r}" + (f" ({look.why})" if look.why else ""))
    if out:
        notes.append(f"left out {folded(out)}. `--keep COLUMN` takes one all the same.")
    if not kinds:
        raise InputError(
            f"{owner} has no columns besides the target that could be used. `likewise inspect` shows why."
        )
    _check_size(frame, kinds, owner, min(len(frame), asked.sample or len(frame)), asked.widest)
    return frame[list(kinds)], kinds


def plain_plan(series: pd.Series[Any]) -> ColumnPlan:
    """Return what a column is by its dtype alone."""
    from likewise.domains.column_plan import ColumnPlan

    if series.dtype.kind in "iu":
        return ColumnPlan("integer")
    return ColumnPlan("number" if series.dtype.kind == "f" else "category")


def _check_size(
    frame: pd.DataFrame, kinds: Mapping[str, ColumnPlan], owner: str, rows: int, widest: int | None
) -> None:
    """Raise where the encoded table would fill the memory: a category takes a column for each of its values."""
    width = {
        name: int(frame[name].nunique()) if plan.kind == "category" else 1 for name, plan in kinds.items()
    }
    total = sum(width.values())
    if total * rows <= MOST_CELLS and total <= (widest or total):
        return
    most = max(width, key=lambda name: width[name])
    if width[most] > 1000:
        what = f"column {most!r} alone has {width[most]:,} categories. Leave it out (--ignore {most})"
    else:
        what = "take fewer columns (--only)"
    if widest is not None and total > widest:
        raise InputError(
            f"{owner} has {total:,} encoded columns (one for each number and category), and an audit measures distances "
            f"in at most {widest:,}; {what}."
        )
    raise InputError(
        f"{owner}: {rows:,} people with {total:,} encoded columns would fill the memory; {what}, or take fewer people "
        "(--sample)."
    )
