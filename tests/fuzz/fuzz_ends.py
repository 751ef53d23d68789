"""How commands end: Ctrl-C at any moment, a full disk, hostile names on terminals of every encoding, files that are opened.

    OMP_NUM_THREADS=1 python tests/fuzz/fuzz_ends.py [--signals 200] [--seed 0] [--skip disk]

Every command is a process of its own. After Ctrl-C: exit code 130, nothing that looks like a verdict, outputs whole or
absent, no temporary file left. On a full disk (a tmpfs, which needs an administrator on Linux) and with names full of
escape sequences on a pseudo-terminal: a sentence, printable. With strace: the process of a model file opens nothing outside
of the allowed folders. Exits with 1 if anything else is seen.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

LIKEWISE = [sys.executable, "-m", "likewise"]
HOSTILE = "\x1b[2J\x1b]0;x\x07\u202e"
# What rich writes itself on a terminal: colours, cursor, lines.
_OWN = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


def run(words: list[str], folder: Path, **choices: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LIKEWISE, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=900, **choices
    )


def prepared(folder: Path, end: str = "") -> dict[str, list[str]]:
    """Make a table, a model and evidence; return a command for each verb. Names and words have the given end."""
    table, sex, text, yes = f"people{end}.csv", f"sex{end}", f"text{end}", f"yes{end}"
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=400), "age": rng.integers(18, 80, 400)})
    people[sex] = rng.choice(["F", f"M{end}"], 400)
    people["paid"] = np.where(people["skill"] + (people[sex] != "F") > 0.5, yes, "no")
    people.to_csv(folder / table, index=False)
    told = ["--target", "paid", "--sensitive", sex]
    model = [f"{Path(table).stem}.safetensors", table]
    for words in (
        ["train", table, *told, "--steps", "20", "-o", model[0], "-q"],
        ["audit", *model, *told, "-o", "evidence/", "-q"],
    ):
        done = run(words, folder)
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stderr)
    (folder / "texts.csv").write_text(f"{text}\nEmily is kind{end}\nJames is late\n")
    (folder / "scorer.py").write_text("def score(text):\n    return float(len(text))\n")
    names = ["--names", "black-female", "--names", "white-female"]
    commands = {
        "inspect": ["inspect", table, "-o", "out/columns.toml"],
        "train": ["train", table, *told, "--steps", "60", "-o", "out/m.safetensors"],
        "learn-metric": ["learn-metric", table, *told, "-o", "out/metric.safetensors"],
        "audit": ["audit", *model, *told, "-o", "out/evidence/", "-o", "out/a.html", "-o", "out/a.json"],
        "audit-texts": ["audit-texts", "texts.csv", "--text", text, "--scorer", "scorer.py:score", *names,
                        "--cache", "out/replies", "-o", "out/t.html", "-o", "out/t.json"],
        "verify": ["verify", *model, "--sensitive", sex, "-o", "out/v.csv", "-o", "out/v.html"],
        "person": ["person", *model, *told, "--row", "7", "-o", "out/p.html", "-o", "out/p.json"],
        "recourse": ["recourse", *model, *told, "--sample", "20", "--keep", "out/parts", "-o", "out/r.html"],
        "proxies": ["proxies", *model, *told, "-o", "out/x.html", "-o", "out/x.csv"],
        "replay": ["replay", "evidence"],
        "serve": ["serve", *model, *told],
        "datasets": ["datasets", "german", "-o", "out/german.csv"],
        "improve": ["improve", table, *told, "-o", "out/improved/"],
        "compare": ["improve", table, *told, "--compare", "baseline", "-o", "out/c.html"],
        "reproduce": ["reproduce", "toy", "--quick", "-o", "out/paper"],
        "demo": ["demo", "--quick", "-o", "out/demo.html"],
    }  # fmt: skip
    from likewise.cli.app import VERBS

    if left := set(VERBS) - {words[0] for words in commands.values()}:
        raise RuntimeError(f"nothing is tried of {sorted(left)}")
    return commands


# Verbs that leave finished parts for the next time; the file that a cut line may end is repaired by its reader.
_PARTS = {"improve", "reproduce", "recourse", "audit-texts"}


def signals(folder: Path, verbs: dict[str, list[str]], tries: int, seed: int) -> Iterator[str]:
    """Ctrl-C as a terminal sends it, to the command and everything that it started, at any moment."""
    rng, seen = random.Random(seed), Counter[str]()
    for _ in range(tries):
        verb = rng.choice(list(verbs))
        shutil.rmtree(folder / "out", ignore_errors=True)
        shutil.rmtree(folder / "tmp", ignore_errors=True)
        (folder / "out").mkdir()
        (folder / "tmp").mkdir()
        started = subprocess.Popen(
            [*LIKEWISE, *verbs[verb]],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(folder / "tmp")},
        )
        delay = rng.choice([rng.uniform(0.0, 0.5), rng.uniform(0.5, 2.0), rng.uniform(1.0, 8.0)])
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(delay)
        ended = started.poll() is not None
        if not ended:
            os.killpg(started.pid, signal.SIGINT)
        try:
            out, err = started.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()
            yield f"{verb} after {delay:.2f} s: does not end"
            continue
        why = _wrong_end(folder, verb, started, ended, out, err)
        how = (
            "by itself"
            if ended
            else "before Python ran a line of ours"
            if why is None
            else str(started.returncode)
        )
        seen[how] += 1
        if why:
            yield f"{verb} after {delay:.2f} s: {why}; {out[-150:]!r}, {err[-300:]!r}"
    print(f"ends of {tries} commands: {dict(seen)}")


def _wrong_end(
    folder: Path, verb: str, started: subprocess.Popen[str], ended: bool, out: str, err: str
) -> str | None:
    """What is wrong with an end; nothing, or None if it came before Python ran any of this package."""
    code, found = started.returncode, []
    # Of ours only the line that loads the handler.
    others = re.sub(r'File ".*likewise/__init__.py".*\n.*import _interrupt.*', "", err)
    if not ended and code in (1, -signal.SIGINT) and "Traceback" in err and "likewise" not in others:
        return None
    # A shell calls the end by the signal itself 130. A command that was done, or serves, ends as it would have.
    if code not in (130, -signal.SIGINT) and (code != 0 or not (ended or verb == "serve" or _whole(folder))):
        found.append(f"exit {code}")
    if code == 130 and "Stopped" not in err:
        found.append("no sentence")
    if "Traceback" in err or "unforeseen" in err:
        found.append("a traceback")
    if verb not in _PARTS:
        found += [f"{path.name} is left" for path in (folder / "out").rglob(".*")]
    found += [f"{path.name} is left in the temporary folder" for path in (folder / "tmp").iterdir()]
    found += [f"half of {path.name}" for path in (folder / "out").rglob("*") if not _complete(path)]
    # multiprocessing's resource tracker ends when it notices that the pipe to the command is closed.
    until = time.monotonic() + 10
    while (left := in_session(started.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    found += [f"a process is left: {_command(one)}" for one in left]
    return ", ".join(found)


def _whole(folder: Path) -> bool:
    return any((folder / "out").iterdir())


def _complete(path: Path) -> bool:
    if path.suffix == ".html":
        return path.read_text(encoding="utf-8").endswith("</html>\n")
    if path.suffix == ".json":
        return path.read_text(encoding="utf-8").rstrip().endswith("}")
    return True


def in_session(leader: int) -> list[int]:
    """Processes of a session that are still there, on Linux."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rsplit(")", 1)[1].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found


def _command(process: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return "ended meanwhile"


def full_disk(folder: Path, verbs: dict[str, list[str]]) -> Iterator[str]:
    """Verbs that write to a disk that is full, or becomes full on the way; what is there after that is whole."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", str(out)], check=False).returncode:
        print("no tmpfs can be mounted here: a full disk was not tried")
        return
    try:
        for room in (0, 8_192, 65_536):
            for verb, words in verbs.items():
                if verb in ("replay", "serve"):  # they write nothing there
                    continue
                if room == 65_536 and verb in (
                    "improve",
                    "compare",
                    "reproduce",
                    "demo",
                ):  # they take minutes
                    continue
                for path in out.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                with contextlib.suppress(OSError), (out / "rest").open("wb", buffering=0) as rest:
                    while rest.write(b"x" * 4096):
                        pass
                os.truncate(out / "rest", (out / "rest").stat().st_size - room)
                done = run(words, folder)
                left = [path for path in out.rglob("*") if path.is_file() and path.name != "rest"]
                halves = [path.name for path in left if path.name.startswith(".") or not _complete(path)]
                halves = [] if verb in _PARTS else halves
                ended = done.returncode == 2 and "Error: " in done.stderr
                fitted = done.returncode in (0, 1) and room > 0 and left
                if not (ended or fitted) or "unforeseen" in done.stderr or halves or (left and room == 0):
                    yield f"{room} bytes, {verb}: exit {done.returncode}, left {left}, {done.stderr[-300:]!r}"
    finally:
        subprocess.run(["umount", str(out)], check=True)


def terminals(folder: Path) -> Iterator[str]:
    """Every verb with hostile names and cells, and mistakes in them, on terminals of each encoding."""
    place = folder / "hostile"
    place.mkdir()
    commands = list(prepared(place, HOSTILE).values())
    table, model = f"people{HOSTILE}.csv", f"people{HOSTILE}.safetensors"
    told = ["--target", "paid", "--sensitive", f"sex{HOSTILE}"]
    commands += [
        ["inspect", table, "--target", f"a{HOSTILE}", "--no-file"],
        ["audit", model, table, *told, "--full"],
        ["audit", model, table, *told, "-o", "-"],
        ["audit", "no\x1b[2J.onnx", table, *told],
    ]
    for words in commands:
        for encoding in ("utf-8", "cp1252", "ascii"):
            shutil.rmtree(place / "out", ignore_errors=True)
            (place / "out").mkdir()
            if wrong := _shown_wrong(words, encoding, place):
                yield f"{words[0]} in {encoding}: {wrong}"


def _shown_wrong(words: list[str], encoding: str, place: Path) -> str:
    """What is wrong with what a command shows on a pseudo-terminal."""
    import pty

    master, slave = pty.openpty()
    environment = os.environ | {"PYTHONIOENCODING": encoding, "TERM": "xterm", "COLUMNS": "100"}
    started = subprocess.Popen(
        [*LIKEWISE, *words], cwd=place, stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    seen, sent = bytearray(), False
    with contextlib.suppress(OSError):
        while block := os.read(master, 65536):
            seen += block
            if words[0] == "serve" and b"127.0.0.1" in seen and not sent and started.poll() is None:
                started.send_signal(signal.SIGINT)
                sent = True
    os.close(master)
    code = started.wait(120)
    # The name's own "clear the screen" would be removed with rich's sequences.
    text = _OWN.sub("", seen.decode(encoding, "replace"))
    bad = [sign for sign in text if not sign.isprintable() and sign not in "\n\u2068\u2069\u00a0\u202f"]
    sound = code in (0, 1, 2, 3) and not bad and b"\x1b[2J" not in seen and b"\x1b]0" not in seen
    return "" if sound and "unforeseen" not in text else f"exit {code}, {bad[:5]}, {text[-300:]!r}"


def opened(folder: Path) -> Iterator[str]:
    if shutil.which("strace") is None:
        print("there is no strace here: the opened files were not looked at")
        return
    import xgboost

    frame = pd.read_csv(folder / "people.csv")
    xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(
        frame[["skill", "age"]], frame["paid"] == "yes"
    ).get_booster().save_model(folder / "m.json")
    log = folder / "opened.txt"
    words = [
        "strace",
        "-s",
        "400",
        "-f",
        "-qq",
        "-e",
        "trace=openat,execve,landlock_restrict_self",
        "-o",
        str(log),
        *LIKEWISE,
        "audit",
        "m.json",
        "people.csv",
    ]
    subprocess.run(
        [*words, "--target", "paid", "--sensitive", "sex", "-q"], cwd=folder, capture_output=True, check=False
    )
    inside, child, held = [], "", False
    for line in log.read_text(errors="replace").splitlines():
        if "confined.py" in line and "execve" in line:
            child = line.split()[0]
        elif child and line.startswith(child):
            # Before that Python starts; a handle that opens nothing (O_PATH) reads nothing.
            held = held or "landlock_restrict_self" in line
            if held and "openat" in line and " = -1" not in line and "O_PATH" not in line:
                inside.append(re.findall(r'"([^"]*)"', line)[0])
    allowed = (
        sys.prefix,
        sys.base_prefix,
        "/usr",
        "/lib",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/proc",
        "/sys",
        "/dev/",
    )
    allowed += (str(folder / "m.json"), str(Path(__file__).parents[2] / "src"), *filter(None, sys.path))
    outside = [
        path for path in inside if path.startswith("/") and not path.startswith(tuple(map(str, allowed)))
    ]
    print(
        f"the process of a model file opened {len(inside)} files, {len(outside)} outside of what is allowed"
    )
    if not inside or outside:
        yield f"opened: {sorted(set(outside))[:20]}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--skip", action="append", default=[], choices=["signals", "disk", "terminals", "opened"]
    )
    options = parser.parse_args()
    # A shell that starts this in the background has Ctrl-C ignored, by everything that is started here too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        verbs = prepared(folder)
        parts = {
            "opened": lambda: opened(folder),
            "terminals": lambda: terminals(folder),
            "disk": lambda: full_disk(folder, verbs),
            "signals": lambda: signals(folder, verbs, options.signals, options.seed),
        }
        for name, part in parts.items():
            if name not in options.skip:
                found = list(part())
                print(f"{name}: {len(found)} wrong", *found, sep="\n  ", flush=True)
                wrong += found
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
