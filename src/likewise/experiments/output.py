"""The files of a study beside its cells: CSV, JSON, Markdown, figures and the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from likewise.core.errors import MissingExtraError
from likewise.core.frames import csv_text
from likewise.core.messages import Texts
from likewise.core.plain import plain_number, plain_settings, to_json
from likewise.core.text import once_each
from likewise.experiments.study import BETTER, WORSE, Entry, Study, StudyTable, make_table
from likewise.improving.cells import Cell, Store
from likewise.report.page import Answer, render_page
from likewise.report.provenance import Provenance
from likewise.report.templates import asset, templates
from likewise.report.writing import check_own_folder, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A study's table as CSV, Markdown and JSON values: the same cells give the same text, whatever order they
# came in.


KIND = "likewise.experiments.results"
_WORDS = {BETTER: "better", WORSE: "worse"}
_ARROWS = {"higher": "↑", "lower": "↓"}


def table_csv(table: StudyTable) -> str:
    """Return the summary as CSV: one line per method and measure, all digits."""
    head = "method measure seeds mean se paper_mean paper_se difference combined_se mark"
    lines: list[list[Any]] = []
    for row in table.rows:
        for entry in row.entries:
            ours, paper = entry.mean, entry.published
            theirs = (None,) * 3 if paper is None else (paper.mean, paper.se, ours - paper.mean)
            mark = _WORDS.get(entry.mark, "")
            first = [row.method, entry.measure.key, len(row.seeds), ours, entry.se]
            lines.append([*first, *theirs, entry.combined_se, mark])
    return _csv(head.split(), lines)


def cells_csv(table: StudyTable, cells: Mapping[tuple[str, int], Cell]) -> str:
    """Return every cell as CSV: one line per method and seed, all digits."""
    keys = [measure.key for measure in table.study.measures]
    lines = [
        [row.method, seed, *(cells[row.method, seed].result.values[key] for key in keys)]
        for row in table.rows
        for seed in row.seeds
    ]
    return _csv(["method", "seed", *keys], lines)


def _csv(head: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    frame = pd.DataFrame(lines, columns=list(head), dtype=object)
    return csv_text(frame)


def markdown(table: StudyTable) -> str:
    """Return the table as Markdown, the paper's figure below ours in each cell."""
    study = table.study
    heads = ["", *(f"{m.title} {_ARROWS[m.better]}" for m in study.measures), "CPU s"]
    lines = ["| " + " | ".join(map(_cell, heads)) + " |", "|" + "---|" * len(heads)]
    for row in table.rows:
        shown = [
            f"**{_cell(row.method)}**"
            + ("" if len(row.seeds) == table.seeds else f" ({len(row.seeds)} seeds)")
        ]
        for entry in row.entries:
            ours = f"{entry.ours} {entry.mark}".rstrip()
            shown.append(f"{ours}<br>paper {entry.theirs}" if entry.theirs else ours)
        lines.append("| " + " | ".join([*shown, f"{row.cpu_seconds:.0f}"]) + " |")
    notes = [f"- {_cell(row.method)}: {row.note}" for row in table.rows]
    seeds = f"{table.seeds} seeds" if table.seeds > 1 else "one seed"
    made = f"{seeds}, {table.cpu_seconds / 60:.1f} CPU minutes in all."
    return "\n\n".join(["\n".join(lines), f"{table.legend} {made}", *study.remarks, "\n".join(notes)]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def plain_results(table: StudyTable, cells: Mapping[tuple[str, int], Cell]) -> dict[str, Any]:
    """Return everything as JSON values."""
    study = table.study
    return {
        "kind": KIND,
        "study": study.name,
        "title": study.title,
        "seeds": table.seeds,
        "missing": table.missing,
        "remarks": list(study.remarks),
        "versions": table.versions,
        "cpu_seconds": round(table.cpu_seconds, 1),
        "measures": plain_settings(list(study.measures)),
        "methods": [
            {
                "method": row.method,
                "note": row.note,
                "seeds": list(row.seeds),
                "cpu_seconds": round(row.cpu_seconds, 2),
                "settings": row.settings,
                "warnings": list(row.warnings),
                "figures": {entry.measure.key: _figure(entry) for entry in row.entries},
                "cells": [
                    {key: plain_number(value) for key, value in cells[row.method, seed].result.values.items()}
                    for seed in row.seeds
                ],
            }
            for row in table.rows
        ],
    }


def _figure(entry: Entry) -> dict[str, Any]:
    paper = entry.published
    return {
        "mean": plain_number(entry.mean),
        "se": plain_number(entry.se),
        "paper": None if paper is None else {"mean": paper.mean, "se": paper.se},
        "mark": _WORDS.get(entry.mark),
    }


# The page.


def draw_svg(figure: Figure) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    import matplotlib as mpl

    stream = io.BytesIO()
    # Identifiers in the file are otherwise drawn at random, and the date is written into it.
    with mpl.rc_context({"svg.hashsalt": "likewise"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, dpi=100)
    return stream.getvalue()


def render_study(table: StudyTable, drawings: Mapping[str, bytes]) -> str:
    """Return a study's page."""
    study = table.study
    template = templates("en").from_string(asset("study.html.j2", "likewise.experiments"))
    shown = {name: base64.b64encode(svg).decode() for name, svg in drawings.items()}
    body = template.render(table=table, drawings=shown, arrows=_ARROWS, marks=_WORDS, once_each=once_each)
    packages = ", ".join(f"{name} {number}" for name, number in table.versions.items())
    made = f"{table.cpu_seconds / 60:.1f} CPU minutes in all. {packages}."
    return render_page(
        study.title,
        [body],
        texts=Texts(),
        answer=Answer("Reproduction", "plain", [f"{study.title}: {table.seeds} seeds.", made]),
        provenance=Provenance.now(
            command=f"likewise reproduce {study.name} --seeds {table.seeds}"
        ).document(),
    )


_FILES = ("table.csv", "cells.csv", "table.md", "index.html")


def check_folder(folder: Path) -> None:
    """Raise if results cannot be written, or would replace files that no run of a study wrote."""
    check_own_folder(folder, "results.json", KIND, others=_FILES, by="a study", option="-o")


def write_results(store: Store, seeds: int) -> tuple[StudyTable, tuple[str, ...]]:
    """Write the table of what is finished, its figures and its page."""
    study = store.study
    assert isinstance(study, Study)
    found = store.find(study.methods, range(seeds))
    table = make_table(study, found.cells, seeds)
    left_out = dict.fromkeys(method for method, _ in found.other)
    notes = [f"{method} is left out: its cells were made with other settings." for method in left_out]
    drawings: dict[str, bytes] = {}
    try:
        figures = study.figures({key: cell.result for key, cell in found.cells.items()})
        drawings = {name: draw_svg(figure) for name, figure in figures.items()}
    except MissingExtraError as error:
        notes.append(f"There are no figures: {error}")
    files = {
        # First the file by which a later run knows that the others are ours to replace.
        "results.json": to_json(plain_results(table, found.cells)),
        "table.csv": table_csv(table),
        "cells.csv": cells_csv(table, found.cells),
        "table.md": f"# {study.title}\n\n{markdown(table)}",
        **{f"{name}.svg": svg.decode() for name, svg in drawings.items()},
        "index.html": render_study(table, drawings),
    }
    store.folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(store.folder / name, text)
    return table, tuple(notes)
