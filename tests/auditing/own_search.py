"""A search that does not come with the library: people as they would be at other ages, in thirty lines."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from likewise.auditing.search.contract import Found, Search


@dataclass(frozen=True)
class OtherAges(Search):
    """Try every person at a few ages, and leave everything else as it is."""

    name: ClassVar[str] = "other ages"
    in_parts: ClassVar[bool] = True

    ages: tuple[int, ...] = (20, 40, 60)

    def why_not(self, problem):
        known = problem.coordinates.encoding
        return None if known is not None and "age" in known.by_name else "the table has no column 'age'"

    def extend(self, problem, support, eps, budget):
        column = problem.coordinates.encoding.by_name["age"]
        for age in self.ages:
            x = problem.X.copy()
            x[:, column.start] = (age - column.mean) / column.scale
            support = support.with_rows(x, np.arange(problem.n))
        return Found(support)
