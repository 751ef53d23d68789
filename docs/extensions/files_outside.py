"""Pages whose text is a file of the repository, and links between them that work on the site and in a repository alike.

`contributing.md` and `benchmarks.md` of the site are `CONTRIBUTING.md` and `benchmarks/README.md` with its results. Links to such files
lead to their pages; links to files that have no page (licences) become plain words.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

# A link as the repository writes it, from docs/ or from the root, and the page that it leads to on the site.
PAGES = {
    "../benchmarks/README.md": "benchmarks.md",
    "benchmarks/README.md": "benchmarks.md",
    "../CONTRIBUTING.md": "contributing.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_the_site(text: str) -> str:
    """The same text with links between files of the repository turned into links between pages.

    >>> on_the_site("[ours](../benchmarks/README.md#speed), [proof](../docs/proof.md), [text](text.md), [terms](LICENSE)")
    '[ours](benchmarks.md#speed), [proof](proof.md), [text](text.md), terms'
    """

    def turn(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if target in PAGES:
            return f"[{words}]({PAGES[target]}{anchor})"
        if "benchmarks/results/" in target:
            return f"[{words}](benchmarks.md{anchor})"
        if target in ("LICENSE", "NOTICE") or target.startswith("results/"):
            return words
        return f"[{words}]({re.sub(r'^(?:[.][.]/)?docs/', '', target)}{anchor})"

    return LINK.sub(turn, text)


def read_page(app: Sphinx, page: str, source: list[str]) -> None:
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = on_the_site(source[0])


def read_included(app: Sphinx, path: Path, page: str, source: list[str]) -> None:
    source[0] = on_the_site(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
