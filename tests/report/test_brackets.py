"""What is shown and what is proved, as the terminal, the notebook, the page and the JSON file draw it."""

import dataclasses
import io
import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import likewise as lw
from likewise.auditing.inference.verdict import Bracket
from likewise.report import audit_document, json_schema, print_audit, write_html, write_json


@pytest.fixture(scope="module")
def result():
    people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_

    def score(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))

    return lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.1, delta=0.5)


def printed(result):
    out = io.StringIO()
    print_audit(result, Console(width=100, file=out, color_system=None), full=True)
    return out.getvalue()


def row(text, name):
    return next(line for line in text.splitlines() if name in line)


def test_the_terminal_draws_both_ends(samples, result):
    text = printed(result)
    assert "shown ├──┤ proved" in text
    assert row(text, " gap at ε = 0   ").split()[-2:] == ["exactly", "0.243"]
    assert "┃" in row(text, "decided differently at ε = 0 ")
    brackets = tuple(
        dataclasses.replace(one, upper=one.lower + 0.4) if one.eps > 0 else one for one in result.brackets
    )
    wide = printed(samples.with_worst_case(result, brackets=brackets))
    drawn = wide[wide.index("shown ├") :]
    assert "├──" in row(drawn, " gap at ε = 0.1 ")
    assert row(drawn, " gap at ε = 0.1 ").rstrip().endswith(f"{result.gap:.3f} to {result.gap + 0.4:.3f}")


def test_a_notebook_and_print_begin_with_the_headline_and_claim_no_proof(result):
    for said in (result._repr_html_(), str(result)):
        assert result.headline.title in said
        assert "proved" not in said.lower()


def test_the_page_says_what_is_proved_in_the_annex(result, tmp_path):
    write_html(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    body, annex = page.split('id="annex"')
    table = annex[annex.index('id="apart"') :]
    assert table.count("at least ") >= 3
    assert "exactly 0.243" in table
    assert "enumeration: all combinations of sex" in table
    assert "proved" not in body[body.index("<body") :].lower()


def test_a_proved_verdict_is_on_the_page_and_in_the_file(result, tmp_path):
    people = result.pure_map.people
    mended = lw.TwinConsensus(
        lambda f: 1 / (1 + np.exp(people["skill"].mean() - f["skill"] - (f["sex"] == "M"))),
        sensitive_features="sex",
    ).fit(people)
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    fair = lw.audit(mended, people, [0, 1, 1, 1], metric=metric, eps=0.0, delta=0.0)
    write_html(fair, tmp_path / "page.html")
    assert "Proved independent of sex" in (tmp_path / "page.html").read_text(encoding="utf-8")
    write_json(fair, tmp_path / "audit.json")
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, json_schema())
    assert document["schema_version"] == 5
    assert document["verdict"]["words"] == "fair (proved)"
    assert [one["upper"] for one in document["certificate"]["brackets"] if one["quantity"] == "gap"] == [0.0]


def test_the_document_has_them_all(result):
    document = audit_document(result)
    jsonschema.validate(document, json_schema())
    found = {(one["quantity"], one["eps"]): one for one in document["certificate"]["brackets"]}
    assert set(found) == {(quantity, eps) for quantity in ("value", "gap", "changed") for eps in (0.0, 0.1)}
    assert found["changed", 0.0]["upper"] == found["changed", 0.0]["lower"] == 0.25
    assert found["gap", 0.1]["upper"] is None
    assert document["verdict"]["words"] == result.verdict() == "undecided"


def test_results_keep_their_brackets(result, tmp_path):
    result.save(tmp_path / "saved.json")
    assert lw.AuditResult.load(tmp_path / "saved.json").brackets == result.brackets


def test_asks_for_a_bracket_there_is(result):
    with pytest.raises(lw.InputError, match=r"'gap' at 0\.1"):
        result.bracket("gap", eps=0.2)
    with pytest.raises(lw.InputError, match="at least 'lower'"):
        Bracket("gap", 0.0, 1.0, 0.5)
    with pytest.raises(lw.InputError, match="one of value, gap, changed"):
        Bracket("loss", 0.0, 1.0, None)
