"""The wheel in an empty environment: with the base dependencies only, an audit with its page, and what is said of extras; with
``--all``, every extra at work.

Run by ``make release-check``; not a test, because it installs packages and, with ``--all``, trains networks. Everything is done by the
installed command in a folder of its own, so nothing of the source tree can help.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import textwrap
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
    "from likewise.auditing import DaskEngine; DaskEngine(None, 1).__enter__()": "likewise[scale]",
    "from likewise.integrations import log_audit; log_audit(None)": "likewise[mlflow]",
    "import likewise as lw; lw.SenSRClassifier": "likewise[torch]",
}


AUDITED = """
import likewise as lw

def audited(model, X):
    return lw.audit(model, X, y, metric=lw.ExpertSubspace(["sex"]).fit(X).metric_, eps=0.0)
"""

# What an extra is for, in code that works where it is installed; after SKLEARN_MODEL, with `y` as 0 and 1, and AUDITED.
PRESENT = {
    "boosting": """
import xgboost, lightgbm, catboost
from likewise.training import FairBoostingClassifier
coded = X.assign(sex=(X["sex"] == "M").astype(float))
for made in (xgboost.XGBClassifier(n_estimators=5), lightgbm.LGBMClassifier(n_estimators=5, verbose=-1),
             catboost.CatBoostClassifier(n_estimators=5, verbose=0, allow_writing_files=False)):
    assert audited(made.fit(coded, y), coded).pure_gap > 0
fair = FairBoostingClassifier(metric=lw.ExpertSubspace(["sex"]), n_estimators=5).fit(X, y)
assert audited(fair, X).pure_gap == 0
""",
    "onnx": """
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType
coded = X.assign(sex=(X["sex"] == "M").astype(float))
plain = LogisticRegression().fit(coded.to_numpy(), y)
graph = skl2onnx.convert_sklearn(plain, initial_types=[("X", FloatTensorType([None, 2]))], options={"zipmap": False})
open("model.onnx", "wb").write(graph.SerializeToString())
assert audited(lw.load_model("model.onnx"), coded).pure_gap > 0
""",
    "fast": """
from likewise.core.compiled import compiled
assert hasattr(compiled(lambda x: x).made(), "py_func")
""",
    "mlflow": """
import mlflow, os, pathlib
from likewise.integrations import log_audit
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
mlflow.set_tracking_uri(pathlib.Path("runs").resolve().as_uri())
with mlflow.start_run() as run:
    log_audit(audited(model, X))
assert mlflow.MlflowClient().get_run(run.info.run_id).data.metrics["fairness.pure_gap"] > 0
""",
    "serve": """
from urllib.request import Request, urlopen
from likewise.serving import start_server
metric = lw.ExpertSubspace(["sex"]).fit(X).metric_
with start_server(model, X, y, sensitive_features=["sex"], metric=metric, eps=0.0) as running:
    port, token = running.secrets.port, running.secrets.token
    page = Request(f"http://127.0.0.1:{port}/", headers={"Cookie": f"likewise_{port}={token}"})
    assert b"explore-data" in urlopen(page).read()
""",
    "skops": """
import skops.io
skops.io.dump(model, "model.skops")
assert audited(lw.load_model("model.skops"), X).pure_gap > 0
""",
    "text": """
from likewise.text import SentenceEncoder
assert SentenceEncoder().fit([]).transform(["good", "a longer letter"]).shape == (2, 384)
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--environment", type=Path, help="An environment that has the wheel already.")
    parser.add_argument("--all", action="store_true", help="Install every extra, and see each of them work.")
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
            extras = "[all]" if chosen.all else ""
            run([*pip, "--constraint", ROOT / "constraints.txt", f"{wheel}{extras}"], place)
        check(environment / "bin", place)
        (check_extras if chosen.all else check_absent)(environment / "bin", place)
    print("release-check: all fine")


def check(programs: Path, place: Path) -> None:
    python, likewise = programs / "python", programs / "likewise"
    where = run([python, "-c", "import likewise; print(likewise.__file__)"], place)
    assert "site-packages" in where, f"not the installed package: {where}"
    run([likewise, "--version", "--verbose"], place)
    (place / "hiring.py").write_text(SKLEARN_MODEL, encoding="utf-8")
    run([python, "hiring.py"], place)
    audit = [likewise, "audit", "hiring:model", "people.csv", "--target", "hired", "--sensitive", "sex"]
    said = run(
        [*audit, "--eps", "0", "--delta", "0.01", "-o", "audit.html", "-o", "evidence/"], place, code=1
    )
    assert "Depends on sex" in said, said
    assert "more than delta=0.01" in said, said
    assert (place / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = run([likewise, "replay", "evidence", "--model", "hiring:model"], place)
    assert "figures are the same" in again, again


def check_absent(programs: Path, place: Path) -> None:
    """Without extras: what is missing says what to install."""
    (place / "model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch\x3a\x00")
    for line, needed in ABSENT.items():
        told = run([programs / "python", "-c", line], place, code=1)
        assert needed in told, f"{line}: {told}"


def check_extras(programs: Path, place: Path) -> None:
    """With every extra: each does what it is for."""
    run([programs / "likewise", "demo", "--quick", "-o", "demo.html"], place)
    assert (place / "demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    for extra, lines in PRESENT.items():
        script = place / f"uses_{extra}.py"
        begin = SKLEARN_MODEL + "y = (y == 'yes').astype(int)\nmodel.fit(X, y)\n" + AUDITED
        main = "if __name__ == '__main__':\n" + textwrap.indent(begin + lines, "    ")
        script.write_text(main, encoding="utf-8")
        run([programs / "python", script.name], place)
    saved = "import pandas as pd; t = pd.read_csv('people.csv'); t.to_excel('people.xlsx', index=False); t.to_parquet('people.parquet')"
    run([programs / "python", "-c", saved], place)
    likewise, about = programs / "likewise", ["--target", "hired", "--sensitive", "sex"]
    audit = [likewise, "audit", "hiring:model"]
    run([*audit, "people.xlsx", *about, "--eps", "0", "-o", "page.html"], place)
    assert (place / "page.html").stat().st_size > 10_000
    run([*audit, "people.parquet", *about, "--eps", "0", "--set", "engine=dask:1"], place)
    run([likewise, "improve", "people.csv", *about, "-o", "better"], place)
    assert (place / "better" / "index.html").exists()


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
