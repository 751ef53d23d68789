"""A causal graph over the columns of a table: read from a dict, a networkx graph or DOT text, and checked."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from likewise.core.errors import FormatError, InputError, bad_parameter, did_you_mean, listed, require
from likewise.core.files import read_file

# The arrows of a graph in DOT, the language of Graphviz: plain text is read here, all else by pydot.


Edge = tuple[str, str]

MAX_CHARACTERS = 10_000_000
MAX_ARROWS = 1_000_000

_QUOTED = r'"[^"\\]*"'
_NAME = rf"(?:{_QUOTED}|(?:[\w.]|-(?![->]))+)"
_SIDE = rf"(?:{_NAME}|\{{[\s;,]*(?:{_NAME}[\s;,]+)*(?:{_NAME})?\}})"
_GAP = re.compile(r"(?:[\s;]|//[^\n]*|\#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_DIGRAPH = re.compile(rf"(?:strict\s+)?digraph\s*{_NAME}?\s*\{{", re.IGNORECASE)
_STATEMENT = re.compile(
    rf'{_NAME}\s*=\s*{_NAME}|(?P<chain>{_SIDE}(?:\s*->\s*{_SIDE})*)(?:\s*\[(?:[^"\]<]|{_QUOTED})*\])?'
)


def parse_dot(text: str, *, owner: str = "graph") -> tuple[Edge, ...]:
    """Read the arrows of DOT text: ``a -> b -> c;``, ``a -> {b c}``, names with spaces or dashes in quotes.

    Parameters
    ----------
    text : str
        With or without ``digraph {…}`` around it. Attributes (``[color=red]``, ``rankdir=LR``) and comments are passed
        over; nodes without arrows are not part of the graph. Subgraphs, ports and labels in HTML need pydot
        (``likewise[graphs]``).
    owner : str
        For error messages.

    Returns
    -------
    tuple of (cause, effect)

    Examples
    --------
    >>> parse_dot('digraph { sex -> {job "hours-per-week"}; age -> job [color=red]; }')
    (('sex', 'job'), ('sex', 'hours-per-week'), ('age', 'job'))
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"{owner}: the DOT text has {len(text):,} characters; a graph over columns needs no more than "
            f"{MAX_CHARACTERS:,}."
        )
    edges: list[Edge] = []
    text = text.removeprefix("\ufeff")
    chains = _plain_chains(text)
    if chains is None:
        _walk(_read_with_pydot(text, owner), edges, owner)
    else:
        for sides in chains:
            for causes, effects in itertools.pairwise(sides):
                _connect(causes, effects, edges, owner)
    return tuple(edges)


def _plain_chains(text: str) -> list[list[list[str]]] | None:
    """Names on the sides of the arrows, chain by chain; None if the text is more than plain DOT."""
    at = _GAP.match(text).end()  # type: ignore[union-attr]
    opened = _DIGRAPH.match(text, at)
    at = opened.end() if opened else at
    chains = []
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        found = _STATEMENT.match(text, at)
        if found is None:
            break
        at = found.end()
        if found["chain"]:
            sides = [re.findall(_NAME, side) for side in re.findall(_SIDE, found["chain"])]
            if any(name.lower() == "subgraph" for side in sides for name in side):
                return None
            chains.append([[name.strip('"') for name in side] for side in sides])
    if opened:
        if not text.startswith("}", at):
            return None
        at = _GAP.match(text, at + 1).end()  # type: ignore[union-attr]
    return chains if at == len(text) else None


def _read_with_pydot(text: str, owner: str) -> Any:
    pydot: Any = require("pydot", extra="graphs", why=f"{owner}: DOT text of more than names and arrows")
    plain = re.sub(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', "", text, flags=re.DOTALL)
    if "--" in plain:
        raise InputError(f"{owner}: the DOT text has an undirected edge (--). Write cause -> effect.")
    if "digraph" not in plain.lower():
        text, plain = f"digraph {{ {text} }}", f"{{ {plain} }}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydot calls what newer versions of pyparsing deprecate
            found = pydot.graph_from_dot_data(text)
    except RecursionError:
        found = None
    # pydot passes over what stands behind the graph.
    whole = plain.count("{") == plain.count("}") and plain.rstrip().endswith("}") and "/*" not in plain
    if not found or not whole:
        why = said.getvalue().strip().rpartition("\n")[2] or "its braces or comments do not match"
        raise InputError(f"{owner}: the DOT text cannot be read: {why}. Write digraph {{ a -> b; }}.")
    if len(found) > 1:
        raise InputError(f"{owner}: the DOT text has {len(found)} graphs. Write one digraph {{ ... }}.")
    return found[0]


def _walk(graph: Any, edges: list[Edge], owner: str) -> list[str]:
    """Add the arrows of a pydot graph and its subgraphs; the names in it."""
    names = [_unquoted(node.get_name()) for node in graph.get_nodes()]
    for part in graph.get_subgraphs():
        names += _walk(part, edges, owner)
    for edge in graph.get_edges():
        sides = [
            [_unquoted(side)] if isinstance(side, str) else _walk(_subgraph(side), edges, owner)
            for side in (edge.get_source(), edge.get_destination())
        ]
        _connect(sides[0], sides[1], edges, owner)
        names += [name for side in sides for name in side]
    return list(dict.fromkeys(names))


def _subgraph(content: Any) -> Any:
    import pydot

    return pydot.Subgraph(obj_dict=content)


def _unquoted(name: str) -> str:
    """A name without its port and quotes."""
    quoted = re.match(r'"((?:[^"\\]|\\.)*)"', name, re.DOTALL)
    return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL) if quoted else name.partition(":")[0]


def _connect(causes: Sequence[str], effects: Sequence[str], edges: list[Edge], owner: str) -> None:
    if len(edges) + len(causes) * len(effects) > MAX_ARROWS:
        raise InputError(f"{owner}: the DOT text has more than {MAX_ARROWS:,} arrows.")
    edges += itertools.product(causes, effects)


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
        causes = self._causes()
        sorter = TopologicalSorter({name: causes.get(name, ()) for name in place})
        try:
            sorter.prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise InputError(f"graph: has a cycle: {cycle}. Remove one of its arrows.") from None
        placed: list[str] = []
        while sorter.is_active():
            # In rounds, and in each as they were named.
            ready = sorted(sorter.get_ready(), key=place.__getitem__)
            placed += ready
            sorter.done(*ready)
        return tuple(placed)

    def _causes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for cause, effect in self.edges:
            found.setdefault(effect, []).append(cause)
        return found


def read_graph(graph: Any, columns: Sequence[str], *, owner: str) -> ColumnGraph:
    """Read a graph in any of the ways it can be written, and check it against the columns of a table.

    Parameters
    ----------
    graph : mapping, networkx.DiGraph, str, path or ColumnGraph
        ``{"sex": ["job", "pay"]}`` (cause to effects); a directed networkx graph; DOT text ``digraph {sex -> job}``;
        or the path of a DOT file.
    columns : sequence of str
        What the graph may name.
    owner : str
        For error messages.

    Examples
    --------
    >>> read_graph({"sex": ["job"]}, ["sex", "job"], owner="twins").edges
    (('sex', 'job'),)
    >>> read_graph("digraph { sex -> jop }", ["sex", "job"], owner="twins")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: twins: 'graph' names 'jop', which is not a column of the table (did you mean 'job'?). Its columns: sex, job.
    """
    found = ColumnGraph(tuple(dict.fromkeys(_edges(graph, owner))))
    known = set(columns)
    for name in dict.fromkeys(name for edge in found.edges for name in edge):
        if name not in known:
            raise InputError(
                f"{owner}: 'graph' names {name!r}, which is not a column of the table{did_you_mean(name, columns)}. "
                f"Its columns: {listed(columns, 30)}."
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
    data = read_file(graph, owner=owner, remedy="Pass a DOT file or DOT text.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{owner}: the graph {str(graph)!r} is not UTF-8 text: {error}.") from error


def _bad(owner: str, got: object) -> InputError:
    return bad_parameter(
        owner,
        "graph",
        "a dict of cause -> effects, a networkx.DiGraph, DOT text or a DOT file",
        got,
        'For example graph={"sex": ["occupation", "hours-per-week"]}.',
    )
