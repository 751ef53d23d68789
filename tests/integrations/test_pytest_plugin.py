"""The plugin in real pytest runs: it fails an unfair model in words, passes a repaired one, and disturbs nobody else."""

import json
import re
import sys

import pytest

import likewise.integrations.assertion  # noqa: F401 - loaded once, not by each inner run

pytest_plugins = ["pytester"]

PLUGIN = "likewise.integrations.pytest_plugin"

MODELS = """
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
import likewise as lw
from likewise.integrations import assert_fair as check

rng = np.random.default_rng(0)
X = pd.DataFrame({"skill": rng.normal(size=80), "sex": rng.choice(["F", "M"], size=80)})
y = (X["skill"] + 1.5 * (X["sex"] == "M") > 0.7).astype(int).to_numpy()
words = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
unfair = make_pipeline(words, LogisticRegression()).fit(X, y)
repaired = lw.TwinConsensus(unfair, sensitive_features=["sex"]).fit(X)
"""

TESTS = """
@pytest.mark.fair(sensitive_features=["sex"], limit=0.01)
def test_unfair(assert_fair):
    assert_fair(unfair, X, y)

@pytest.mark.fair(sensitive_features=["sex"], limit=0.01)
def test_repaired(assert_fair):
    assert assert_fair(repaired, X, y, eps=0.0).pure_gap <= 0.01

def test_function():
    check(unfair, X, y, sensitive_features=["sex"], limit=0.01)

@pytest.mark.fair(sensitive_features=["sex"], limit=0.01)
class TestNearestMarkerWins:
    @pytest.mark.fair(limit=1)
    def test_generous(self, assert_fair):
        assert_fair(unfair, X, y)

@pytest.mark.fair(sensitive_features=["sex"], limit=0.01)
def test_audits_nothing():
    pass

@pytest.mark.fair(["sex"])
def test_positional(assert_fair):
    pass
"""


@pytest.fixture
def outcome(pytester):
    """One run of pytest over the tests above, with warnings as errors and markers strict: its output and JUnit file."""
    pytester.makepyfile(test_models=MODELS + TESTS)
    words = [
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
        "--strict-markers",
        "-W",
        "error",
        "-q",
        "--junitxml=out.xml",
    ]
    done = pytester.runpytest_inprocess(*words, "test_models.py")
    done.assert_outcomes(failed=2, passed=2, errors=2)
    return done.stdout.str(), (pytester.path / "out.xml").read_text(encoding="utf-8")


def test_an_unfair_model_fails_in_words_and_a_repaired_one_passes(outcome):
    out, xml = outcome
    for name in ("test_unfair", "test_function"):
        assert f"FAILED test_models.py::{name}" in out
    assert "AssertionError: Above the limit: " in out
    assert re.search(r"of 80 people \(\d", out)
    assert re.search(
        r"For example row \d+ of the table, counted from 1 \(skill [-−.\d]+, sex [FM]\) gets", out
    )
    # The reader sees the test, not the inside of the audit.
    assert "fair_assertion.py" not in out
    # The numbers of a model that passed are kept where CI systems look.
    assert 'name="likewise.changed"' in xml
    assert 'name="likewise.pure_gap"' in xml
    # What audits nothing does not pass.
    assert "test_audits_nothing is marked fair but does not use the fixture assert_fair" in out
    assert "takes keywords only" in out


def test_a_run_without_it_is_not_disturbed(pytester):
    pytester.makepyfile(
        test_plain="""
        import json, sys

        def test_nothing_heavy_is_loaded():
            heavy = [name for name in ("torch", "sklearn", "pandas", "scipy", "numpy") if name in sys.modules]
            open("heavy.json", "w").write(json.dumps(heavy))
        """
    )
    done = pytester.run(
        sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "-q", "test_plain.py"
    )
    done.assert_outcomes(passed=1)
    # Loaded by its entry point and named on the command line it is one plugin.
    assert json.loads((pytester.path / "heavy.json").read_text(encoding="utf-8")) == []
    assert (
        "@pytest.mark.fair("
        in pytester.run(sys.executable, "-m", "pytest", "-p", PLUGIN, "--markers").stdout.str()
    )
