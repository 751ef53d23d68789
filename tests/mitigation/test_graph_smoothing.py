"""GraphSmoothing against a dense solve, against brute-force neighbours, and on people who are not in the graph."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from likewise.core.errors import FormatError, InputError
from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import AttributeSubspace, FairMetric, euclidean
from likewise.fair_metrics.neighbours import NearestPlaces, same_places
from likewise.mitigation import GraphSmoothing
from likewise.models import as_model, load_model

METRIC = FairMetric.from_subspace(Subspace.from_directions([[0.0, 0.0, 1.0]]))


def chance(X):
    return 1 / (1 + np.exp(-X @ [1.0, -2.0, 1.5]))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n)])


def dense(scores, places, k, strength, mass):
    """The definition, written out: all distances, the graph, one solve."""
    n = len(places)
    d2 = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(d2, np.inf)
    near = np.argsort(d2, axis=1, kind="stable")[:, :k]
    named = np.zeros((n, n), dtype=bool)
    named[np.arange(n)[:, None], near] = True
    scale = np.median(np.take_along_axis(d2, near, axis=1))
    W = np.where(named | named.T, np.exp(-d2 / scale), 0.0)
    W /= W.sum() / n
    return np.linalg.solve(np.diag(mass) + strength * (np.diag(W.sum(axis=1)) - W), mass[:, None] * scores)


@pytest.mark.parametrize("strength", [0.0, 0.3, 5.0, 1e4])
def test_the_scores_are_those_of_a_dense_solve(strength):
    X = rows(120)
    smooth = GraphSmoothing(chance, metric=METRIC, n_neighbors=6, strength=strength).fit(X)
    scores = np.log(chance(X) / (1 - chance(X)))[:, None]
    expected = dense(scores, METRIC.embed(X), 6, strength, np.ones(120))[:, 0]
    np.testing.assert_allclose(smooth.smoothed_, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(smooth.predict_proba(X)[:, 1], 1 / (1 + np.exp(-expected)), rtol=0, atol=1e-8)


def test_people_at_no_distance_are_one_node_and_get_the_same_bits():
    X = rows(60)
    twins = np.vstack([X, X * [1, 1, 0] + [0, 0, 1], X * [1, 1, 0]])
    smooth = GraphSmoothing(chance, metric=METRIC, n_neighbors=4).fit(twins)
    parts = smooth.smoothed_.reshape(3, 60)
    assert (parts == parts[0]).all()
    scores = np.log(chance(twins) / (1 - chance(twins))).reshape(3, 60).mean(axis=0)[:, None]
    expected = dense(scores, METRIC.embed(X), 4, 1.0, np.full(60, 3.0))[:, 0]
    np.testing.assert_allclose(parts[0], expected, rtol=0, atol=1e-8)


def test_new_people_minimise_the_same_objective_with_the_others_held():
    X, new = rows(80), rows(30, seed=1)
    smooth = GraphSmoothing(chance, metric=METRIC, n_neighbors=5, strength=2.0).fit(X)
    own = np.log(chance(new) / (1 - chance(new)))
    got = smooth.predict_proba(new)
    got = np.log(got[:, 1] / got[:, 0])
    d2 = ((METRIC.embed(new)[:, None] - METRIC.embed(X)[None]) ** 2).sum(axis=2)
    for i in range(30):
        near = np.argsort(d2[i])[:5]
        w = np.exp(-d2[i, near] / smooth.scale_) / smooth._unit
        slope = 2 * (got[i] - own[i]) + 2 * 2.0 * (w * (got[i] - smooth.smoothed_[near])).sum()
        assert abs(slope) < 1e-8


def test_a_strong_pull_brings_everybody_to_the_mean():
    X = rows(50)
    smooth = GraphSmoothing(chance, metric=METRIC, n_neighbors=20, strength=1e9).fit(X)
    mean = np.log(chance(X) / (1 - chance(X))).mean()
    np.testing.assert_allclose(smooth.smoothed_, mean, atol=1e-5)


def test_classes_values_and_raw_tables():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(size=90), "pay": rng.normal(size=90), "sex": rng.choice(["F", "M"], 90)}
    )
    y = np.array(["a", "b", "c"])[(frame["age"] > 0.5).astype(int) + (frame["pay"] > 0)]
    model = LogisticRegression().fit(frame[["age", "pay"]], y)
    learner = AttributeSubspace(["sex"], domain=TabularDomain.from_frame(frame))
    smooth = GraphSmoothing(
        as_model(lambda t: model.predict_proba(t[["age", "pay"]]), takes_frame=True, classes=model.classes_),
        metric=learner,
    ).fit(frame)
    assert smooth.predict_proba(frame).sum(axis=1) == pytest.approx(np.ones(90))
    assert smooth.classes_.tolist() == ["a", "b", "c"]
    assert as_model(smooth).predict(frame).tolist() == smooth.predict(frame).tolist()
    X = rows(40)
    line = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    values = GraphSmoothing(line, metric=METRIC, strength=0.0).fit(X)
    np.testing.assert_allclose(values.smoothed_, X @ [1.0, 2.0, 3.0])


def test_exact_neighbours_are_those_of_brute_force():
    X = np.random.default_rng(0).normal(size=(500, 6)) + 100.0
    index, squared = NearestPlaces(X).among_themselves(7)
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(d2, np.inf)
    assert (index == np.argsort(d2, axis=1, kind="stable")[:, :7]).all()
    np.testing.assert_allclose(squared, np.sort(d2, axis=1)[:, :7], rtol=1e-9)


def test_cells_find_most_of_the_true_neighbours():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))[rng.integers(40, size=3000)] * 3 + rng.normal(size=(3000, 8))
    exact, _ = NearestPlaces(X, exact=True).among_themselves(8)
    near, squared = NearestPlaces(X, exact=False).among_themselves(8)
    shared = np.mean([len(set(a) & set(b)) / 8 for a, b in zip(exact.tolist(), near.tolist(), strict=True)])
    assert shared > 0.9
    assert all(len(set(row)) == 8 and i not in row for i, row in enumerate(near.tolist()))
    np.testing.assert_allclose(squared, ((X[near] - X[:, None]) ** 2).sum(axis=2))


def test_many_at_one_place():
    X = np.zeros((30, 2))
    index, squared = NearestPlaces(X).among_themselves(3)
    assert (squared == 0).all()
    assert (index != np.arange(30)[:, None]).all()
    first, place = same_places(np.vstack([X, X + 1e-3]))
    assert first.tolist() == [0, 30]
    assert place.tolist() == [0] * 30 + [1] * 30


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"strength": -1}, "'strength' must be"),
        ({"n_neighbors": 0}, "'n_neighbors' must be"),
        ({"n_neighbors": 2.5}, "'n_neighbors' must be a whole number"),
        ({"scale": 0.0}, "'scale' must be"),
        ({"metric": "sex"}, "'metric' must be"),
    ],
)
def test_bad_choices_are_refused(choices, message):
    with pytest.raises(InputError, match=message):
        GraphSmoothing(chance, **({"metric": euclidean(3)} | choices)).fit(rows(20))


def test_one_place_is_no_graph():
    with pytest.raises(InputError, match="all rows are at one place"):
        GraphSmoothing(chance, metric=METRIC).fit(np.ones((5, 3)))


@pytest.mark.usefixtures("files_in_this_process")
@pytest.mark.parametrize("exact", [pytest.param(True, id="with_trial"), False])
def test_files_answer_the_same(exact, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1).fit(X, y)
    metric = FairMetric.from_subspace(Subspace.from_directions(np.eye(4)[1:2]))
    smooth = GraphSmoothing(model, metric=metric, strength=2.0, exact=exact).fit(X)
    smooth.save(tmp_path / "model.ubj")
    new = rng.normal(size=(30, 4))
    for loaded in (GraphSmoothing.load(tmp_path / "model.ubj"), load_model(tmp_path / "model.ubj")):
        for rows in (X, new):
            np.testing.assert_array_equal(loaded.predict_proba(rows), smooth.predict_proba(rows))
    again = GraphSmoothing.load(tmp_path / "model.ubj")
    assert again.get_params()["strength"] == 2.0
    np.testing.assert_array_equal(again.smoothed_, smooth.smoothed_)
    assert (again.graph_ != smooth.graph_).nnz == 0
    graph = tmp_path / "model.ubj.arrays.safetensors"
    graph.write_bytes(graph.read_bytes()[:-1] + b"!")
    with pytest.raises(FormatError, match="belongs to another model"):
        GraphSmoothing.load(tmp_path / "model.ubj")
    graph.unlink()
    with pytest.raises(FormatError, match="Move the files of the model together"):
        GraphSmoothing.load(tmp_path / "model.ubj")


def test_a_graph_of_cells_drawn_by_chance_is_not_written(tmp_path):
    metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    X = np.random.default_rng(0).normal(size=(50, 2))
    smooth = GraphSmoothing(
        lambda rows: np.full(len(rows), 0.5), metric=metric, exact=False, random_state=None
    )
    with pytest.raises(InputError, match="random_state that is an int"):
        smooth.fit(X).save(tmp_path / "model.bin")
