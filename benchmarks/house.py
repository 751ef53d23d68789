"""The size of the package, and how many of its files and functions the main calls run through: `make house`.

For reading, not a gate.
"""

import ast
import re
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from xgboost import XGBClassifier

import likewise as lw

ROOT = Path(lw.__file__).parent


def docstring_lines(tree):
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                lines |= set(range(first.lineno, first.end_lineno + 1))
    return lines


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def size():
    files = sorted(ROOT.rglob("*.py"))
    modules = {module_name(path): path for path in files}
    code = documentation = 0
    importers = defaultdict(set)
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        inside = docstring_lines(tree)
        for number, line in enumerate(text.split("\n"), 1):
            if number in inside:
                documentation += 1
            elif line.strip() and not line.strip().startswith("#"):
                code += 1
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                importers[modules[node.module]].add(path)
    alone = [path for path in files if path.name != "__init__.py" and len(importers[path]) == 1]
    siblings = sum(next(iter(importers[path])).parent == path.parent for path in alone)
    rooms = sum((folder / "__init__.py").exists() for folder in ROOT.iterdir())
    largest = max(len(list(folder.glob("*.py"))) for folder in ROOT.rglob("*") if folder.is_dir())
    print(f"files {len(files)}, code lines {code}, docstring lines {documentation}, rooms {rooms}")
    print(
        f"files with one importer {len(alone)}, in the same folder {siblings}; largest folder {largest} files"
    )


def surface():
    shown = subprocess.run(
        [sys.executable, "-m", "likewise", "audit", "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = len(re.findall(r"^  --?\w", shown, re.MULTILINE))
    print(f"names in likewise.__all__ {len(lw.__all__)}, options of audit {options}")


def journey(name, call):
    """Print the distinct files and functions of the package that a call runs through, and the deepest nesting."""
    seen, depth, deepest = set(), 0, 0

    def note(frame, event, _):
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(str(ROOT)) or code.co_name == "<module>":
            return
        if event == "call":
            seen.add((code.co_filename, code.co_qualname))
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    print(f"{name}: {len({file for file, _ in seen})} files, {len(seen)} functions, depth {deepest}")
    return result


def journeys():
    people = lw.datasets.load_german()
    frame, y = people.frame.copy(), np.asarray(people.y)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category")
    model = XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True).fit(frame, y)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_

    def audit():
        return lw.audit(model, frame[:60], y[:60], metric=metric, eps=0.1)

    audit()  # what loads once is not part of the journey
    result = journey("lw.audit, XGBoost", audit)
    with tempfile.TemporaryDirectory() as folder:
        journey("write_html", lambda: lw.write_html(result, Path(folder) / "audit.html"))
    journey(
        "SenSRClassifier.fit", lambda: lw.SenSRClassifier(metric, random_state=0).fit(frame[:300], y[:300])
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    size()
    surface()
    journeys()
