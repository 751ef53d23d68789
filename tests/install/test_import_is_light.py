"""Importing the package must stay cheap: heavy libraries load when something of theirs is used."""

import json
import subprocess
import sys

import pytest

HEAVY = [
    "torch",
    "sklearn",
    "pandas",
    "scipy",
    "xgboost",
    "lightgbm",
    "catboost",
    "onnxruntime",
    "matplotlib",
    "dask",
]


def run(code: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_uses_under_half_a_second_of_cpu_and_nothing_heavy():
    code = (
        "import time, sys, json\n"
        "start = time.process_time()\n"
        "import likewise\n"
        "print(json.dumps({'cpu': time.process_time() - start, 'modules': sorted(sys.modules)}))"
    )
    result = run(code)
    assert result["cpu"] < 0.5
    assert not set(HEAVY) & set(result["modules"])


def test_an_audit_of_a_model_without_gradients_does_not_load_torch():
    code = (
        "import json, sys\n"
        "import pandas as pd\n"
        "import likewise as lw\n"
        "people = pd.DataFrame({'skill': [0.0, 0.5, 2.0, 1.0], 'sex': ['F', 'M', 'M', 'F']})\n"
        "metric = lw.ExpertSubspace(['sex']).fit(people).metric_\n"
        "found = lw.audit(lambda frame: frame['skill'] / 4, people, [0, 1, 1, 1], metric=metric, eps=0.0)\n"
        "print(json.dumps({'gap': float(found.gap), 'modules': sorted(sys.modules)}))"
    )
    assert "torch" not in run(code)["modules"]


def test_every_public_name_resolves_and_is_documented():
    import likewise

    for name in likewise.__all__:
        value = getattr(likewise, name)
        if name != "__version__":
            assert value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = likewise.nothing
