"""Twins that differ in the edited columns and in nothing else (*ceteris paribus*): the edits of every study."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.core.errors import InputError
from likewise.core.frames import check_columns, to_pandas
from likewise.evaluation.edits import Edits, cells_of, resolve_edits
from likewise.evaluation.table_cells import Table
from likewise.evaluation.twin_makers import MadeTwins

__all__ = ["AttributeTwins"]


class AttributeTwins:
    """Only the attribute changes.

    Parameters
    ----------
    edits : mapping, Edit or sequence
        As in `correspondence_study`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["F", "M"], "role": ["Wife", "Husband"]})
    >>> made = AttributeTwins({"sex": ["F", "M"]}).fit(people).make(people)
    >>> made.tables[0]["sex"].tolist(), made.tables[0]["role"].tolist()
    (['F', 'F'], ['Wife', 'Husband'])
    """

    def __init__(self, edits: Edits) -> None:
        self.edits = edits

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "variants_")

    @property
    def n_variants(self) -> int:
        """How many variants everybody has."""
        return len(self.variants_)

    def fit(self, people: Any) -> Self:
        """Look up the values of the edited columns."""
        owner = type(self).__name__
        table = Table(to_pandas(people, owner=owner, name="people"))
        variants, attributes = resolve_edits(self.edits, table, owner=owner)
        cells = [cells_of(variant, attributes) for variant in variants]
        self.variants_ = tuple(variants)
        self.cells_ = tuple(cells)
        return self

    def make(self, people: Any) -> MadeTwins:
        """Return everybody in every variant."""
        owner = type(self).__name__
        if not self.fitted:
            raise InputError(f"{owner}: the values of the columns are not known yet. Call fit(people) first.")
        table = Table(to_pandas(people, owner=owner, name="people"))
        check_columns(table.native, [c for cell in self.cells_ for c in cell], owner=owner, name="people")
        own = [
            np.logical_and.reduce(
                [np.ones(table.n_rows, dtype=bool), *(_same(table.native[c], v) for c, v in cell.items())]
            )
            for cell in self.cells_
        ]
        tables = tuple(
            table.replace({c: table.entry(c, v, owner=owner) for c, v in cell.items()})
            for cell in self.cells_
        )
        return MadeTwins(
            tables, self.variants_, np.stack(own), np.ones((len(tables), table.n_rows), dtype=bool)
        )


def _same(column: Any, value: Any) -> Any:
    return np.asarray((column == value).fillna(False), dtype=bool)
