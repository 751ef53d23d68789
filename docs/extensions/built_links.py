"""Check the links of built pages: every file and every anchor that a page of ours leads to is there.

python docs/extensions/built_links.py build/docs
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class PageReader(HTMLParser):
    """The anchors that a page has, and where it leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and (key == "id" or (key == "name" and tag == "a")):
                self.anchors.add(value)
            if value and key in ("href", "src"):
                self.links.append(value)


def read_page(path: Path) -> PageReader:
    reader = PageReader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def broken_links(folder: Path) -> list[str]:
    """A line for every link inside the site that leads nowhere, and for anything that a page would fetch."""
    pages = {path: read_page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    broken = []
    for path, page in pages.items():
        where = path.relative_to(folder)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                broken.append(f"{where}: no file {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                broken.append(f"{where}: no anchor {link}")
    return broken


def main() -> None:
    broken = broken_links(Path(sys.argv[1]).resolve())
    print("\n".join(broken[:50]) or "every link inside the site leads somewhere")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
