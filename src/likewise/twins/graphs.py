"""A causal graph over the columns of a table: read from a dict, a networkx graph or DOT text, and checked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.core.errors import InputError, bad_parameter
from likewise.twins.dot_text import MAX_CHARACTERS, Edge, parse_dot

__all__ = ["ColumnGraph", "read_graph"]


@dataclass(frozen=True)
class ColumnGraph:
    """Which column is a cause of which; without cycles.

    Parameters
    ----------
    edges : tuple of (cause, effect)

    Examples
    --------
    >>> graph = ColumnGraph((("sex", "job"), ("age", "job"), ("job", "pay")))
    >>> graph.downstream("sex"), graph.parents("job")
    (('job', 'pay'), ('sex', 'age'))
    """

    edges: tuple[Edge, ...] = ()

    def parents(self, column: str) -> tuple[str, ...]:
        """Columns that are causes of one, in the order they were named."""
        return tuple(cause for cause, effect in self.edges if effect == column)

    def downstream(self, column: str) -> tuple[str, ...]:
        """Columns that follow from one, every cause before its effects."""
        reached = {column}
        order = self.order()
        causes = self._causes()
        for name in order:
            if not reached.isdisjoint(causes.get(name, ())):
                reached.add(name)
        return tuple(name for name in order if name in reached and name != column)

    def order(self) -> tuple[str, ...]:
        """All columns of the graph, every cause before its effects; an error names a cycle."""
        place = {name: at for at, name in enumerate(dict.fromkeys(n for edge in self.edges for n in edge))}
        missing, effects = dict.fromkeys(place, 0), {name: list[str]() for name in place}
        for cause, effect in self.edges:
            missing[effect] += 1
            effects[cause].append(effect)
        placed: list[str] = []
        free = [name for name in place if not missing[name]]
        while free:
            placed += free
            for effect in (effect for cause in free for effect in effects[cause]):
                missing[effect] -= 1
            # In rounds, and in each as they were named.
            after = {effect for cause in free for effect in effects[cause] if not missing[effect]}
            free = sorted(after, key=place.__getitem__)
        if len(placed) < len(place):
            left = [name for name in place if missing[name]]
            cycle = " -> ".join(self._cycle(left))
            raise InputError(f"graph: has a cycle: {cycle}. Remove one of its arrows.")
        return tuple(placed)

    def _causes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for cause, effect in self.edges:
            found.setdefault(effect, []).append(cause)
        return found

    def _cycle(self, left: Sequence[str]) -> list[str]:
        # Whoever is left has a cause that is left: walking back must come to a column twice.
        causes, among = self._causes(), set(left)
        walk = {left[0]: None}
        while (now := next(c for c in causes[next(reversed(walk))] if c in among)) not in walk:
            walk[now] = None
        names = list(walk)
        return [now, *reversed(names[names.index(now) :])]


def read_graph(graph: Any, columns: Sequence[str], *, owner: str) -> ColumnGraph:
    """Read a graph in any of the ways it can be written, and check it against the columns of a table.

    Parameters
    ----------
    graph : mapping, networkx.DiGraph, str, path or ColumnGraph
        ``{"sex": ["job", "pay"]}`` (cause to effects); a directed networkx graph; DOT text ``digraph {sex -> job}``;
        or the path of a DOT file.
    columns : sequence of str
        What the graph may speak of.
    owner : str
        For error messages.

    Examples
    --------
    >>> read_graph({"sex": ["job"]}, ["sex", "job"], owner="twins").edges
    (('sex', 'job'),)
    >>> read_graph("digraph { sex -> jop }", ["sex", "job"], owner="twins")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: twins: 'graph' names 'jop', which is no column of the table (did you mean 'job'?). Its columns: sex, job.
    """
    found = ColumnGraph(tuple(dict.fromkeys(_edges(graph, owner))))
    known = set(columns)
    for name in dict.fromkeys(name for edge in found.edges for name in edge):
        if name not in known:
            close = difflib.get_close_matches(name, [str(c) for c in columns], n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(
                f"{owner}: 'graph' names {name!r}, which is no column of the table{meant}. "
                f"Its columns: {', '.join(map(str, columns[:30]))}."
            )
    found.order()
    return found


def _edges(graph: Any, owner: str) -> Iterator[Edge]:
    if isinstance(graph, ColumnGraph):
        yield from graph.edges
    elif isinstance(graph, Mapping):
        for cause, effects in graph.items():
            if isinstance(effects, str) or not isinstance(effects, Iterable):
                raise _bad(owner, f"{effects!r} as effects of {cause!r}")
            yield from ((str(cause), str(effect)) for effect in effects)
    elif hasattr(graph, "edges") and hasattr(graph, "is_directed"):
        if not graph.is_directed():
            raise _bad(owner, "an undirected graph")
        yield from ((str(cause), str(effect)) for cause, effect in graph.edges())
    elif isinstance(graph, (str, Path)):
        yield from parse_dot(_text(graph, owner), owner=owner)
    else:
        raise _bad(owner, type(graph).__name__)


def _text(graph: str | Path, owner: str) -> str:
    if isinstance(graph, str) and ("->" in graph or "{" in graph or not graph.strip()):
        return graph
    try:
        with Path(graph).open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1)  # one more, so that too many are seen to be
    except (OSError, ValueError) as error:
        raise InputError(
            f"{owner}: cannot read the graph {str(graph)!r}: {error}. Pass a DOT file or DOT text."
        ) from error


def _bad(owner: str, got: object) -> InputError:
    return bad_parameter(
        owner,
        "graph",
        allowed="a dict of cause -> effects, a networkx.DiGraph, DOT text or a DOT file",
        got=got,
        remedy='For example graph={"sex": ["occupation", "hours-per-week"]}.',
    )
