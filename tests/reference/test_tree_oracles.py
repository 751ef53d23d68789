"""The branch and bound against other solvers: dtai-veritas at λ = 0, SCIP at λ > 0 (benchmarks/tree_oracles.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.data import BoxDomain
from likewise.fair_metrics import euclidean
from likewise.models.losses import Hinge
from likewise.models.tree_ensemble import TreeEnsemble

KEPT = json.loads(Path(__file__).with_name("tree_oracles.json").read_text(encoding="utf-8"))


def ensemble(trees, width):
    """Nested lists as nodes."""
    nodes = {name: [] for name in ("left", "right", "feature", "threshold", "values")}
    roots = []

    def add(part):
        at = len(nodes["left"])
        inner = isinstance(part, list)
        for name, value in (
            ("left", -1),
            ("right", -1),
            ("feature", part[0] if inner else 0),
            ("threshold", part[1] if inner else 0.0),
            ("values", [0.0 if inner else part]),
        ):
            nodes[name].append(value)
        if inner:
            nodes["left"][at], nodes["right"][at] = add(part[2]), add(part[3])
        return at

    roots = [add(tree) for tree in trees]
    return TreeEnsemble.from_nodes(roots=roots, base=[0.0], kind="scores", n_features=width, **nodes)


def bracket(case, label, lam):
    """Bracket of the hinge loss 1 + f (label 0) or 1 − f (label 1), less λ d²."""
    low, high = np.array(case["low"]), np.array(case["high"])
    person = np.array([case["person"]])
    layout = TableLayout.of(BoxDomain(low, high))
    trees = ensemble(case["trees"], len(low))
    family = TreeFamily(trees, layout, encoded_sources(layout), Hinge())
    return maximise(family, euclidean(len(low)), person, np.array([label]), lam, tol=1e-9)


@pytest.mark.parametrize("number", range(20))
def test_largest_and_smallest_sums_agree_with_veritas(number):
    case = KEPT["veritas"][number]
    for label, kept in ((0, case["largest"]), (1, -case["smallest"])):
        found = bracket(case, label, 0.0)
        worst = max(0.0, 1.0 + kept)
        # Veritas adds leaves in single precision.
        assert found.lower[0] == pytest.approx(worst, abs=1e-5)
        assert found.upper[0] == pytest.approx(worst, abs=1e-5)


@pytest.mark.parametrize("number", range(len(KEPT["scip"])))
def test_priced_distances_agree_with_scip(number):
    case = KEPT["scip"][number]
    for lam, kept in case["values"]:
        found = bracket(case, 0, lam)
        # A hinge loss is never below 0, and nobody has to move.
        worst = max(0.0, kept)
        assert found.lower[0] <= worst + 1e-6
        assert found.upper[0] == pytest.approx(worst, abs=1e-6)
        assert found.lower[0] == pytest.approx(worst, abs=1e-6)
