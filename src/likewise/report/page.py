"""The one template of every page: header, scope, answer, sections, sign-off, folded annex, foot.

A page is one file that needs no network, with everything that comes from data escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup, escape

from likewise._version import __version__
from likewise.core.messages import Texts
from likewise.core.text import printable
from likewise.report.templates import asset, templates

# What would end a script element or a JavaScript line; JSON readers see the same text.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
Tone = Literal["bad", "good", "open", "plain"]


@dataclass(frozen=True)
class Answer:
    """The first screen of a page: badge, sentences, warnings, more HTML, how sure, what is not shown, what next.

    So many of the sentences are large.
    """

    badge: str
    tone: Tone
    sentences: Sequence[str]
    large: int = 1
    warnings: Sequence[str] = ()
    body: str = ""
    sure: Sequence[str] = ()
    not_shown: Sequence[str] = ()
    next_steps: Sequence[str] = ()


def wrapped(*sentences: str, width: int = 80, most: int | None = None, indent: str = "") -> list[str]:
    """Return sentences as lines of a terminal; of more than `most` the rest is left out."""
    text = " ".join(one for one in sentences if one).rstrip()
    lines = textwrap.wrap(text, width, break_on_hyphens=False, subsequent_indent=indent)
    return (
        lines
        if most is None or len(lines) <= most
        else [*lines[: most - 1], lines[most - 1][: width - 2] + " …"]
    )


def _shell(language: str = "en") -> Any:
    """The parts of every page; only a whole page and the answer say something in a language."""
    return templates(language).get_template("shell.html.j2").module


def listed(lines: Sequence[str]) -> str:
    """Return sentences as a paragraph, or as a list if there are several; they are escaped."""
    return str(_shell().listed(lines))


def render_page(
    title: str,
    sections: Sequence[str],
    *,
    texts: Texts,
    answer: Answer | None = None,
    scope: Sequence[tuple[str, str]] = (),
    annex: Sequence[str] = (),
    provenance: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, str]] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    asks_server: bool = False,
    sheet: bool = False,
    personal: bool = False,
) -> str:
    """Return a page; sections and annex are HTML, everything else is escaped here.

    `scope` says of what the page is: names and values, before the date, the files and the command of the provenance.
    `scripts` are JavaScript sources, each run in a scope of its own, and `data` the JSON that they read by its
    element's id. A page without scripts allows none. A page with an answer has an annex and lines to sign; a `sheet` is
    printed on one sheet of paper, without the annex. A `personal` page says that people are listed.
    """
    script = "".join(f"(() => {{\n{source}}})();\n" for source in scripts)
    page = _shell(texts.language).page(
        title=title,
        parts=sections,
        answer=answer,
        scope=[*scope, *([(texts("page.contains"), texts("page.personal"))] if personal else [])],
        annex=annex,
        found=provenance,
        links=links,
        script=script,
        policy=content_policy(script, asks_server=asks_server),
        style=asset("page.css"),
        data={name: _script_json(value) for name, value in (data or {}).items()},
        version=__version__,
        sheet=sheet,
    )
    return printable(str(page).lstrip(), keep="\n\t")


def content_policy(script: str, *, asks_server: bool = False) -> str:
    """Return a content security policy: no network, no script but this one; questions only to the page's server."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'"]
    rules.append("form-action 'none'")
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join([*rules, *(["connect-src 'self'"] if asks_server else [])])


def section(title: str, body: str, *, id: str, lede: str = "", level: int = 2) -> str:
    """Return a part with a heading: a card, or below level 2 a part of the annex; title and lede are escaped."""
    return str(_shell().part(id, title, level, lede, caller=lambda: Markup(body)))


def results_table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table that scrolls on narrow screens: heads are escaped, rows are HTML."""
    first, *more = heads
    top = f'<th scope="col">{escape(first)}</th>'
    top += "".join(f'<th scope="col" class="right">{escape(head)}</th>' for head in more)
    table = f'<table class="grid"><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return str(_shell().scrolled(name, caller=lambda: Markup(table)))


def cells_section(
    name: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    id: str,
    right: Sequence[int] = (),
    lede: str = "",
    level: int = 2,
) -> str:
    """Return a part that is a table (`grid` of the shell), or nothing if it has no rows."""
    return (
        section(name, str(_shell().grid(name, heads, rows, right)), id=id, lede=lede, level=level)
        if rows
        else ""
    )


def _script_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
