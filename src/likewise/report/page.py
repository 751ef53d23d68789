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
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Literal

from likewise._version import __version__
from likewise.core.messages import Texts
from likewise.core.text import printable

# What would end a script element or a JavaScript line; JSON readers see the same text.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
Tone = Literal["bad", "good", "open", "plain"]
_SIGNS: dict[Tone, str] = {"bad": "!", "good": "✓", "open": "?", "plain": "i"}


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

    def html(self, texts: Texts) -> str:
        """Return the first card; everything but the body is escaped."""
        told = [
            f'<p class="{"sentence" if i < self.large else "told"}">{escape(one)}</p>'
            for i, one in enumerate(self.sentences)
        ]
        told += [f'<p class="warning">{escape(one)}</p>' for one in self.warnings]
        parts = {"sure": self.sure, "not_shown": self.not_shown, "next": self.next_steps}
        below = "".join(
            f'<div id="{name.replace("_", "-")}"><h3>{escape(texts(f"page.first.{name}"))}</h3>{listed(lines)}</div>'
            for name, lines in parts.items()
            if lines
        )
        return (
            f'<section class="card answer is-{self.tone}" id="answer" aria-labelledby="answer-title">'
            f'<h2 id="answer-title" class="badge"><span aria-hidden="true">{_SIGNS[self.tone]}</span> '
            f'{escape(self.badge)}</h2>{"".join(told)}{self.body}<div class="thirds">{below}</div></section>'
        )


def wrapped(*sentences: str, width: int = 80, most: int | None = None, indent: str = "") -> list[str]:
    """Return sentences as lines of a terminal; of more than `most` the rest is left out."""
    text = " ".join(one for one in sentences if one).rstrip()
    lines = textwrap.wrap(text, width, break_on_hyphens=False, subsequent_indent=indent)
    return (
        lines
        if most is None or len(lines) <= most
        else [*lines[: most - 1], lines[most - 1][: width - 2] + " …"]
    )


def listed(lines: Sequence[str]) -> str:
    """Return sentences as a paragraph, or as a list if there are several; they are escaped."""
    if len(lines) == 1:
        return f"<p>{escape(lines[0])}</p>"
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


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
    parts = [] if answer is None else [answer.html(texts)]
    parts += sections
    if answer is not None:
        parts.append(_sign_off(texts))
        behind = [*annex, *([_provenance(provenance, texts)] if provenance else [])]
        if behind:
            parts.append(
                f'<details class="card" id="annex"><summary><h2>{escape(texts("page.annex"))}</h2></summary>'
                f"{''.join(behind)}</details>"
            )
    read = "".join(
        f'<script type="application/json" id="{name}">{_script_json(value)}</script>\n'
        for name, value in (data or {}).items()
    )
    save = (
        f'<button type="button" class="button needs-js" id="save-data">{escape(texts("page.save"))}</button>'
    )
    line = "\n"
    if personal:
        scope = [*scope, (texts("page.contains"), texts("page.personal"))]
    page = f"""<!doctype html>
<html lang="{texts.language}"{' class="no-js"' if script else ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="likewise {escape(__version__)}">
<meta http-equiv="Content-Security-Policy" content="{content_policy(script, asks_server=asks_server)}">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{asset("page.css")}</style>
</head>
<body{' class="sheet"' if sheet else ""}>
<a class="skip" href="#main">{escape(texts("page.skip"))}</a>
<header class="top">
<div class="wrap">
<p class="mark">likewise <span>{escape(texts("page.mark"))}</span></p>
<h1>{escape(title)}</h1>
{_scope(scope, provenance, texts)}{_links(links)}</div>
</header>
<main id="main" class="wrap" tabindex="-1">
{line.join(parts)}
</main>
<footer class="wrap foot">
<span>{escape(texts("page.written", version=__version__))}</span>
{save if data and answer is not None else ""}
</footer>
{read}{f"<script>{script}</script>{line}" if script else ""}</body>
</html>
"""
    return printable(page, keep="\n\t")


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
    told = f'<p class="lede">{escape(lede)}</p>' if lede else ""
    # A part of a part is no landmark of its own.
    kind = f' class="card" aria-labelledby="{id}-title"' if level == 2 else ""
    return (
        f'<section{kind} id="{id}"><h{level} id="{id}-title">{escape(title)}</h{level}>{told}{body}</section>'
    )


def results_table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table that scrolls on narrow screens: heads are escaped, rows are HTML."""
    first, *more = heads
    top = f'<th scope="col">{escape(first)}</th>'
    top += "".join(f'<th scope="col" class="right">{escape(head)}</th>' for head in more)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(name)}"><table class="grid"><thead>'
        f"<tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


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
    """Return a part that is a table, whose rows become cards on a narrow screen; nothing if it has no rows.

    The first cell of a row is its name; all are escaped.
    """
    if not rows:
        return ""

    def kind(k: int) -> str:
        return ' class="right"' if k in right else ""

    top = "".join(f'<th scope="col"{kind(k)}>{escape(head)}</th>' for k, head in enumerate(heads))
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(
            f'<td{kind(k)} data-label="{escape(heads[k])}">{escape(cell)}</td>'
            for k, cell in enumerate(row[1:], 1)
        )
        + "</tr>"
        for row in rows
    )
    table = f'<table class="grid stack"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    scrolled = f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(name)}">{table}</div>'
    return section(name, scrolled, id=id, lede=lede, level=level)


def _links(links: Sequence[tuple[str, str]]) -> str:
    found = "".join(f'<a href="{escape(address)}">{escape(words)}</a>' for words, address in links)
    return f'<p class="elsewhere">{found}</p>\n' if links else ""


def _files(found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(kind, file) for kind in ("table", "model") for file in found[f"{kind}s"]]


def _scope(scope: Sequence[tuple[str, str]], found: Mapping[str, Any] | None, texts: Texts) -> str:
    """Say of what the page is, when and by which command it was made."""
    facts = [(name, escape(value)) for name, value in scope]
    if found:
        facts.append(
            (texts("page.provenance.made"), escape(found["made"].replace("T", " ").removesuffix("Z")))
        )
        for kind, file in _files(found):
            digest = f" <code>{file['sha256'][:12]}…</code>" if file["sha256"] else ""
            facts.append((texts(f"page.provenance.{kind}"), escape(file["name"]) + digest))
        if found["command"]:
            facts.append((texts("page.provenance.command"), f"<code>{escape(found['command'])}</code>"))
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="scope">{rows}</dl>\n' if rows else ""


def _provenance(found: Mapping[str, Any], texts: Texts) -> str:
    """Return what the scope line has no room for: whole hashes, seed, versions."""
    facts = [
        (
            f"{texts(f'page.provenance.{kind}')} {file['name']}",
            f"SHA-256 <code>{escape(file['sha256'])}</code>",
        )
        for kind, file in _files(found)
        if file["sha256"]
    ]
    if found["seed"] is not None:
        facts.append((texts("page.provenance.seed"), str(found["seed"])))
    versions = ", ".join(f"{name} {at}" for name, at in found["versions"].items())
    facts.append((texts("page.provenance.versions"), escape(versions)))
    body = "".join(f"<dt>{escape(name)}</dt><dd>{words}</dd>" for name, words in facts)
    title = texts("page.provenance.title")
    return section(title, f'<dl class="facts">{body}</dl>', id="provenance", level=3)


def _sign_off(texts: Texts) -> str:
    """Return lines to sign on, on paper."""
    lines = "".join(
        f"<li>{escape(texts(f'page.sign.{name}'))}</li>" for name in ("name", "role", "date", "signature")
    )
    told = f"<h2>{escape(texts('page.sign.title'))}</h2><p>{escape(texts('page.sign.confirms'))}</p>"
    return f'<section class="card sign-off print-only">{told}<ul>{lines}</ul></section>'


@cache
def asset(name: str, package: str = "likewise.report") -> str:
    """Return the text of a file among a package's assets."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


def _script_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
