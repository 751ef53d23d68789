"""The wheel in an empty environment with the base dependencies only: a demo, an audit, and what is said of extras.

Run by ``make release-check``; no test, because it installs torch and trains networks. Everything is done by the
installed command in a folder of its own, so nothing of the source tree can help.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]

SKLEARN_MODEL = """
import numpy as np, pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

rng = np.random.default_rng(0)
X = pd.DataFrame({"skill": rng.normal(size=300), "sex": rng.choice(["F", "M"], size=300)})
y = np.where(X["skill"] + 1.5 * (X["sex"] == "M") > 0.7, "yes", "no")
X.assign(hired=y).to_csv("people.csv", index=False)
words = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
model = make_pipeline(words, LogisticRegression()).fit(X, y)
"""

# What is said where an extra is absent: code that needs it, and what the message must hold.
ABSENT = {
    "import likewise as lw; lw.load_model('model.onnx')": "likewise[onnx]",
    "from likewise.scale import DaskEngine; DaskEngine(None, 1).__enter__()": "likewise[scale]",
    "from likewise.integrations import log_audit; log_audit(None)": "likewise[mlflow]",
    "from likewise.integrations import FairNeuralNetClassifier": "pip install skorch",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--environment", type=Path, help="An environment that has the wheel already.")
    chosen = parser.parse_args()
    wheel = chosen.wheel.resolve()
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory(prefix="likewise-release-") as folder:
        place = Path(folder)
        environment = chosen.environment
        if environment is None:
            environment = place / "environment"
            venv.create(environment, with_pip=True)
            pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
            run([*pip, "--constraint", ROOT / "constraints.txt", wheel], place)
        check(environment / "bin", place)
    print("release-check: all fine")


def check(programs: Path, place: Path) -> None:
    python, likewise = programs / "python", programs / "likewise"
    where = run([python, "-c", "import likewise; print(likewise.__file__)"], place)
    assert "site-packages" in where, f"not the installed package: {where}"
    run([likewise, "version"], place)
    run([likewise, "demo", "--quick", "--out", "demo.html"], place)
    assert (place / "demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    (place / "hiring.py").write_text(SKLEARN_MODEL, encoding="utf-8")
    run([python, "hiring.py"], place)
    audit = [likewise, "audit", "hiring:model", "people.csv", "--target", "hired", "--sensitive", "sex"]
    said = run([*audit, "--eps", "0", "--delta", "0.01", "--evidence", "evidence"], place, code=1)
    assert "Unfair (shown)" in said, said
    again = run([likewise, "replay", "evidence", "--model", "hiring:model"], place)
    assert "figures are the same" in again, again
    (place / "model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch\x3a\x00")
    for line, needed in ABSENT.items():
        told = run([python, "-c", line], place, code=1)
        assert needed in told, f"{line}: {told}"


def run(words: list[object], place: Path, code: int = 0) -> str:
    """Run a command, show it, and return all it said; its exit code must be `code`."""
    print("$", *(Path(str(words[0])).name, *words[1:]), flush=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=place,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != code:
        sys.exit(f"exit code {done.returncode} instead of {code}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
