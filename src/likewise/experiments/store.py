"""Finished cells on disk: one JSON file per (method, seed), written whole, never mixed with other settings."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from likewise._version import __version__
from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path
from likewise.experiments.settings import with_todays_names
from likewise.experiments.study import CellResult, Study

__all__ = ["Cell", "KeptCells", "Store", "versions"]

KIND = "likewise.experiments.cell"
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Cell:
    """A finished cell as it is kept.

    Parameters
    ----------
    method : str
    seed : int
    result : CellResult
    cpu_seconds : float
        CPU time of the worker process that computed it.
    warnings : tuple of str
        What the training warned about.
    versions : dict of str to str
        Of the packages that computed it.
    """

    method: str
    seed: int
    result: CellResult
    cpu_seconds: float
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptCells:
    """What a folder holds of the cells asked for.

    Parameters
    ----------
    cells : dict of (method, seed) to Cell
        Finished under the study's settings.
    damaged : dict of (method, seed) to str
        Files that cannot be read, and why: to be computed again.
    other : dict of (method, seed) to str
        Files of other settings, and how these differ: neither used nor replaced unless asked to.
    """

    cells: dict[tuple[str, int], Cell]
    damaged: dict[tuple[str, int], str]
    other: dict[tuple[str, int], str]


@dataclass(frozen=True)
class Store:
    """The folder of a study: ``cells/`` with one file per finished cell, tables and figures beside.

    Parameters
    ----------
    folder : Path
        ``OUT/<study>``; made when the first cell is written.
    study : Study

    Examples
    --------
    >>> from likewise.experiments import ToyStudy
    >>> Store(Path("reproduction/toy"), ToyStudy()).path("SenSR", 3).as_posix()
    'reproduction/toy/cells/sensr-03.json'
    """

    folder: Path
    study: Study

    def path(self, method: str, seed: int) -> Path:
        """Return the file of a cell."""
        return self.folder / "cells" / f"{_slug(method)}-{seed:02d}.json"

    def write(self, cell: Cell) -> None:
        """Keep a finished cell, whole or not at all."""
        content = {
            "kind": KIND,
            "study": self.study.name,
            "method": cell.method,
            "seed": cell.seed,
            "settings": self.study.settings(cell.method),
            "values": {key: _number(value) for key, value in cell.result.values.items()},
            "extras": cell.result.extras,
            "warnings": list(cell.warnings),
            "cpu_seconds": round(cell.cpu_seconds, 2),
            "versions": cell.versions,
        }
        path = self.path(cell.method, cell.seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
            temporary.write_text(text + "\n", encoding="utf-8")

    def find(self, methods: Sequence[str], seeds: Iterable[int]) -> KeptCells:
        """Return what is there of these methods and seeds.

        Raises
        ------
        InputError
            Where a file of a cell's name is something else altogether.
        """
        found = KeptCells({}, {}, {})
        numbers = list(seeds)
        for method in methods:
            there = {seed: path for seed in numbers if (path := self.path(method, seed)).exists()}
            wanted = json.loads(json.dumps(self.study.settings(method))) if there else {}
            for seed, path in there.items():
                try:
                    cell, difference = self._read(path, method, seed, wanted)
                except FormatError as error:
                    found.damaged[method, seed] = str(error)
                    continue
                if difference:
                    found.other[method, seed] = difference
                else:
                    found.cells[method, seed] = cell
        return found

    def _read(self, path: Path, method: str, seed: int, wanted: dict[str, Any]) -> tuple[Cell, str]:
        """Return a cell and how its settings differ from those wanted ("" where they do not)."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FormatError(f"{path} is damaged ({error})") from None
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise InputError(f"{path} is not a cell of a study. Move it away, or choose another --out.")
        name = (content.get("study"), content.get("method"), content.get("seed"))
        if name != (self.study.name, method, seed):
            raise InputError(
                f"{path} belongs to {name[0]}, {name[1]}, seed {name[2]}, not to {self.study.name}, {method}, "
                f"seed {seed}. Move it away, or choose another --out."
            )
        difference = _difference(with_todays_names(content.get("settings")), wanted)
        keys = [measure.key for measure in self.study.measures]
        try:
            values = {key: _from_number(content["values"][key]) for key in keys}
            cell = Cell(
                method,
                seed,
                CellResult(values, dict(content["extras"])),
                float(content["cpu_seconds"]),
                tuple(str(line) for line in content["warnings"]),
                {str(key): str(value) for key, value in content["versions"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if difference:  # a cell of other settings may have other measures
                return Cell(method, seed, CellResult({}), 0.0), difference
            raise FormatError(f"{path} is damaged ({type(error).__name__}: {error})") from None
        return cell, difference


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['Python', 'likewise']
    """
    found = {"likewise": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # pragma: no cover - all are dependencies
            continue
    return found


def _slug(method: str) -> str:
    """A method as part of a file's name.

    Examples
    --------
    >>> _slug("Adv. debiasing"), _slug("Sinha+")
    ('adv-debiasing', 'sinha')
    """
    return re.sub(r"[^a-z0-9]+", "-", method.lower()).strip("-")


def _number(value: float) -> float | str:
    """A float as JSON knows it: what is not finite as a word."""
    return float(value) if math.isfinite(value) else str(float(value))


def _from_number(value: float | str) -> float:
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _difference(kept: Any, wanted: Any) -> str:
    """How settings differ, in words; "" where they do not.

    Examples
    --------
    >>> _difference({"steps": 10, "lr": 1}, {"steps": 20, "lr": 1})
    'steps is 10, not 20'
    """
    if kept == wanted:
        return ""
    if not isinstance(kept, dict) or not isinstance(wanted, dict):
        return f"{json.dumps(kept)}, not {json.dumps(wanted)}"
    parts = []
    for key in dict.fromkeys([*kept, *wanted]):
        if key not in kept:
            parts.append(f"{key} is missing")
        elif key not in wanted:
            parts.append(f"{key} is {json.dumps(kept[key])}, and there is none now")
        elif kept[key] != wanted[key]:
            parts.append(f"{key} is {json.dumps(kept[key])}, not {json.dumps(wanted[key])}")
    return "; ".join(parts)
