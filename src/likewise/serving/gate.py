"""Who may come in: our own pages in the user's own browser, with the token of the link, and not too often.

Three kinds of requests pass. The link with its token, which gives the browser a cookie and leads on. Pages, which
show that cookie. And questions (everything under ``/api/``), which carry the token in a header that a foreign page
cannot send: the cookie alone asks nothing, because browsers show it to every port of this machine.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from likewise.serving.limits import Limits

# How often something may happen: a bucket that fills at a rate, and from which everything takes one.


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
# Who is not let in is counted apart, so that nobody can use up what the user may ask.
_STRANGERS = (20.0, 50)

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

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

    def is_token(self, said: str) -> bool:
        """Whether somebody knows the token, in a time that does not tell how much of it."""
        return hmac.compare_digest(said.encode("utf-8", "replace"), self.token.encode())


@dataclass(frozen=True)
class Refusal:
    """Why a request does not pass."""

    status: int
    sentence: str


class Gate:
    """The ASGI application that stands before another, lets in who may, and adds headers to what comes out."""

    def __init__(self, app: App, secrets: Secrets, limits: Limits) -> None:
        self._app, self._secrets = app, secrets
        self._own = TokenBucket(limits.per_second, limits.burst)
        self._strangers = TokenBucket(*_STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = _headers(scope)
        landed = _has_landed(scope, self._secrets)
        refused = find_refusal(scope, said, self._secrets, landed=landed)
        if refused is None and not self._own.take():
            refused = Refusal(429, "Too many requests at once. Wait a moment and try again.")
        elif refused is not None and not self._strangers.take():
            refused = Refusal(429, "Too many requests that were refused.")
        if refused is not None:
            await _refuse(send, refused, scope)
        elif landed:
            cookie = f"{self._secrets.cookie}={self._secrets.token}; HttpOnly; SameSite=Strict; Path=/"
            more = [(b"set-cookie", cookie.encode())]
            await _answer(send, 200, _LANDING.encode(), b"text/html; charset=utf-8", more)
        else:
            await self._app(scope, receive, _with_headers(send))


def find_refusal(
    scope: Scope, said: dict[str, list[str]], secrets: Secrets, *, landed: bool
) -> Refusal | None:
    """Return why a request does not pass; None where it does."""
    hosts = said.get("host", [])
    if len(hosts) != 1 or hosts[0].lower() not in secrets.hosts:
        return Refusal(403, f"This server is only for this machine, under its own address. {_AGAIN}")
    own = f"http://{hosts[0].lower()}"
    if any(origin.lower() != own for origin in said.get("origin", [])):
        return Refusal(403, "A page of somebody else's asked. Nothing was done.")
    sites = said.get("sec-fetch-site", [])
    if not landed and any(site.lower() not in ("same-origin", "none") for site in sites):
        return Refusal(403, f"A page of somebody else's asked. Nothing was done. {_AGAIN}")
    if landed:
        return None
    if str(scope["path"]).startswith(API):
        known = any(secrets.is_token(token) for token in said.get(TOKEN_HEADER, [])[:1])
    else:
        known = any(secrets.is_token(token) for token in _cookies(said, secrets.cookie)[:4])
    return None if known else Refusal(403, f"The token of the link is missing or wrong. {_AGAIN}")


def _has_landed(scope: Scope, secrets: Secrets) -> bool:
    """Whether this is the link with its token."""
    if scope["method"] != "GET" or scope["path"] != "/":
        return False
    try:
        tokens = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8).get("token", [])
    except ValueError:
        return False
    return len(tokens) == 1 and secrets.is_token(tokens[0])


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _cookies(said: dict[str, list[str]], name: str) -> list[str]:
    found = []
    for line in said.get("cookie", []):
        try:
            read = SimpleCookie(line)
        except CookieError:
            continue
        if name in read:
            found.append(read[name].value)
    return found


def _with_headers(send: Send) -> Send:
    """Add our headers to an answer; its own policy for content counts where it has one."""

    async def answer(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", []))
            named = {name.lower() for name, _ in own}
            added = [pair for pair in (*_HEADERS, _POLICY) if pair[0] not in named]
            message = {**message, "headers": [*own, *added]}
        await send(message)

    return answer


async def _refuse(send: Send, refused: Refusal, scope: Scope) -> None:
    body, kind = refused.sentence, b"text/plain; charset=utf-8"
    if str(scope["path"]).startswith(API):
        body, kind = json.dumps({"error": refused.sentence}), b"application/json"
    # A body that was not read must not be taken for the next request.
    more = [] if scope["method"] == "GET" else [(b"connection", b"close")]
    await _answer(send, refused.status, body.encode(), kind, more)


async def _answer(
    send: Send, status: int, body: bytes, kind: bytes, more: list[tuple[bytes, bytes]] | None = None
) -> None:
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        *_HEADERS,
        _POLICY,
        *(more or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
