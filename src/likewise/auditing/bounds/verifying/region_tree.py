"""The first cuts of a domain as a tree: what is settled below each, so that a person can read where decisions flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.auditing.bounds.regions import Regions

__all__ = ["Branch", "RegionTree"]

_DEPTH = 6


@dataclass(eq=False)
class Branch:
    """A region near the root, and what is settled of the domain within it.

    Parameters
    ----------
    low, high, allowed : arrays
        The region.
    volume, proved, flips : float
        Shares of the domain.
    """

    low: Any
    high: Any
    allowed: Any
    volume: float
    proved: float = 0.0
    flips: float = 0.0


class RegionTree:
    """Branches by number; a region's branch is the path of the numbers above it."""

    def __init__(self) -> None:
        self.branches: list[Branch] = []

    def below(self, path: tuple[int, ...], regions: Regions, i: int, volume: float) -> tuple[int, ...]:
        """Return the path of a new region under another; below some depth that of the other."""
        if len(path) > _DEPTH:
            return path
        self.branches.append(Branch(regions.low[i], regions.high[i], regions.allowed[i], float(volume)))
        return (*path, len(self.branches) - 1)

    def add(self, path: tuple[int, ...], proved: float, flips: float) -> None:
        """Add what is settled to all branches of a path."""
        for number in path:
            branch = self.branches[number]
            branch.proved += proved
            branch.flips += flips

    def worst(self, count: int = 10) -> list[Branch]:
        """Return branches with the largest share of rows that flip, none within another, none with hardly any."""
        least = 0.02 * self.branches[0].flips
        within = sorted(
            (b for b in self.branches if b.flips > max(least, 1e-12)),
            key=lambda b: (-b.flips / b.volume, -b.volume),
        )
        chosen: list[Branch] = []
        for branch in within:
            if len(chosen) < count and not any(_overlap(branch, other) for other in chosen):
                chosen.append(branch)
        return sorted(chosen, key=lambda b: -b.flips)


def _overlap(one: Branch, other: Branch) -> bool:
    numbers = bool(((one.low <= other.high) & (other.low <= one.high)).all())
    if not numbers or not len(one.allowed):
        return numbers
    # Branches are parts of one tree: they overlap where one holds the other.
    both = one.allowed & other.allowed
    return bool((both == one.allowed).all() or (both == other.allowed).all())
