"""The files of a study beside its cells: CSV, JSON, Markdown, figures and the page."""

from __future__ import annotations

import json
from pathlib import Path

from likewise.core.errors import InputError, MissingExtraError
from likewise.core.files import atomic_path
from likewise.experiments.page import draw_svg, render_page
from likewise.experiments.store import Store
from likewise.experiments.study_tables import StudyTable, make_table
from likewise.experiments.texts import KIND, cells_csv, markdown, plain_results, table_csv

__all__ = ["check_folder", "write_results"]

_FILES = ("table.csv", "cells.csv", "table.md", "index.html")


def check_folder(folder: Path) -> None:
    """Raise where results cannot be written, or would replace files that no run of a study wrote.

    Parameters
    ----------
    folder : Path
        Of a study. It need not exist.
    """
    for parent in (folder, *folder.parents):
        if parent.exists() and not parent.is_dir():
            raise InputError(f"{parent} is a file, not a folder. Choose another --out.")
    results = folder / "results.json"
    if results.exists():
        try:
            ours = json.loads(results.read_text(encoding="utf-8")).get("kind") == KIND
        except (ValueError, AttributeError):
            ours = False
        if not ours:
            raise InputError(f"{results} was not written by a study. Choose another --out.")
        return
    taken = [name for name in _FILES if (folder / name).exists()]
    if taken:
        raise InputError(f"{folder / taken[0]} was not written by a study. Choose another --out.")


def write_results(store: Store, seeds: int) -> tuple[StudyTable, tuple[str, ...]]:
    """Write the table of what is finished, its figures and its page.

    Parameters
    ----------
    store : Store
    seeds : int
        Seeds 0 to seeds − 1 go in; of methods that have none finished there is no row.

    Returns
    -------
    table : StudyTable
    notes : tuple of str
        What was left out, and why.
    """
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
