"""A causal graph in every way it can be written, and what is wrong with one that cannot be used."""

from __future__ import annotations

import networkx as nx
import pytest

import likewise as lw
from likewise.twins import ConsequenceTwins, parse_dot, read_graph

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
    graph = read_graph(
        [*EDGES][::-1] and {"job": ["pay"], "age": ["job"], "sex": ["job"]}, COLUMNS, owner="x"
    )
    order = graph.order()
    assert all(order.index(a) < order.index(b) for a, b in graph.edges)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ({"sex": ["job"], "job": ["pay"], "pay": ["sex"]}, "cycle: .*sex -> job -> pay.*|cycle"),
        ({"sex": ["sex"]}, "cycle: sex -> sex"),
        ({"sex": ["jop"]}, "'jop'.*did you mean 'job'"),
        ("graph { sex -- job }", "undirected"),
        ("digraph { sex -- job }", "undirected"),
        ("digraph { sex -> }", "leads from or to nothing"),
        ("digraph { sex -> job", "closing brace"),
        ("digraph { sex -> {job }", "do not match"),
        (nx.Graph([("sex", "job")]), "undirected"),
        ({"sex": "job"}, "'job' as effects"),
        (3, "got int"),
        ("nowhere.dot", "cannot read the graph"),
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
