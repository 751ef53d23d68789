"""Who may come in: our own pages in the user's own browser, with the token of the link, and not too often.

Three kinds of requests pass. The link with its token, which gives the browser a cookie and leads on. Pages, which
show that cookie. And questions (everything under ``/api/``), which carry a word of the page in a header that a foreign
page cannot send. Link, cookie and header have a secret each, of which none gives away another: browsers show the cookie to
every port of this machine.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from likewise.core.errors import bad_parameter

if TYPE_CHECKING:
    from starlette.requests import Request

# How much, and how often.


@dataclass(frozen=True)
class Limits:
    """What the server takes; anything beyond is refused with a sentence, and never held in memory.

    Parameters
    ----------
    body_bytes : int, default=2**20
        Of a question to the model, or any other short message.
    upload_bytes : int, default=64 * 2**20
        Of an uploaded table.
    unpacked_bytes : int, default=256 * 2**20
        That an uploaded table may become when it is unpacked.
    people : int, default=100_000
        Rows of an uploaded table.
    columns : int, default=2_000
        Columns of an uploaded table.
    cells : int, default=5_000_000
        Rows × columns of an uploaded table.
    rows : int, default=1_000
        Rows of a question to the model.
    depth : int, default=8
        How deep JSON may be nested.
    seconds : int, default=60
        For a request to arrive in.
    per_second, burst : int, default=200 and 400
        Requests on average, and at once.
    waiting : int, default=16
        Questions that wait for the model, which answers one at a time.
    results : int, default=20
        Audits that are kept; the oldest goes first.

    Examples
    --------
    >>> Limits(rows=10).rows
    10
    """

    body_bytes: int = 2**20
    upload_bytes: int = 64 * 2**20
    unpacked_bytes: int = 256 * 2**20
    people: int = 100_000
    columns: int = 2_000
    cells: int = 5_000_000
    rows: int = 1_000
    depth: int = 8
    seconds: int = 60
    per_second: int = 200
    burst: int = 400
    waiting: int = 16
    results: int = 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise bad_parameter("Limits", field.name, "a whole number >= 1", value)


# A bucket that fills at a rate, and from which everything takes one.


class TokenBucket:
    """So many at once, and so many per second after that."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._size, self._clock = float(per_second), float(burst), clock
        self._left, self._last = float(burst), clock()

    def take(self) -> bool:
        """Take one, if there is one."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._last) * self._rate)
        self._last = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"
TOKEN_HEADER = "x-likewise-token"
# Refused requests are counted apart, so that they cannot use up the user's own rate.
_REFUSED_RATE = (20.0, 50)

_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}

_AGAIN = "Open the link that the terminal shows."
# The cookie is Strict, so a redirect that somebody else's page began would not show it; this one is our own.
_LANDING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>likewise</title>'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on</a></p></html>'
)


@dataclass(frozen=True)
class Secrets:
    """What only the user's browser knows, and where the server is.

    Parameters
    ----------
    token : str
        From ``secrets.token_urlsafe``.
    port : int

    Examples
    --------
    >>> known = Secrets("token", 8000)
    >>> known.is_token("token"), known.is_token("guess")
    (True, False)
    >>> sorted(known.hosts)
    ['127.0.0.1:8000', 'localhost:8000']
    """

    token: str
    port: int

    @property
    def hosts(self) -> frozenset[str]:
        """What the header Host may say: a name that leads here by somebody's DNS is none of these."""
        names = ("127.0.0.1", "localhost")
        plain = frozenset(names) if self.port == 80 else frozenset()
        return plain | {f"{name}:{self.port}" for name in names}

    @property
    def cookie(self) -> str:
        """Name of the cookie: browsers do not keep those of different ports apart."""
        return f"likewise_{self.port}"

    @property
    def link(self) -> str:
        """What the user opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def session(self) -> str:
        """What the cookie holds."""
        return self._derived("cookie")

    @property
    def asking(self) -> str:
        """What a page sends with its questions."""
        return self._derived("questions")

    def _derived(self, what: str) -> str:
        return hmac.new(self.token.encode(), what.encode(), "sha256").hexdigest()

    def is_token(self, said: str) -> bool:
        """Whether somebody knows the token of the link."""
        return same_secret(said, self.token)


def same_secret(said: str, known: str) -> bool:
    """Whether somebody knows a secret, in a time that does not tell how much of it."""
    return hmac.compare_digest(said.encode("utf-8", "replace"), known.encode())


@dataclass(frozen=True)
class Refusal:
    """Why a request does not pass."""

    status: int
    sentence: str


class Gate:
    """The ASGI application that stands before another, lets in who may, and adds headers to what comes out."""

    def __init__(self, app: App, secrets: Secrets, limits: Limits) -> None:
        self._app, self._secrets = app, secrets
        # Told of the address of a connection that has shown a secret.
        self.on_known: Callable[[Any], object] = lambda client: None
        self._own = TokenBucket(limits.per_second, limits.burst)
        self._refusals = TokenBucket(*_REFUSED_RATE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        from starlette.requests import Request
        from starlette.responses import HTMLResponse

        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        opens_link = _opens_link(request, self._secrets)
        refused = find_refusal(request, self._secrets, opens_link=opens_link)
        if refused is None and not self._own.take():
            refused = Refusal(429, "Too many requests at once. Wait a moment and try again.")
        elif refused is not None and not self._refusals.take():
            refused = Refusal(429, "Too many requests that were refused.")
        if refused is None:
            self.on_known(scope.get("client"))
        answer = self._app
        if refused is not None:
            answer = _refusing(request, refused)
        elif opens_link:
            answer = landing = HTMLResponse(_LANDING)
            landing.set_cookie(self._secrets.cookie, self._secrets.session, httponly=True, samesite="strict")
        await answer(scope, receive, _with_headers(send))


def find_refusal(request: Request, secrets: Secrets, *, opens_link: bool) -> Refusal | None:
    """Return why a request does not pass; None if it does."""
    said = request.headers
    hosts = [host.lower() for host in said.getlist("host")]
    if len(hosts) != 1 or hosts[0] not in secrets.hosts:
        return Refusal(403, f"This server is only for this machine, under its own address. {_AGAIN}")
    if any(origin.lower() != f"http://{hosts[0]}" for origin in said.getlist("origin")):
        return Refusal(403, "A page of somebody else's asked. Nothing was done.")
    if opens_link:
        return None
    if any(site.lower() not in ("same-origin", "none") for site in said.getlist("sec-fetch-site")):
        return Refusal(403, f"A page of somebody else's asked. Nothing was done. {_AGAIN}")
    asks = request.scope["path"].startswith(API)
    shown = said.get(TOKEN_HEADER) if asks else request.cookies.get(secrets.cookie)
    known = shown is not None and same_secret(shown, secrets.asking if asks else secrets.session)
    return None if known else Refusal(403, f"The token of the link is missing or wrong. {_AGAIN}")


def _opens_link(request: Request, secrets: Secrets) -> bool:
    """Whether this is the link with its token."""
    if request.method != "GET" or request.scope["path"] != "/":
        return False
    tokens = request.query_params.getlist("token")
    return len(tokens) == 1 and secrets.is_token(tokens[0])


def _with_headers(send: Send) -> Send:
    """Add our headers to an answer; its own policy for content counts if it has one."""
    from starlette.datastructures import MutableHeaders

    async def answer(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return answer


def _refusing(request: Request, refused: Refusal) -> App:
    from starlette.responses import JSONResponse, PlainTextResponse

    # A body that was not read must not be taken for the next request.
    headers = {} if request.method == "GET" else {"connection": "close"}
    if request.scope["path"].startswith(API):
        return JSONResponse({"error": refused.sentence}, refused.status, headers)
    return PlainTextResponse(refused.sentence, refused.status, headers)
