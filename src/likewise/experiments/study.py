"""What a study of the paper is, and its table: mean ± standard error, the paper's figure beside, differences marked."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from likewise.core.plain import plain_settings
from likewise.improving.cells import Cell, CellResult, Computation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        Its standard error, if the paper tells it.

    Examples
    --------
    >>> Published(0.934, 0.012).mean
    0.934
    """

    mean: float
    se: float | None = None


Cells = Mapping[tuple[str, int], CellResult]
"""Finished cells of a study: (method, seed) to result."""


@cache
def _studies() -> dict[str, Any]:
    file = resources.files("likewise.experiments") / "assets" / "studies.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Study(Computation):
    """An experiment of the paper: methods in rows, measures in columns, seeds to repeat it.

    Subclasses are small frozen dataclasses of their options, such as ``AdultStudy(quick=False)``.

    Examples
    --------
    >>> from likewise.experiments import ToyStudy
    >>> study = ToyStudy()
    >>> isinstance(study, Study), study.name, study.methods
    (True, 'toy', ('Baseline', 'SenSR'))
    """

    quick: bool = False

    label: ClassVar[str]
    """What its folder is called; a quick trial has its own."""
    heading: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]
    measures: ClassVar[tuple[StudyMeasure, ...]]
    """Columns, in the order shown."""
    published: ClassVar[Mapping[tuple[str, str], Published]] = MappingProxyType({})
    """The paper's figures: (method, measure's key) to figure; what the paper does not tell is left out."""
    told: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """What `studies.toml` has of it."""

    def __init_subclass__(cls, label: str = "") -> None:
        """Take over what `studies.toml` says of a study."""
        super().__init_subclass__()
        if label:
            told = _studies()[label]
            cls.label, cls.heading, cls.told, cls.methods = label, told["heading"], told, tuple(told["notes"])
            cls.measures = tuple(StudyMeasure(*measure) for measure in told["measures"])
            cls.published = {
                (method, measure.key): Published(*figure)
                for method, figures in told.get("paper", {}).items()
                for measure, figure in zip(cls.measures, figures, strict=False)
                if figure
            }

    @property
    def name(self) -> str:
        """Folder of the study, by which a kept cell knows its study."""
        return self.label + "-quick" * self.quick

    @property
    def title(self) -> str:
        """Heading: "Adult: paper Tables 2, 4 and 5"."""
        return self.heading + " (quick trial: the figures mean nothing)" * self.quick

    def words(self, method: str | None = None) -> dict[str, Any]:
        """What stands in the braces of the remarks, or of the note on a method."""
        return {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about the whole study for its page and table: data, vectors, how many directions."""
        return tuple(text.format(**self.words()) for text in self.told.get("remarks", ()))

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the measures."""
        return tuple(measure.key for measure in self.measures)

    def note(self, method: str) -> str:
        """Return one sentence about what the method used and was told."""
        return str(self.told["notes"][method]).format(**self.words(method))

    def figures(self, cells: Cells) -> dict[str, Figure]:
        """Return matplotlib figures of the finished cells by file name without ending; none by default.

        Made without pyplot (``matplotlib.figure.Figure()``), so that nothing stays open; cells may be missing.
        """
        return {}


# A study's finished cells as a table.


BETTER, WORSE = "▲", "▼"


@dataclass(frozen=True)
class Entry:
    """One figure of a table."""

    measure: StudyMeasure
    mean: float
    se: float | None
    published: Published | None

    @property
    def combined_se(self) -> float | None:
        """√(ours² + theirs²); a standard error that the paper does not tell counts as 0."""
        if self.published is None or self.se is None:
            return None
        return math.hypot(self.se, self.published.se or 0.0)

    @property
    def mark(self) -> str:
        """Whether it is better or worse than the paper's by more than chance explains; "" if not."""
        combined = self.combined_se
        if combined is None or self.published is None or not math.isfinite(self.mean):
            return ""
        difference = self.mean - self.published.mean
        if abs(difference) <= 2 * combined + 0.5 * 10.0**-self.measure.digits:
            return ""
        return BETTER if (difference > 0) == (self.measure.better == "higher") else WORSE

    @property
    def ours(self) -> str:
        """Our figure as text."""
        return _plus_minus(self.mean, self.se, self.measure.digits)

    @property
    def theirs(self) -> str:
        """The paper's figure as text; "" if it tells none."""
        if self.published is None:
            return ""
        return _plus_minus(self.published.mean, self.published.se, self.measure.digits)


@dataclass(frozen=True)
class Row:
    """A method of a table."""

    method: str
    note: str
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]
    cpu_seconds: float
    settings: dict[str, Any]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class StudyTable:
    """What is finished of a study, in the study's order."""

    study: Study
    rows: tuple[Row, ...]
    seeds: int
    versions: dict[str, str]

    @property
    def missing(self) -> dict[str, int]:
        """Method to how many of its seeds are not finished."""
        done = {row.method: len(row.seeds) for row in self.rows}
        left = {method: self.seeds - done.get(method, 0) for method in self.study.methods}
        return {method: count for method, count in left.items() if count}

    @property
    def legend(self) -> str:
        """How to read the table."""
        if not self.study.published:
            return "Mean ± standard error over the seeds."
        return (
            f"Mean ± standard error over the seeds, the paper's below. {BETTER} better and {WORSE} worse than the paper "
            "by more than two combined standard errors (and half a unit of the paper's last digit)."
        )

    @property
    def cpu_seconds(self) -> float:
        """Of all cells."""
        return sum(row.cpu_seconds * len(row.seeds) for row in self.rows)


def make_table(study: Study, cells: Mapping[tuple[str, int], Cell], seeds: int) -> StudyTable:
    """Summarise finished cells."""
    rows = []
    for method in study.methods:
        finished = [cells[method, seed] for seed in range(seeds) if (method, seed) in cells]
        if not finished:
            continue
        entries = tuple(
            _entry(
                measure,
                [c.result.values[measure.key] for c in finished],
                study.published.get((method, measure.key)),
            )
            for measure in study.measures
        )
        rows.append(
            Row(
                method,
                study.note(method),
                tuple(cell.seed for cell in finished),
                entries,
                float(np.mean([cell.cpu_seconds for cell in finished])),
                plain_settings(study.settings(method)),
                tuple(dict.fromkeys(line for cell in finished for line in cell.warnings)),
            )
        )
    used = [cells[key].versions for key in sorted(cells)]
    names = dict.fromkeys(name for one in used for name in one)
    versions = {name: ", ".join(dict.fromkeys(one[name] for one in used if name in one)) for name in names}
    return StudyTable(study, tuple(rows), seeds, versions)


def _entry(measure: StudyMeasure, values: Sequence[float], published: Published | None) -> Entry:
    se = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return Entry(measure, float(np.mean(values)), se, published)


def _plus_minus(mean: float, se: float | None, digits: int) -> str:
    text = "unknown" if math.isnan(mean) else f"{mean:.{digits}f}".replace("-", "−")
    return text if se is None or math.isnan(se) else f"{text} ± {se:.{digits}f}"
