"""The server itself: a socket on the loopback address, a link with a token, and an end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from likewise.core.checks import check_same_length
from likewise.core.errors import InputError, bad_parameter, require
from likewise.core.frames import to_pandas
from likewise.core.progress import open_console
from likewise.core.text import option
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.serving.app import Application
from likewise.serving.audits import FrameAuditor
from likewise.serving.gate import Limits, Secrets

_HOST = "127.0.0.1"
# Connections at once. A browser opens six.
_CONNECTIONS = 64
_HEADER_BYTES = 32_768
# For a connection to show a secret; then it is one of the user's.
_HEADER_SECONDS = 10.0
_WAIT = 10.0


def open_socket(port: int) -> socket.socket:
    """Take a port of the loopback address; 0 takes a free one."""
    # Said to be TCP, so that asyncio sends at once: else every answer waits 40 ms for an acknowledgement.
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((_HOST, port))
        opened.listen(_CONNECTIONS)
    except (OSError, OverflowError) as error:
        opened.close()
        raise InputError(
            f"Port {port} cannot be used: {error}. Choose another, or leave {option('port')} out for a free one."
        ) from error
    return opened


def _server(application: Application) -> Any:
    uvicorn = require("uvicorn", extra="serve", why="Serving a model")
    limit = ConnectionLimit(_CONNECTIONS, _HEADER_SECONDS)
    application.gate.on_known = limit.on_known
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http=limit.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )
    return uvicorn.Server(config)


def _in_turns(act: Callable[..., object], *given: Any, turns: int = 8) -> None:
    """Act when the loop has read what had come: after a pause, a secret may wait behind a hundred connections."""
    if turns:
        asyncio.get_running_loop().call_soon(partial(_in_turns, act, *given, turns=turns - 1))
    else:
        act(*given)


class ConnectionLimit:
    """Limits connections without a secret in number and time; the oldest is closed first, so the user is never locked out."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._unknown: dict[Any, tuple[Any, Any]] = {}

    def on_known(self, client: Any) -> None:
        """A connection from this address has shown a secret."""
        _, timer = self._unknown.pop(client, (None, None))
        if timer is not None:
            timer.cancel()

    def enter(self, client: Any, transport: Any) -> None:
        """A connection was made."""
        timer = asyncio.get_running_loop().call_later(self._seconds, _in_turns, self._close, client)
        self._unknown[client] = transport, timer
        _in_turns(self._make_room)

    def _make_room(self) -> None:
        if len(self._unknown) > self._most:
            self._close(next(iter(self._unknown)))

    def _close(self, client: Any) -> None:
        transport, timer = self._unknown.pop(client, (None, None))
        if transport is not None:
            timer.cancel()
            transport.abort()

    def protocol(self) -> Any:
        """Return uvicorn's protocol, which tells of its connections."""
        base: Any = require(
            "uvicorn.protocols.http.h11_impl", extra="serve", why="Serving a model"
        ).H11Protocol
        limit = self

        class Watched(base):  # type: ignore[misc]
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                limit.enter(self.client, transport)

            def connection_lost(self, error: Exception | None) -> None:
                limit.on_known(self.client)
                super().connection_lost(error)

        return Watched


class RunningServer:
    """A server in a thread of its own, until it is closed.

    Parameters
    ----------
    make : callable Secrets -> Application
    port : int, default=0
        0 takes a free one.

    Attributes
    ----------
    secrets : Secrets
    application : Application

    Examples
    --------
    >>> from likewise.serving import FrameAuditor
    >>> auditor = FrameAuditor(lambda table: table["skill"], "skill")
    >>> with RunningServer(lambda secrets: Application(secrets, name="skill", auditor=auditor)) as server:
    ...     server.link.partition("?")[0] == f"http://127.0.0.1:{server.secrets.port}/"
    True
    """

    def __init__(self, make: Callable[[Secrets], Application], port: int = 0) -> None:
        self._socket = open_socket(port)
        self.secrets = Secrets(secrets.token_urlsafe(32), self._socket.getsockname()[1])
        try:
            self.application = make(self.secrets)
            self._server = _server(self.application)
        except BaseException:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._run, name="likewise server", daemon=True)
        # Not asked of the thread: one whose `join` Ctrl-C interrupts is taken for ended, though it runs (Python 3.11).
        self._ended = threading.Event()

    @property
    def link(self) -> str:
        """What to open in a browser."""
        return self.secrets.link

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + _WAIT
        while not self._server.started and not self._ended.is_set() and time.monotonic() < until:
            time.sleep(0.01)
        if not self._server.started:
            raise InputError("serve: the server did not start.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def until_interrupted(self, say: Callable[[str], None] | None = None) -> None:
        """Start, tell `say` the link, and serve until Ctrl-C or until the server ends by itself."""
        # Ctrl-C is how it ends, from the moment the link is said: who reads it may be faster than the next line.
        with self, contextlib.suppress(KeyboardInterrupt):
            if say is not None:
                say(self.link)
            while not self._ended.wait(0.5):
                pass

    def close(self) -> None:
        """End the server, and an audit that runs."""
        self.application.close()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._ended.wait(_WAIT)
        self._socket.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended.set()


def run_server(
    make: Callable[[Secrets], Application], *, port: int = 0, say: Callable[[str], None] | None = None
) -> None:
    """Serve until Ctrl-C."""
    RunningServer(make, port).until_interrupted(say)


# A model in Python behind a page on this machine.


def start_server(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Sequence[str],
    favourable: Any = None,
    metric: FairMetric | None = None,
    domain: TabularDomain | None = None,
    immutable: Sequence[str] = (),
    eps: float | None = None,
    budget_seconds: float | None = None,
    name: str = "the model",
    uploads: bool = True,
    limits: Limits | None = None,
    language: str = "en",
    port: int = 0,
    random_state: int = 0,
    progress: bool = False,
) -> RunningServer:
    """Audit a model, and return the server of its page; entering it as a context starts it.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        Such as a function, which gets the table and returns probabilities. It is asked about one thing at a time.
    X : table of shape (n, p)
        The people, in original units.
    y : array-like of shape (n,), optional
        Their labels.
    sensitive_features : sequence of str
        Columns that decisions should not depend on.
    favourable : object, optional
        The decision that people want.
    metric : FairMetric, optional
        Who is comparable with whom: adds the question about people a little apart.
    domain : TabularDomain, optional
        Which rows can exist; by default it is made from the table.
    immutable : sequence of str
        Columns that no counterpart may differ in.
    eps, budget_seconds : float, optional
        As in `audit`.
    name : str
        Of the model, for headings.
    uploads : bool, default=True
        Whether further tables can be audited in the browser.
    limits : Limits, optional
        How much may be asked.
    language : {"en", "de"}, default="en"
        Of the pages.
    port : int, default=0
        0 takes a free one.
    random_state : int, default=0
    progress : bool, default=False
        Show how far the audit is, on standard error.

    Examples
    --------
    >>> import urllib.request
    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"skill": np.arange(20) / 10, "sex": ["F", "M"] * 10})
    >>> score = lambda frame: 1 / (1 + np.exp(1 - frame["skill"] - (frame["sex"] == "M")))
    >>> with start_server(score, people, sensitive_features=["sex"]) as server:
    ...     urllib.request.urlopen(server.link).status
    200
    """
    table = to_pandas(X, owner="serve", name="X")
    if y is not None:
        check_same_length("serve", X=table, y=y)
    if isinstance(sensitive_features, str) or not len(sensitive_features):
        allowed = "a list of columns, such as ['sex']"
        raise bad_parameter("serve", "sensitive_features", allowed, sensitive_features)
    auditor = FrameAuditor(model, name, metric, domain, tuple(immutable), eps, random_state, budget_seconds)
    audited = auditor.audit(table, y, tuple(sensitive_features), progress, favourable=favourable)
    return RunningServer(
        lambda secrets: Application(
            secrets,
            name=name,
            audited=audited,
            auditor=auditor if uploads else None,
            known={"target": None, "favourable": favourable, "sensitive": list(sensitive_features)},
            limits=limits,
            language=language,
        ),
        port,
    )


def serve(model: Any, X: Any, y: Any = None, **choices: Any) -> None:
    """Audit a model, and serve the page with the model behind it on the loopback address until Ctrl-C.

    The link that is printed has a token; without it the server answers nothing. Nothing is written.

    Parameters
    ----------
    model, X, y, **choices
        As in `start_server`.

    Examples
    --------
    >>> serve(lambda frame: frame["skill"] > 1, {"skill": [1.0]}, sensitive_features=[])
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: serve: ...
    """
    running = start_server(model, X, y, **({"progress": True} | choices))
    screen = open_console(soft_wrap=True)
    name = choices.get("name", "the model")
    running.until_interrupted(
        lambda link: screen.print(f"Serving {name} on {link} (Ctrl-C ends it)", markup=False)
    )
