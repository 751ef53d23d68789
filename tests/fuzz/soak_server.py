"""The server under random trouble for minutes: the user is served all the time, and memory has a ceiling.

    OMP_NUM_THREADS=1 python tests/fuzz/soak_server.py [--seconds 600] [--seed 0]

`likewise serve` runs with a model file. Beside a user, who asks about people and opens pages, threads kill the model's
process, open connections that say nothing or half a header, ask without a secret, and upload tables at, below and beyond
every limit, broken ones among them, some of which are audited and cancelled. Exits with 1 if the user was refused or waited
longer than 30 s for anything once, if the server held more memory than CEILING, answered 500, or left a process behind.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd

# Of the server's process alone: itself .4 GB, an upload at its limits, what an audit makes of it.
CEILING = 2 * 2**30
WORDS = ["--target", "paid", "--sensitive", "sex", "--quiet"]


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    frame = pd.DataFrame({"skill": rng.normal(size=n).round(3), "age": rng.integers(18, 80, n)})
    frame["sex"] = rng.integers(0, 2, n)
    frame["paid"] = (frame["skill"] + frame["sex"] > 0.5).astype(int)
    return frame


def prepared(folder: Path) -> None:
    """Make a table and a model file that answers in a process of its own."""
    import xgboost

    table = people(300, np.random.default_rng(0))
    table.to_csv(folder / "people.csv", index=False)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1)
    model.fit(table.drop(columns="paid"), table["paid"]).get_booster().save_model(folder / "model.json")


def uploads(rng: random.Random, *, small: bool) -> Iterator[tuple[str, bytes]]:
    """Tables for ever, each with a name for what it tries."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    scale = 10 if small else 1
    rows, columns, cells, size = 100_000 // scale, 2_000, 5_000_000 // scale, 64 * 2**20 // scale

    def parquet(frame: pd.DataFrame) -> bytes:
        held = io.BytesIO()
        frame.to_parquet(held, compression="zstd")
        return held.getvalue()

    makes: dict[str, Callable[[], bytes]] = {
        "as many people as are allowed": lambda: people(rows, numbers).to_csv(index=False).encode(),
        "one more": lambda: people(100_001, numbers).to_csv(index=False).encode(),
        "as many columns": lambda: pd.DataFrame(np.zeros((5, columns), int)).to_csv(index=False).encode(),
        "too many columns": lambda: ",".join(f"c{i}" for i in range(200_000)).encode(),
        "as many cells": lambda: parquet(pd.DataFrame(numbers.normal(size=(cells // 50, 50))).rename(columns=str)),
        "as many bytes": lambda: b"sex,paid,word\n" + b"1,0," + b"w" * (size - 18),
        "more bytes": lambda: b"a" * (64 * 2**20 + 1),
        "long words": lambda: parquet(pd.DataFrame({"paid": [0, 1] * 50, "sex": "x" * (2_000_000 // scale)})),
        "repeated": lambda: parquet(pd.DataFrame({"sex": np.zeros(20_000_000 // scale, "i1")})),
        "broken": lambda: rng.randbytes(10_000),
        "half": lambda: parquet(people(5_000, numbers))[:-2_000],
        "small": lambda: people(2_000, numbers).to_csv(index=False).encode(),
    }  # fmt: skip
    made: dict[str, bytes] = {}
    while True:
        name = rng.choice(list(makes))
        yield name, made.setdefault(name, makes[name]())


class Soak:
    """One server and its visitors."""

    def __init__(self, folder: Path, seconds: float, seed: int, *, small: bool = False) -> None:
        self.rng, self.small, self.seconds = random.Random(seed), small, seconds
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.peak, self.slowest = 0, 0.0
        self.over = threading.Event()
        prepared(folder)
        self.server = subprocess.Popen(
            [sys.executable, "-m", "likewise", "serve", "model.json", "people.csv", *WORDS],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line)
        if found is None:
            raise RuntimeError(line + self.server.stderr.read())
        self.port, self.token = int(found[1]), found[2]
        self.cookie = self._entered()
        page = self.get("/")
        self.asking = re.search(r'"token":\s*"([^"]+)"', page)[1]

    def _entered(self) -> str:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.request("GET", f"/?token={self.token}")
        return link.getresponse().getheader("set-cookie").split(";")[0]

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            link.request(
                method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
            )
            answer = link.getresponse()
            self.seen[str(answer.status)] += 1
            said = answer.read()
            if answer.status >= 500:
                self.wrong.append(f"{method} {path}: {answer.status} {said[:200]!r}")
            return answer.status, said
        finally:
            link.close()

    def get(self, path: str) -> str:
        status, said = self.ask("GET", path, Cookie=self.cookie)
        if status != 200:
            self.wrong.append(f"the user got {status} for {path}: {said[:200]!r}")
        return said.decode()

    def question(self, path: str, document: object) -> tuple[int, bytes]:
        data = json.dumps(document).encode()
        return self.ask("POST", path, data, X_Likewise_Token=self.asking, Content_Type="application/json")

    def user(self) -> None:
        rng = random.Random(1)
        while not self.over.is_set():
            begun = time.monotonic()
            rows = [[round(rng.uniform(-3, 3), 3), rng.randrange(18, 80), rng.randrange(2)] for _ in range(5)]
            status, said = self.question("/api/audits/0/score", {"rows": rows})
            self.seen["asked"] += 1
            if status != 200 or len(json.loads(said)["probabilities"]) != 5:
                self.wrong.append(f"the user got {status}: {said[:300]!r}")
            if rng.random() < 0.2:
                self.get(rng.choice(["/", "/tables"]))
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.over.wait(rng.uniform(0, 0.3))

    def killer(self) -> None:
        answered = 0
        while not self.over.wait(self.rng.uniform(2.0, 6.0 if self.small else 20.0)):
            if self.seen["asked"] == answered:  # on a busy machine it is still starting
                continue
            answered = self.seen["asked"]
            for child in children(self.server.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, self.rng.choice([signal.SIGKILL, signal.SIGTERM]))
                    self.seen["killed"] += 1

    def strangers(self) -> None:
        held: list[socket.socket] = []
        rng = random.Random(2)
        while not self.over.wait(0.02):
            with suppress(OSError):
                one = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                self.seen["strangers"] += 1
                held.append(one)
                one.sendall(
                    rng.choice(
                        [
                            b"",
                            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
                            b"GET /?token=guess HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.port,
                            b"POST /api/tables HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 60000000\r\n\r\nabc"
                            % self.port,
                            rng.randbytes(200),
                        ]
                    )
                )
            if len(held) > 300:
                held.pop(rng.randrange(len(held))).close()
        for one in held:
            one.close()

    def uploader(self) -> None:
        for name, table in uploads(self.rng, small=self.small):
            if self.over.is_set():
                return
            try:
                status, said = self.ask(
                    "POST",
                    "/api/tables",
                    table,
                    X_Likewise_Token=self.asking,
                    X_File_Name=f"{name}.csv".replace(" ", "%20"),
                )
            except OSError:
                status, said = 413, b""  # what is too large may be cut off before it is sent
            self.seen[f"{name}: {status}"] += 1
            if status == 200:
                number = json.loads(said).get("number", json.loads(said).get("table"))
                self.question(
                    "/api/jobs", {"table": number, "target": "paid", "sensitive": ["sex"], "seconds": 5}
                )
                self.over.wait(self.rng.uniform(0, 3))
                if self.rng.random() < 0.7:
                    self.question("/api/jobs/cancel", {})
                until = time.monotonic() + 60
                while time.monotonic() < until and not self.over.is_set():
                    _, said = self.ask("GET", "/api/jobs/current", X_Likewise_Token=self.asking)
                    state = json.loads(said)
                    if state["state"] not in ("running", "cancelling"):
                        self.seen[f"audit {state['state']}"] += 1
                        if "unforeseen" in json.dumps(state):
                            self.wrong.append(f"audit of {name}: {state}")
                        break
                    self.over.wait(0.2)

    def watcher(self) -> None:
        while not self.over.wait(0.05):
            with suppress(OSError):
                held = int(Path(f"/proc/{self.server.pid}/statm").read_text().split()[1]) * 4096
                self.peak = max(self.peak, held)

    def run(self) -> list[str]:
        threads = [
            threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            for work in (self.user, self.killer, self.strangers, self.uploader, self.watcher)
        ]
        for one in threads:
            one.start()
        time.sleep(self.seconds)
        self.over.set()
        for one in threads:
            one.join(120)
        left = children(self.server.pid)
        self.server.send_signal(signal.SIGINT)
        try:
            _, errors = self.server.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.server.kill()
            _, errors = self.server.communicate()
            self.wrong.append("the server does not end")
        if self.server.returncode != 0 or errors:
            self.wrong.append(f"the server ended with {self.server.returncode}: {errors[-300:]}")
        time.sleep(0.5)
        self.wrong += [
            f"process {one} is left" for one in left if Path(f"/proc/{one}").exists() and _alive(one)
        ]
        if self.peak > CEILING:
            self.wrong.append(f"{self.peak / 2**20:,.0f} MB were held")
        if self.slowest > 30:
            self.wrong.append(f"the user waited {self.slowest:.0f} s")
        return self.wrong

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")


def _alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def children(pid: int) -> list[int]:
    """Processes that this one started, and those that they did."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A shell that starts this in the background has Ctrl-C ignored, by everything that is started here too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with _folder() as folder:
        soak = Soak(folder, options.seconds, options.seed)
        wrong = soak.run()
    for name, count in sorted(soak.seen.items()):
        print(f"{count:8,}  {name}")
    print(
        f"peak {soak.peak / 2**20:,.0f} MB, the user waited {soak.slowest:.1f} s at the most; {len(wrong)} wrong"
    )
    print(*Counter(wrong).items(), sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
