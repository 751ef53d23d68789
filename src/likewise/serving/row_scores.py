"""Rows from a page, as JSON gives them, and what the model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.errors import InputError
from likewise.domains import TabularDomain
from likewise.domains.column import Column
from likewise.domains.decoded_tables import build_table
from likewise.domains.reading import category_codes
from likewise.models import Model
from likewise.models.missing_cells_model import MissingCellsModel

__all__ = ["RowScores"]


@dataclass(frozen=True, eq=False)
class RowScores:
    """A model that is asked about rows of plain cells.

    Parameters
    ----------
    model : Model
        Takes the table, or rows that the domain encodes.
    domain : TabularDomain
        Every row is held against it before the model sees it.
    most : int, default=1000
        Rows of one question.

    Examples
    --------
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"skill": [0.0, 0.5], "sex": ["F", "M"]})
    >>> model = as_model(lambda frame: (frame["sex"] == "M").to_numpy(dtype=float), takes_frame=True)
    >>> RowScores(model, TabularDomain.from_frame(people)).score([[0.25, "M"]])
    [[0.0, 1.0]]
    """

    model: Model
    domain: TabularDomain
    most: int = 1_000

    def score(self, rows: Any) -> list[list[float]]:
        """Return the probability of every class for every row.

        Parameters
        ----------
        rows : list of lists
            Cells in the order of the domain's columns: numbers, words, truth values, None where one is missing.

        Raises
        ------
        InputError
            A row cannot exist.
        ModelError
            The model failed.
        """
        table = self.table(rows)
        asked = table if self.model.takes_frame else self.domain.encode_array(table)
        probabilities: list[list[float]] = self.model.predict_proba(asked).tolist()
        return probabilities

    def table(self, rows: Any) -> Any:
        """Return rows as a table with the columns and types that the model is used to, if they can exist."""
        encoding = self.domain.encoding_
        self._check(rows, len(encoding.names))
        cells = pd.DataFrame(
            {
                name: pd.Series([row[at] for row in rows], dtype=object)
                for at, name in enumerate(encoding.names)
            }
        )
        if isinstance(self.model, MissingCellsModel):
            gaps = self.model.missing
            cells = gaps.marked(cells.drop(columns=list(gaps.marks))).astype(object)
        self._check_cells(cells)
        columns = [self.domain.column(name) for name in encoding.names]
        return build_table(columns, {c.name: _part(c, cells[c.name]) for c in columns}, encoding.library)

    def _check_cells(self, cells: pd.DataFrame) -> None:
        try:
            wrong = self.domain.validate(cells)
        except OverflowError as error:
            raise InputError("rows: a number is too large.") from error
        if wrong:
            value = (
                "missing" if wrong[0].value is None else f"{str(wrong[0].value)[:60]} is {wrong[0].reason}"
            )
            raise InputError(f"{wrong[0].column}: {value}.")

    def _check(self, rows: Any, width: int) -> None:
        if not isinstance(rows, list) or not rows:
            raise InputError("rows: send a list of at least one row.")
        if len(rows) > self.most:
            raise InputError(
                f"rows: at most {self.most:,} can be asked about at once, and {len(rows):,} came."
            )
        for row in rows:
            if not isinstance(row, list) or len(row) != width:
                raise InputError(f"rows: every row must be a list of {width} cells.")
            if not all(cell is None or isinstance(cell, (str, bool, int, float)) for cell in row):
                raise InputError("rows: a cell must be a number, a word, true, false or null.")


def _part(column: Column, cells: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Numbers, or positions of categories, of cells that are valid."""
    if column.kind == "categorical":
        return category_codes(cells, column.categories)
    return cells.to_numpy(dtype=np.float64)
