"""What stays on a screen of 80 columns, of every verb: at most 20 lines, broken between words, the verdict last."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from contextlib import contextmanager

import pandas as pd
import pytest

from likewise.improving.candidates import BoostingCandidate

SIGNS = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+")


def on_screen(written: str) -> list[str]:
    """The lines that a terminal of 80 columns shows in the end."""
    lines, row, column = [""], 0, 0
    for sign in SIGNS.finditer(written):
        text, (count, code) = sign[0], sign.groups()
        if text == "\r":
            column = 0
        elif text == "\n":
            row += 1
        elif code == "A":
            row = max(0, row - int(count or 1))
        elif code == "K":
            lines[row] = "" if count == "2" else lines[row][:column]
        elif not text.startswith("\x1b"):
            for letter in text:
                assert column < 80, f"a line is broken by the terminal, in the middle of a word: {lines[row]}"
                lines += [""] * (row + 1 - len(lines))
                line = lines[row].ljust(column)
                lines[row], column = line[:column] + letter + line[column + 1 :], column + 1
        lines += [""] * (row + 1 - len(lines))
    return "\n".join(line.rstrip() for line in lines).rstrip("\n").split("\n")


@pytest.fixture
def screen(monkeypatch, tmp_path):
    """Run a verb with standard output and error on one terminal; return exit code and what is seen in the end."""
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: object) -> tuple[int, list[str]]:
        reading, writing = pty.openpty()
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
        seen: list[bytes] = []

        def listen():
            while True:
                try:
                    part = os.read(reading, 65536)
                except OSError:  # nobody writes any more
                    return
                if not part:
                    return
                seen.append(part)

        listener = threading.Thread(target=listen)
        listener.start()
        with os.fdopen(writing, "w", encoding="utf-8") as terminal, monkeypatch.context() as there:
            there.setattr("sys.stdout", terminal)
            there.setattr("sys.stderr", terminal)
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
        listener.join()
        os.close(reading)
        return int(ended.value.code or 0), on_screen(b"".join(seen).decode())

    return call


def check(lines: list[str]) -> str:
    """At most 20 lines; return them in one."""
    assert len(lines) <= 20, "\n".join(lines)
    return " ".join(" ".join(lines).split())


@pytest.fixture
def wide(tmp_path, table, people):
    """People with missing cells and columns that the model does not use, which bring notes."""
    more = people.assign(**{f"a long name of a column {i}": i for i in range(9)})
    more.loc[::7, "job"] = None
    more.to_csv(tmp_path / "wide.csv", index=False)
    return tmp_path / "wide.csv"


SEX = ("--target", "paid", "--sensitive", "sex")


def test_audit(screen, model, wide):
    words = ("audit", model, wide, *SEX, "--favourable", "yes", "-o", "audit.html", "-o", "audit.json")
    code, lines = screen(*words, "--limit", "0")
    said = check(lines)
    assert code == 1
    assert said.count("Above the limit: ") == 1
    assert re.search(r"Above the limit: .*\)\.$", said)
    assert "Note: the model does not use" in said
    assert "Wrote audit.html and audit.json." in said
    assert "│" in said
    code, lines = screen("audit", model, wide, *SEX, "--language", "de", "--limit", "99%")
    assert code == 0
    assert check(lines).endswith(").")


def test_train(screen, table):
    code, lines = screen("train", table, *SEX, "--method", "baseline", "--steps", 20, "-o", "m.safetensors")
    assert code == 0
    assert check(lines).endswith("with other values of sex.")


def test_improve(screen, table, monkeypatch):
    small = {"n_estimators": 5, "max_depth": 2}
    names = ("Fair boosting, penalty 0.5", "blind")
    two = [BoostingCandidate(name, "", blind=name == "blind", choices=small) for name in names]
    from likewise.improving import runner

    work = runner.work
    monkeypatch.setattr("likewise.improving.choosing.trained_candidates", lambda data: tuple(two))
    monkeypatch.setattr("likewise.improving.runner.work", lambda tasks, jobs: work(tasks, 0))
    code, lines = screen("improve", table, *SEX, "-o", "better")
    assert code == 0
    said = check(lines)
    assert "→ Fair boosting, penalty 0.5 0." in said
    assert re.search(r"On 48 held-out people.*\.$", said)


def test_a_warning_stands_above_the_bar_that_is_drawn(screen, table, monkeypatch):
    """Broke once: it was written behind the bar, and broken by the terminal in the middle of a word."""
    from likewise.cli.output import reporting
    from likewise.core.progress import write_error

    @contextmanager
    def warned(*words, **named):
        with reporting(*words, **named) as show:
            write_error("Warning: the people are too few; " + "collect more of them, " * 8)
            yield show

    monkeypatch.setattr("likewise.cli.improve.reporting", warned)
    one = BoostingCandidate("blind", "", choices={"n_estimators": 5, "max_depth": 2})
    monkeypatch.setattr("likewise.improving.choosing.trained_candidates", lambda data: (one,))
    from likewise.improving import runner

    work = runner.work
    monkeypatch.setattr("likewise.improving.runner.work", lambda tasks, jobs: work(tasks, 0))
    code, lines = screen("improve", table, *SEX, "-o", "better")
    assert code == 0
    assert [line for line in lines if line.startswith("Warning: the people are too few")]


def test_verify(screen, model, table):
    code, lines = screen("verify", model, table, *SEX, "--budget-seconds", "2")
    assert code == 0
    assert re.search(r"(Depends on|Not read|No dependence|Proved) ?[^.]*sex", check(lines))


def test_inspect_and_replay(screen, model, table, people):
    marked = people.assign(
        code=[1, 2, 3, 4] * 60, occupation_of_the_person=["?", "clerk", "cook", "smith"] * 60
    )
    marked.to_csv("codes.csv", index=False)
    code, lines = screen("inspect", "codes.csv")
    assert code == 0
    said = check(lines)
    assert said.endswith("--columns columns.toml")
    assert "occupation_of_the_person: if that means missing, --read empty='?' " in said
    assert screen("audit", model, table, *SEX, "-o", "evidence")[0] == 0
    code, lines = screen("replay", "evidence/evidence.json", "--model", model, "--table", table)
    assert code == 0
    assert "Repeated: all " in check(lines)


def test_texts(screen, tmp_path):
    rows = [
        {"job": job, "variant": variant, "score": 5 + 0.4 * (variant == "black") + 0.1 * (job % 3)}
        for job in range(30)
        for variant in ("baseline", "black", "placebo_a", "placebo_b")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    words = ("--unit", "job", "--set", "variant=variant", "--set", "placebo=placebo_*")
    code, lines = screen("audit-texts", "scores.csv", *words)
    assert code in (0, 1)
    check(lines)
