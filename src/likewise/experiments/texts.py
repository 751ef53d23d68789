"""A study's table as CSV, Markdown and JSON values: the same cells give the same text, whatever order they came in."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.experiments.settings import plain_settings
from likewise.experiments.store import Cell
from likewise.experiments.study_tables import BETTER, WORSE, Entry, StudyTable

__all__ = ["KIND", "cells_csv", "markdown", "plain_results", "table_csv"]

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
