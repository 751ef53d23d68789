"""`likewise audit --twins`: three kinds of twins on the page, in JSON and in the terminal; bad files in one message."""

import json

import jsonschema
import pytest

from likewise.report import json_schema
from likewise.report.html import render_html

ASKED = ("--target", "paid", "--sensitive", "sex", "--set", "search=candidates", "--eps", "0")


def test_three_kinds_of_twins_stand_on_the_page_in_json_and_in_the_terminal(run, table, model, tmp_path):
    (tmp_path / "graph.dot").write_text("digraph { sex -> hours; age -> hours }")
    (tmp_path / "rules.toml").write_text('[[forbid]]\nsex = "Female"\njob = "cook"\n')
    done = run("audit", model, table, *ASKED, "--twins", "all", "--twins", "graph.dot", "--twins", "rules.toml",
               "-o", "page.html", "-o", "result.json")  # fmt: skip
    assert done.code == 0, done.err
    assert "Three kinds of counterparts by sex" in done.out
    document = json.loads((tmp_path / "result.json").read_text())
    jsonschema.validate(document, json_schema())
    (study,) = document["twins"]
    assert [answer["question"] for answer in study["answers"]] == ["attribute", "consequences", "matched"]
    assert study["moved"] == ["hours"]
    assert study["rules"] == ["nobody has sex = Female and job = cook"]
    assert study["answers"][1]["dropped"][0]["why"] == "they break a rule"
    assert 'id="realistic"' in (tmp_path / "page.html").read_text()
    german = render_html(document, language="de")
    assert "sie verletzen eine Regel" in german
    assert "Realistische Vergleichspersonen" in german


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--twins", "everything"), "got 'everything'"),
        (("--twins", "consequences"), "needs to know them"),
        (("--twins", "all", "--twins", "nowhere.dot"), "there is no file 'nowhere.dot'"),
        (("--twins", "all", "--twins", "nowhere.toml"), "there is no file 'nowhere.toml'"),
    ],
)
def test_a_mistake_is_exit_code_two_with_one_message(run, table, model, options, words):
    done = run("audit", model, table, *ASKED, "-q", *options)
    assert done.code == 2
    assert words in done.err


def test_a_graph_may_speak_of_one_of_several_sensitive_columns_and_is_read_before_the_audit(
    run, table, model, tmp_path
):
    (tmp_path / "graph.dot").write_text("digraph { sex -> hours }")
    done = run("audit", model, table, *ASKED, "--sensitive", "hours", "--twins", "consequences", "--twins", "graph.dot",
               "-o", "result.json")  # fmt: skip
    assert done.code == 0, done.err
    (by_sex,) = json.loads((tmp_path / "result.json").read_text())["twins"]
    assert by_sex["moved"] == ["hours"]
    assert "consequences of hours are n/a" in done.err
    assert "columns that follow along the graph: hours." in done.out
    (tmp_path / "graph.dot").write_text("digraph { sex -> hour }")
    done = run("audit", model, table, *ASKED, "--twins", "all", "--twins", "graph.dot")
    assert done.code == 2
    assert "did you mean 'hours'" in done.err
    assert "Auditing" not in done.err
