"""Options about a table that every verb shares: how the file is read, and what its columns are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from likewise.tables import Reading

__all__ = ["TableChoices", "table_options"]


@dataclass(frozen=True)
class TableChoices:
    """What the user says about a table.

    Parameters
    ----------
    ignore, only, keep : tuple of str
        Columns to leave out; the only ones to take; those to take although they look like an id, dates or text.
    categorical, integer : tuple of str
        Columns that are categories, or whole numbers.
    columns : Path or None
        File that `likewise inspect` wrote.
    missing : {"auto", "keep", "drop", "category", "impute"}
        What to do with missing cells.
    drop_missing : bool
        The same as ``missing="drop"``.
    encoding, decimal, header, doubled
        As in `likewise.tables.Reading`.
    """

    ignore: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    integer: tuple[str, ...] = ()
    columns: Path | None = None
    missing: str = "auto"
    drop_missing: bool = False
    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None
    doubled: str = "drop"

    @property
    def policy(self) -> str:
        """What to do with missing cells."""
        return "drop" if self.drop_missing else self.missing

    @property
    def reading(self) -> Reading:
        """How the file is read."""
        from likewise.tables import Reading

        return Reading(self.encoding, self.decimal, self.header, self.doubled)  # type: ignore[arg-type]

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Options that name columns, and the columns."""
        return {
            f"--{key}": getattr(self, key) for key in ("ignore", "only", "keep", "categorical", "integer")
        }


def _columns(flag: str, text: str) -> Callable[[Any], Any]:
    return click.option(flag, multiple=True, metavar="COLUMN", help=f"{text} Repeatable.")


_OPTIONS = (
    _columns("--ignore", "Column to leave out, such as an id."),
    _columns("--only", "Take these columns and no others."),
    _columns("--keep", "Take this column although it looks like an id, dates or text."),
    _columns("--categorical", "Column of codes: its numbers are categories."),
    _columns("--integer", "Column of counts: its numbers stay whole, and are no codes."),
    click.option(
        "--columns",
        type=click.Path(path_type=Path, dir_okay=False),
        help="What the columns are, in a file that `likewise inspect` wrote.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["auto", "keep", "drop", "category", "impute"]),
        default="auto",
        show_default=True,
        help="Missing cells: keep them (for a model that takes them), drop these people, make them a category, or "
        "impute the median or most frequent value. auto keeps them where the model takes them, and else imputes.",
    ),
    click.option("--drop-missing", is_flag=True, help="The same as --missing drop."),
    click.option("--encoding", help="Of a text file: latin-1, cp1252, …  [default: UTF-8]"),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="What stands before decimals in a text file.  [default: seen from the cells]",
    ),
    click.option(
        "--header/--no-header", default=None, help="Whether the first line of a text file names the columns."
    ),
    click.option(
        "--doubled",
        type=click.Choice(["drop", "number"]),
        default="drop",
        show_default=True,
        help="Columns of the same name: drop identical copies, or number them all.",
    ),
)


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about a table to a verb, which gets them as one `TableChoices` called `reading`."""

    @functools.wraps(function)
    def verb(**given: Any) -> Any:
        own = {field.name: given.pop(field.name) for field in fields(TableChoices)}
        return function(reading=TableChoices(**own), **given)

    wrapped: Callable[..., Any] = verb
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
