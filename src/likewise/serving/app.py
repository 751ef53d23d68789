"""The application behind the gate: pages, questions to the model, uploads and audits."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from likewise.core.errors import InputError, LikewiseError, require
from likewise.core.messages import Texts, check_language
from likewise.core.text import printable
from likewise.data.opening import nesting
from likewise.report import audit_document, render_html
from likewise.report.explore import explore_case
from likewise.report.page import render_page
from likewise.report.templates import asset, templates
from likewise.serving.audits import Audited, Question, TableAuditor
from likewise.serving.gate import Gate, Limits, Secrets
from likewise.serving.queue import BusyError, JobQueue, Kept, RowScores, SerialWorker, page_words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

# What a browser sends, read no further than is allowed.


class TooLargeError(InputError):
    """More was sent than is read."""


async def read_body(request: Request, *, most: int, seconds: float) -> bytes:
    """Read a body, and stop as soon as it is too large or comes too slowly."""
    said = request.headers.get("content-length", "0")
    if said.isdigit() and len(said) < 20 and int(said) > most:
        raise _too_large(most)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                if len(body) + len(part) > most:
                    raise _too_large(most)
                body += part
    except TimeoutError as error:
        raise InputError(f"The request did not arrive within {seconds:g} s. Try again.") from error
    return bytes(body)


async def read_json(request: Request, *, most: int, depth: int, seconds: float) -> dict[str, Any]:
    """Read a JSON object that is neither too large nor nested too deeply."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InputError("The request is not JSON. Send it as application/json.")
    body = await read_body(request, most=most, seconds=seconds)
    if nesting(body) > depth:
        raise InputError(f"The request is nested deeper than {depth} levels.")
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError("The request is not valid JSON.") from error
    if not isinstance(found, dict):
        raise InputError("The request is not a JSON object.")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def _too_large(most: int) -> TooLargeError:
    size = f"{most / 2**20:g} MB" if most >= 2**20 else f"{most:,} bytes"
    return TooLargeError(f"The request is larger than {size}, which is the most that this server takes.")


# Pages: an audit with a panel that asks the model, and the form for further tables.

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


def kept_page(
    number: int, audited: Audited, *, token: str, limits: Limits, tables: bool, language: str = "en"
) -> Kept:
    """Make the page of an audit."""
    document = audit_document(audited.result, evaluation=audited.evaluation, provenance=audited.provenance)
    matched, notes, explore = audited.case.matched, list(audited.notes), None
    try:
        endpoint = {"url": f"/api/audits/{number}/score", "token": token}
        explore = explore_case(audited.case, audited.result, name=audited.title, endpoint=endpoint)
    except InputError as error:
        notes.append(f"the page has no panel to try people out: {error}")
    links = [(Texts(language)("serving.another"), "/tables")] if tables else []
    page = render_html(document, title=audited.title, language=language, explore=explore, links=links)
    scores = RowScores(matched.model, matched.domain, limits.rows)
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


class Application:
    """An ASGI application for one model.

    Parameters
    ----------
    secrets : Secrets
    name : str
        Of the model, for headings.
    audited : Audited or None
        The audit that the first page shows; None begins with an upload.
    auditor : TableAuditor or None
        Audits tables that are uploaded; None refuses them.
    known : mapping
        ``target``, ``favourable`` and ``sensitive`` that are proposed for a table.
    limits : Limits, optional
    language : {"en", "de"}, default="en"
        Of the pages.

    Attributes
    ----------
    jobs : JobQueue

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> from likewise.serving import FrameAuditor, Secrets
    >>> people = pd.DataFrame({"skill": [0.0, 1.0], "sex": ["F", "M"]})
    >>> metric = ExpertSubspace(["sex"]).fit(people).metric_
    >>> auditor = FrameAuditor(lambda table: table["skill"] / 2, "half the skill", metric)
    >>> app = Application(Secrets("token", 8000), name="half the skill", auditor=auditor)
    >>> len(app.jobs.results)  # begins with an upload
    0
    """

    def __init__(
        self,
        secrets: Secrets,
        *,
        name: str,
        audited: Audited | None = None,
        auditor: TableAuditor | None = None,
        known: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        language: str = "en",
    ) -> None:
        if audited is None and auditor is None:
            raise InputError("serve: there is neither an audit to show nor a way to make one.")
        self.limits = limits or Limits()
        self._secrets, self._name, self._known = secrets, name, dict(known or {})
        self._language = check_language(language, owner="serve")
        keep = partial(
            kept_page, token=secrets.asking, limits=self.limits, tables=auditor is not None, language=language
        )
        self.jobs = JobQueue(auditor, keep, self.limits)
        if audited is not None:
            self.jobs.show(audited)
        self._model = SerialWorker("likewise model", self.limits.waiting)
        self._reader = SerialWorker("likewise tables", 1)
        self._uploading = False
        starlette = require("starlette.applications", extra="serve", why="Serving a model")
        route = require("starlette.routing", extra="serve", why="Serving a model").Route
        routes = [
            route("/", self._home, methods=["GET"]),
            route("/audits/{number}", self._audit, methods=["GET"]),
            route("/tables", self._tables, methods=["GET"]),
            route("/api/audits/{number}/score", _in_json(self._score), methods=["POST"]),
            route("/api/tables", _in_json(self._upload), methods=["POST"]),
            route("/api/jobs", _in_json(self._start), methods=["POST"]),
            route("/api/jobs/current", _in_json(self._watch), methods=["GET"]),
            route("/api/jobs/cancel", _in_json(self._cancel), methods=["POST"]),
        ]
        self.gate = Gate(starlette.Starlette(routes=routes), secrets, self.limits)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self.gate(scope, receive, send)

    def close(self) -> None:
        """End an audit that runs, at its next report of progress."""
        if self.jobs.job is not None:
            self.jobs.job.cancel()

    # ---- pages -----------------------------------------------------------------------------------------

    async def _home(self, request: Request) -> Response:
        if 0 in self.jobs.results:
            return _html(self.jobs.results[0].page)
        return await self._tables(request)

    async def _audit(self, request: Request) -> Response:
        kept = self.jobs.results.get(_number(request.path_params["number"]))
        return _missing("This audit is not here any more.") if kept is None else _html(kept.page)

    async def _tables(self, request: Request) -> Response:
        if self.jobs.auditor is None:
            return _missing("This server takes no tables.")
        page = tables_page(
            token=self._secrets.asking,
            limits=self.limits,
            model=self._name,
            home=0 in self.jobs.results,
            known=self._known,
            kept=list(self.jobs.results.values()),
            language=self._language,
        )
        return _html(page)

    # ---- questions -------------------------------------------------------------------------------------

    async def _score(self, request: Request) -> dict[str, Any]:
        kept = self.jobs.results.get(_number(request.path_params["number"]))
        if kept is None:
            raise InputError("This audit is not here any more. Open its page again.")
        said = await self._json(request)
        rows = said.get("rows")
        return {"probabilities": await self._model.run(lambda: kept.scores.score(rows))}

    async def _upload(self, request: Request) -> dict[str, Any]:
        if self.jobs.auditor is None:
            raise InputError("This server takes no tables.")
        # One at a time, so that all uploads together take no more memory than one may.
        if self._uploading:
            raise BusyError("Another table is being sent. Wait for it, and choose the file again.")
        self._uploading = True
        try:
            return await self._taken(request)
        finally:
            self._uploading = False

    async def _taken(self, request: Request) -> dict[str, Any]:
        most = self.limits.upload_bytes
        data = await read_body(request, most=most, seconds=self.limits.seconds)
        name = urllib.parse.unquote(request.headers.get("x-file-name", ""), errors="replace")
        found = await self._reader.run(lambda: self.jobs.take(name, data))
        return found.document()

    async def _start(self, request: Request) -> dict[str, Any]:
        said = await self._json(request)
        job = self.jobs.start(said.get("table"), _question(said))
        return job.document()

    async def _watch(self, request: Request) -> dict[str, Any]:
        return {"state": "none"} if self.jobs.job is None else self.jobs.job.document()

    async def _cancel(self, request: Request) -> dict[str, Any]:
        self.close()
        return await self._watch(request)

    async def _json(self, request: Request) -> dict[str, Any]:
        limits = self.limits
        return await read_json(request, most=limits.body_bytes, depth=limits.depth, seconds=limits.seconds)


def _number(text: str) -> int:
    """The number of an audit in an address; of anything else one that no audit has."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _question(said: Mapping[str, Any]) -> Question:
    """What is asked about a table, of the right kinds; whether its columns exist is another matter."""
    target, favourable = said.get("target"), said.get("favourable")
    sensitive, sample, limit = said.get("sensitive"), said.get("sample"), said.get("limit")
    if target is not None and not isinstance(target, str):
        raise InputError("What the model predicts must be a column of the table, or nothing.")
    if not isinstance(sensitive, list) or not all(isinstance(name, str) for name in sensitive):
        raise InputError("Choose the sensitive columns.")
    if favourable is not None and not isinstance(favourable, str):
        raise InputError("The value that counts as 1 must be one of the target's.")
    if sample is not None and (not isinstance(sample, int) or isinstance(sample, bool) or sample < 2):
        raise InputError(
            "The size of the sample must be a whole number of at least 2, or empty for all people."
        )
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit <= 1:
            raise InputError("The share of decisions that may change must be between 0 and 100%.")
        limit = float(limit)
    return Question(target or None, tuple(dict.fromkeys(sensitive)), favourable or None, sample, limit)


def _in_json(
    endpoint: Callable[[Request], Awaitable[dict[str, Any]]],
) -> Callable[[Request], Awaitable[Response]]:
    """Answer in JSON; what goes wrong becomes a sentence, and never a traceback."""

    async def answer(request: Request) -> Response:
        from starlette.responses import JSONResponse

        try:
            return JSONResponse(await endpoint(request))
        except Exception as error:
            status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
            said = (
                printable(page_words(str(error)))
                if status < 500
                else f"Something unforeseen happened ({type(error).__name__})."
            )
            # What was refused may not have been read to its end, and must not be taken for the next request.
            return JSONResponse({"error": said}, status, headers={"connection": "close"})

    return answer


_STATUS = {TooLargeError: 413, BusyError: 409, LikewiseError: 422, Exception: 500}


def _html(page: str) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(page, headers={"content-security-policy": policy_of(page)})


def _missing(sentence: str) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(sentence, 404)
