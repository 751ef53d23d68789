"""V(ε) between two numbers against a linear program; the search of the domain against brute force."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from likewise.auditing.bounds.branch_and_bound import bracket_value, maximise
from likewise.auditing.bounds.family import RegionBudget
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.search.domain import MoveSearch
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.losses import CrossEntropy

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)


def problem(seed, people=4):
    rng = np.random.default_rng(seed)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    trees = made.random_trees(rng, columns, encoded_sources(layout))
    family = TreeFamily(trees, layout, encoded_sources(layout), CrossEntropy())
    rows = made.every_row(columns)
    own = rows[rng.choice(len(rows), people)]
    return family, layout, rows, own, rng.integers(0, 2, people), made.random_metric(rng, layout.width)


def tables(family, layout, rows, own, y, metric):
    """Loss and cost of every row for every person; rows that differ in an immutable column are out of reach."""
    loss = np.stack([family.losses(rows, np.full(len(rows), label)) for label in y])
    delta = layout.encode(rows)[None] - layout.encode(own)[:, None]
    cost = np.stack([np.asarray(metric.squared_norm(part)) for part in delta])
    largest = max(metric.scale, (metric.scale + metric.values).max(initial=0.0))
    cost = np.where(cost <= COSTS_NOTHING * largest * (delta**2).sum(axis=2), 0.0, cost)
    held = [i for i, column in enumerate(layout.columns) if column.immutable]
    reach = (rows[None, :, held] == own[:, None, held]).all(axis=2)
    return loss, cost, reach


def transport(loss, cost, reach, eps):
    """The auditor's problem as the linear program that it is."""
    n, m = loss.shape
    rows = np.kron(np.eye(n), np.ones((1, m)))
    found = linprog(
        -loss.ravel() / n,
        A_ub=cost.ravel()[None] / n,
        b_ub=[eps],
        A_eq=rows,
        b_eq=np.ones(n),
        bounds=[(0, 1 if ok else 0) for ok in reach.ravel()],
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("eps", [0.0, 0.01, 0.1, 1.0])
def test_value_lies_between_estimate_and_bound(seed, eps):
    family, layout, rows, own, y, metric = problem(seed)
    X = layout.encode(own)
    truth = transport(*tables(family, layout, rows, own, y, metric), eps)

    def solve(lam, starts, seconds):
        return maximise(family, metric, X, y, lam, starts=starts, tol=1e-7)

    found = bracket_value(solve, family.losses(own, y), eps, rounds=25, rtol=1e-6)
    assert found.lower <= truth + 1e-7
    assert truth <= found.upper + 1e-7
    # A kink of the dual is met to within what 25 values of λ can resolve.
    assert found.upper - found.lower <= 1e-3 * (1 + abs(truth))


def test_a_small_budget_still_gives_a_bracket():
    family, layout, rows, own, y, metric = problem(5)
    X = layout.encode(own)
    truth = transport(*tables(family, layout, rows, own, y, metric), 0.1)

    def solve(lam, starts, seconds):
        return maximise(family, metric, X, y, lam, starts=starts, budget=RegionBudget(nodes=1, seconds=0.0))

    found = bracket_value(solve, family.losses(own, y), 0.1, rounds=2)
    assert found.lower <= truth <= found.upper
    assert not found.reasons or "open bracket" in found.reasons[0]


def around(family, metric, lambdas, cuts=None, *, read=False):
    known = family.moves if read else None
    loss = CrossEntropy()
    return MoveSearch(family.layout, metric, lambdas, loss, known, family.losses, cuts=cuts, tol=1e-9)


@pytest.mark.parametrize(("splits_known", "read"), [(True, True), (True, False), (False, False)])
def test_search_of_the_domain_finds_most_of_the_truth_and_never_more(splits_known, read):
    attained, truth = [], []
    lambdas = [0.0, 0.3, 3.0, np.inf]
    for seed in range(40):
        family, layout, rows, own, y, metric = problem(seed)
        loss, cost, reach = tables(family, layout, rows, own, y, metric)
        cuts = family.trees.thresholds(layout) if splits_known else None
        found = around(family, metric, lambdas, cuts, read=read).run(layout.encode(own), y)
        for lam in lambdas:
            with np.errstate(invalid="ignore"):
                value = np.where(reach, loss - np.where(cost > 0, lam * cost, 0.0), -np.inf).max(axis=1)
            with np.errstate(invalid="ignore"):
                worth = found.loss - np.where(found.cost > 0, lam * found.cost, 0.0)
            mine = np.array([worth[found.person == i].max() for i in range(len(own))])
            assert (mine <= value + 1e-9).all()
            attained.append(mine)
            truth.append(value)
    reached = np.abs(np.concatenate(attained) - np.concatenate(truth)) < 1e-9
    assert reached.mean() > 0.97


@pytest.mark.parametrize("read", [True, False])
def test_search_for_a_person_does_not_depend_on_the_others(read):
    family, layout, _, own, y, metric = problem(7, people=40)
    X, search = layout.encode(own), around(family, metric, [1.0], read=read)
    together = search.run(X, y)
    for i in (0, 17, 39):
        alone, mine = search.run(X[[i]], y[[i]]), together.person == i
        assert (alone.rows == together.rows[mine]).all()
        assert (alone.loss == together.loss[mine]).all()


def test_brackets_of_a_person_do_not_depend_on_the_others():
    family, layout, _, own, y, metric = problem(8, people=60)
    X = layout.encode(own)
    together = maximise(family, metric, X, y, 0.5, budget=RegionBudget(nodes=20))
    for i in (0, 33, 59):
        alone = maximise(family, metric, X[[i]], y[[i]], 0.5, budget=RegionBudget(nodes=20))
        assert (alone.upper[0], alone.lower[0]) == (together.upper[i], together.lower[i])


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from likewise.auditing.bounds.branch_and_bound import maximise
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.core.compiled import is_compiled
from likewise.data import BoxDomain
from likewise.fair_metrics import euclidean
from likewise.models.losses import CrossEntropy
from likewise.models.tree_ensemble import TreeEnsemble
"""

TWO_STUMPS = """
trees = TreeEnsemble.from_nodes(
    roots=[0, 3], left=[1, -1, -1, 4, -1, -1], right=[2, -1, -1, 5, -1, -1], feature=[0, 0, 0, 1, 0, 0],
    threshold=[0.5, 0, 0, 0.3, 0, 0], values=[[0.0], [-1.0], [2.0], [0.0], [0.7], [-0.2]],
    base=[0.1], kind="scores", n_features=2,
)
layout = TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0]))
family = TreeFamily(trees, layout, encoded_sources(layout), CrossEntropy())
X = np.random.default_rng(0).uniform(size=(5, 2))
found = maximise(family, euclidean(2), X, np.array([0, 1, 0, 1, 0]), 2.0)
print(is_compiled(), found.lower.tolist(), found.upper.tolist(), found.rows.tolist())
"""


def test_without_numba_the_answers_are_the_same(capsys):
    pytest.importorskip("numba")
    plain = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA + TWO_STUMPS], capture_output=True, text=True, check=True
    )
    exec(WITHOUT_NUMBA.replace('sys.modules["numba"] = None', "") + TWO_STUMPS, {})
    compiled = capsys.readouterr().out
    assert plain.stdout.startswith("False")
    assert compiled.startswith("True")
    assert plain.stdout.split(" ", 1)[1] == compiled.split(" ", 1)[1]


def test_given_rows_outside_the_domain_are_not_taken():
    family, layout, _, own, y, metric = problem(9)
    X = layout.encode(own)
    wrong = layout.encode(own).copy()
    number = next((i for i, c in enumerate(layout.columns) if c.kind == "integer"), None)
    if number is not None:
        wrong[:, layout.columns[number].start] += 1e3
    found = maximise(family, metric, X, y, 0.0, starts=wrong[:, None, :])
    plain = maximise(family, metric, X, y, 0.0)
    assert found.lower == pytest.approx(plain.lower)
