"""Finished cells on disk: one JSON file per (method, seed), written whole, never mixed with other settings."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise._version import __version__
from likewise.core.errors import FormatError, InputError
from likewise.core.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Settings as JSON values, so that a kept cell can say what it was made with.


# What changes how a training runs or where, but not what it learns; and the seed, which a cell has anyway.
_LEFT_OUT = frozenset({"checkpoint", "resume", "progress", "device", "threads", "random_state"})
_RENAMED = {"lam": "lambda_init"}
# What an earlier version did where it had no such parameter yet.
_SINCE: dict[str, dict[str, Any]] = {
    **{name: {"blind_to": None, "baseline": False} for name in ("SenSRClassifier", "SenSeIClassifier")},
    "Edit": {"consequences": None},
}


def plain_settings(value: Any) -> Any:
    """Return an estimator, a choice or a collection of them as JSON values."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "get_params"):
        inner = value.get_params(deep=False)
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: getattr(value, f.name) for f in fields(value)}
    elif isinstance(value, Mapping):
        return {str(key): plain_settings(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        return [plain_settings(item) for item in value]
    else:
        return repr(value)
    kept = {name: plain_settings(item) for name, item in inner.items() if name not in _LEFT_OUT}
    return {"class": type(value).__name__, **kept}


def with_todays_names(settings: Any) -> Any:
    """Return kept settings with parameters that an earlier version called otherwise, or did not have, as today's."""
    if isinstance(settings, list):
        return [with_todays_names(item) for item in settings]
    if not isinstance(settings, dict):
        return settings
    renamed = {_RENAMED.get(name, name): with_todays_names(item) for name, item in settings.items()}
    return {**_SINCE.get(str(settings.get("class")), {}), **renamed}


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, read in pieces."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# What a study is: methods × seeds, a few measures each, and the paper's figures to stand beside them.


@dataclass(frozen=True)
class StudyMeasure:
    """A column of a study's table.

    Parameters
    ----------
    key : str
        Name in `CellResult.values` and in the CSV: "S-Con".
    title : str
        Heading in tables: "S-Con".
    digits : int
        Digits behind the point.
    better : {"higher", "lower"}
        Which way is better; a gap near 0 is better, so gaps are "lower".

    Examples
    --------
    >>> StudyMeasure("S-Con", "Spouse consistency", 3, "higher").key
    'S-Con'
    """

    key: str
    title: str
    digits: int
    better: Literal["higher", "lower"]


@dataclass(frozen=True)
class Published:
    """A figure of the paper.

    Parameters
    ----------
    mean : float
        In the same unit as `CellResult.values`: a share, not a percentage.
    se : float, optional
        Its standard error, where the paper tells it.

    Examples
    --------
    >>> Published(0.934, 0.012).mean
    0.934
    """

    mean: float
    se: float | None = None


@dataclass(frozen=True)
class CellResult:
    """What one method gave with one seed.

    Parameters
    ----------
    values : dict of str to float
        One per `StudyMeasure.key` of the study. NaN where it cannot be told.
    extras : dict of str to JSON values, optional
        What figures and readers need besides: scores of names, weights, findings of the training.

    Examples
    --------
    >>> CellResult({"accuracy": 0.8}).extras
    {}
    """

    values: dict[str, float]
    extras: dict[str, Any] = field(default_factory=dict)


Cells = Mapping[tuple[str, int], CellResult]
"""Finished cells of a study: (method, seed) to result."""


class Study(ABC):
    """An experiment of the paper: methods in rows, measures in columns, seeds to repeat it.

    Subclasses are small frozen dataclasses of their options, such as ``AdultStudy(quick=False)``: they can be
    pickled and sent to a worker process, and `run` depends on nothing but the options, the method and the seed.

    Examples
    --------
    >>> from likewise.experiments import ToyStudy
    >>> study = ToyStudy()
    >>> isinstance(study, Study), study.name, study.methods
    (True, 'toy', ('Baseline', 'SenSR'))
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Folder and file name: "adult"."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Heading: "Adult (paper Tables 2, 4 and 5)"."""

    @property
    @abstractmethod
    def measures(self) -> tuple[StudyMeasure, ...]:
        """Columns, in the order shown."""

    @property
    @abstractmethod
    def methods(self) -> tuple[str, ...]:
        """Rows, in the order shown: "Baseline", "SenSR", …."""

    @property
    @abstractmethod
    def published(self) -> Mapping[tuple[str, str], Published]:
        """The paper's figures: (method, measure's key) to figure; what the paper does not tell is left out."""

    @abstractmethod
    def settings(self, method: str) -> dict[str, Any]:
        """Return everything that determines a cell but its seed, as JSON values.

        It is kept with each cell: a cell made under other settings is never mixed in. A file that the user named
        goes in by its content (a digest), not by its path.
        """

    @abstractmethod
    def note(self, method: str) -> str:
        """Return one sentence about what the method used and was told."""

    @abstractmethod
    def run(self, method: str, seed: int) -> CellResult:
        """Compute one cell. Called in a worker process with one torch thread."""

    def figures(self, cells: Cells) -> dict[str, Figure]:
        """Return matplotlib figures of the finished cells by file name without ending; none by default.

        Made without pyplot (``matplotlib.figure.Figure()``), so that nothing stays open; cells may be missing.
        """
        return {}

    def cost(self, method: str) -> float:
        """Return about how many CPU seconds a cell takes: the longest start first, and the time left is told by it."""
        return 1.0

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about the whole study for its page and table: data, vectors, how many directions."""
        return ()


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
    """What a folder holds of the cells asked for."""

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
            raise InputError(f"{path} is not a cell of a study. Move it away, or choose another -o.")
        name = (content.get("study"), content.get("method"), content.get("seed"))
        if name != (self.study.name, method, seed):
            raise InputError(
                f"{path} belongs to {name[0]}, {name[1]}, seed {name[2]}, not to {self.study.name}, {method}, "
                f"seed {seed}. Move it away, or choose another -o."
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
    """Return the versions that a result may depend on."""
    found = {"likewise": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # pragma: no cover - all are dependencies
            continue
    return found


def _slug(method: str) -> str:
    """A method as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", method.lower()).strip("-")


def _number(value: float) -> float | str:
    """A float as JSON knows it: what is not finite as a word."""
    return float(value) if math.isfinite(value) else str(float(value))


def _from_number(value: float | str) -> float:
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _difference(kept: Any, wanted: Any) -> str:
    """How settings differ, in words; "" where they do not."""
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
