"""The German page in a real Chromium: what it shares with the English one is data, names and symbols, nothing else."""

from __future__ import annotations

import re

import pytest

from likewise.report import Provenance, audit_document, write_html

# Symbols, names and words that are the same in both languages.
SAME = {"likewise", "Status", "Name", "S-Con", "GR-Con"}
COMMAND = "likewise audit model.onnx people.csv --target y"
SHOWN = """const found = new Set();
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walk.nextNode(); node; node = walk.nextNode()) {
  if (!node.parentElement.closest('script, style, noscript')) found.add(node.textContent.replace(/\\s+/g, ' ').trim());
}
for (const e of document.querySelectorAll('*'))
  for (const name of ['aria-label', 'aria-valuetext', 'placeholder', 'title', 'data-label'])
    if (e.hasAttribute(name)) found.add(e.getAttribute(name).trim());
return [...found];"""


@pytest.fixture(scope="module")
def pages(samples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    evaluation, result = samples.adult_result()
    told = {"provenance": Provenance.now(seed=0, command=COMMAND), "labels": {0: "≤50K", 1: ">50K"}}
    for language in ("en", "de"):
        path = folder / f"audit.{language}.html"
        write_html(result, path, evaluation=evaluation, language=language, **told)
        path = folder / f"comparison.{language}.html"
        write_html(samples.comparison(), path, language=language, **told)
    return folder


def data_of(document):
    """Every column, value and name that comes from the table, the model or the user."""
    words = {COMMAND, "baseline", "blind <b>", "≤50K", ">50K"}
    for row in document["summary"]["people"]:
        words |= {str(cell) for cell in (*row["cells"], *row["cells"].values(), *row["change"].values())}
    for row in document["summary"]["effects"]:
        words |= {row["attribute"], str(row["recorded"]), str(row["instead"])}
        words |= {f"{row['recorded']} → {row['instead']}"}
    words |= {", ".join(row["values"].values()) for row in document["summary"]["outcomes"]}
    evaluation = document["evaluation"]
    words |= {measure["name"] for measure in evaluation["measures"]}
    words |= {variant["name"] for study in evaluation["studies"] for variant in study["variants"]}
    settings = document["computed"]["settings"]
    return words | {settings["metric"], settings["model"]}


@pytest.mark.parametrize("page", ["audit", "comparison"])
def test_nothing_is_left_in_english(browser, pages, samples, page):
    shown = {}
    for language in ("en", "de"):
        browser.show(pages / f"{page}.{language}.html")
        assert browser.js("return document.documentElement.lang") == language
        shown[language] = set(browser.js(SHOWN))
    evaluation, result = samples.adult_result()
    document = audit_document(result, evaluation=evaluation, max_people=1000)
    known = data_of(document) | SAME
    left = {
        text for text in shown["en"] & shown["de"] if re.search(r"[A-Za-z]{3}", text) and text not in known
    }
    # Conditions on numbers are written with signs; versions of libraries are what they are.
    left = {text for text in left if not re.search(r"[<≤>]", text) and "numpy" not in text}
    assert left == set()
    assert any("1.200 Personen" in text for text in shown["de"])
    assert "würde es verlieren" in shown["de"]
