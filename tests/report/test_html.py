"""The page: one file, nothing from the network, everything from data escaped."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import likewise as lw
from likewise.report import (
    audit_document,
    comparison_document,
    html as page_module,
    render_html,
    templates as templates_module,
    write_html,
    writing,
)
from likewise.report.templates import asset


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of script elements."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.text, self._in = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, data):
        if self._in == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def nasty(samples):
    return render_html(audit_document(samples.nasty_result()), title=samples.CLOSER)


def test_markup_in_data_stays_text(samples, nasty):
    parsed = Tags(nasty)
    names = [tag for tag, _ in parsed.tags]
    assert "img" not in names
    assert names.count("script") == 3  # the data, the texts and our own
    assert "b" not in names
    assert "i" not in names
    assert not [a for _, attributes in parsed.tags for a in attributes if a.startswith("on")]
    text = "".join(parsed.text)
    for words in (samples.SCRIPT, samples.QUOTES, samples.CLOSER, "{{ 7 * 7 }}"):
        assert words in text
    assert "49" not in [piece.strip() for piece in parsed.text]


def test_the_data_is_the_document_and_cannot_end_its_element(samples, nasty):
    data = Tags(nasty).scripts[0]
    assert json.loads(data) == json.loads(json.dumps(audit_document(samples.nasty_result())))
    assert not set("<>&\u2028\u2029") & set(data)


def test_nothing_is_asked_of_the_network(nasty):
    assert "http:" not in nasty
    assert "https:" not in nasty
    assert "//" not in re.sub(r"^\s*//.*$", "", nasty, flags=re.M)
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|\bimport\(", nasty)
    for tag, attributes in Tags(nasty).tags:
        assert "src" not in attributes
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:")), (tag, attributes)


def test_the_policy_allows_our_script_and_no_other(nasty):
    parsed = Tags(nasty)
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[2].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_scripts_never_write_markup():
    for name in page_module._SCRIPTS:
        code = asset(name)
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", code
        )


def test_sections_in_order(samples):
    evaluation, result = samples.adult_result()
    document = audit_document(result, evaluation=evaluation, diagnoses=["fine"])
    page = render_html(document)
    ids = [a["id"] for tag, a in Tags(page).tags if tag == "section" and "id" in a]
    assert ids == ["answer", "who", "people", "apart", "measures", "metric", "computed", "terms"]
    assert (
        ids.index("apart") > [t for t, _ in Tags(page[: page.index('id="annex"')]).tags].count("section") - 2
    )
    targets = {a["href"][1:] for tag, a in Tags(page).tags if tag == "a"}
    assert targets <= {a.get("id") for _, a in Tags(page).tags}
    text = " ".join("".join(Tags(page).text).split())
    for part in ("sentence", "sure"):
        assert document["summary"][part] in text
    assert document["verdict"]["gap_sentence"] in text
    bare = [
        a["id"] for tag, a in Tags(render_html(audit_document(result))).tags if tag == "section" and "id" in a
    ]
    assert "measures" not in bare
    assert "metric" not in bare


def test_every_id_is_there_once(samples):
    page = render_html(comparison_document(samples.comparison()))
    ids = [a["id"] for _, a in Tags(page).tags if "id" in a]
    assert len(ids) == len(set(ids))
    controls = [a["aria-controls"] for _, a in Tags(page).tags if "aria-controls" in a]
    named = [a["aria-labelledby"] for _, a in Tags(page).tags if "aria-labelledby" in a]
    assert set(controls + named) <= set(ids)


def test_pages_are_small(samples, tmp_path):
    evaluation, result = samples.adult_result()
    write_html(result, tmp_path / "a.html", evaluation=evaluation)
    write_html(samples.comparison(), tmp_path / "c.html")
    assert (tmp_path / "a.html").stat().st_size < 450_000
    assert (tmp_path / "c.html").stat().st_size < 800_000


def test_a_page_that_would_grow_too_large_lists_fewer_people(samples, tmp_path, monkeypatch):
    _, result = samples.adult_result()
    write_html(result, tmp_path / "all.html")
    whole = (tmp_path / "all.html").stat().st_size
    monkeypatch.setattr(writing, "MAX_BYTES", whole // 3)
    write_html(result, tmp_path / "fewer.html")
    assert (tmp_path / "fewer.html").stat().st_size <= whole // 3
    document = json.loads(Tags((tmp_path / "fewer.html").read_text(encoding="utf-8")).scripts[0])
    shown = len(document["summary"]["people"])
    assert 10 <= shown < len(audit_document(result)["summary"]["people"])
    page = (tmp_path / "fewer.html").read_text(encoding="utf-8")
    assert f"{result.changed.count} people: first " in page
    assert f"The first {shown} are listed here. For all of them: result.people." in page


def test_same_result_same_bytes(samples):
    document = audit_document(samples.nasty_result())
    assert render_html(document) == render_html(json.loads(json.dumps(document)))


@pytest.mark.parametrize(
    "changes",
    [
        {"worst_case": {"delta": None}},
        {"worst_case": {"status": "not_converged", "reasons": ("<it> still rose",)}},
        {"worst_case": None},
        {"assumptions": (), "timing": {}, "settings": {"versions": {"numpy": "2"}, "list": [], "none": None}},
    ],
)
def test_unusual_results_have_a_page(samples, changes):
    result = samples.nasty_result()
    if changes.get("worst_case"):
        changes = {"worst_case": dataclasses.replace(result.worst_case, **changes["worst_case"])}
    result = dataclasses.replace(result, **changes)
    assert "</html>" in render_html(audit_document(result))


def test_a_model_that_changes_nothing_has_a_page(samples):
    result = samples.still_result()
    assert 'id="apart"' in render_html(audit_document(result))  # a metric was given
    page = render_html(audit_document(dataclasses.replace(result, worst_case=None)))
    assert 'id="people"' not in page
    assert 'id="apart"' not in page
    assert 'class="loses none">0 lose<' in page


def test_files_are_not_replaced_unasked(samples, tmp_path):
    target = tmp_path / "page.html"
    target.write_text("mine")
    with pytest.raises(lw.InputError, match="overwrite=True"):
        write_html(samples.nasty_result(), target)
    assert target.read_text() == "mine"
    write_html(samples.nasty_result(), target, overwrite=True)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(lw.InputError, match="goes with one audit"):
        write_html(samples.comparison(), tmp_path / "c.html", evaluation=samples.adult_result()[0])


def test_templates_are_compiled_once_for_each_language(samples, monkeypatch):
    import jinja2

    documents = [
        audit_document(samples.adult_result()[1], max_people=5),
        audit_document(samples.still_result()),
    ]
    english, german = ([render_html(one, language=two) for one in documents] for two in ("en", "de"))

    def again(self, source, name, *args, **choices):
        raise AssertionError(f"{name} is compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", again)
    assert [render_html(one) for one in documents] == english
    assert [render_html(one, language="de") for one in documents] == german
    monkeypatch.undo()
    templates_module.templates.cache_clear()
    assert render_html(documents[1]) == english[1]  # compiled for this page, not for the one before
    templates_module.templates.cache_clear()
    assert render_html(documents[1], language="de") == german[1]
