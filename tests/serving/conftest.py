"""A small black box behind the server, audited once for all tests of this room."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pandas as pd
import pytest

from likewise.serving import Application, FrameAuditor, Limits, Secrets

PORT = 8123
TOKEN = "a-token-that-only-the-link-knows"
SECRETS = Secrets(TOKEN, PORT)


def people(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "skill": random.normal(size=n).round(3),
            "age": random.integers(18, 70, n),
            "sex": random.choice(["F", "M"], n),
        }
    )
    return frame, (frame["skill"] > 0).to_numpy().astype(int)


def black_box(frame: pd.DataFrame) -> np.ndarray:
    """A score that nobody can look into: skill, and a bonus for men."""
    score = frame["skill"] + 0.8 * (frame["sex"] == "M") - 0.005 * frame["age"]
    return 1 / (1 + np.exp(-score.to_numpy(dtype=float)))


@pytest.fixture(scope="session")
def auditor():
    return FrameAuditor(black_box, "black box", eps=0.0)


@pytest.fixture(scope="session")
def audited(auditor):
    return auditor.audit(*people(), ["sex"])


@pytest.fixture(scope="session")
def make_app(audited, auditor):
    def make(**choices):
        settled = {"audited": audited, "auditor": auditor, "limits": Limits(), "name": "black box"} | choices
        return Application(Secrets(TOKEN, PORT), **settled)

    return make


@pytest.fixture(scope="session")
def loop():
    with asyncio.Runner() as runner:
        yield runner


class Client:
    """Speaks ASGI to an application, with everything that a good browser says unless told otherwise."""

    def __init__(self, app, loop):
        self.app, self.loop, self.read = app, loop, 0

    def ask(
        self,
        method,
        path,
        *,
        body=(b"",),
        token=SECRETS.asking,
        cookie=SECRETS.session,
        host=f"127.0.0.1:{PORT}",
        **headers,
    ):
        """Return status, headers and body; `None` leaves a header out, `_` in names stands for `-`."""
        path, _, query = path.partition("?")
        said = {"host": host, "x-likewise-token": token, "cookie": cookie and f"likewise_{PORT}={cookie}"}
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": query.encode(), "scheme": "http", "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in said.items() if v is not None],
            "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 50_000),
        }  # fmt: skip
        parts, sent = iter(body), []

        async def receive():
            part = next(parts, None)
            self.read += len(part or b"")
            return {"type": "http.request", "body": part or b"", "more_body": part is not None}

        async def send(message):
            sent.append(message)

        self.loop.run(self.app(scope, receive, send))
        content = b"".join(message.get("body", b"") for message in sent[1:])
        pairs = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], pairs, content

    def post(self, path, document, **choices):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        choices = {"content_type": "application/json"} | choices
        status, _, content = self.ask("POST", path, body=(data,), **choices)
        return status, json.loads(content) if content[:1] == b"{" else content.decode()

    def rest(self):
        """Let as much time go by as fills the buckets."""
        for bucket in (self.app.gate._own, self.app.gate._refusals):
            bucket._left = bucket._size


@pytest.fixture(scope="session")
def make_client(make_app, loop):
    return lambda **choices: Client(make_app(**choices), loop)


@pytest.fixture(scope="session")
def shared(make_client):
    return make_client()


@pytest.fixture
def client(shared):
    shared.rest()
    shared.read = 0
    return shared
