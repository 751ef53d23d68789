"""What an audit and a proof claim of small models of every kind, against all rows that were asked about one by one."""

import zlib
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from .brute_force import Answers, Table, make_reference, worst_mean
from .cases import KINDS, run_case

# A bound that is withdrawn because the model refutes it is a refutation too.
pytestmark = pytest.mark.filterwarnings("ignore", "error:likewise contradicts itself")


@pytest.fixture(autouse=True)
def few_sampled_rows(monkeypatch):
    """The sampled share of `verify` is not looked at here."""
    monkeypatch.setattr("likewise.auditing.verification.asked_shares._ASKED", 1_000)


EPS = (0.1, 0.01, 0.0)

# A bound that is never given cannot be refuted: these kinds must have one.
READ = {
    "numbers/tree", "numbers/forest", "numbers/extra-trees", "numbers/hist", "numbers/bagging", "three/forest", "three/xgb",
    "words/tree-one-hot", "words/one-hot-sparse-tree", "words/ordinal-tree", "words/standard-forest", "words/robust-forest",
    "encoded/logistic", "encoded/mlp", "encoded/forest", "xgb/plain", "xgb/base-score", "xgb/early", "xgb/booster",
    "lgb/plain", "lgb/early", "lgb/booster", "cat/plain", "torch/logits", "torch/sigmoid", "torch/batch-norm", "onnx/net-logits",
    "fair/plain", "fair/blind", "fair/numbers-blind", "fair/values-made-one", "fair/three",
}  # fmt: skip

# Cases in which a claim was refuted once, and by what.
FOUND = [
    ("words/standard-forest", 12, "cross_entropy", 0.1),  # a column of single precision
    ("lgb/plain", 18, "cross_entropy", 0.1),
    ("numbers/hist", 10, "cross_entropy", 0.1),
    ("xgb/loss-guide", 23, "zero_one", 0.01),  # a person at a threshold, moved by a rounding at ε = 0
    ("encoded/hist", 4, "cross_entropy", 0.1),  # the twin as it is listed is not the row that was asked about
    ("subclass/contrary-tree", 2, "cross_entropy", 0.1),  # answers of its own
    ("subclass/squared-forest", 4, "cross_entropy", 0.1),
    ("subclass/contrary-forest", 3, "zero_one", 0.01),
    ("subclass/squared-hist", 10, "cross_entropy", 0.1),
    ("subclass/xgb", 2, "cross_entropy", 0.1),
    ("xgb/missing-three", 19, "zero_one", 0.01),  # a value that counts as missing
    ("words/robust-xgb-sparse", 4, "cross_entropy", 0.1),  # zeros that are not stored
    ("lgb/file", 3, "zero_one", 0.01),  # the loss that was asked for
    ("three/ovr-tree", 2, "cross_entropy", 0.1),  # one tree per class
    ("three/ovr-tree", 24, "cross_entropy", 0.1),
    ("three/bagging-half", 4, "cross_entropy", 0.1),  # trees of some columns
    ("words/transformer-weights-mlp", 2, "cross_entropy", 0.1),
    ("xgb/saturated", 4, "cross_entropy", 0.1),  # probabilities of exactly 0 in single precision
    ("torch/sigmoid-sharp", 20007, "cross_entropy", 0.1),
]


def _cases():
    """Each kind, with a table, a loss and an ε of its own that its name settles; those of `FOUND` as they were found.

    Every second kind is verified as well: what is read of a model is the same, and `test_verify.py` looks at the rest.
    """
    found = {name for name, *_ in FOUND}
    for number, (name, kind) in enumerate(KINDS.items()):
        if name in found:
            continue
        draw = zlib.crc32(name.encode())
        choices = list(product(kind.losses, EPS))
        yield name, draw % 1000, *choices[(draw // 1000) % len(choices)], 2, number % 2 == 0
    yield from ((*found, 4, True) for found in FOUND)


@pytest.mark.parametrize(("name", "seed", "loss", "eps", "people", "verify"), list(_cases()))
def test_nothing_that_is_claimed_is_refuted(name, seed, loss, eps, people, verify):
    out = run_case(
        name, seed, loss, eps, people=people, max_rows=1500, small=True, otherwise=None, verify=verify
    )
    assert not out.violations
    assert not out.errors
    assert out.bound or name not in READ
    assert all(len(reason) > 40 for reason in out.refused), "a refusal says why"


def test_the_reference_is_complete_only_if_it_lists_where_answers_change_in_every_row():
    """Of an answer that changes at another float for every age, places were listed for the ages of a few people only."""
    age = np.arange(200) % 42
    pay = np.linspace(49, 51, 200).astype(np.float32)
    X = pd.DataFrame({"pay": pay, "age": age})
    people = X.iloc[[80, 120]].reset_index(drop=True)

    def ask(rows):
        return Answers(None, (rows["pay"] > 50.3 - 0.02 * rows["age"]).to_numpy().astype(int), (0, 1))

    table = Table(X, ask(X).decisions, people, ask(people).decisions, (), ())
    assert not make_reference(ask, table, seed=0).complete
    closer = make_reference(ask, table, seed=0, max_rows=60_000, thorough=True)
    assert closer.complete
    rows = pd.DataFrame({"age": np.arange(42), "pay": (50.3 - 0.02 * np.arange(42)).astype(np.float32)})
    ends = [rows.assign(pay=np.nextafter(rows["pay"], np.float32(end))) for end in (0, 100)]
    assert closer.changed(0.01) == pytest.approx(
        closer.with_rows(rows[["pay", "age"]], *ends).changed(0.01), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_solves_the_linear_program(seed):
    """max Σ π_ij l_ij / n over spreads π of each person, Σ π_ij d_ij ≤ n ε."""
    rng = np.random.default_rng(seed)
    n, m, eps = 4, 9, 0.3
    losses, distances = rng.random((n, m)).round(1), rng.random((n, m)).round(1)
    distances[np.arange(n), np.arange(n)] = 0
    one_person_each = np.kron(np.eye(n), np.ones(m))
    solved = linprog(
        -losses.ravel() / n,
        A_ub=distances.ravel()[None] / n,
        b_ub=[eps],
        A_eq=one_person_each,
        b_eq=np.ones(n),
    )
    assert worst_mean(losses, distances, eps) == pytest.approx(-solved.fun)
