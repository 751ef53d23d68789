"""A causal graph over the columns of a table: read from a dict, a networkx graph or DOT text, and checked."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from likewise.core.errors import InputError, bad_parameter

# The arrows of a graph in DOT, the language of Graphviz: read, never run, and refused where they are too
# many.


Edge = tuple[str, str]

MAX_CHARACTERS = 10_000_000
MAX_ARROWS = 1_000_000
MAX_DEPTH = 50

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    r"(?P<gap>\s+|//[^\n]*|(?<!\S)\#[^\n]*|/\*.*?\*/)"
    rf"|(?P<quoted>{_QUOTED}(?:\s*\+\s*{_QUOTED})*)"
    r"|(?P<arrow>->|--)"
    r"|(?P<mark>[{}\[\];=,:<]|/\*)"
    r'|(?P<word>(?:[^\s"{}\[\];=,:<>\-]|-(?![->]))+)',
    re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str

    def says(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


_END = _Token("end", "")


def parse_dot(text: str, *, owner: str = "graph") -> tuple[Edge, ...]:
    """Read the arrows of DOT text: ``a -> b -> c;``, ``a -> {b c}``, names with spaces or dashes in quotes.

    Parameters
    ----------
    text : str
        With or without ``digraph {…}`` around it. Attributes (``[color=red]``, ``rankdir=LR``), ports (``a:e``) and
        comments are passed over; the names in a subgraph stand together; nodes without arrows are none of the graph.
    owner : str
        For error messages.

    Returns
    -------
    tuple of (cause, effect)

    Examples
    --------
    >>> parse_dot('digraph { sex -> {job "hours-per-week"}; age:e -> job [color=red]; }')
    (('sex', 'job'), ('sex', 'hours-per-week'), ('age', 'job'))
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"{owner}: the DOT text has {len(text):,} characters; a graph over columns needs no more than "
            f"{MAX_CHARACTERS:,}."
        )
    return _Reader(_tokens(text.removeprefix("\ufeff"), owner), owner).read()


def _tokens(text: str, owner: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InputError(
                f"{owner}: the DOT text cannot be read at {text[at : at + 30].strip()!r}. Write a -> b;"
            )
        kind, word = str(found.lastgroup), found.group()
        at = found.end()
        if word == "--":
            raise InputError(f"{owner}: the DOT text has an undirected edge (--). Write cause -> effect.")
        if word == "/*":
            raise InputError(f"{owner}: the DOT text has a comment that is never closed. Write /* ... */.")
        if word == "<":
            at = _after_html(text, at, owner)
            tokens.append(_Token("html", ""))
        elif kind == "quoted":
            parts = re.findall(_QUOTED, word, re.DOTALL)
            tokens.append(_Token("name", "".join(_unquoted(part) for part in parts)))
        elif kind != "gap":
            tokens.append(_Token(kind, word))
    return tokens


def _unquoted(part: str) -> str:
    return re.sub(r"\\(.)", r"\1", part[1:-1].replace("\\\n", ""), flags=re.DOTALL)


def _after_html(text: str, at: int, owner: str) -> int:
    """Where a label in angle brackets ends; the first one is open already."""
    depth = 1
    for found in re.compile("[<>]").finditer(text, at):
        depth += 1 if found.group() == "<" else -1
        if not depth:
            return found.end()
    raise InputError(f"{owner}: the DOT text has a '<' that is never closed. Put names into quotes.")


class _Reader:
    """Reads statement by statement, as the grammar of DOT has them."""

    def __init__(self, tokens: Sequence[_Token], owner: str) -> None:
        self.tokens, self.owner = tokens, owner
        self.at = 0
        self.edges: list[Edge] = []

    def read(self) -> tuple[Edge, ...]:
        if self.now.says("strict"):
            self.at += 1
        if self.now.says("graph") and (self.ahead(1) == "{" or self.ahead(2) == "{"):
            self.fail("is an undirected graph. Write digraph { cause -> effect }.")
        if self.now.says("digraph"):
            self.at += 1
            if self.now.kind in ("word", "name", "html"):
                self.at += 1
            self.braces(depth=0)
        else:
            self.statements(depth=0)
        if self.now != _END:
            self.fail(f"goes on with {self.now.text!r} where it should end. Write one digraph {{ ... }}.")
        return tuple(self.edges)

    @property
    def now(self) -> _Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def ahead(self, steps: int) -> str:
        return self.tokens[self.at + steps].text if self.at + steps < len(self.tokens) else ""

    def takes(self, mark: str) -> bool:
        if self.now != _Token("mark", mark):
            return False
        self.at += 1
        return True

    def fail(self, words: str) -> NoReturn:
        raise InputError(f"{self.owner}: the DOT text {words}")

    def braces(self, depth: int) -> dict[str, None]:
        if depth > MAX_DEPTH:
            self.fail(f"has more than {MAX_DEPTH} braces in each other. Write a -> {{b c}};")
        if not self.takes("{"):
            self.fail("has no opening brace. Write digraph { ... }.")
        names = self.statements(depth)
        if not self.takes("}"):
            self.fail("has no closing brace where one is due. Write digraph { ... }.")
        return names

    def statements(self, depth: int) -> dict[str, None]:
        """Read up to a closing brace or the end; the names, each once and in order."""
        names: dict[str, None] = {}
        while self.now != _END and self.now != _Token("mark", "}"):
            if not self.takes(";") and not (depth and self.takes(",")):
                names |= self.statement(depth)
        return names

    def statement(self, depth: int) -> dict[str, None]:
        if self.now.says("graph", "node", "edge") and self.ahead(1) == "[":
            self.at += 1
            self.attributes()
            return {}
        if self.now.kind in ("word", "name") and self.ahead(1) == "=":
            self.at += 2
            self.value()
            return {}
        groups = [self.operand(depth)]
        while self.now.kind == "arrow":
            self.at += 1
            groups.append(self.operand(depth))
        self.attributes()
        if len(groups) > 1:
            self.connect(groups)
        return {name: None for group in groups for name in group}

    def connect(self, groups: Sequence[dict[str, None]]) -> None:
        if not all(groups):
            self.fail("has an arrow that leads from or to nothing. Write a -> b;")
        pairs = list(itertools.pairwise(groups))
        if len(self.edges) + sum(len(causes) * len(effects) for causes, effects in pairs) > MAX_ARROWS:
            self.fail(f"has more than {MAX_ARROWS:,} arrows.")
        self.edges += [(cause, effect) for causes, effects in pairs for cause in causes for effect in effects]

    def operand(self, depth: int) -> dict[str, None]:
        """What stands at one end of an arrow: a name, or names in braces."""
        if self.now.says("subgraph") and (self.ahead(1) == "{" or self.ahead(2) == "{"):
            self.at += 1
            if self.now.kind in ("word", "name"):
                self.at += 1
        if self.now == _Token("mark", "{"):
            return self.braces(depth + 1)
        if self.now.kind not in ("word", "name"):
            if self.now.kind in ("arrow", "end") or self.now.text in (";", "}"):
                self.fail("has an arrow that leads from or to nothing. Write a -> b;")
            self.fail(f"has {self.now.text or '<'!r} where a name is due. Write a -> {{b c}};")
        name = self.now.text
        self.at += 1
        while self.takes(":"):
            self.value()
        return {name: None}

    def attributes(self) -> None:
        """Pass over ``[color=red, label="a -> b"]``."""
        while self.takes("["):
            while not self.takes("]"):
                if self.now == _END:
                    self.fail("has brackets that do not match. Write a -> b [color=red];")
                self.at += 1

    def value(self) -> None:
        if self.now.kind not in ("word", "name", "html"):
            self.fail(f"has {self.now.text!r} where a value is due. Write name=value;")
        self.at += 1


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
