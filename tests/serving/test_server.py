"""The server on a real socket, and the command: only the loopback address, large bodies, Ctrl-C."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from likewise.core.errors import InputError
from likewise.serving import Application, Secrets
from likewise.serving.server import RunningServer


@pytest.fixture(scope="module")
def server(audited, auditor):
    with RunningServer(lambda secrets: Application(secrets, name="box", audited=audited)) as running:
        yield running


def ask(server, method, path, body=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", server.secrets.port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    link.request(method, path, body, {"X-Likewise-Token": server.secrets.asking, **named})
    answer = link.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        link.close()


def is_alive(server):
    body = b'{"rows": [[0.5, 30, "F"]]}'
    status, said = ask(server, "POST", "/api/audits/0/score", body, Content_Type="application/json")
    return status == 200 and b"probabilities" in said


def test_only_the_loopback_address_listens(server):
    assert server.link.startswith("http://127.0.0.1:")
    assert is_alive(server)
    other = socket.gethostbyname(socket.gethostname())
    if not other.startswith("127."):
        with pytest.raises(OSError, match=r"refused|unreachable|timed"):
            socket.create_connection((other, server.secrets.port), timeout=2).close()


def test_tokens_are_long_and_never_the_same(audited):
    def make(secrets):
        return Application(secrets, name="box", audited=audited)

    servers = [RunningServer(make) for _ in range(2)]
    tokens = [one.secrets.token for one in servers]
    for one in servers:
        one.close()
    assert tokens[0] != tokens[1]
    assert min(map(len, tokens)) >= 43  # 32 bytes


@pytest.mark.parametrize("chunked", [False, True])
def test_a_hundred_megabytes_are_refused_on_the_wire(server, chunked):
    part, sent = b"0" * 2**20, 0
    with socket.create_connection(("127.0.0.1", server.secrets.port), timeout=30) as link:
        size = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {100 * 2**20}"
        head = (
            f"POST /api/audits/0/score HTTP/1.1\r\nHost: 127.0.0.1:{server.secrets.port}\r\n"
            f"X-Likewise-Token: {server.secrets.asking}\r\nContent-Type: application/json\r\n{size}\r\n\r\n"
        )
        link.sendall(head.encode())
        heard = []
        listener = threading.Thread(target=lambda: heard.append(_first_line(link)))
        listener.start()
        try:
            for _ in range(100):
                link.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n" if chunked else part)
                sent += len(part)
        except OSError:
            pass  # the server has closed the door
        listener.join(30)
    # On the wire a refusal may be overtaken by the closing of the connection.
    assert heard in ([b"HTTP/1.1 413 Request Entity Too Large"], [b"HTTP/1.1 413 Content Too Large"], [b""])
    assert sent < 100 * 2**20
    assert is_alive(server)


def _first_line(link):
    try:
        return link.recv(65_536).split(b"\r\n")[0]
    except OSError:
        return b""


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100_000, b"GET /\r\n\r\n", b"\x00" * 5_000]
)  # fmt: skip
def test_what_is_no_http_does_no_harm(server, said):
    with socket.create_connection(("127.0.0.1", server.secrets.port), timeout=10) as link:
        link.sendall(said)
        link.shutdown(socket.SHUT_WR)
        _first_line(link)
    assert is_alive(server)


def test_a_port_that_is_taken_is_a_sentence(server, audited):
    with pytest.raises(InputError, match=f"Port {server.secrets.port} cannot be used"):
        RunningServer(lambda secrets: Application(secrets, name="box", audited=audited), server.secrets.port)


MODEL = """
import numpy as np

def score(frame):
    return 1 / (1 + np.exp(-frame["skill"] - 0.8 * (frame["sex"] == "M")))
"""


def test_the_command_serves_and_ctrl_c_ends_it(tmp_path):
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "skill": random.normal(size=60),
            "age": random.integers(18, 60, 60),
            "sex": random.choice(["F", "M"], 60),
        }
    )
    people.assign(hired=(people["skill"] > 0).astype(int)).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "box.py").write_text(MODEL, encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    command = [sys.executable, "-B", "-m", "likewise", "serve", "box:score", "people.csv", "--target", "hired",
               "--sensitive", "sex", "--eps", "0", "--quiet"]  # fmt: skip
    started = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = started.stdout.readline()
        port, token = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line).groups()
        link = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        link.request("GET", "/", headers={"Cookie": f"likewise_{port}={Secrets(token, int(port)).session}"})
        page = link.getresponse().read()
        link.close()
        assert b"explore-data" in page
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate(timeout=30)
    finally:
        started.kill()
        started.communicate()
    assert (started.returncode, errors) == (0, "")
    assert sorted(tmp_path.iterdir()) == before  # nothing was written


def test_idle_connections_of_others_do_not_shut_the_user_out(server):
    """64 of them did: they were never closed, and counted against everybody."""
    idle = [socket.create_connection(("127.0.0.1", server.secrets.port)) for _ in range(150)]
    try:
        assert all(is_alive(server) for _ in range(5))
    finally:
        for one in idle:
            one.close()


def test_a_connection_that_shows_no_secret_is_closed(audited, monkeypatch):
    monkeypatch.setattr("likewise.serving.server._HEADER_SECONDS", 0.3)
    with RunningServer(lambda secrets: Application(secrets, name="box", audited=audited)) as running:
        slow = socket.create_connection(("127.0.0.1", running.secrets.port), timeout=20)
        slow.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(100) == b""  # in the middle of its header, without an answer
        slow.close()
        assert is_alive(running)


@pytest.mark.parametrize(
    "path", ["/audits/" + "9" * 5_000, "/audits/-1", "/audits/%00", "/audits/²", "/audits/1e3"]
)
def test_odd_addresses_are_not_found(server, path):
    status, said = ask(
        server, "GET", path.replace("²", "%C2%B2"), Cookie=f"{server.secrets.cookie}={server.secrets.session}"
    )
    assert (status, b"not here" in said) == (404, True)


def test_cookie_link_and_header_have_a_secret_each(server):
    known = server.secrets
    assert len({known.token, known.session, known.asking}) == 3
    for wrong in (known.token, known.session):
        status, _ = ask(server, "POST", "/api/audits/0/score", b"{}", X_Likewise_Token=wrong)
        assert status == 403
    for wrong in (known.token, known.asking):
        assert ask(server, "GET", "/", Cookie=f"{known.cookie}={wrong}")[0] == 403


def test_one_upload_is_read_at_a_time(audited, auditor):
    def make(secrets):
        return Application(secrets, name="box", audited=audited, auditor=auditor)

    with RunningServer(make) as running:
        head = (
            f"POST /api/tables HTTP/1.1\r\nHost: 127.0.0.1:{running.secrets.port}\r\n"
            f"X-Likewise-Token: {running.secrets.asking}\r\nContent-Length: 1000\r\n\r\nabc"
        )
        first = socket.create_connection(("127.0.0.1", running.secrets.port), timeout=20)
        first.send(head.encode())
        until = 200
        while not running.application._uploading and until:
            until -= 1
            threading.Event().wait(0.02)
        status, said = ask(running, "POST", "/api/tables", b"a,b\n1,2\n")
        assert (status, b"Another table is being sent" in said) == (409, True)
        first.close()
