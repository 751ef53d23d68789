"""A causal graph in every way it can be written, and what is wrong with one that cannot be used."""

from __future__ import annotations

import sys

import networkx as nx
import pytest

import likewise as lw
from likewise.counterfactuals import ConsequenceTwins, parse_dot, read_graph

COLUMNS = ["sex", "age", "job", "hours-per-week", "pay"]
EDGES = (("sex", "job"), ("sex", "hours-per-week"), ("age", "job"), ("job", "pay"))
DOT = """
// who causes what
digraph people {
  rankdir=LR; node [shape=box]
  sex -> {job "hours-per-week"}   # two effects
  age -> job -> pay [label="a -> b; c"]
  /* alone */ lonely
}
"""


def test_dict_networkx_dot_and_file_are_the_same_graph(tmp_path):
    (tmp_path / "graph.dot").write_text(DOT)
    nested = {"sex": ["job", "hours-per-week"], "age": ["job"], "job": ["pay"]}
    for graph in (nested, nx.DiGraph(list(EDGES)), DOT, tmp_path / "graph.dot", str(tmp_path / "graph.dot")):
        found = read_graph(graph, COLUMNS, owner="x")
        assert set(found.edges) == set(EDGES)
        assert found.downstream("sex") in (("job", "hours-per-week", "pay"), ("hours-per-week", "job", "pay"))


def test_causes_come_before_effects_whatever_the_order_of_the_arrows():
    graph = read_graph({"job": ["pay"], "age": ["job"], "sex": ["job"]}, COLUMNS, owner="x")
    order = graph.order()
    assert all(order.index(a) < order.index(b) for a, b in graph.edges)


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("digraph { sex:e -> job:w:n }", "sex>job"),
        ('strict DiGraph "a name" { "sex":e -> "job" }', "sex>job"),
        ('digraph { subgraph cluster_0 { label="x"; sex -> job; pay } age -> job }', "sex>job age>job"),
        ("digraph { subgraph who { sex; age } -> job }", "sex>job age>job"),
        ("digraph { subgraph s {sex} -> subgraph t {job -> pay} }", "job>pay sex>job sex>pay"),
        ("digraph { {sex, age} -> job {job} -> pay }", "sex>job age>job job>pay"),
        (
            "digraph { sex -> job; sex -> job [x=1]; subgraph { age -> {job pay} } }",
            "age>job age>pay sex>job sex>job",
        ),
        ("digraph { label=<<b>x -&gt; y</b>>; sex -> job [label=<<i>[</i>>] age -> job }", "sex>job age>job"),
        ('digraph { "s" + "ex" -> job }', "sex>job"),
        ('digraph { edge [color="#ff0000"]; sex -> job }', "sex>job"),
        ("digraph { hours-per-week -> pay }", "hours-per-week>pay"),
        ("\ufeffsex -> job\n# a line\nage -> job // the rest", "sex>job age>job"),
        ('digraph { "edge" -> "node" }', "edge>node"),
    ],
)
def test_dot_is_read_as_graphviz_reads_it(text, edges):
    assert parse_dot(text) == tuple(tuple(edge.split(">")) for edge in edges.split())


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ({"age": ["sex"], "sex": ["job"], "job": ["pay"], "pay": ["sex"]}, "cycle: sex -> job -> pay -> sex"),
        ({"sex": ["sex"]}, "cycle: sex -> sex"),
        ({"sex": ["jop"]}, "'jop'.*did you mean 'job'"),
        ("graph { sex -- job }", "undirected"),
        ("digraph { sex -- job }", "undirected"),
        ("digraph { sex -> }", "cannot be read"),
        ("digraph { sex -> job", "cannot be read"),
        ("digraph { sex -> {job }", "cannot be read"),
        ("digraph { sex -> job } }", "comments do not match"),
        ("digraph { sex -> job } digraph { age -> job }", "2 graphs"),
        ("digraph { sex -> job [color=red; }", "cannot be read"),
        ("digraph { sex -> job } /* never closed", "cannot be read"),
        ("digraph { sex -> job, pay }", "cannot be read"),
        ("digraph { sex -> job } age -> job", "cannot be read"),
        ("digraph { sex -> " + "{" * 10_000, "cannot be read"),
        (
            "digraph { {"
            + " ".join(f"c{i}" for i in range(1500))
            + "} -> {"
            + " ".join(f"c{i}" for i in range(1500))
            + "} }",
            "1,000,000 arrows",
        ),
        ("->" + " " * 10_000_000, "10,000,000"),
        (nx.Graph([("sex", "job")]), "undirected"),
        ({"sex": "job"}, "'job' as effects"),
        (3, "got int"),
        ("nowhere.dot", "there is no file"),
    ],
)
def test_a_graph_that_cannot_be_used_says_why(graph, words):
    with pytest.raises(lw.InputError, match=words):
        read_graph(graph, COLUMNS, owner="x")


def test_an_attribute_without_effects_is_refused_and_an_empty_graph_is_not():
    import pandas as pd

    people = pd.DataFrame({"sex": ["F", "M"] * 10, "job": ["a", "b"] * 10, "age": range(20)})
    with pytest.raises(lw.InputError, match="no arrow leaves it"):
        ConsequenceTwins("sex", graph={"age": ["job"]}).fit(people)
    assert ConsequenceTwins("sex", graph={}).fit(people).moved_ == ()
    assert parse_dot("") == ()


def test_without_pydot_plain_text_is_read_and_the_rest_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    assert set(read_graph(DOT, COLUMNS, owner="x").edges) == set(EDGES)
    with pytest.raises(lw.core.MissingExtraError, match=r"likewise\[graphs\]"):
        parse_dot("digraph { sex:e -> job }")
