"""Pages of the server: an audit with a panel that asks the model, and the desk for further tables."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from likewise._version import __version__
from likewise.core.errors import InputError, require
from likewise.core.messages import Texts
from likewise.report import render_html
from likewise.report.document import document_of
from likewise.report.explore import explore_document
from likewise.serving.audits import Audited
from likewise.serving.limits import Limits
from likewise.serving.queue import Kept, RowScores

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_TABLES = "/tables"


def kept_page(
    number: int, audited: Audited, *, token: str, limits: Limits, tables: bool, language: str = "en"
) -> Kept:
    """Make the page of an audit."""
    document = document_of(
        audited.result,
        evaluation=audited.evaluation,
        diagnoses=audited.diagnoses,
        provenance=audited.provenance,
    )
    notes = list(audited.notes)
    explore = None
    try:
        explore = explore_document(
            audited.domain,
            audited.people,
            audited.labels,
            models={audited.title: audited.model},
            metric=audited.metric,
            sensitive=audited.sensitive,
            results={audited.title: audited.result},
            endpoint={"url": f"/api/audits/{number}/score", "token": token},
        )
    except InputError as error:
        notes.append(f"the page has no panel to try people out: {error}")
    links = [(Texts(language)("serving.another"), _TABLES)] if tables else []
    page = render_html(document, title=audited.title, language=language, explore=explore, links=links)
    scores = RowScores(audited.model, audited.domain, limits.rows)
    return Kept(number, audited.title, page, scores, tuple(notes))


def tables_page(
    *,
    token: str,
    limits: Limits,
    model: str,
    home: bool,
    known: Mapping[str, Any],
    kept: Sequence[Kept],
    language: str = "en",
) -> str:
    """Make the page on which a table is chosen, its columns named, and an audit watched."""
    jinja2 = require("jinja2", extra="serve", why="A page")
    markup = jinja2.utils.markupsafe.Markup
    script = "".join(
        f"(() => {{\n{part}}})();\n" for part in (_report_asset("texts.js"), _asset("tables.js"))
    )
    texts = Texts(language)
    data = {
        "token": token,
        "most_bytes": limits.upload_bytes,
        "known": dict(known),
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page: str = environment.from_string(_asset("tables.html.j2")).render(
        version=__version__,
        language=language,
        t=texts,
        texts=markup(_json(texts.for_scripts("serving.script"))),
        model=model,
        home=home,
        limits=limits,
        kept=[one for one in kept if one.number],
        policy=_policy(script),
        css=markup(_report_asset("page.css") + _asset("tables.css")),
        script=markup(script),
        data=markup(_json(data)),
    )
    return page


def policy_of(page: str) -> str:
    """Return the policy that a page declares, for the header, which also forbids frames around it."""
    found = _META.search(page)
    own = "default-src 'none'" if found is None else found.group(1).replace("&#39;", "'")
    return f"{own}; frame-ancestors 'none'"


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (resources.files("likewise.serving") / "assets" / name).read_text(encoding="utf-8")


def _report_asset(name: str) -> str:
    return (resources.files("likewise.report") / "assets" / name).read_text(encoding="utf-8")
