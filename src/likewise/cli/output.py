"""What verbs write and print: files checked before any work is done, results, and how far a run of cells is."""

from __future__ import annotations

import functools
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import F, option, options
from likewise.core.errors import InputError
from likewise.core.files import check_target
from likewise.core.launch import launched
from likewise.core.progress import open_console, progress_bar, stop_if_interrupted, written_duration
from likewise.core.text import join_words, printable

if TYPE_CHECKING:
    from likewise.improving.cells import Cell
    from likewise.improving.runner import CellTask, Failure, Plan, StudyProgress

    Reporter = Callable[[StudyProgress, CellTask, Cell | Failure], None]


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
        for kind, path in self.paths.items():
            if kind not in ("-", "folder", "parquet"):
                check_target(path, overwrite=self.force)

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


def parse_outputs(words: Iterable[str], kinds: Sequence[str]) -> dict[str, Path]:
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
            found = Outputs(parse_outputs(words if many else filter(None, [words]), kinds), **said)
            if not launched().several:  # else the first process checks them, and tells the others
                found.check()
            return function(outputs=found, **given)

        add_output: Callable[[Any], Any] = option(
            "-o --output",
            "PATH",
            "What to write; see below." if many else f"Write {_KINDS[kinds[0]][0]}.",
            many=many,
            required=required,
            legend=legend if many else None,
        )
        return add_output(options("force", *then, "quiet")(verb))  # type: ignore[no-any-return]

    return add


def deliver(
    outputs: Outputs,
    result: Any,
    *,
    title: str | None = None,
    explore: Mapping[str, Any] | None = None,
    show: Callable[[], object] | None = None,
    rows: Any = None,
    writers: Mapping[str, Callable[[Path], object]] | None = None,
    partial: bool = False,
    **said: Any,
) -> None:
    """Write a result as page, JSON and CSV (its `rows`), as far as these were asked for; then print it, or its JSON text.

    `said` goes into its document, `writers` write what only one verb writes. A `partial` result says itself that it was cut short.
    """
    from likewise import report
    from likewise.core.frames import csv_text
    from likewise.core.plain import to_json
    from likewise.report.writing import write_text

    if not partial:
        stop_if_interrupted()
    language, force = outputs.language, outputs.force
    page: dict[str, Any] = {"title": title, "explore": explore, "language": language, "overwrite": force}
    ways: dict[str, Callable[[Path], object]] = {
        "html": lambda path: report.write_html(result, path, **page, **said),
        "json": lambda path: report.write_json(result, path, overwrite=force, **said),
        "csv": lambda path: write_text(path, csv_text(rows)),
        **(writers or {}),
    }
    for kind, path in outputs.paths.items():
        if kind in ways:
            ways[kind](path)
    if outputs.screen:
        click.echo(to_json(report.document_of(result, **said)).rstrip("\n"))
    elif not outputs.quiet:
        if outputs.paths:
            say(f"Wrote {join_words([str(path) for path in outputs.paths.values()], 'and')}.")
        if show is None:
            report.print_document(report.document_of(result, **said), language=language)
        else:
            show()


def deliver_answer(outputs: Outputs, found: Any, model: str, table: Path, **choices: Any) -> None:
    """Write and print what was found about a model and a table."""
    from likewise.cli.reading import provenance_now

    made = provenance_now([table], [model])
    deliver(outputs, found, name=model, source=table.name, provenance=made, **choices)


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
