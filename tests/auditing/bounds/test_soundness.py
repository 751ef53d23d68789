"""Estimate ≤ brute force ≤ Bound on 150 random small models of every kind of loss and output, and equality where the engine says closed.

The models answer in single precision; the truth is what they themselves answer on every row that can exist.
"""

import importlib.util
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.bounds.branch_and_bound import bracket_value, maximise
from likewise.auditing.bounds.exact_search import BranchAndBoundSearch
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.contract import Budget
from likewise.fair_metrics.metric import COSTS_NOTHING
from likewise.models.layers import Layers
from likewise.models.losses import CrossEntropy, Hinge, Squared, ZeroOne

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)

EPS = (0.0, 0.01, 0.1, 1.0)
RTOL = 1e-3
SINGLE = 2.0**-24


@dataclass(frozen=True)
class Case:
    """A model with people of a small table: its family, and what it answers itself."""

    family: Any
    metric: Any
    rows: Any
    own: Any
    targets: Any
    answers: Any

    @property
    def layout(self):
        return self.family.layout

    def ask(self, values, targets):
        """The model's own losses of rows of values, and what it was shown."""
        return self.losses(values, targets), values

    def losses(self, rows, targets):
        return self.answers(rows, np.asarray(targets))


def tree_case(rng, seed):
    """Trees of all kinds; the sum of the leaves in single precision, one after the other."""
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    sources = encoded_sources(layout) if seed % 2 else made.raw_codes(rng, columns)
    loss, kind, outputs = [
        (CrossEntropy(), "scores", 1),
        (CrossEntropy(), "scores", 3),
        (CrossEntropy(), "probabilities", 2),
        (ZeroOne(), "scores", 1),
        (Hinge(), "scores", 3),
        (ZeroOne(), "probabilities", 3),
        (Squared(), "values", 1),
    ][seed % 7]
    shape = "probabilities" if kind == "probabilities" else "scores"
    trees = made.random_trees(rng, columns, sources, outputs, shape, roundoff=SINGLE)

    def answers(rows, targets):
        features = np.stack([source(rows[:, source.column]) for source in sources], axis=1)
        total = np.tile(trees.base.astype(np.float32), (len(rows), 1))
        for tree in range(trees.n_trees):
            total = total + one_tree(trees, tree).outputs(features).astype(np.float32)
        return by_formula(loss, total.astype(np.float64), targets, kind)

    return TreeFamily(trees, layout, sources, loss), columns, answers, loss, outputs


def one_tree(trees, number):
    from dataclasses import replace

    return replace(trees, roots=trees.roots[number : number + 1], base=np.zeros_like(trees.base))


def network_case(rng, seed):
    """ReLU networks in single precision."""
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    loss, outputs = [
        (CrossEntropy(), 1),
        (CrossEntropy(), 2),
        (CrossEntropy(), 3),
        (ZeroOne(), 2),
        (Squared(), 1),
    ][seed % 5]
    sizes = [layout.width, 4, outputs] if seed % 2 else [layout.width, 4, 3, outputs]
    weights = tuple(
        rng.normal(size=(b, a)).astype(np.float32) / np.float32(np.sqrt(a))
        for a, b in itertools.pairwise(sizes)
    )
    biases = tuple(rng.normal(size=len(w)).astype(np.float32) for w in weights)
    net = Layers(
        tuple(w.astype(np.float64) for w in weights), tuple(b.astype(np.float64) for b in biases), SINGLE
    )

    def answers(rows, targets):
        # Sums row by row: a matrix product may round a row by where it stands among others.
        value = layout.encode(rows).astype(np.float32)
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            value = (value[:, None, :] * weight[None]).sum(axis=2, dtype=np.float32) + bias
            value = np.maximum(value, np.float32(0.0)) if i < len(weights) - 1 else value
        kind = "values" if isinstance(loss, Squared) else "scores"
        return by_formula(loss, value.astype(np.float64), targets, kind)

    return NetworkFamily(net, layout, loss), columns, answers, loss, outputs


def by_formula(loss, outputs, targets, kind):
    """The loss's own formula; nothing of the engine's."""
    if kind == "scores" and outputs.shape[1] == 1:
        outputs = np.hstack([-outputs / 2, outputs / 2])
    return loss.losses(outputs, targets, probabilities=kind == "probabilities")


def random_case(seed):
    rng = np.random.default_rng(seed)
    make = network_case if seed % 3 == 2 else tree_case
    family, columns, answers, loss, outputs = make(rng, seed // 3)
    rows = made.every_row(columns)
    own = rows[rng.choice(len(rows), 3)]
    targets = rng.normal(size=3) if isinstance(loss, Squared) else rng.integers(0, max(2, outputs), 3)
    return Case(family, made.random_metric(rng, family.layout.width), rows, own, targets, answers)


def tables(case):
    """Loss and squared distance of every row for every person; infinitely far where an immutable column differs."""
    loss = np.stack([case.losses(case.rows, np.full(len(case.rows), y)) for y in case.targets])
    delta = case.layout.encode(case.rows)[None] - case.layout.encode(case.own)[:, None]
    cost = np.stack([np.asarray(case.metric.squared_norm(part)) for part in delta])
    largest = max(case.metric.scale, (case.metric.scale + case.metric.values).max(initial=0.0))
    free = cost <= COSTS_NOTHING * largest * (delta**2).sum(axis=2)
    held = [i for i, column in enumerate(case.layout.columns) if column.immutable]
    reach = (case.rows[None, :, held] == case.own[:, None, held]).all(axis=2)
    return loss, np.where(reach, cost, np.inf), free & reach


def value_by_search(loss, cost, free, eps):
    """V(ε) over every row: the dual is convex in λ, so that thirds of an interval find its least value."""
    if eps == 0:
        return np.where(free, loss, -np.inf).max(axis=1).mean()
    reached = np.isfinite(cost)
    worth, far = np.where(reached, loss, -np.inf), np.where(reached, cost, 0.0)

    def dual(lam):
        return lam * eps + (worth - lam * far).max(axis=1).mean()

    low, high = 0.0, loss.max() / eps + 1.0
    for _ in range(80):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if dual(a) <= dual(b) else (a, high)
    return min(dual(low), dual(high), dual((low + high) / 2), dual(0.0))


@pytest.mark.parametrize("first", range(0, 156, 12))
def test_estimate_truth_bound(first):
    for seed in range(first, first + 12):
        case, eps = random_case(seed), EPS[seed % 4]
        every = tables(case)
        truth = value_by_search(*every, eps)
        X = case.layout.encode(case.own)
        solved = []

        def solve(lam, starts, seconds, case=case, X=X, solved=solved):
            found = maximise(
                case.family, case.metric, X, case.targets, lam, starts=starts, tol=1e-5, ask=case.ask
            )
            solved.append((lam, found))
            return found

        found = bracket_value(solve, case.losses(case.own, case.targets), eps, rtol=RTOL)
        assert found.lower <= truth + 1e-9, seed
        assert truth <= found.upper + 1e-9, seed
        if eps == 0:
            # Finitely many answers: nothing is left open, not even rounding.
            assert found.lower == found.upper == pytest.approx(truth, abs=1e-12), seed
        if not found.reasons:
            assert found.upper - truth <= RTOL * abs(found.upper) + 1e-9, seed
        check_people(case, *every, solved, seed)


def check_people(case, loss, cost, free, solved, seed):
    """Every person's bracket at every λ that was asked for, against all rows."""
    for lam, found in solved:
        if np.isinf(lam):
            truth = np.where(free, loss, -np.inf).max(axis=1)
        else:
            reached = np.isfinite(cost)
            truth = np.where(reached, loss - lam * np.where(reached, cost, 0.0), -np.inf).max(axis=1)
        assert (found.lower <= truth + 1e-9).all(), (seed, lam)
        assert (truth <= found.upper + 1e-9).all(), (seed, lam)
        if isinstance(case.family, TreeFamily):
            assert found.slack == 0.0
        assert (found.upper - found.lower <= (found.tol + found.slack) * 1.001).all(), (seed, lam)
        assert found.closed.all(), (seed, lam)


LIBRARIES = ("xgboost", "lightgbm", "hist", "forest", "tree", "mlp")


def people_of(rng):
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 25, 50),
            "job": rng.choice(["a", "b", "c"], 50),
            "sex": rng.choice(["F", "M"], 50),
        }
    )
    frame.loc[:4, "age"] = range(20, 25)
    frame.loc[:2, "job"] = ["a", "b", "c"]
    frame.loc[:1, "sex"] = ["F", "M"]
    return frame


def fitted(kind, X, y, seed):
    """A small model of a library, on the table with categories of its own or on encoded rows."""
    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1, enable_categorical=True).fit(X, y)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=4, min_child_samples=3, min_data_per_group=2, cat_smooth=1.0, n_jobs=1, verbose=-1
        ).fit(X, y)
    if kind == "hist":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=4, min_samples_leaf=3, categorical_features="from_dtype"
        ).fit(X, y)
    if kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(4, max_depth=3, min_samples_leaf=2, random_state=seed).fit(X, y)
    if kind == "tree":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_depth=3, min_samples_leaf=2, random_state=seed).fit(X, y)
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((4,), max_iter=30, random_state=seed, solver="lbfgs").fit(X, y)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("kind", LIBRARIES)
def test_models_of_libraries(kind):
    for seed in range(8):
        rng = np.random.default_rng(1000 + seed)
        frame = people_of(rng)
        score = frame["age"] + 3 * (frame["sex"] == "M") + 2 * (frame["job"] == "c") + rng.normal(0, 1, 50)
        y = np.digitize(score, [23.0, 25.5]) if seed % 2 else (score > 24).to_numpy().astype(int)
        domain = lw.TabularDomain.from_frame(frame, immutable=["job"] if seed % 4 == 3 else [])
        raw = kind in ("xgboost", "lightgbm", "hist")
        table = frame.astype({"job": "category", "sex": "category"}) if raw else domain.encode(frame)
        model = fitted(kind, table if raw else table.to_numpy(), y, seed)
        if seed < 4:
            metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
        else:
            metric = made.random_metric(rng, table.shape[1] if not raw else domain.encode(frame).shape[1])
        eps = EPS[seed % 4]
        loss = "zero_one" if seed == 6 else "cross_entropy"
        some = slice(0, 6)
        problem = AuditProblem.build(
            model, table[some], y[some], metric=metric, domain=domain, loss=loss, encoded=not raw
        )
        found = BranchAndBoundSearch(rtol=RTOL).extend(problem, Support.start(problem), eps, Budget())
        estimate = solve_dual(found.support.frontier, eps).value
        truth = enumerated(problem, frame, domain, eps)
        assert estimate <= truth + 1e-7, seed
        assert truth <= found.bound(eps=eps).value + 1e-7, seed
        if eps == 0:
            assert found.bound(eps=eps).value == pytest.approx(estimate, abs=1e-7), seed
        if not found.reasons:
            assert found.bound(eps=eps).value - estimate <= RTOL * found.bound(eps=eps).value + 1e-7, seed


def enumerated(problem, frame, domain, eps):
    """V(ε) by asking the model about every row."""
    place = problem.coordinates
    rows = pd.DataFrame(itertools.product(range(20, 25), "abc", "FM"), columns=["age", "job", "sex"])
    Z = domain.encode_array(rows)
    loss = np.stack([place.losses_encoded(Z, np.repeat(label, len(Z))) for label in problem.labels])
    delta = Z[None] - problem.X[:, None]
    cost = np.stack([np.asarray(place.metric.squared_norm(part)) for part in delta])
    largest = max(place.metric.scale, (place.metric.scale + place.metric.values).max(initial=0.0))
    free = cost <= COSTS_NOTHING * largest * (delta**2).sum(axis=2)
    held = [c.name for c in domain.columns_ if c.immutable]
    own = domain.decode(problem.X)
    reach = np.ones(loss.shape, dtype=bool)
    for name in held:
        reach &= own[name].to_numpy()[:, None] == rows[name].to_numpy()[None]
    return value_by_search(loss, np.where(reach, cost, np.inf), free & reach, eps)
