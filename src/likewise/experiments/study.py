"""What a study is: methods × seeds, a few measures each, and the paper's figures to stand beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CellResult", "Cells", "Published", "Study", "StudyMeasure"]


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
