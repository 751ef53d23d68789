"""Time that is up and Ctrl-C: the brackets so far hold, wider than they would have been."""

import importlib.util
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.bounds import branch_and_bound
from likewise.auditing.bounds.branch_and_bound import bracket_value, maximise
from likewise.auditing.bounds.family import Brackets, RegionBudget
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.models.losses import CrossEntropy, Squared

_spec = importlib.util.spec_from_file_location(
    "random_ensembles", Path(__file__).with_name("random_ensembles.py")
)
made = importlib.util.module_from_spec(_spec)
sys.modules["random_ensembles"] = made
_spec.loader.exec_module(made)


def problem(seed=3, people=6, loss=None):
    rng = np.random.default_rng(seed)
    columns = made.random_columns(rng)
    layout = TableLayout(columns)
    trees = made.random_trees(rng, columns, encoded_sources(layout))
    family = TreeFamily(trees, layout, encoded_sources(layout), loss or CrossEntropy())
    rows = made.every_row(columns)
    own = rows[rng.choice(len(rows), people)]
    y = rng.normal(size=people) if isinstance(loss, Squared) else rng.integers(0, 2, people)
    metric = made.random_metric(rng, layout.width)
    return family, metric, rows, own, y


def truth_at(family, metric, rows, own, y, lam):
    layout = family.layout
    held = [i for i, column in enumerate(layout.columns) if column.immutable]
    found = []
    for person, target in zip(own, y, strict=True):
        losses = family.losses(rows, np.repeat(target, len(rows)))
        cost = np.asarray(metric.squared_norm(layout.encode(rows) - layout.encode(person[None])))
        reached = (rows[:, held] == person[held]).all(axis=1)
        found.append((losses - lam * cost)[reached].max())
    return np.array(found)


class _Interrupt:
    """Ctrl-C at the given line of the engine's own files, counted from the start."""

    FILES = (
        "open_regions.py",
        "region_evaluation.py",
        "branch_and_bound.py",
        "node_pool.py",
        "contenders.py",
    )

    def __init__(self, at):
        self.left, self.raised = at, False

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(self.FILES) or frame.f_code.co_name == "maximise":
            return None
        return self.line if self._inside_run(frame) else None

    def _inside_run(self, frame):
        while frame is not None:
            if frame.f_code.co_name == "_run":
                return True
            frame = frame.f_back
        return False

    def line(self, frame, event, arg):
        self.left -= event == "line"
        if self.left <= 0 and not self.raised:
            self.raised = True
            sys.settrace(None)
            raise KeyboardInterrupt
        return self.line


@pytest.mark.parametrize("asks", [False, True])
def test_an_interrupt_at_any_line_leaves_brackets_that_hold(asks):
    family, metric, rows, own, y = problem()
    X, lam = family.layout.encode(own), 0.3
    truth = truth_at(family, metric, rows, own, y, lam)
    ask = (lambda values, t: (family.losses(values, t), values)) if asks else None
    full = maximise(family, metric, X, y, lam, ask=ask)
    widths, outer = [], sys.gettrace()
    for at in itertools.count(1, 47):
        interrupt = _Interrupt(at)
        sys.settrace(interrupt)
        try:
            found = maximise(family, metric, X, y, lam, ask=ask)
        finally:
            sys.settrace(outer)
        assert found.interrupted == interrupt.raised
        assert (found.lower <= truth + 1e-12).all(), at
        assert (truth <= found.upper + 1e-12).all(), at
        assert (found.upper >= full.upper - full.tol - 1e-12).all()
        at_rows = family.losses(family.layout.values(found.rows), y)
        assert found.loss == pytest.approx(at_rows)
        widths.append((found.upper - found.lower).sum())
        if not interrupt.raised:
            break
    # The earliest stops know next to nothing, the last ones nearly all.
    assert widths[0] > 10 * widths[-1]


@pytest.mark.parametrize("loss", [None, Squared()])
def test_people_whom_nobody_looked_at_have_a_ceiling(loss):
    family, metric, rows, own, y = problem(11, people=40, loss=loss)
    X = family.layout.encode(own)
    found = maximise(family, metric, X, y, 0.2, budget=RegionBudget(seconds=0.0))
    truth = truth_at(family, metric, rows, own, y, 0.2)
    assert (found.nodes == 0).all()
    assert (found.lower <= truth + 1e-12).all()
    assert (truth <= found.upper + 1e-12).all()
    assert np.isfinite(found.upper).all()


def test_time_is_looked_at_often_enough(monkeypatch):
    """A clock that goes by the regions looked at: no budget is overrun by more than a tenth."""
    family, metric, _, own, y = problem(12, people=300)
    looked = SimpleNamespace(at=0)
    plain = family.bound

    def counted(regions, origin, targets, state):
        looked.at += len(regions)
        return plain(regions, origin, targets, state)

    monkeypatch.setattr(family, "bound", counted)
    monkeypatch.setattr(branch_and_bound, "time", SimpleNamespace(perf_counter=lambda: looked.at / 1000))
    X = family.layout.encode(own)
    maximise(family, metric, X, y, 0.01, tol=1e-9)
    needed = looked.at / 1000
    for share in (0.1, 0.3, 0.6):
        looked.at = 0
        found = maximise(family, metric, X, y, 0.01, tol=1e-9, budget=RegionBudget(seconds=share * needed))
        assert looked.at / 1000 <= 1.1 * share * needed + 0.001
        assert not found.closed.all()
        # Everybody had a turn before anybody had many.
        assert (found.nodes > 0).mean() > 0.9 or share == 0.1


def test_the_last_value_of_lambda_gets_the_time_that_is_left():
    given = []

    def solve(lam, starts, seconds):
        given.append(seconds)
        s = max(0.0, 3.0 - lam)
        low, high = np.array([s - 0.5]), np.array([s + 0.5])
        moved = float(lam < 3)
        cost = np.array([moved])
        return Brackets(low, high, np.array([[moved]]), np.array([3.0 * moved]), cost, np.array([1]), 0.0)

    bracket_value(solve, np.array([0.0]), 0.5, seconds=1000.0, rounds=6)
    assert max(given[:2]) < 400 < given[-1]


def test_an_interrupted_audit_says_so_and_proves_less(monkeypatch):
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 40, 80), "sex": rng.choice(["F", "M"], 80)})
    y = (frame["age"] + 4 * (frame["sex"] == "M") + rng.normal(0, 3, 80) > 30).to_numpy().astype(int)
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex"]).fit(frame).metric_
    model = RandomForestClassifier(6, max_depth=4, min_samples_leaf=4, random_state=0)
    model.fit(domain.encode(frame).to_numpy(), y)
    asked = {"metric": metric, "domain": domain, "eps": 0.05, "search": "exact", "encoded": True}
    full = lw.audit(model, domain.encode(frame), y, **asked)
    plain, calls = TreeFamily.bound, itertools.count()

    def breaks_off(self, regions, origin, targets, state):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, regions, origin, targets, state)

    monkeypatch.setattr(TreeFamily, "bound", breaks_off)
    stopped = lw.audit(model, domain.encode(frame), y, **asked)
    assert full.status == "converged"
    assert stopped.status == "not_converged"
    assert "interrupted" in " ".join(stopped.reasons)
    assert full.certificate.estimate.value <= stopped.certificate.bound.value
    assert stopped.certificate.bound.value > full.certificate.bound.value
