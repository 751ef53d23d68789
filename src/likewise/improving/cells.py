"""Cells of a computation, (method, seed) each, and the file that keeps them: never mixed with other settings."""

from __future__ import annotations

import json
import math
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise._version import __version__
from likewise.core.errors import InputError, installed_versions

# What is computed: methods × seeds, a few numbers each.


@dataclass(frozen=True)
class CellResult:
    """What one method gave with one seed.

    Parameters
    ----------
    values : dict of str to float
        One per key of the computation. NaN if it cannot be told.
    extras : dict of str to JSON values, optional
        What figures and readers need besides: scores of names, weights, findings of the training.

    Examples
    --------
    >>> CellResult({"accuracy": 0.8}).extras
    {}
    """

    values: dict[str, float]
    extras: dict[str, Any] = field(default_factory=dict)


class Computation(ABC):
    """Methods × seeds, each a cell that is computed in any process and kept.

    Subclasses are small frozen dataclasses of their options: they can be pickled and sent to a worker process, and `run`
    depends on nothing but the options, the method and the seed.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Folder and file name: "adult"."""

    @property
    @abstractmethod
    def methods(self) -> tuple[str, ...]:
        """Rows, in the order shown: "Baseline", "SenSR", …."""

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Names of the values that every cell has."""

    @abstractmethod
    def settings(self, method: str) -> dict[str, Any]:
        """Return everything that determines a cell but its seed, as JSON values.

        It is kept with each cell: a cell made under other settings is never mixed in. A file that the user named
        goes in by its content (a digest), not by its path.
        """

    @abstractmethod
    def run(self, method: str, seed: int) -> CellResult:
        """Compute one cell. Called in a worker process with one torch thread."""

    def cost(self, method: str) -> float:
        """Return about how many CPU seconds a cell takes: the longest start first, and the time left is told by it."""
        return 1.0


KIND = "likewise.experiments.cell"
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class Cell:
    """A finished cell as it is kept."""

    method: str
    seed: int
    result: CellResult
    cpu_seconds: float
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptCells:
    """What a folder holds of the cells asked for; `damaged` and `other` say what is wrong with the rest."""

    cells: dict[tuple[str, int], Cell]
    damaged: list[str]
    other: dict[tuple[str, int], str]


@dataclass(frozen=True)
class Store:
    """The folder of a study: ``cells.jsonl`` with one line per finished cell, tables and figures beside.

    Parameters
    ----------
    folder : Path
        ``OUT/<study>``; made when the first cell is written.
    study : Computation

    Examples
    --------
    >>> from likewise.experiments import ToyStudy
    >>> Store(Path("reproduction/toy"), ToyStudy()).path.as_posix()
    'reproduction/toy/cells.jsonl'
    """

    folder: Path
    study: Computation

    @property
    def path(self) -> Path:
        """The file of the cells."""
        return self.folder / "cells.jsonl"

    def write(self, cell: Cell) -> None:
        """Add a finished cell; one of the same method and seed that is there already no longer counts."""
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
        line = json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self.path.open("a+b") as file:
                end = file.seek(0, os.SEEK_END)
                if end:
                    file.seek(end - 1)
                    line = line if file.read(1) == b"\n" else b"\n" + line  # a run was killed while it wrote
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            # A full disk has room for the name of a file and not for what is in it.
            if self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()
            raise

    def find(self, methods: Sequence[str], seeds: Iterable[int]) -> KeptCells:
        """Return what is there of these methods and seeds.

        Raises
        ------
        InputError
            If the file is something else altogether.
        """
        asked = {(method, seed) for seed in seeds for method in methods}
        wanted: dict[str, Any] = {}
        found: dict[tuple[str, int], tuple[Cell | None, str]] = {}
        damaged: list[str] = []
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        for number, line in enumerate(lines, start=1):
            where = f"{self.path}, line {number},"
            try:
                content = json.loads(line)
            except ValueError as error:
                damaged.append(f"{where} is damaged ({error})")
                continue
            if not isinstance(content, dict) or content.get("kind") != KIND:
                raise InputError(f"{where} is not a cell of a study. Move it away, or choose another -o.")
            if content.get("study") != self.study.name:
                raise InputError(
                    f"{where} belongs to {content.get('study')}, not to {self.study.name}. Move it away, or choose another "
                    "-o."
                )
            key = (content.get("method"), content.get("seed"))
            if key not in asked:
                continue
            method = str(key[0])
            if method not in wanted:
                wanted[method] = json.loads(json.dumps(self.study.settings(method)))
            difference = _difference(content.get("settings"), wanted[method])
            found.pop(key, None)
            try:
                found[key] = (None if difference else self._cell(content), difference)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                damaged.append(f"{where} is damaged ({type(error).__name__}: {error})")
        return KeptCells(
            {key: cell for key, (cell, _) in found.items() if cell is not None},
            damaged,
            {key: difference for key, (_, difference) in found.items() if difference},
        )

    def _cell(self, content: dict[str, Any]) -> Cell:
        return Cell(
            content["method"],
            content["seed"],
            CellResult(
                {key: _from_number(content["values"][key]) for key in self.study.keys},
                dict(content["extras"]),
            ),
            float(content["cpu_seconds"]),
            tuple(str(line) for line in content["warnings"]),
            {str(key): str(value) for key, value in content["versions"].items()},
        )


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    return {"likewise": __version__, "Python": platform.python_version()} | installed_versions(_PACKAGES)


def _number(value: float) -> float | str:
    """A float as JSON knows it: what is not finite as a word."""
    return float(value) if math.isfinite(value) else str(float(value))


def _from_number(value: float | str) -> float:
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _difference(kept: Any, wanted: Any) -> str:
    """How settings differ, in words; "" if they do not."""
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
