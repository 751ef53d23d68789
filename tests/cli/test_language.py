"""`--language de`: the page speaks German, JSON stays as it is, and both say where they come from."""

import json
import shlex

from likewise.report.provenance import hash_of


def test_a_german_page_and_where_it_comes_from(run, table, model, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    asked = ("--target", "paid", "--sensitive", "sex", "--eps", "0", "--set", "search=candidates")
    done = run("audit", model, table, *asked, "--language", "de", "-o", "seite.html", "-o", "audit.json")
    assert done.code == 0, done.err
    page = (tmp_path / "seite.html").read_text(encoding="utf-8")
    assert '<html lang="de"' in page
    assert "Hängt von sex ab" in page
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert "if only the entry for sex were different" in document["summary"]["text"]
    known = document["provenance"]
    assert known["made"] == "2023-11-14T22:13:20Z"
    assert known["tables"] == [{"name": table.name, "sha256": hash_of(table)}]
    assert known["models"] == [{"name": model.name, "sha256": hash_of(model)}]
    words = shlex.split(known["command"])
    assert words[:2] == ["likewise", "audit"]
    assert words[words.index("--language") + 1] == "de"
    assert words[words.index("--output") + 1] == "seite.html"  # as it was typed
    assert hash_of(table) in page
    again = run("audit", model, table, *asked, "--language", "de", "-o", "again.html")
    assert again.code == 0


def test_a_comparison_and_the_terminal_begin_with_decisions(run, table, model, tmp_path):
    asked = ("--target", "paid", "--sensitive", "sex", "--eps", "0", "--set", "search=candidates")
    done = run("improve", table, "--compare", f"mine={model}", *asked, "--language", "de", "-o", "page.html")
    assert done.code == 0, done.err
    assert " ".join(done.out.split()).removeprefix("Wrote page.html. ").startswith("“mine”: ")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<html lang="de"' in page
    assert "„mine“: " in page


def test_an_unknown_language_is_a_mistake_that_lists_those_there_are(run, table, model):
    done = run("audit", model, table, "--target", "paid", "--sensitive", "sex", "--language", "fr")
    assert done.code == 2
    assert "'en', 'de'" in done.err
