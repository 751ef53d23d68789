"""A causal graph over the columns of a table: read from a dict, a networkx graph or DOT text, and checked."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.core.errors import InputError, bad_parameter

__all__ = ["ColumnGraph", "parse_dot", "read_graph"]

Edge = tuple[str, str]

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|(->|--)|([{}\[\];=,])|((?:[^\s"{}\[\];=,\-]|-(?![->]))+))', re.DOTALL
)
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|#[^\n]*|/\*.*?\*/', re.DOTALL)


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
        reached, waiting = {column}, [column]
        while waiting:
            now = waiting.pop()
            more = [effect for cause, effect in self.edges if cause == now and effect not in reached]
            reached.update(more)
            waiting += more
        return tuple(name for name in self.order() if name in reached and name != column)

    def order(self) -> tuple[str, ...]:
        """All columns of the graph, every cause before its effects; an error names a cycle."""
        names = list(dict.fromkeys(name for edge in self.edges for name in edge))
        placed: list[str] = []
        while len(placed) < len(names):
            free = [n for n in names if n not in placed and all(p in placed for p in self.parents(n))]
            if not free:
                raise InputError(
                    f"graph: has a cycle: {' -> '.join(self._cycle(names, placed))}. Remove one of its arrows."
                )
            placed += free
        return tuple(placed)

    def _cycle(self, names: Sequence[str], placed: Sequence[str]) -> list[str]:
        # Whoever is left has a cause that is left: walking back must come to a column twice.
        walk = [next(n for n in names if n not in placed)]
        while walk[-1] not in walk[:-1]:
            walk.append(next(p for p in self.parents(walk[-1]) if p not in placed))
        return walk[walk.index(walk[-1]) :][::-1]


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
    for name in dict.fromkeys(name for edge in found.edges for name in edge):
        if name not in columns:
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
        return Path(graph).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
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


def parse_dot(text: str, *, owner: str = "graph") -> tuple[Edge, ...]:
    """Read the arrows of DOT text: ``a -> b -> c;``, ``a -> {b c}``, names with spaces or dashes in quotes.

    Parameters
    ----------
    text : str
        With or without ``digraph {…}`` around it. Attributes (``[color=red]``, ``rankdir=LR``) and comments are passed
        over; nodes without arrows are none of the graph.
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
    tokens = list(_tokens(text, owner))
    words = [word for kind, word in tokens[:3] if kind == "word"]
    if words and words[0].lower() == "graph" and ("mark", "{") in tokens[:3]:
        raise InputError(
            f"{owner}: the DOT text is an undirected graph. Write digraph {{ cause -> effect }}."
        )
    start = next((i for i, t in enumerate(tokens) if t == ("mark", "{")), None)
    if words and words[0].lower() in ("digraph", "strict") and start is not None:
        if tokens[-1] != ("mark", "}"):
            raise InputError(f"{owner}: the DOT text has no closing brace. Write digraph {{ ... }}.")
        tokens = tokens[start + 1 : -1]
    edges: list[Edge] = []
    for statement in _statements(tokens, owner):
        groups = _groups(statement, owner)
        for causes, effects in itertools.pairwise(groups):
            edges += [(cause, effect) for cause in causes for effect in effects]
    return tuple(edges)


Token = tuple[str, str]


def _tokens(text: str, owner: str) -> Iterator[Token]:
    text = _COMMENT.sub(lambda found: found.group(1) or " ", text)
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise InputError(
                f"{owner}: the DOT text cannot be read at {text[at : at + 30].strip()!r}. Write a -> b;"
            )
        at = found.end()
        quoted, arrow, mark, word = found.groups()
        if arrow == "--":
            raise InputError(f"{owner}: the DOT text has an undirected edge (--). Write cause -> effect.")
        if quoted is not None:
            yield "word", re.sub(r"\\(.)", r"\1", quoted)
        elif arrow:
            yield "arrow", arrow
        elif mark:
            yield "mark", mark
        else:
            yield "word", word


def _statements(tokens: Sequence[Token], owner: str) -> Iterator[list[Token]]:
    """Cut at semicolons and before a word that follows a word, as at a line's end; brackets with what is in them are left out."""
    statement: list[Token] = []
    depth = braces = 0
    for token in tokens:
        if token == ("mark", "["):
            depth += 1
        elif token == ("mark", "]"):
            depth -= 1
        elif depth == 0:
            braces += {("mark", "{"): 1, ("mark", "}"): -1}.get(token, 0)
            ends = token == ("mark", ";") and not braces
            follows = bool(statement) and statement[-1][0] == "word" and token[0] == "word" and not braces
            closed = bool(statement) and statement[-1] == ("mark", "}") and token[0] == "word" and not braces
            if ends or follows or closed:
                yield statement
                statement = []
            if not ends:
                statement.append(token)
    if depth or braces:
        raise InputError(f"{owner}: the DOT text has brackets that do not match. Write a -> {{b c}};")
    yield statement


def _groups(statement: Sequence[Token], owner: str) -> list[list[str]]:
    """The names between the arrows of one statement: [[a], [b, c]] for ``a -> {b c}``."""
    if ("arrow", "->") not in statement:
        return []
    groups: list[list[str]] = [[]]
    for kind, word in statement:
        if kind == "arrow":
            groups.append([])
        elif kind == "word":
            groups[-1].append(word)
    if not all(groups):
        raise InputError(f"{owner}: an arrow of the DOT text leads from or to nothing. Write a -> b;")
    return groups
