"""Markdown that shows what a table holds as text, whatever it holds."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["escaped", "markdown_table"]

# Signs that Markdown would take for its own; those of the HTML inside it are written as entities.
_SIGNS = re.compile(r"([\\`*_{}\[\]#|~!])")


def escaped(text: Any) -> str:
    r"""Return text as Markdown shows it unchanged, in one line.

    Examples
    --------
    >>> print(escaped("a|b <script>"), escaped("two\nlines"))
    a\|b &lt;script&gt; two lines
    """
    return html.escape(_SIGNS.sub(r"\\\1", " ".join(str(text).split())), quote=False)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table: the first column left, the others right; the cells are escaped.

    Examples
    --------
    >>> print(markdown_table(["sex", "rate"], [["f", "0.5"]]))
    | sex | rate |
    |---|---:|
    | f | 0.5 |
    """
    lines = ["| " + " | ".join(escaped(name) for name in header) + " |"]
    lines.append("|---|" + "---:|" * (len(header) - 1))
    lines += ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
