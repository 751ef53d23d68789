"""The bound of a linear model is never below what any listed rows attain within the budget."""

import numpy as np
from hypothesis import given, settings, strategies as st

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.dual.finite_dual import Frontier, solve_dual
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain
from likewise.fair_metrics import FairMetric, euclidean


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 6),
    free=st.integers(0, 3),
    weight=st.sampled_from([0.0, 0.02, 0.5]),
    loss=st.sampled_from(["cross_entropy", "hinge", "zero_one"]),
    eps=st.sampled_from([0.0, 0.003, 0.1, 2.0]),
)
def test_no_listed_rows_exceed_the_bound(seed, d, free, weight, loss, eps):
    rng = np.random.default_rng(seed)
    metric = euclidean(d)
    if free and d > 1:
        directions = rng.normal(size=(min(free, d - 1), d))
        metric = FairMetric.from_subspace(Subspace.from_directions(directions), weight=weight)
    X = rng.normal(size=(6, d)).round(int(rng.integers(0, 4)))
    box = BoxDomain(X.min(0), X.max(0) + rng.exponential(size=d) * rng.integers(0, 2, size=d))
    model = LinearModel(rng.normal(size=d) * 3, rng.normal(), loss=loss)
    y = rng.integers(0, 2, size=6)
    dual = exact_dual(model, X, y, metric=metric, domain=box, eps=eps, tol=1e-6)
    person = np.repeat(np.arange(6), 60)
    listed = box.lower + rng.uniform(size=(360, d)) * (box.upper - box.lower)
    # Corners, and moves along the free directions as far as the box lets them.
    listed[::3] = np.where(rng.uniform(size=(120, d)) < 0.5, box.lower, box.upper)
    if metric.n_features and metric.null_space.basis.shape[1]:
        Q = np.asarray(metric.null_space.basis)
        step = rng.normal(size=(120, Q.shape[1])) @ Q.T
        room = np.where(step > 0, box.upper - X[person[1::3]], box.lower - X[person[1::3]])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(step != 0, room / step, np.inf).min(axis=1)
        listed[1::3] = X[person[1::3]] + share[:, None] * step
    squared = np.asarray(metric.squared_distance(X[person], listed))
    squared = np.where(squared <= 1e-20, 0.0, squared)
    frontier = Frontier.from_points(
        base_loss=model.losses(X, y),
        row=person,
        squared_distance=squared,
        loss=model.losses(listed, y[person]),
        candidate=np.arange(360),
    )
    attained = solve_dual(frontier, eps).value
    assert attained <= dual.value + 1e-8 * (1 + dual.value)
    assert dual.lower <= dual.value + 1e-12
