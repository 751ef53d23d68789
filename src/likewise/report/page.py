"""The shell of every page: one file that needs no network, with everything that comes from data escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from likewise._version import __version__
from likewise.core.messages import Texts

# What would end a script element or a JavaScript line; JSON readers see the same text.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render_page(
    title: str,
    sections: Sequence[str],
    *,
    texts: Texts,
    mark: str | None = None,
    contents: str = "",
    links: Sequence[tuple[str, str]] = (),
    provenance: Mapping[str, Any] | None = None,
    foot: Sequence[str] | None = None,
    css: str = "",
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    asks_server: bool = False,
) -> str:
    """Return a page of sections of HTML; titles, links and provenance are escaped here.

    `scripts` are JavaScript sources, each run in a scope of its own, and `data` the JSON that they read by its
    element's id. A page without scripts allows none.
    """
    script = "".join(f"(() => {{\n{source}}})();\n" for source in scripts)
    top = [f'<p class="mark">likewise <span>{escape(mark or texts("page.mark"))}</span></p>']
    top.append(f"<h1>{escape(title)}</h1>")
    if provenance:
        names = [file["name"] for file in (*provenance["tables"], *provenance["models"])]
        top.append(f'<p class="made">{escape(" · ".join([provenance["made"][:10], *names]))}</p>')
    if links:
        listed = "".join(f'<a href="{escape(address)}">{escape(words)}</a>' for words, address in links)
        top.append(f'<p class="elsewhere">{listed}</p>')
    parts = [*sections, *([provenance_section(provenance, texts)] if provenance else [])]
    below = [f"<p>{escape(texts('page.written', version=__version__))}</p>"] if foot is None else foot
    read = "".join(
        f'<script type="application/json" id="{name}">{_script_json(value)}</script>\n'
        for name, value in (data or {}).items()
    )
    line = "\n"
    return f"""<!doctype html>
<html lang="{texts.language}"{' class="no-js"' if script else ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="likewise {escape(__version__)}">
<meta http-equiv="Content-Security-Policy" content="{content_policy(script, asks_server=asks_server)}">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{asset("page.css")}{css}</style>
</head>
<body>
<a class="skip" href="#main">{escape(texts("page.skip"))}</a>
<header class="top">
<div class="wrap">
{line.join(top)}
</div>
</header>
{contents}<main id="main" class="wrap" tabindex="-1">
{line.join(parts)}
</main>
<footer class="wrap foot">
{line.join(below)}
</footer>
{read}{f"<script>{script}</script>{line}" if script else ""}</body>
</html>
"""


def content_policy(script: str, *, asks_server: bool = False) -> str:
    """Return a content security policy: no network, no script but this one; questions only to the page's server."""
    rules = ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "base-uri 'none'"]
    rules.append("form-action 'none'")
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join([*rules, *(["connect-src 'self'"] if asks_server else [])])


def section(title: str, body: str, *, id: str, lede: str = "", kind: str = "") -> str:
    """Return a card with a heading; title and lede are escaped."""
    told = f'<p class="lede">{escape(lede)}</p>' if lede else ""
    return (
        f'<section class="card{f" {kind}" if kind else ""}" id="{id}" aria-labelledby="{id}-title">'
        f'<h2 id="{id}-title">{escape(title)}</h2>{told}{body}</section>'
    )


def results_table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table that scrolls on narrow screens: heads are escaped, rows are HTML."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table class="results"><thead>'
        f"<tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def provenance_section(found: Mapping[str, Any], texts: Texts) -> str:
    """Return when, of which files, by which versions and command a page was made."""
    facts = [("made", f'<time datetime="{escape(found["made"])}">{escape(found["made"])}</time>')]
    for kind in ("table", "model"):
        for file in found[f"{kind}s"]:
            digest = file["sha256"]
            hashed = f'<br><span class="muted small">SHA-256 <code>{digest}</code></span>' if digest else ""
            facts.append((kind, escape(file["name"]) + hashed))
    if found["seed"] is not None:
        facts.append(("seed", str(found["seed"])))
    facts.append(("versions", escape(", ".join(f"{name} {at}" for name, at in found["versions"].items()))))
    if found["command"]:
        facts.append(("command", f"<code>{escape(found['command'])}</code>"))
    listed = "".join(
        f"<dt>{escape(texts(f'page.provenance.{k}'))}</dt><dd>{words}</dd>" for k, words in facts
    )
    body = f'<dl class="facts">{listed}</dl>'
    return section(texts("page.provenance.title"), body, id="provenance", kind="provenance")


@cache
def asset(name: str, package: str = "likewise.report") -> str:
    """Return the text of a file among a package's assets."""
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


def _script_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
