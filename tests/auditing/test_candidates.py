"""The candidate search against brute force over all pairs: frames, arrays, domains, regressions, batches."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from likewise.auditing.dual.finite_dual import dual_curve, solve_dual
from likewise.auditing.dual.supporting_rows import Support
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search import candidates
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.search.contract import Budget
from likewise.core.errors import InputError, ModelError
from likewise.core.subspace import Subspace
from likewise.counterfactuals import Edit
from likewise.data import BoxDomain, TabularDomain
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis
from likewise.models import CustomLoss, as_model


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], size=n)
    role = np.where(rng.random(n) < 0.5, np.where(sex == "M", "Husband", "Wife"), "Single")
    return pd.DataFrame(
        {
            "age": rng.integers(18, 60, size=n),
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
            "role": role,
            "sex": sex,
        }
    )


@pytest.fixture(scope="module")
def frame():
    return table(60)


@pytest.fixture(scope="module")
def domain(frame):
    return TabularDomain.from_frame(frame)


@pytest.fixture(scope="module")
def model(domain):
    weight = np.random.default_rng(3).normal(size=(domain.n_features, 3))
    return as_model(lambda X: _softmax(np.tanh(X @ weight) * 2))


def _softmax(scores):
    e = np.exp(scores)
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def metric(domain):
    direction = np.zeros(domain.n_features)
    direction[domain.group("sex")] = 1.0
    return FairMetric.from_subspace(Subspace.from_directions(direction[None]), feature_map=domain)


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(5).integers(3, size=60)


def brute_curve(model, metric, X, y, candidates, eps, *, allowed=None):
    """V on a grid from all pairs at once: minimise the dual over its breakpoints."""
    d2 = np.asarray(metric.pairwise(X, candidates))
    d2[d2 < 1e-12] = 0.0
    loss = model.loss_table(candidates)[:, y].T
    if allowed is not None:
        loss = np.where(allowed, loss, -np.inf)
    base = model.losses(X, y)
    steps = [
        (loss[i, j] - loss[i, k]) / (d2[i, j] - d2[i, k])
        for i in range(len(X))
        for j in range(loss.shape[1])
        for k in range(loss.shape[1])
        if d2[i, j] > d2[i, k] and np.isfinite(loss[i, [j, k]]).all()
    ]
    own = [(loss[i] - base[i])[d2[i] > 0] / d2[i][d2[i] > 0] for i in range(len(X))]
    lams = np.unique(np.concatenate([[0.0], np.maximum(steps, 0), np.maximum(np.concatenate(own), 0)]))
    inner = np.array([np.maximum((loss - lam * d2).max(axis=1), base).mean() for lam in lams])
    return np.array([(lams * e + inner).min() for e in eps])


EPS = np.array([0.0, 0.01, 0.1, 0.5, 2.0])


def test_raw_frame_equals_brute_force_over_all_rows_and_twins(frame, domain, model, metric, labels):
    small, y = frame[:12], labels[:12]
    found = CandidateSearch(edits=["sex"]).run(model, small, y, metric=metric, domain=domain)
    both = pd.concat([small.assign(sex="F"), small.assign(sex="M")], ignore_index=True)
    plain = metric.without_feature_map()
    expected = brute_curve(model, plain, domain.encode_array(small), y, domain.encode_array(both), EPS)
    np.testing.assert_allclose(dual_curve(found.frontier).value(EPS), expected, atol=1e-10)
    assert len(found.candidates) == 24
    assert found.outside.size == 0


def test_encoded_arrays_frames_and_tensors_agree_with_the_raw_frame(frame, domain, model, metric, labels):
    import torch

    search = CandidateSearch(edits=["sex"])
    raw = search.run(model, frame, labels, metric=metric, domain=domain)
    encoded = domain.encode(frame)
    plain = metric.without_feature_map()
    for X, m in (
        (encoded, metric),
        (encoded, plain),
        (encoded.to_numpy(), plain),
        (torch.tensor(encoded.to_numpy()), plain),
        (frame, plain),
    ):
        other = search.run(model, X, labels, metric=m, domain=domain)
        np.testing.assert_array_equal(other.candidates.source, raw.candidates.source)
        np.testing.assert_array_equal(other.frontier.candidate, raw.frontier.candidate)
        np.testing.assert_allclose(other.frontier.loss, raw.frontier.loss, atol=1e-12)
        np.testing.assert_allclose(other.frontier.squared_distance, raw.frontier.squared_distance, atol=1e-12)


def test_distances_are_the_metrics_and_twins_are_valid_people(frame, domain, model, metric, labels):
    found = CandidateSearch(edits=["sex"]).run(model, frame, labels, metric=metric, domain=domain)
    worst = solve_dual(found.frontier, 0.2)
    twins = found.twins(worst.corner)
    assert domain.validate(twins) == ()
    assert twins.dtypes.equals(frame.dtypes)
    np.testing.assert_allclose(
        metric.squared_distance(frame, twins), found.frontier.squared_distance[worst.corner], atol=1e-12
    )
    encoded = domain.encode_array(twins)
    np.testing.assert_allclose(model.losses(encoded, labels), found.frontier.loss[worst.corner], atol=1e-12)


def test_own_twin_costs_nothing_under_the_subspace_metric(frame, domain, model, metric, labels):
    found = CandidateSearch(edits=["sex"], use_rows=False).run(
        model, frame, labels, metric=metric, domain=domain
    )
    free = solve_dual(found.frontier, 0.0)
    flipped = frame.assign(sex=np.where(frame["sex"] == "M", "F", "M"))
    losses = [model.losses(domain.encode_array(f), labels) for f in (frame, flipped)]
    assert free.value == pytest.approx(np.maximum(*losses).mean(), abs=1e-12)
    assert free.gap > 0
    assert (found.frontier.squared_distance == 0).all()


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_blocks_and_row_order_do_not_matter(
    frame, domain, model, metric, labels, batch_size, monkeypatch
):
    search = CandidateSearch(edits=["sex"])
    whole = search.run(model, frame, labels, metric=metric, domain=domain)
    with monkeypatch.context() as small:
        small.setattr(candidates, "BATCH", batch_size)
        small.setattr(candidates, "scan_pairs", partial(candidates.scan_pairs, block_bytes=1000))
        again = search.run(model, frame, labels, metric=metric, domain=domain)
    np.testing.assert_array_equal(whole.frontier.candidate, again.frontier.candidate)
    np.testing.assert_allclose(whole.frontier.loss, again.frontier.loss, atol=1e-12)
    order = np.random.default_rng(batch_size).permutation(len(frame))
    moved = search.run(model, frame.iloc[order], labels[order], metric=metric, domain=domain)
    back = moved.frontier.take(np.argsort(order))
    np.testing.assert_array_equal(back.indptr, whole.frontier.indptr)
    np.testing.assert_allclose(back.loss, whole.frontier.loss, atol=1e-12)
    np.testing.assert_allclose(back.squared_distance, whole.frontier.squared_distance, atol=1e-12)


def test_threads_do_not_matter():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(500, 12)), rng.integers(2, size=500)
    weight = rng.normal(size=12)
    model = as_model(lambda Z: 1 / (1 + np.exp(-np.sin(Z) @ weight)))
    metric = FairMetric.from_subspace(Subspace.from_directions(rng.normal(size=(2, 12))))
    solutions = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found = CandidateSearch().run(model, X, y, metric=metric)
            solutions.append((found.frontier, solve_dual(found.frontier, 0.5)))
    (one, first), (two, second) = solutions
    assert first.value == pytest.approx(second.value, abs=1e-12)
    np.testing.assert_array_equal(one.candidate[first.corner], two.candidate[second.corner])


def test_audited_in_parts_against_the_same_pool_gives_the_same_rows(frame, domain, model, metric, labels):
    search = CandidateSearch(edits=["sex"])
    whole = search.run(model, frame, labels, metric=metric, domain=domain)
    for part in (slice(0, 1), slice(1, 21), slice(21, 60)):
        mine = search.run(model, frame[part], labels[part], metric=metric, domain=domain, pool=frame)
        some = whole.frontier.take(part)
        np.testing.assert_array_equal(mine.frontier.indptr, some.indptr)
        np.testing.assert_allclose(mine.frontier.loss, some.loss, atol=1e-12)
        np.testing.assert_allclose(mine.frontier.squared_distance, some.squared_distance, atol=1e-12)


def test_immutable_columns_stay(frame, model, metric, labels):
    held = TabularDomain.from_frame(frame, immutable=["job"])
    small, y = frame[:12], labels[:12]
    found = CandidateSearch(edits=["sex"]).run(model, small, y, metric=metric, domain=held)
    twins = found.twins(solve_dual(found.frontier, 1.0).corner)
    assert (twins["job"].to_numpy() == small["job"].to_numpy()).all()
    both = pd.concat([small.assign(sex="F"), small.assign(sex="M")], ignore_index=True)
    allowed = small["job"].to_numpy()[:, None] == both["job"].to_numpy()
    expected = brute_curve(
        model,
        metric.without_feature_map(),
        held.encode_array(small),
        y,
        held.encode_array(both),
        EPS,
        allowed=allowed,
    )
    np.testing.assert_allclose(dual_curve(found.frontier).value(EPS), expected, atol=1e-10)
    with pytest.raises(InputError, match="'sex' is to be edited, but the domain says that it may not change"):
        CandidateSearch(edits=["sex"]).run(
            model, frame, labels, metric=metric, domain=TabularDomain.from_frame(frame, immutable=["sex"])
        )


def test_who_cannot_exist_is_nobodys_twin_and_is_not_audited(frame, model, metric, labels):
    young = TabularDomain.from_frame(frame, ranges={"age": (18, 40)})
    old = np.flatnonzero(frame["age"] > 40)
    with pytest.raises(InputError, match=rf"first row {old[0]}: column 'age' = .*above 40"):
        CandidateSearch(edits=["sex"]).run(model, frame, labels, metric=metric, domain=young)
    some = np.flatnonzero(frame["age"] <= 40)
    here = frame.iloc[some]
    found = CandidateSearch(edits=["sex"]).run(
        model, here, labels[some], metric=metric, domain=young, pool=frame.iloc[old]
    )
    assert set(found.candidates.source[found.outside] - len(some)) == set(range(len(old)))
    corner = solve_dual(found.frontier, np.inf).corner
    twins, moved = found.twins(corner), found.frontier.candidate[corner] >= 0
    assert (twins["age"][moved] <= 40).all()
    assert young.validate(twins[moved]) == ()


def test_plain_arrays_with_a_box_and_column_positions():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(30, 2)), rng.integers(2, size=30)])
    y = rng.integers(2, size=30)
    model = as_model(lambda Z: 1 / (1 + np.exp(-(Z @ [1.0, -1.0, 2.0]))))
    metric = mahalanobis(np.diag([1.0, 2.0, 0.0]))
    found = CandidateSearch(edits=[2]).run(model, X, y, metric=metric, domain=BoxDomain.from_data(X))
    both = np.concatenate([np.column_stack([X[:, :2], np.full(30, v)]) for v in (0.0, 1.0)])
    np.testing.assert_allclose(
        dual_curve(found.frontier).value(EPS), brute_curve(model, metric, X, y, both, EPS), atol=1e-10
    )
    held = BoxDomain(X.min(0), X.max(0), immutable=[2])
    rows_only = CandidateSearch().run(model, X, y, metric=metric, domain=held)
    same = X[:, 2][:, None] == X[:, 2]
    np.testing.assert_allclose(
        dual_curve(rows_only.frontier).value(EPS),
        brute_curve(model, metric, X, y, X, EPS, allowed=same),
        atol=1e-10,
    )


def test_a_tiny_honest_difference_keeps_its_price_and_rounding_costs_nothing():
    rng = np.random.default_rng(1)
    # An oblique free direction: the twins' distances are rounding, never exactly zero.
    directions = rng.normal(size=(2, 6))
    metric = FairMetric.from_subspace(Subspace.from_directions(directions))
    x = rng.normal(size=(1, 6)) * 100
    along = x + directions[0] * 37.0
    honest = along + 3e-4 * np.eye(6)[0]
    pool = np.concatenate([along, honest])
    model = as_model(lambda Z: np.clip(0.9 - 0.1 * (Z[:, 0] - x[0, 0]) / 100, 0.01, 0.99))
    found = CandidateSearch().run(model, x, [1], metric=metric, pool=pool)
    price = found.frontier.squared_distance
    assert metric.squared_distance(x, along)[0] > 0
    order = np.argsort(model.losses(pool, [1, 1]))
    assert price[1] == 0.0
    assert order.tolist() == [0, 1]
    assert price[2] == pytest.approx(metric.squared_distance(x, honest)[0], rel=1e-6)
    assert 0 < price[2] < 1e-7


@pytest.mark.parametrize("loss", ["squared", "custom"])
def test_regression_equals_brute_force(loss):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(25, 3)), np.round(rng.normal(size=25), 1)
    chosen = CustomLoss(lambda s, t: (s[:, 0] - t).abs(), regression=True) if loss == "custom" else "squared"
    model = as_model(lambda Z: np.sin(Z).sum(axis=1), loss=chosen)
    found = CandidateSearch().run(model, X, y, metric=euclidean(3))
    prediction = np.sin(X).sum(axis=1)
    error = np.abs(prediction[None, :] - y[:, None])
    losses = error if loss == "custom" else error**2
    d2 = euclidean(3).pairwise(X)
    for lam in (0.0, 0.05, 0.3, 1.0, 10.0):
        np.testing.assert_allclose(found.frontier.conjugate(lam), (losses - lam * d2).max(axis=1), atol=1e-9)


@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
def test_losses_with_ties(loss):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 3, size=(80, 3)).astype(float), rng.integers(2, size=80)
    model = as_model(lambda Z: np.round(1 / (1 + np.exp(-Z.sum(axis=1) + 3)), 1) * 0.8 + 0.1, loss=loss)
    found = CandidateSearch().run(model, X, y, metric=euclidean(3))
    losses, d2 = model.loss_table(X)[:, y].T, euclidean(3).pairwise(X)
    for lam in (0.0, 0.1, 1.0):
        np.testing.assert_allclose(found.frontier.conjugate(lam), (losses - lam * d2).max(axis=1), atol=1e-9)


def test_fewer_shared_candidates_never_raise_the_value_and_keep_own_twins(
    frame, domain, model, metric, labels
):
    full, thin, own = (
        CandidateSearch(edits=["sex"], **choice).run(model, frame, labels, metric=metric, domain=domain)
        for choice in ({}, {"max_candidates": 20}, {"use_rows": False})
    )
    curves = [dual_curve(found.frontier).value(EPS) for found in (full, thin, own)]
    assert (curves[0] >= curves[1] - 1e-12).all()
    assert (curves[1] >= curves[2] - 1e-12).all()
    assert thin.places <= 20


def test_a_model_that_is_not_finite_raises_and_is_never_fair(frame, domain, metric, labels):
    broken = as_model(lambda X: np.full((len(X), 3), np.nan))
    with pytest.raises(ModelError, match="not finite"):
        CandidateSearch(edits=["sex"]).run(broken, frame, labels, metric=metric, domain=domain)
    shapes = as_model(lambda X: np.ones((len(X) + 1, 3)) / 3)
    with pytest.raises(ModelError, match="shape"):
        CandidateSearch(edits=["sex"]).run(shapes, frame, labels, metric=metric, domain=domain)
    # Finite on people as they are, not on one twin: the twin decides.
    at = domain.group("sex").start
    fragile = as_model(
        lambda X: np.where((X[:, [at]] == 1) & (X[:, [0]] > 0.5), np.nan, 1 / 3) * np.ones((1, 3))
    )
    women = frame[frame["sex"] == "F"]
    fragile.losses(domain.encode_array(women), labels[: len(women)])
    with pytest.raises(ModelError, match="not finite"):
        CandidateSearch(edits=["sex"]).run(fragile, women, labels[: len(women)], metric=metric, domain=domain)


def test_mistakes_are_explained(frame, domain, model, metric, labels):
    def run(y=labels, X=frame, **choices):
        return CandidateSearch(**choices).run(model, X, y, metric=metric, domain=domain)

    with pytest.raises(InputError, match=r"no column 'sexx'.*'sex'"):
        run(edits=["sexx"])
    with pytest.raises(InputError, match="lengths differ"):
        run(y=labels[:-1])
    with pytest.raises(InputError, match="label that the model does not know"):
        run(y=labels + 1)
    with pytest.raises(InputError, match="whole numbers between"):
        run(edits={"age": [20.5]})
    with pytest.raises(InputError, match="among the categories of 'job'"):
        run(edits={"job": ["king"]})
    with pytest.raises(InputError, match="'use_rows' must be"):
        run(use_rows="no")
    with pytest.raises(InputError, match="'max_candidates' must be"):
        run(max_candidates=0)
    with pytest.raises(InputError, match="pool"):
        CandidateSearch().run(model, frame, labels, metric=metric, domain=domain, pool=frame[["age"]])


def test_edits_are_written_as_in_a_correspondence_study(frame, domain, model, metric, labels):
    ways = (["sex"], Edit("sex"), {"sex": "all"}, [[{"sex": "F"}, {"sex": "M"}]])
    found = [
        CandidateSearch(edits=way).run(model, frame, labels, metric=metric, domain=domain).frontier
        for way in ways
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].loss, other.loss)
    with pytest.raises(InputError, match="'edits' must be"):
        CandidateSearch(edits=3).run(model, frame, labels, metric=metric, domain=domain)


def test_same_input_same_bytes(frame, domain, model, metric, labels):
    first, second = (
        CandidateSearch(edits=["sex"]).run(model, frame, labels, metric=metric, domain=domain) for _ in "ab"
    )
    for name in ("indptr", "squared_distance", "loss", "candidate"):
        assert getattr(first.frontier, name).tobytes() == getattr(second.frontier, name).tobytes()


@pytest.mark.parametrize("looks", [0, 2, 6, 10**6])
def test_the_time_ends_the_search_and_what_was_compared_counts(domain, metric, looks, monkeypatch):
    """A clock that goes by looks at it: everybody is asked about, then fewer and fewer comparisons are made."""
    people, asked = table(300, seed=1), []
    weight = np.random.default_rng(3).normal(size=(domain.n_features, 3))

    def counted(X):
        asked.append(len(X))
        return _softmax(np.tanh(X @ weight) * 2)

    class Looks(Budget):
        left = property(lambda self: next(clock))

    problem = AuditProblem.build(
        as_model(counted), people, np.arange(300) % 3, metric=metric, domain=domain.widened(people)
    )
    monkeypatch.setattr(candidates, "BATCH", 50)
    monkeypatch.setattr(candidates, "scan_pairs", partial(candidates.scan_pairs, block_bytes=4096))
    search = CandidateSearch(edits=["sex"])
    whole = search.search(problem).frontier
    clock, before = iter([1.0] * looks + [-1.0] * 10**6), sum(asked)
    found = search.extend(problem, Support.start(problem), 0.1, Looks(1.0))
    late = looks < 10**6
    assert found.status == ("not_converged" if late else "converged")
    assert ("compared" in "".join(found.reasons)) == late
    if looks == 0:
        assert sum(asked) - before == 300
    for lam in (0.0, 0.1, 1.0):
        below = whole.conjugate(lam) - found.support.frontier.conjugate(lam)
        assert (below >= -1e-12).all()
        assert (below > 1e-9).any() == late
