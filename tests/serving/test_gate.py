"""Who may come in, and how much may be asked: everything that is refused, with the server alive afterwards."""

from __future__ import annotations

import gc
import json

import pytest

from likewise.serving import Limits
from likewise.serving.app import nesting

SCORE = "/api/audits/0/score"
ROWS = {"rows": [[0.5, 30, "F"], [0.5, 30, "M"]]}
HOST = "127.0.0.1:8123"


def is_alive(client):
    status, said = client.post(SCORE, ROWS)
    return status == 200 and len(said["probabilities"]) == 2


def test_the_link_gives_a_strict_cookie_and_nothing_else(client):
    status, headers, body = client.ask(
        "GET", "/?token=a-token-that-only-the-link-knows", token=None, cookie=None
    )
    assert status == 200
    assert headers["set-cookie"].endswith("HttpOnly; Path=/; SameSite=strict")
    assert b"token" not in body
    assert headers["cache-control"] == "no-store"
    status, headers, body = client.ask("GET", "/", token=None)
    assert status == 200
    assert b"explore-data" in body


@pytest.mark.parametrize(
    ("path", "secrets"),
    [
        ("/", {"cookie": None}),
        ("/", {"cookie": "wrong"}),
        ("/", {"cookie": None, "token": "a-token-that-only-the-link-knows"}),
        ("/?token=wrong", {"cookie": None}),
        ("/?token=", {"cookie": None}),
        ("/?token=a-token-that-only-the-link-knows&token=b", {"cookie": None}),
        ("/tables?token=a-token-that-only-the-link-knows", {"cookie": None}),
        ("/audits/0", {"cookie": "wrong"}),
        ("/api/jobs/current", {"token": None}),
        ("/api/jobs/current", {"token": "wrong"}),
        ("/api/jobs/current", {"token": "a-token-that-only-the-link-know"}),
        ("/api/nowhere", {"token": None}),
        ("/nowhere", {"cookie": None}),
    ],
)
def test_without_the_token_there_is_nothing_to_see(client, path, secrets):
    status, headers, body = client.ask("GET", path, **secrets)
    assert status == 403
    assert b"explore-data" not in body
    assert "set-cookie" not in headers
    assert is_alive(client)


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", f"evil.example:{8123}", "127.0.0.1", "127.0.0.1:8124", "127.0.0.1:8123.evil.example",
     "127.0.0.2:8123", "[::1]:8123", "0.0.0.0:8123"],
)  # fmt: skip
def test_a_name_that_leads_here_by_foreign_dns_is_refused(client, host):
    assert client.ask("GET", "/", host=host)[0] == 403
    assert client.post(SCORE, ROWS, host=host)[0] == 403
    assert is_alive(client)


def test_two_hosts_are_none(client):
    assert client.ask("GET", "/", **{"Host": HOST})[0] == 403


def test_localhost_is_this_machine(client):
    assert client.ask("GET", "/", host="LOCALHOST:8123")[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:8123", "http://127.0.0.1:8124", "file://", ""],
)
def test_a_foreign_page_may_not_ask_even_with_the_token(client, origin):
    status, said = client.post(SCORE, ROWS, origin=origin)
    assert status == 403
    assert "somebody else" in said["error"]
    assert is_alive(client)


def test_our_own_page_may_ask(client):
    assert client.post(SCORE, ROWS, origin=f"http://{HOST}", sec_fetch_site="same-origin")[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_the_browser_says_of_the_asking_page_is_respected(client, site):
    assert client.ask("GET", "/", sec_fetch_site=site)[0] == 403
    assert client.post(SCORE, ROWS, sec_fetch_site=site)[0] == 403
    # the link itself may stand in a mail
    link = "/?token=a-token-that-only-the-link-knows"
    assert client.ask("GET", link, cookie=None, sec_fetch_site=site)[0] == 200


def test_answers_carry_the_headers_that_keep_them_here(client):
    for path in ("/", "/tables", "/nowhere", "/api/jobs/current"):
        _, headers, _ = client.ask("GET", path)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe-eval" not in headers["content-security-policy"]
        assert not [name for name in headers if name.startswith("access-control")]
    policy = client.ask("GET", "/")[1]["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "script-src 'sha256-" in policy


def test_a_preflight_gets_no_permission(client):
    status, headers, _ = client.ask(
        "OPTIONS", SCORE, token=None, origin="http://evil.example", access_control_request_method="POST"
    )
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", [SCORE, "/api/jobs"])
@pytest.mark.parametrize("announced", [True, False])
def test_a_large_body_is_refused_before_it_is_held(client, path, announced):
    size, part = 100 * 2**20, b"0" * 65_536
    body = (part for _ in range(size // len(part)))
    headers = {"content_length": str(size)} if announced else {"transfer_encoding": "chunked"}
    client.read = 0
    status, _, said = client.ask("POST", path, body=body, content_type="application/json", **headers)
    assert status == 413
    assert "1 MB" in json.loads(said)["error"]
    assert client.read <= (0 if announced else 2**20 + len(part))
    assert is_alive(client)


def test_a_large_table_is_refused_before_it_is_held(make_client):
    client = make_client(limits=Limits(upload_bytes=2**20))
    status, _, _ = client.ask("POST", "/api/tables", body=(b"0" * 65_536 for _ in range(1600)))
    assert status == 413
    assert client.read <= 2**20 + 65_536


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[]", "JSON object"),
        (b'{"rows": NaN}', "JSON"),
        (b'{"rows": [[Infinity]]}', "JSON"),
        (b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
        (b'{"a":' * 200_000, "nested"),
        (b'{"rows": ' + b"9" * 100_000 + b"}", "JSON"),
    ],
)
def test_broken_json_is_a_sentence(client, body, why):
    status, said = client.post(SCORE, body)
    assert status == 422
    assert why in said["error"]
    assert is_alive(client)


@pytest.mark.parametrize(
    "cell", ['"\\ud800"', '"\\u202e\\u001b[2J"', "9" * 400, "1e400", "[]"], ids=lambda cell: cell[:9]
)
@pytest.mark.parametrize("place", ["rows", "limit", "sample", "target", "table"])
def test_what_json_can_hold_is_a_printable_sentence(client, cell, place):
    """Half a character in a cell, and a number of 400 digits, were status 500."""
    row = f'{{"rows": [[{cell}, 30, "M"]]}}'
    job = f'{{"table": 1, "sensitive": ["sex"], "{place}": {cell}}}'
    status, said = client.post(*((SCORE, row.encode()) if place == "rows" else ("/api/jobs", job.encode())))
    assert status == 422
    assert said["error"].isprintable()
    assert is_alive(client)


def test_a_form_of_a_foreign_page_is_no_question(client):
    # What a page may send without asking the browser first: a form, or plain text.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post(SCORE, ROWS, content_type=kind)[0] == 422


def test_ten_thousand_quick_requests_are_bounded(client):
    assert [client.post(SCORE, ROWS)[0] for _ in range(20)] == [200] * 20
    gc.collect()
    kept = len(gc.get_objects())
    answers = [client.ask("GET", "/api/jobs/current")[0] for _ in range(9_980)]
    assert set(answers) == {200, 429}
    gc.collect()
    assert len(gc.get_objects()) - kept < 500  # nothing is kept of a request
    client.rest()
    assert is_alive(client)


def test_strangers_do_not_use_up_what_the_user_may_ask(client):
    answers = [client.ask("GET", "/", cookie="wrong")[0] for _ in range(200)]
    assert set(answers) == {403, 429}
    assert is_alive(client)


def test_a_web_socket_is_closed(client):
    sent = []

    async def send(message):
        sent.append(message)

    client.loop.run(client.app({"type": "websocket", "path": "/", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    ("text", "depth"), [(b'{"a": "[[[[\\"[["}', 1), (b"[[1], [2]]", 2), (b'"', 0), (b"]]", 0)]
)
def test_nesting_counts_what_is_not_in_words(text, depth):
    assert nesting(text) == depth
