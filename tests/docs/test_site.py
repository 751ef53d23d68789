"""The site builds without a warning and without the network: every page, every name, every link between them.

The examples of the gallery are not run here (`test_gallery` does that) and no HTML is written; `make docs` does both.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICK = ["-b", "dummy", "-n", "-W", "--keep-going", "-q", "-D", "plot_gallery=0"]


def test_the_site_builds_without_a_warning(tmp_path):
    for needed in ("sphinx", "numpydoc", "myst_parser", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(needed)
    # A proxy that nobody listens at: whoever fetches anything fails.
    environment = os.environ | dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    build = [sys.executable, "-m", "sphinx", *QUICK, "docs", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    from public_names import public_names

    missing = [
        name.home
        for name in public_names()
        if not any((ROOT / "docs" / "api" / f"{where}{name.home}.rst").exists() for where in ("", "names/"))
    ]
    assert missing == []


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
