"""Pages of the server: an audit with a panel that asks the model, and the form for further tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.core.errors import InputError
from likewise.core.messages import Texts
from likewise.report import render_html
from likewise.report.document import document_of
from likewise.report.explore import explore_document
from likewise.report.page import asset, render_page
from likewise.report.templates import templates
from likewise.serving.audits import Audited
from likewise.serving.limits import Limits
from likewise.serving.queue import Kept, RowScores

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


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
            sensitive=audited.sensitive,
            results={audited.title: audited.result},
            places=audited.places,
            endpoint={"url": f"/api/audits/{number}/score", "token": token},
        )
    except InputError as error:
        notes.append(f"the page has no panel to try people out: {error}")
    links = [(Texts(language)("serving.another"), "/tables")] if tables else []
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
    texts = Texts(language)
    body = (
        templates(language)
        .from_string(asset("tables.html.j2", "likewise.serving"))
        .render(limits=limits, kept=[one for one in kept if one.number])
    )
    return render_page(
        texts("serving.title", model=model),
        [body],
        texts=texts,
        links=[(texts("serving.back"), "/")] if home else [],
        scripts=[asset("texts.js"), asset("tables.js", "likewise.serving")],
        data={
            "texts": texts.for_scripts("serving.script"),
            "data": {"token": token, "most_bytes": limits.upload_bytes, "known": dict(known)},
        },
        asks_server=True,
    )


def policy_of(page: str) -> str:
    """Return the policy that a page declares, for the header, which also forbids frames around it."""
    found = _META.search(page)
    own = "default-src 'none'" if found is None else found.group(1)
    return f"{own}; frame-ancestors 'none'"
