"""What an edit in the page of `likewise serve` takes, and what a flood does to the server's memory.

    OMP_NUM_THREADS=1 python benchmarks/serving.py [--edits 200] [--trust]

Adult with XGBoost (100 trees of depth 6, a model file, in a process of its own unless --trust). An edit is one question
about the edited row and the row of the table, as the page asks it: over HTTP on a kept connection, and, where Chromium is
there, from the key stroke in the page to the new chance on it. Then 10,000 quick requests, 10,000 with a wrong token and
ten bodies of 100 MB; the memory is the resident set of the server's process, its model process apart.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

PEOPLE = 500


def make(folder: Path) -> list[list[object]]:
    """Write model and table, and return rows of people as a page sends them."""
    import numpy as np
    import pandas as pd
    import xgboost

    from likewise.datasets import load_adult
    from likewise.datasets.tabular import CATEGORIES

    data = load_adult()
    frame = pd.concat([data.frame_train, data.frame_test], ignore_index=True)
    y = np.concatenate([data.y_train, data.y_test])
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, enable_categorical=True, n_jobs=1)
    model.fit(frame.astype(dict.fromkeys(CATEGORIES, "category")), y).save_model(folder / "model.ubj")
    table = frame.assign(target=np.array(data.target_names)[y])
    table.head(PEOPLE).to_csv(folder / "people.csv", index=False)
    return json.loads(frame.head(PEOPLE).to_json(orient="values"))


class Server:
    """`likewise serve` as a process."""

    def __init__(self, folder: Path, *more: str) -> None:
        words = [sys.executable, "-m", "likewise", "serve", "model.ubj", "people.csv", "--target", "target",
                 "--sensitive", "sex", "--favourable", ">50K", "--metric", "columns", "--eps", "0", "--set", "search=candidates",
                 "--quiet", *more]  # fmt: skip
        start = time.perf_counter()
        self.process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.seconds = time.perf_counter() - start
        port, self.token = re.search(r"127\.0\.0\.1:(\d+)/\?token=(\S+)", line).groups()
        self.port = int(port)
        self.link = f"http://127.0.0.1:{port}/?token={self.token}"
        self.headers = {"X-Likewise-Token": self.token, "Content-Type": "application/json"}

    @property
    def memory(self) -> float:
        """Resident megabytes."""
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    @property
    def cpu(self) -> float:
        """Seconds of the server and of the process in which its model runs."""
        own = psutil.Process(self.process.pid)
        return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))

    def open(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def score(self, link: http.client.HTTPConnection, rows: list[list[object]]) -> tuple[int, bytes]:
        body = json.dumps({"rows": rows, "model": "model"}).encode()
        link.request("POST", "/api/audits/0/score", body, self.headers)
        answer = link.getresponse()
        return answer.status, answer.read()


def edits(server: Server, rows: list[list[object]], count: int) -> list[float]:
    """Milliseconds of edits of age, one after the other, over HTTP."""
    link, found = server.open(), []
    for i in range(count):
        row = rows[i % len(rows)]
        changed = [20 + i % 50, *row[1:]]
        start = time.perf_counter()
        status, said = server.score(link, [changed, row])
        found.append(1000 * (time.perf_counter() - start))
        if status != 200:
            sys.exit(f"{status}: {said.decode()}")
        time.sleep(0.01)
    link.close()
    return found


_EDIT = """const done = arguments[1], input = document.getElementById("explore-0");
const chance = document.querySelector(".explore-outcomes"), began = performance.now();
new MutationObserver((_, seen) => { seen.disconnect(); done(performance.now() - began); }).observe(chance, { childList: true, subtree: true, characterData: true });
input.value = arguments[0];
input.dispatchEvent(new Event("input", { bubbles: true }));"""


def browser_edits(server: Server, count: int) -> list[float] | None:
    """Milliseconds from a change of the age field to the new chance in the page."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver and importlib.util.find_spec("selenium")):
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as profile:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
        for flag in (*flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        page = webdriver.Chrome(options=options, service=Service(driver))
        page.set_script_timeout(60)
        try:
            page.get(server.link)
            while not page.find_elements("css selector", ".outcome"):
                time.sleep(0.1)
            time.sleep(2)
            found = []
            for i in range(count):
                found.append(page.execute_async_script(_EDIT, str(20 + i % 50)))
                time.sleep(0.1)
            return found
        finally:
            page.quit()


def flood(server: Server, count: int, token: str) -> Counter[int]:
    """Send quick requests on kept connections, and count the answers."""
    found: Counter[int] = Counter()
    link = server.open()
    for _ in range(count):
        try:
            link.request("GET", "/api/jobs/current", headers={"X-Likewise-Token": token})
            answer = link.getresponse()
            answer.read()
            found[answer.status] += 1
        except (OSError, http.client.HTTPException):
            link.close()
            link = server.open()
    link.close()
    return found


def large_body(server: Server) -> int:
    """Try to send 100 MB, and return how many bytes went out before the door was closed."""
    part, sent = b"0" * 2**20, 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        head = (
            f"POST /api/audits/0/score HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nTransfer-Encoding: chunked\r\n"
            f"X-Likewise-Token: {server.token}\r\nContent-Type: application/json\r\n\r\n"
        )
        link.sendall(head.encode())
        try:
            for _ in range(100):
                link.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                sent += len(part)
        except OSError:
            pass
    return sent


def shown(times: list[float]) -> str:
    ordered = sorted(times)
    return f"median {statistics.median(times):.1f} ms, 90% below {ordered[int(0.9 * len(ordered))]:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--trust", action="store_true")
    choices = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = make(Path(name))
        server = Server(Path(name), *(["--trust", "process"] if choices.trust else []))
        try:
            print(f"load {os.getloadavg()[0]:.1f}; the page was there after {server.seconds:.1f} s")
            edits(server, rows, 20)
            before = server.cpu
            said = shown(edits(server, rows, choices.edits))
            each = 1000 * (server.cpu - before) / choices.edits
            print(f"an edit over HTTP: {said}; {each:.1f} ms of CPU, the model's process included")
            seen = browser_edits(server, choices.edits // 2)
            print("an edit in Chromium:", "no Chromium" if seen is None else shown(seen))
            time.sleep(3)
            print(f"memory at rest: {server.memory:.1f} MB")
            for what, token in (("with the token", server.token), ("with a wrong one", "wrong")):
                start = time.perf_counter()
                found = flood(server, 10_000, token)
                took = time.perf_counter() - start
                print(f"10,000 requests {what}, {took:.1f} s: {dict(found)}; memory {server.memory:.1f} MB")
            sent = [large_body(server) for _ in range(10)]
            print(
                f"ten bodies of 100 MB: at most {max(sent) / 2**20:.0f} MB left; memory {server.memory:.1f} MB"
            )
            time.sleep(3)
            print("afterwards, an edit over HTTP:", shown(edits(server, rows, 50)))
        finally:
            server.process.terminate()
            server.process.wait()


if __name__ == "__main__":
    main()
