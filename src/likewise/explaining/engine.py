"""What every engine is asked and what it answers: the cheapest change that gives the favourable decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from likewise.core.checks import BoolArray, FloatArray
from likewise.explaining.moves import Moves

Status: TypeAlias = Literal["proved", "bracket", "none", "estimate", "not found"]
# Whether the model itself gives rows of values the favourable decision.
Ask: TypeAlias = Callable[[FloatArray], BoolArray]


@dataclass(frozen=True, eq=False)
class Least:
    """The cheapest change that was found for one person.

    Status "proved": nothing cheaper gives the favourable decision. "bracket": nothing cheaper than `lower` does. "none":
    it is proved that no change does. "estimate" and "not found": what a search of other rows found, or that it found
    nothing; that proves nothing, and `lower` is 0.
    """

    status: Status
    cost: float
    lower: float
    values: FloatArray | None
    looked: int = 0

    @property
    def settled(self) -> bool:
        """Whether its cost is the least one, or there is no change at all."""
        return self.status in ("proved", "none")


@dataclass(frozen=True)
class Effort:
    """How long an engine may try for one person: in parts of the domain, and in CPU seconds."""

    regions: int = 200_000
    seconds: float = 2.0


class Engine(Protocol):
    """One family of models.

    `ask` is for rows so near the line that rounding decides. What an engine returns is asked of the model by its caller, who
    believes none of it if the model decides otherwise.
    """

    moves: Moves

    def least(
        self, own: FloatArray, fixed: BoolArray, ask: Ask, effort: Effort, *, fewest: bool = False
    ) -> Least:
        """The cheapest change of one row of values (P,) that leaves `fixed` columns alone.

        With `fewest` as few columns as possible change, and among those changes the cheapest counts; `cost` and `lower`
        then include `surcharge` for every column changed.
        """
