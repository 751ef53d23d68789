"""`likewise inspect`: how the columns of a table will be read, printed and written to a file that can be edited."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import PEOPLE, TableChoices, example, flag, options, verb
from likewise.cli.output import Outputs, outputs, say
from likewise.core.files import check_target
from likewise.core.progress import Progress
from likewise.core.text import printable, truncated

if TYPE_CHECKING:
    from likewise.data.type_inference import InferredColumn

# Columns that are printed; the file has all of them.
MOST_SHOWN = 100
DEFAULT = Path("columns.toml")


@verb("inspect", epilog=example(PEOPLE, "likewise inspect people.csv --target target"))
@options("table")
@flag("--no-file", "Print only.")
@options("target_left_out", "read")
@outputs("toml", then=["config"])
def command(table: Path, outputs: Outputs, no_file: bool, target: str | None, reading: TableChoices) -> None:
    """Show how each column of a table will be read: its kind, range and missing cells, and what looks like an id.

    The same is written to columns.toml unless it exists, or to -o FILE.toml. Correct it if a guess is wrong, and pass it to
    the other verbs with --columns.
    """
    # An existing columns.toml that nobody named is kept, and does not stop the verb.
    named = outputs.get("toml")
    kept = named is None and not outputs.force and DEFAULT.exists()
    file = None if no_file or kept else named or DEFAULT
    if file is not None and file is not named:
        check_target(file, overwrite=outputs.force)
    from likewise.core.frames import check_columns
    from likewise.data.case import planned_looks, with_empty_cells
    from likewise.data.table_files import read_table
    from likewise.data.type_inference import write_columns

    progress = Progress(outputs.quiet)
    found = read_table(table, reading)
    for note in found.notes:
        progress.note(note)
    frame = with_empty_cells(found.frame, reading)
    check_columns(frame, [] if target is None else [target], owner=table.name, name="table")
    for key, names in reading.named.items():
        check_columns(frame, [] if key == "--read ignore" else names, owner=key, name="table")
    if reading.only:
        frame = frame[[name for name in frame.columns if name in {*reading.only, target}]]
    looks = tuple(
        replace(look, plan=replace(look.plan, kind="target"), why="") if look.name == target else look
        for look in planned_looks(frame, reading)
    )
    if not outputs.quiet:
        say(f"{table.name}: {len(frame):,} people, {len(looks):,} columns")
        say("")
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in _lines(looks, width):
            click.echo(line)
    if file is not None:
        write_columns(looks, file, table=table.name)
        outputs.say("")
        outputs.say(f"Wrote {file}. Correct what was guessed wrong, and pass it on: --columns {file}")
    elif kept and not no_file:
        progress.note(
            f"{DEFAULT} is there already and was left as it is. Pass -o FILE.toml or --force to write this."
        )


def _lines(looks: tuple[InferredColumn, ...], width: int | None) -> list[str]:
    """The table; what does not fit beside a column is said below, once for all columns that it is about."""
    from likewise.core.text import text_table
    from likewise.data.type_inference import shown_range

    shown, below = looks[:MOST_SHOWN], dict[str, list[str]]()
    cells = [
        [
            _short(look.name),
            look.plan.kind,
            shown_range(look),
            f"{look.missing / look.rows:.1%}" if look.missing else "",
        ]
        for look in shown
    ]
    whys, head = [_short(look.why, 60) for look in shown], ["column", "read as", "values", "missing", ""]
    beside = max(map(len, text_table(head, [[*row, ""] for row in cells], left=(0, 1, 4)).splitlines()))
    for at, look in enumerate(shown):
        fact, colon, advice = look.why.partition(": ")
        if width is not None and colon and beside + len(whys[at]) > width:
            whys[at] = fact
            below.setdefault(advice, []).append(look.name)
    table = text_table(head, [[*row, why] for row, why in zip(cells, whys, strict=True)], left=(0, 1, 4))
    lines = [line if width is None else _short(line, width) for line in table.splitlines()]
    if len(looks) > MOST_SHOWN:
        lines.append(f"and {len(looks) - MOST_SHOWN:,} more")
    for advice, names in below.items():
        lines += textwrap.wrap(f"{truncated(list(map(_short, names)))}: {advice}", width or 80)
    return lines


def _short(text: str, most: int = 40) -> str:
    plain = printable(text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"
