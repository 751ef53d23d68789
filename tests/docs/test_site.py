"""The site builds without a warning and without the network: every page, every name, every link between them.

The examples of the gallery are not run here (`test_gallery` does that) and no HTML is written; `make docs` does both.
"""

import re
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Defaults as they are written would be put into the signatures themselves, which later tests of this process read.
UNTOUCHED = ["-D", "autodoc_preserve_defaults=0"]
QUICK = ["-b", "dummy", "-n", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", *UNTOUCHED]


def test_the_site_builds_without_a_warning(tmp_path, monkeypatch, capsys):
    for needed in ("numpydoc", "myst_parser", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(needed)
    build = pytest.importorskip("sphinx.cmd.build")
    for protocol in ("http_proxy", "https_proxy"):  # nobody listens there: whoever fetches anything fails
        monkeypatch.setenv(protocol, "http://127.0.0.1:9")
    monkeypatch.setattr(sys, "path", [*sys.path])
    # In this process, which has imported the package already. Python's warnings of Sphinx's own code are not ours.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = build.main([*QUICK, str(ROOT / "docs"), str(tmp_path / "site")])
    assert code == 0, capsys.readouterr().err[-5000:]
    from public_names import public_names

    missing = [
        name.home
        for name in public_names()
        if not any((ROOT / "docs" / "api" / f"{where}{name.home}.rst").exists() for where in ("", "names/"))
    ]
    assert missing == []


def test_pictures_are_written_in_markdown():
    # A picture in an HTML tag is shown by a repository's pages, and not copied to the site.
    for page in (ROOT / "docs").rglob("*.md"):
        assert not re.search(r"<img[^>]+src=[\"'](?!https?:)", page.read_text(encoding="utf-8")), page.name


def test_links_inside_built_pages_are_checked(tmp_path):
    from built_links import broken_links

    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#there">b</a><a href="#top">up</a>')
    (tmp_path / "b.html").write_text(
        '<h1 id="there">B</h1><a href="c.html">c</a><a href="a.html#no">a</a>'
        '<img src="x.png"><a href="https://example.org/nothing">away</a>'
    )
    assert broken_links(tmp_path) == [
        "b.html: no file c.html",
        "b.html: no anchor a.html#no",
        "b.html: no file x.png",
    ]


def test_links_between_files_become_links_between_pages():
    from files_outside import on_the_site

    before = (
        "[ours](../benchmarks/README.md#speed), [proof](../docs/proof.md), [text](text.md), [terms](LICENSE)"
    )
    after = "[ours](benchmarks.md#speed), [proof](proof.md), [text](text.md), terms"
    assert on_the_site(before) == after


def test_every_formula_can_be_written_as_mathml():
    math = pytest.importorskip("docutils.utils.math.latex2mathml")
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")]
    prose = [re.sub(r"^```.*?^```$|`[^`\n]*`", "", page, flags=re.MULTILINE | re.DOTALL) for page in pages]
    formulas = [
        two or one
        for page in prose
        for two, one in re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", page, re.DOTALL)
    ]
    assert len(formulas) > 30
    for formula in formulas:
        assert "<math" in math.tex2mathml(formula)


def test_two_clicks_lead_from_the_home_page_to_the_program_for_xgboost():
    home, page = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("index.md", "audit_your_model.md")
    )
    assert "](pictures/page.png)" in home
    doors = re.findall(r"^\*\*\[(.+)\]\((.+)\)\*\*$", home, flags=re.MULTILINE)
    assert [name for name, _ in doors] == ["I have a model", "I review models", "I do research"]
    assert doors[0][1] == "audit_your_model.md"
    assert "[XGBoost](#xgboost)" in page
    program = page.split("\n## XGBoost\n")[1].split("```python\n")[1].split("```")[0]
    assert "# your own table instead" in program
    assert "lw.audit(model" in program
