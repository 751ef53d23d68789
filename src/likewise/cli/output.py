"""What verbs write and print: files checked before any work is done, results, and how far a run of cells is."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import F, option, options
from likewise.core.errors import InputError, require
from likewise.core.files import check_replaceable
from likewise.core.launch import launched
from likewise.core.progress import open_console, progress_bar, stop_if_interrupted, written_duration
from likewise.core.text import join_words, printable

if TYPE_CHECKING:
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress
    from likewise.report.provenance import Provenance

    Reporter = Callable[[StudyProgress, CellTask, Cell | Failure], None]


def check_outputs(paths: Sequence[Path], *, force: bool) -> None:
    """Raise unless every file can be written where it should go."""
    for path in paths:
        if path.suffix == ".html":
            require("jinja2", extra="report", why="Writing a page")
        if not path.parent.is_dir():
            raise InputError(f"The folder {str(path.parent)!r} does not exist. Make it first.")
        check_replaceable(path)
        if path.exists() and not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"The folder {str(path.parent)!r} cannot be written to.")


def say(line: str, *, err: bool = False) -> None:
    """Print one line, whatever stands in the names and cells that it tells; on a terminal, break it between words."""
    line = printable(line)
    if (sys.stderr if err else sys.stdout).isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_on_hyphens=False)
    click.echo(line, err=err)


# -o: what is written, by what each path is.


@dataclass(frozen=True)
class Outputs:
    """What is written and printed; paths by kind, which is a suffix without its dot, ``folder``, or ``-``."""

    paths: Mapping[str, Path]
    force: bool = False
    quiet: bool = False
    language: str = "en"

    def get(self, kind: str) -> Path | None:
        """Return the path of a kind, if one is named."""
        return self.paths.get(kind)

    @property
    def screen(self) -> bool:
        """Whether the JSON document is printed, and nothing else."""
        return "-" in self.paths

    def check(self) -> None:
        """Refuse files that cannot be written."""
        files = [path for kind, path in self.paths.items() if kind not in ("-", "folder", "parquet")]
        check_outputs(files, force=self.force)

    def say(self, line: str, *, err: bool = False) -> None:
        """Print one line, unless nothing is to be printed."""
        if not self.quiet:
            say(line, err=err)


_KINDS = {
    "html": ("FILE.html", "A page: one file, no network."),
    "json": ("FILE.json", "The result as JSON."),
    "-": ("-", "The same on the screen, and nothing else."),
    "folder": ("FOLDER/", "Evidence, which `likewise replay` repeats; --sign KEY signs it."),
    "parquet": ("FOLDER.parquet", "Everybody beside their worst counterpart."),
    "csv": ("FILE.csv", "The listed rows."),
    "safetensors": ("FILE.safetensors", ""),
    "toml": ("FILE.toml", ""),
}


def parse_outputs(words: Sequence[str], kinds: Sequence[str]) -> dict[str, Path]:
    """Sort paths by what they are, and refuse what a verb cannot write."""
    found: dict[str, Path] = {}
    for word in words:
        path = Path(word)
        known = word == "-" or path.suffix[1:] in kinds
        kind = (word if word == "-" else path.suffix[1:]) if known else "folder"
        if kind not in kinds or (kind == "folder" and path.suffix and not path.is_dir()):
            wanted = ", ".join(_KINDS[kind][0] for kind in kinds)
            raise InputError(f"-o takes {wanted}, got {word!r}.")
        if kind in found:
            raise InputError(f"-o names {str(found[kind])!r} and {word!r}, two of the same kind. Choose one.")
        found[kind] = path
    return found


def outputs(*kinds: str, then: Sequence[str] = (), required: bool = False, **named: str) -> Callable[[F], F]:
    """Add ``-o``, ``--force``, `then` and ``--quiet`` to a verb, which gets `Outputs`; `named` are other legends."""
    many = len(kinds) > 1
    legend = {_KINDS[kind][0]: named.get(kind, _KINDS[kind][1]) for kind in kinds}
    asked = ("force", "quiet", *(["language"] if "language" in then else []))

    def add(function: F) -> F:
        @functools.wraps(function)
        def verb(**given: Any) -> Any:
            words, said = given.pop("output"), {name: given.pop(name) for name in asked}
            found = Outputs(parse_outputs(words if many else words[-1:], kinds), **said)
            if not launched().several:  # else the first process checks them, and tells the others
                found.check()
            return function(outputs=found, **given)

        add_output: Callable[[Any], Any] = option(
            "-o",
            "--output",
            multiple=True,
            required=required,
            metavar="PATH",
            help="What to write; see below. Repeatable." if many else f"Write {_KINDS[kinds[0]][0]}.",
            legend=legend if many else None,
        )
        add_force = option("--force", is_flag=True, help="Replace files that exist.")
        return add_output(add_force(options(*then, "quiet")(verb)))  # type: ignore[no-any-return]

    return add


def deliver(
    outputs: Outputs,
    *,
    document: Callable[[], str],
    show: Callable[[], object],
    partial: bool = False,
    **writers: Callable[[Path], object],
) -> None:
    """Write the files that were asked for, each by the writer of its kind; then print the result, or its JSON text."""
    if not partial:  # else the result says itself that it was cut short
        stop_if_interrupted()
    for kind, write in writers.items():
        if (path := outputs.get(kind)) is not None:
            write(path)
    if outputs.screen:
        click.echo(document().rstrip("\n"))
    elif not outputs.quiet:
        if outputs.paths:
            say(f"Wrote {join_words([str(path) for path in outputs.paths.values()], 'and')}.")
        show()


def deliver_document(
    outputs: Outputs,
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    rows: Any = None,
    partial: bool = False,
) -> None:
    """Write a document as page and JSON, its rows as CSV, as far as these were asked for; then print it."""
    from likewise.core.frames import csv_text
    from likewise.core.plain import to_json
    from likewise.report import print_document, write
    from likewise.report.writing import write_text

    language = outputs.language
    page: dict[str, Any] = {"title": title, "language": language, "overwrite": outputs.force}
    deliver(
        outputs,
        partial=partial,
        document=lambda: to_json(document),
        show=lambda: print_document(document, language=language),
        html=lambda path: write(document, path, form="html", **page),
        json=lambda path: write(document, path, form="json", **page),
        csv=lambda path: write_text(path, csv_text(rows)),
    )


def deliver_comparison(
    comparison: Any,
    outputs: Outputs,
    *,
    title: str | None = None,
    labels: Mapping[Any, str] | None = None,
    explore: Mapping[str, Any] | None = None,
    provenance: Provenance | None = None,
) -> None:
    """Write a comparison as it was asked for, and print its table."""
    from likewise import report
    from likewise.core.plain import to_json

    said: dict[str, Any] = {"labels": labels, "provenance": provenance}
    page: dict[str, Any] = {"title": title, "language": outputs.language, "explore": explore}
    force = outputs.force
    deliver(
        outputs,
        document=lambda: to_json(report.comparison_document(comparison, **said)),
        show=lambda: report.print_comparison(comparison, labels=labels),
        html=lambda path: report.write_html(comparison, path, overwrite=force, **page, **said),
        json=lambda path: report.write_json(comparison, path, overwrite=force, **said),
    )


# Cells: trainings that run in processes of their own and are kept.


def announce_plan(plan: Plan, jobs: int, outputs: Outputs) -> None:
    """Say how much is kept and how much is left to compute."""
    for line in plan.damaged:
        outputs.say(f"Note: {line}; it is computed again.", err=True)
    if plan.replaced:
        outputs.say(f"Note: {len(plan.replaced)} cells of other settings are computed again.", err=True)
    kept = f"{plan.finished} cells are finished; " if plan.finished else ""
    outputs.say(f"{kept}{len(plan.tasks)} to compute, {jobs} at a time.", err=True)


@contextmanager
def reporting(total: int, outputs: Outputs, *, unit: str = "seed") -> Iterator[Reporter | None]:
    """Yield what to call after each cell: a bar with the time left on a terminal, or a line per cell in a log."""
    if outputs.quiet or not total:
        yield None
        return
    on_terminal = bool(open_console(stderr=True).is_terminal)
    with progress_bar(show=on_terminal, counted=True, estimated=False, transient=True) as bar:
        bar.start("Computing", total=total)

        def show(progress: StudyProgress, task: CellTask, outcome: Cell | Failure) -> None:
            seconds = progress.seconds_left if progress.done < progress.total else None
            left = f"about {written_duration(seconds)} left" if seconds else ""
            line = _line(task, outcome, unit)
            bar.update(progress.done, note=left)
            if not on_terminal:
                rest = f", {left}" if left else ""
                say(f"{line} ({progress.done} of {progress.total}{rest})", err=True)

        yield show


def _line(task: CellTask, outcome: Cell | Failure, unit: str) -> str:
    from likewise.improving.cells import Cell

    name = f"{task.study.name}: {task.method}, {unit} {task.seed}"
    if isinstance(outcome, Cell):
        return f"{name}: {outcome.cpu_seconds:.1f} CPU s"
    return f"{name} failed: {outcome.reason}"
