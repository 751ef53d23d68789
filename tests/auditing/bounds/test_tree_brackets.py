"""Estimate ≤ brute force ≤ Bound on random small ensembles, equality where the engine says closed."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.family import RegionBudget
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.losses import CrossEntropy, Hinge, Squared, ZeroOne

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)

LAMBDAS = (0.0, 0.1, 1.0, 10.0, np.inf)
TOL = 1e-6


def random_problem(seed):
    rng = np.random.default_rng(seed)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    sources = encoded_sources(layout) if seed % 2 else made.raw_codes(rng, columns)
    loss, kind, outputs = [
        (CrossEntropy(), "scores", 1),
        (CrossEntropy(), "scores", 3),
        (Hinge(), "scores", 3),
        (ZeroOne(), "scores", 3),
        (ZeroOne(), "scores", 1),
        (CrossEntropy(), "probabilities", 2),
        (ZeroOne(), "probabilities", 3),
        (Squared(), "values", 1),
    ][seed % 8]
    trees = made.random_trees(
        rng, columns, sources, outputs, "probabilities" if kind == "probabilities" else "scores"
    )
    rows = made.every_row(columns)
    own = rows[rng.choice(len(rows), 3)]
    targets = rng.normal(size=3) if isinstance(loss, Squared) else rng.integers(0, max(2, outputs), 3)
    metric = made.random_metric(rng, layout.width)
    return layout, sources, trees, loss, kind, metric, rows, own, targets


def losses_by_library(layout, sources, trees, loss, kind, rows, target):
    """The loss by the ensemble's own sums and the loss's own formula: nothing of the engine's."""
    features = np.stack([source(rows[:, source.column]) for source in sources], axis=1)
    outputs = trees.outputs(features)
    if kind == "scores" and outputs.shape[1] == 1:
        outputs = np.hstack([-outputs / 2, outputs / 2])
    return loss.losses(outputs, np.full(len(rows), target), probabilities=kind == "probabilities")


def brute_force(layout, metric, rows, person, losses, lam):
    held = [i for i, column in enumerate(layout.columns) if column.immutable]
    delta = layout.encode(rows) - layout.encode(person[None])
    cost = np.asarray(metric.squared_norm(delta))
    reachable = (rows[:, held] == person[held]).all(axis=1)
    if np.isinf(lam):
        largest = max(metric.scale, (metric.scale + metric.values).max(initial=0.0))
        free = reachable & (cost <= COSTS_NOTHING * largest * (delta**2).sum(axis=1))
        return losses[free].max()
    return (losses - lam * cost)[reachable].max()


@pytest.mark.parametrize("seed", range(32))
def test_bracket_holds_the_brute_force_value(seed):
    layout, sources, trees, loss, kind, metric, rows, own, targets = random_problem(seed)
    family = TreeFamily(trees, layout, sources, loss)
    X = layout.encode(own)
    for lam in LAMBDAS:
        found = maximise(family, metric, X, targets, lam, tol=TOL)
        small = maximise(family, metric, X, targets, lam, tol=TOL, budget=RegionBudget(nodes=3))
        for i in range(len(own)):
            losses = losses_by_library(layout, sources, trees, loss, kind, rows, targets[i])
            truth = brute_force(layout, metric, rows, own[i], losses, lam)
            for bracket in (found, small):
                assert bracket.lower[i] <= truth + 1e-9
                assert truth <= bracket.upper[i] + 1e-12
            # The row that is shown attains what is said.
            at = np.flatnonzero(np.abs(layout.encode(rows) - found.rows[i]).max(axis=1) < 1e-9)
            assert len(at) == 1
            assert losses[at[0]] == pytest.approx(found.loss[i], abs=1e-9)
            assert found.closed[i]
            assert found.upper[i] - found.lower[i] <= TOL * 1.001
