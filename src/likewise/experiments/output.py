"""The files of a study beside its cells: CSV, JSON, Markdown, figures and the page."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._version import __version__
from likewise.core.errors import InputError, MissingExtraError
from likewise.core.files import atomic_path
from likewise.core.text import once_each
from likewise.experiments.study_tables import BETTER, WORSE, Entry, Row, StudyTable, make_table
from likewise.improving.cells import Cell, Store, plain_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A study's table as CSV, Markdown and JSON values: the same cells give the same text, whatever order they
# came in.


KIND = "likewise.experiments.results"
_WORDS = {BETTER: "better", WORSE: "worse"}


def table_csv(table: StudyTable) -> str:
    """Return the summary as CSV: one line per method and measure, all digits."""
    lines: list[list[Any]] = [
        [
            "method",
            "measure",
            "seeds",
            "mean",
            "se",
            "paper_mean",
            "paper_se",
            "difference",
            "combined_se",
            "mark",
        ]
    ]
    for row in table.rows:
        for entry in row.entries:
            paper = entry.published
            lines.append(
                [
                    row.method,
                    entry.measure.key,
                    len(row.seeds),
                    entry.mean,
                    entry.se,
                    None if paper is None else paper.mean,
                    None if paper is None else paper.se,
                    None if paper is None else entry.mean - paper.mean,
                    entry.combined_se,
                    _WORDS.get(entry.mark, ""),
                ]
            )
    return _csv(lines)


def cells_csv(table: StudyTable, cells: Mapping[tuple[str, int], Cell]) -> str:
    """Return every cell as CSV: one line per method and seed, all digits."""
    keys = [measure.key for measure in table.study.measures]
    lines: list[list[Any]] = [["method", "seed", *keys]]
    for row in table.rows:
        for seed in row.seeds:
            values = cells[row.method, seed].result.values
            lines.append([row.method, seed, *(values[key] for key in keys)])
    return _csv(lines)


def _csv(lines: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows(
        [repr(value) if isinstance(value, float) else "" if value is None else value for value in line]
        for line in lines
    )
    return stream.getvalue()


def markdown(table: StudyTable) -> str:
    """Return the table as Markdown, the paper's figure below ours in each cell."""
    study = table.study
    heads = ["", *(f"{m.title} {'↑' if m.better == 'higher' else '↓'}" for m in study.measures), "CPU s"]
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
                "figures": {entry.measure.key: _plain(entry) for entry in row.entries},
                "cells": [
                    {key: _finite(value) for key, value in cells[row.method, seed].result.values.items()}
                    for seed in row.seeds
                ],
            }
            for row in table.rows
        ],
    }


def _plain(entry: Entry) -> dict[str, Any]:
    paper = entry.published
    return {
        "mean": _finite(entry.mean),
        "se": _finite(entry.se),
        "paper": None if paper is None else {"mean": paper.mean, "se": paper.se},
        "mark": _WORDS.get(entry.mark),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


# A study as one page that stands on its own: no network, no script, everything that comes from data
# escaped.


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CSS = """
.wrap { width: min(92rem, 100%); }
.scroll { overflow-x: auto; }
.results { width: 100%; font-size: .92rem; }
.results th, .results td { padding: .5rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; vertical-align: top; }
.results th:first-child { text-align: left; }
.results .paper { display: block; color: var(--muted); font-size: .82rem; }
.results .better { color: var(--ok); } .results .worse { color: var(--harm); }
figure { margin: 1rem 0; background: #fff; border-radius: .6rem; padding: .5rem; } figure img { width: 100%; height: auto; display: block; }
"""


def draw_svg(figure: Figure) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    import matplotlib as mpl

    stream = io.BytesIO()
    # Identifiers in the file are otherwise drawn at random, and the date is written into it.
    with mpl.rc_context({"svg.hashsalt": "likewise"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, dpi=100)
    return stream.getvalue()


def render_page(table: StudyTable, drawings: Mapping[str, bytes]) -> str:
    """Return a study's page."""
    css = (resources.files("likewise.report") / "assets" / "page.css").read_text(encoding="utf-8") + _CSS
    study = table.study
    remarks = "".join(f"<p>{escape(line)}</p>" for line in study.remarks)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{escape(study.title)}</title>
<style>{css}</style>
</head>
<body>
<header class="top"><div class="wrap"><p class="mark">likewise<span>reproduction</span></p>
<h1>{escape(study.title)}</h1></div></header>
<main class="wrap">
<section class="card" aria-labelledby="table"><h2 id="table">Ours and the paper's</h2>
<p class="lede">{escape(table.legend)}</p>
{_missing(table)}{_results(table)}
{remarks}</section>
{_figures(drawings)}<section class="card" aria-labelledby="methods"><h2 id="methods">What each method used</h2>
{_methods(table)}</section>
</main>
<footer class="wrap foot"><span>{_made(table)}</span><span>likewise {escape(__version__)}</span></footer>
</body>
</html>
"""


def _missing(table: StudyTable) -> str:
    if not table.missing:
        return ""
    words = ", ".join(f"{method} ({count} of {table.seeds})" for method, count in table.missing.items())
    return f"<p><strong>Not finished: {escape(words)}.</strong></p>\n"


def _results(table: StudyTable) -> str:
    heads = "".join(
        f'<th scope="col">{escape(m.title)} <span aria-label="{m.better} is better">'
        f"{'↑' if m.better == 'higher' else '↓'}</span></th>"
        for m in table.study.measures
    )
    rows = "\n".join(_row(row) for row in table.rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="results">'
        f'<thead><tr><th scope="col">Method</th>{heads}<th scope="col">CPU s</th></tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(row: Row) -> str:
    cells = "".join(_entry(entry) for entry in row.entries)
    seeds = f'<span class="paper">{len(row.seeds)} seed{"s" * (len(row.seeds) != 1)}</span>'
    return f'<tr><th scope="row">{escape(row.method)}{seeds}</th>{cells}<td>{row.cpu_seconds:,.0f}</td></tr>'


def _entry(entry: Entry) -> str:
    words = {"▲": "better", "▼": "worse"}.get(entry.mark, "")
    mark = f' <span class="{words}" title="{words} than the paper">{entry.mark}</span>' if words else ""
    paper = f'<span class="paper">paper {escape(entry.theirs)}</span>' if entry.theirs else ""
    return f"<td>{escape(entry.ours)}{mark}{paper}</td>"


def _figures(drawings: Mapping[str, bytes]) -> str:
    if not drawings:
        return ""
    shown = "\n".join(
        f'<figure><img alt="{escape(name.replace("-", " ").capitalize())}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"></figure>'
        for name, svg in drawings.items()
    )
    return (
        f'<section class="card" aria-labelledby="figures"><h2 id="figures">Figures</h2>\n{shown}</section>\n'
    )


def _methods(table: StudyTable) -> str:
    parts = []
    for row in table.rows:
        told = "".join(
            f'<p class="muted small">Warned: {escape(line)}{f" ({count}×)" if count > 1 else ""}</p>'
            for line, count in once_each(row.warnings)
        )
        parts.append(f"<h3>{escape(row.method)}</h3><p>{escape(row.note)}</p>{told}")
    return "\n".join(parts)


def _made(table: StudyTable) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in table.versions.items())
    return escape(f"{table.cpu_seconds / 60:.1f} CPU minutes in all. {packages}.")


_FILES = ("table.csv", "cells.csv", "table.md", "index.html")


def check_folder(folder: Path) -> None:
    """Raise where results cannot be written, or would replace files that no run of a study wrote."""
    for parent in (folder, *folder.parents):
        if parent.exists() and not parent.is_dir():
            raise InputError(f"{parent} is a file, not a folder. Choose another -o.")
    results = folder / "results.json"
    if results.exists():
        try:
            ours = json.loads(results.read_text(encoding="utf-8")).get("kind") == KIND
        except (ValueError, AttributeError):
            ours = False
        if not ours:
            raise InputError(f"{results} was not written by a study. Choose another -o.")
        return
    taken = [name for name in _FILES if (folder / name).exists()]
    if taken:
        raise InputError(f"{folder / taken[0]} was not written by a study. Choose another -o.")


def write_results(store: Store, seeds: int) -> tuple[StudyTable, tuple[str, ...]]:
    """Write the table of what is finished, its figures and its page."""
    study = store.study
    found = store.find(study.methods, range(seeds))
    table = make_table(study, found.cells, seeds)
    left_out = dict.fromkeys(method for method, _ in found.other)
    notes = [f"{method} is left out: its cells were made with other settings." for method in left_out]
    store.folder.mkdir(parents=True, exist_ok=True)
    results = json.dumps(plain_results(table, found.cells), ensure_ascii=False, allow_nan=False, indent=1)
    # First the file by which a later run knows that the others are ours to replace.
    _write(store.folder / "results.json", results + "\n")
    _write(store.folder / "table.csv", table_csv(table))
    _write(store.folder / "cells.csv", cells_csv(table, found.cells))
    _write(store.folder / "table.md", f"# {study.title}\n\n{markdown(table)}")
    drawings: dict[str, bytes] = {}
    try:
        figures = study.figures({key: cell.result for key, cell in found.cells.items()})
        drawings = {name: draw_svg(figure) for name, figure in figures.items()}
    except MissingExtraError as error:
        notes.append(f"There are no figures: {error}")
    for name, svg in drawings.items():
        _write(store.folder / f"{name}.svg", svg.decode())
    _write(store.folder / "index.html", render_page(table, drawings))
    return table, tuple(notes)


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
