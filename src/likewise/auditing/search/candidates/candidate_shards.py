"""A candidate set in shards: compared with one shard at a time, so that memory is bounded by the largest shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.problem.coordinates import Views
from likewise.auditing.search.candidates.candidate_rows import Candidates
from likewise.auditing.search.candidates.candidate_search import CandidateSearch
from likewise.auditing.support.frontier import Frontier

__all__ = ["ShardedCandidates", "ShardedFrontier", "cut_pool", "plan_shards", "search_shards"]


@dataclass(frozen=True, eq=False)
class ShardedCandidates:
    """Candidates of several shards, numbered one shard after the other."""

    shards: tuple[Candidates, ...]

    def __len__(self) -> int:
        return sum(len(shard) for shard in self.shards)

    def take(self, index: Any) -> Any:
        """Make some candidates, as the kind of table the audited rows are."""
        number = np.asarray(index, dtype=np.int64)
        if len(self.shards) == 1:
            return self.shards[0].take(number)
        ends = np.cumsum([len(shard) for shard in self.shards])
        home = np.searchsorted(ends, number, side="right")
        made, places = [], []
        for k, shard in enumerate(self.shards):
            here = np.flatnonzero(home == k)
            if len(here):
                made.append(shard.take(number[here] - (ends[k] - len(shard))))
                places.append(here)
        order = np.argsort(np.concatenate(places), kind="stable")
        return _stacked(made, order)


@dataclass(frozen=True, eq=False)
class ShardedFrontier:
    """The frontier of some rows over all shards, and the candidates that its corners name."""

    frontier: Frontier
    candidates: ShardedCandidates


def cut_pool(pool: Any, rows: int) -> tuple[Any, ...]:
    """Cut a table into shards of at most `rows` rows.

    Examples
    --------
    >>> import pandas as pd
    >>> [len(shard) for shard in cut_pool(pd.DataFrame({"a": range(5)}), 2)]
    [2, 2, 1]
    """
    return tuple(
        pool.iloc[start : start + rows].reset_index(drop=True) for start in range(0, len(pool), rows)
    )


def search_shards(
    search: CandidateSearch, views: Views, rows: Any, y: Any, pool: Sequence[Any]
) -> ShardedFrontier:
    """Compare rows with their own twins and with every shard of the pool.

    Parameters
    ----------
    search : CandidateSearch
    views : Views
    rows, y
        The audited rows and their labels.
    pool : sequence of tables
        The shards.

    Returns
    -------
    ShardedFrontier
        The same frontier as over the pool in one piece.
    """
    frontier, plans, offset = None, [], 0
    for shard in pool:
        found = search.run(views.model, rows, y, metric=views.metric, domain=views.domain, pool=shard)
        frontier = found.frontier if frontier is None else frontier.merge(found.frontier, offset=offset)
        plans.append(found.candidates)
        offset += len(found.candidates)
    assert frontier is not None  # a pool has at least one shard
    return ShardedFrontier(frontier, ShardedCandidates(tuple(plans)))


def plan_shards(search: CandidateSearch, views: Views, rows: Any, pool: Sequence[Any]) -> ShardedCandidates:
    """Return the candidates that `search_shards` compares rows with, without asking the model anything."""
    return ShardedCandidates(
        tuple(search.plan(views.model, rows, metric=views.metric, domain=views.domain, pool=s) for s in pool)
    )


def _stacked(tables: Sequence[Any], order: Any) -> Any:
    import pandas as pd

    if isinstance(tables[0], pd.DataFrame):
        return pd.concat(tables, ignore_index=True).iloc[order].reset_index(drop=True)
    return np.concatenate(tables)[order]
