"""Audits of scorers: paid once, stopped by the cap, survived by retries, replayed offline byte for byte."""

from __future__ import annotations

import importlib.util
import socket
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import likewise as lw
from likewise.core.errors import FormatError, InputError, ModelError, NotConvergedError
from likewise.report import document_of
from likewise.text import BudgetError, CallLimits, NameSwap, ReplyCache, TermSwap, audit_texts, plan_texts
from likewise.text.replies import LimitedCaller, score_of_reply

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("slow_audit", HERE / "slow_audit.py")
slow_audit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(slow_audit)
N_CALLS = 36  # 12 texts as they are and under two edits


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.paid = Counter()
        self.attempts = 0
        self.failures = []  # statuses to answer with first
        self.delay = 0.0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        server = self.server
        with server.lock:
            server.attempts += 1
            status = server.failures.pop(0) if server.failures else 200
            if status == 200:
                server.paid[text] += 1
        time.sleep(server.delay)
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0.002")
        self.end_headers()
        if status == 200:
            self.wfile.write(str(len(text) % 5).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_killed_audit_goes_on_without_paying_twice(server, tmp_path):
    cache = tmp_path / "replies.db"
    server.delay = 0.15
    killed = subprocess.Popen([sys.executable, HERE / "slow_audit.py", server.url, cache])
    deadline = time.monotonic() + 60
    while sum(server.paid.values()) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    with ReplyCache(cache) as kept:
        done = len(kept)
    assert 3 <= done < N_CALLS
    server.delay = 0.0
    before = sum(server.paid.values())
    result = slow_audit.run(server.url, cache)
    assert result.replayed == done
    assert result.calls == sum(server.paid.values()) - before == N_CALLS - done
    # Only the reply that was on its way when the process died can have been asked for twice.
    assert sum(count - 1 for count in server.paid.values()) <= 1
    again = slow_audit.run("http://127.0.0.1:9/", cache)  # nobody listens there
    assert (again.calls, again.replayed) == (0, N_CALLS)
    assert document_of(again.audits) == document_of(result.audits)


def test_a_busy_and_broken_server_is_survived(server, tmp_path):
    server.failures = [429, 500, 503, 200, 429, 429, 502, 200, 500]
    result = slow_audit.run(server.url, tmp_path / "replies.db")
    assert server.attempts == N_CALLS + 7
    assert result.calls == N_CALLS + 7
    assert set(server.paid.values()) == {1}


def test_a_server_that_never_recovers_is_given_up_and_a_refusal_is_not_repeated(server, tmp_path):
    server.failures = [500] * 100
    with pytest.raises(NotConvergedError, match="3 times in a row"):
        slow_audit.run(server.url, tmp_path / "replies.db", retries=2)
    assert server.attempts == 3
    server.failures = [401]
    with pytest.raises(ModelError, match="401"):
        slow_audit.run(server.url, tmp_path / "replies.db")
    assert server.attempts == 4


def test_the_cap_stops_before_it_is_exceeded_and_failures_count(server, tmp_path):
    server.failures = [429, 500]
    cache = tmp_path / "replies.db"
    with pytest.raises(BudgetError, match="cap of 10"):
        slow_audit.run(server.url, cache, max_calls=10)
    assert server.attempts == 10
    with ReplyCache(cache) as kept:
        assert len(kept) == 8
    result = slow_audit.run(server.url, cache, max_calls=N_CALLS - 8)
    assert result.replayed == 8
    assert server.attempts == 10 + N_CALLS - 8


def test_the_rate_is_kept():
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    caller = LimitedCaller(len, CallLimits(per_second=4.0), sleep=sleep, clock=lambda: now[0])
    for _ in range(9):
        caller("abc")
    assert sum(slept) == pytest.approx(2.0)


def test_nothing_leaves_the_machine_and_the_cache_is_its_owners(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    cache = tmp_path / "replies.db"
    audit_texts(len, slow_audit.TEXTS, edits=slow_audit.EDITS, cache=cache, name="length")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["replies.db"]
    assert b"Emily" not in cache.read_bytes()
    assert b"practice" not in cache.read_bytes()


def test_an_open_cache_that_others_could_read_is_closed_to_them(tmp_path):
    cache = tmp_path / "replies.db"
    cache.touch(0o644)
    with ReplyCache(cache):
        assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    other = tmp_path / "notes.txt"
    other.write_text("no database " * 200)
    with pytest.raises(FormatError, match="not a file of replies"):
        ReplyCache(other)


def test_a_pipeline_that_learned_a_name_is_found_and_one_that_did_not_is_not():
    rng = np.random.default_rng(0)
    names = rng.choice(["Emily", "Lakisha"], 400)
    skills = rng.choice(["good", "bad"], 400)
    texts = [
        f"{name} did a {skill} job number {i}."
        for i, (name, skill) in enumerate(zip(names, skills, strict=True))
    ]
    edits = [NameSwap(names=("Lakisha",), source=("Emily",), gender="female")]
    audited = [text for text in texts if text.startswith("Emily")][:40]
    unfair = make_pipeline(CountVectorizer(), LogisticRegression())
    unfair.fit(texts, (skills == "good") & (names == "Emily"))
    fair = make_pipeline(CountVectorizer(stop_words=["emily", "lakisha"]), LogisticRegression())
    fair.fit(texts, skills == "good")
    found = audit_texts(unfair, audited, edits=edits).audits.parts[0].families[0]
    assert found.verdict == "shifted"
    assert found.shift.high < -0.1
    same = audit_texts(fair, audited, edits=edits, margin=0.02).audits.parts[0].families[0]
    assert same.verdict == "equivalent"
    assert same.size == 0.0


def test_groups_clusters_and_what_changed_nothing():
    texts = [*slow_audit.TEXTS, "No name at all."]
    groups = ["a"] * 6 + ["b"] * 7
    result = audit_texts(
        len, texts, edits=slow_audit.EDITS, placebos=[str.upper], groups=groups, clusters=list(range(13))
    )
    assert [part.name for part in result.audits] == ["a", "b"]
    assert result.audits.parts[0].placebos == ("placebo_upper",)
    nothing = result.edited.query("changes == 0")
    assert set(nothing["text"]) == {12}
    assert set(nothing["why"]) == {"no first name found"}
    assert len(result.scores.query("text == 12")) == 2


@pytest.mark.parametrize(
    ("reply", "options", "wanted"),
    [
        (True, {}, (1.0, None)),
        ([0.9, 0.1], {"favourable": 0}, (0.9, "0")),
        ([{"label": "A", "score": 0.7}, {"label": "B", "score": 0.3}], {"favourable": "B"}, (0.3, "A")),
        (0.4, {"threshold": 0.5}, (0.4, "no")),
    ],
)
def test_replies(reply, options, wanted):
    assert score_of_reply(reply, **options) == wanted


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: audit_texts(5, ["Emily"]), InputError, "'scorer' must be a function"),
        (lambda: audit_texts(len, "Emily"), InputError, "'texts' must be a list"),
        (lambda: audit_texts(len, ["nobody"]), InputError, "no edit changes any text"),
        (lambda: audit_texts(len, ["Emily"], groups=[1, 2]), InputError, "'groups' must be one per text"),
        (lambda: audit_texts(lambda text: "x", ["Emily"]), InputError, "'favourable'"),
        (lambda: audit_texts(lambda text: float("nan"), ["Emily"]), ModelError, "not finite"),
        (lambda: audit_texts(lambda text: object(), ["Emily"]), ModelError, "answered with object"),
        (lambda: audit_texts(len, ["Emily"], offline=True), InputError, "not in the cache"),
        (
            lambda: audit_texts(len, ["Emily"], cache=ReplyCache()),
            InputError,
            "'name' must be given with a cache",
        ),
        (lambda: plan_texts(["Emily"], edits=[]), InputError, "'edits' is empty"),
        (lambda: plan_texts(["Emily"], edits=[TermSwap("a", {"x": "y"})] * 2), InputError, "different names"),
        (lambda: CallLimits(per_second=0), InputError, "'per_second'"),
        (lambda: CallLimits(max_calls=-1), InputError, "'max_calls'"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_it_is_public():
    assert lw.audit_texts is audit_texts
