"""What the defaults of SenSR and SenSeI promise: sensitive columns change nothing, ε means something, and it is said
when the method did not help."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.special
import torch
from sklearn.base import clone

from likewise import training
from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.evaluation.summary import balanced_accuracy
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, FairMetric
from likewise.models import as_model
from likewise.training import (
    Batch,
    MLPBaselineClassifier,
    ProjectClassifier,
    SenSeIClassifier,
    SenSRClassifier,
    TrainingConfig,
    TrainingWarning,
    mlp,
)
from likewise.training.estimators.automatic import (
    BesideBaseline,
    auto_schedule,
    balanced_loss,
    compared,
    held_out_gap,
)
from likewise.training.networks import behind_projection, folded, scores_of
from likewise.training.results import warn_about

QUICK = {"hidden_layer_sizes": (8,), "random_state": 0, "n_steps": 60, "lr": 0.02}
# Where it does not matter how much was learned.
FEW = {**QUICK, "n_steps": 10}
# Long enough to learn a table, a fraction of the default.
SHORT = {"random_state": 0, "n_steps": 80, "lr": 0.01}
both = pytest.mark.parametrize("kind", [SenSRClassifier, SenSeIClassifier])


@pytest.fixture(scope="module")
def people():
    """A score leans on sex and race, and so does the target; skill is what should matter."""
    rng = np.random.default_rng(0)
    n = 300
    sex, race = rng.choice(["F", "M"], n), rng.choice(["a", "b"], n)
    skill = rng.normal(size=n)
    score = 0.5 * (sex == "M") + rng.normal(size=n)
    more = {f"test {i}": rng.normal(size=n) for i in range(3)}
    job = rng.choice(["x", "y"], n)
    frame = pd.DataFrame({"skill": skill, "score": score, **more, "job": job, "sex": sex, "race": race})
    y = skill + 0.3 * (sex == "M") - 0.3 * (race == "b") + 0.3 * rng.normal(size=n) > 0.3
    return frame, y.astype(int)


def swapped(frame):
    """Everybody with other values of sex and race."""
    return frame.assign(
        sex=frame["sex"].map({"F": "M", "M": "F"}), race=frame["race"].map({"a": "b", "b": "a"})
    )


@both
@pytest.mark.parametrize("blind_to", ["auto", "columns"])
def test_sensitive_columns_change_no_digit_of_an_answer_also_from_a_file(kind, blind_to, people, tmp_path):
    frame, y = people
    model = kind(
        AttributeSubspace(["sex", "race"]), blind_to=blind_to, training=TrainingConfig(baseline=False), **FEW
    ).fit(frame, y)
    model.save(tmp_path / "model.safetensors")
    for one in (model, training.load(tmp_path / "model.safetensors")):
        assert one.predict_proba(swapped(frame)).tobytes() == one.predict_proba(frame).tobytes()
    assert (
        as_model(model).predict_proba(swapped(frame)).tobytes()
        == as_model(model).predict_proba(frame).tobytes()
    )
    weights = model.coefs_[0]
    own = [
        i for i, name in enumerate(model.encoder_.get_feature_names_out()) if name.startswith(("sex", "race"))
    ]
    assert np.abs(weights[own]).max() == 0.0
    assert np.abs(weights).max() > 0.0


def test_asked_otherwise_the_network_sees_sensitive_columns(people):
    frame, y = people
    model = SenSRClassifier(
        ExpertSubspace(["sex"]), blind_to=None, training=TrainingConfig(baseline=False), **FEW
    ).fit(frame, y)
    assert model.removed_ is None
    assert model.predict_proba(swapped(frame)).tobytes() != model.predict_proba(frame).tobytes()


@both
def test_a_module_of_your_own_is_blind_too(kind, people):
    frame, y = people

    def module(n, k):
        return torch.nn.Sequential(torch.nn.LayerNorm(n), torch.nn.Linear(n, k))

    model = kind(
        ExpertSubspace(["sex", "race"]), module=module, training=TrainingConfig(baseline=False), **FEW
    ).fit(frame, y)
    assert model.predict_proba(swapped(frame)).tobytes() == model.predict_proba(frame).tobytes()


def test_columns_of_plain_arrays_are_hidden_by_index():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = SenSRClassifier(ExpertSubspace([1]), validation=None, **FEW).fit(X, X[:, 0] > 0)
    assert model.predict_proba(X * [[1.0, -7.0, 1.0]]).tobytes() == model.predict_proba(X).tobytes()


def test_what_is_removed_as_a_whole_leaves_exact_zeros():
    rng = np.random.default_rng(0)
    oblique = Subspace.from_directions(np.concatenate([rng.normal(size=(2, 5)), np.eye(5)[[1, 3]]]))
    net = mlp(5, (4,), 2, generator=torch.Generator().manual_seed(0))
    for one in (folded(net, oblique), behind_projection(net, oblique)):
        assert not bool(one[0].weight.detach()[:, [1, 3]].any())


@both
def test_eps_trades_accuracy_for_fairness(kind, people):
    frame, y = people
    metric = AttributeSubspace(["sex", "race"])
    models = []
    for eps in (0.0, 0.02, 1.0):
        with warnings.catch_warnings():
            # At the largest nothing can be learned, and it is said.
            warnings.simplefilter("ignore" if eps == 1.0 else "error", TrainingWarning)
            models.append(
                kind(metric, eps=eps, training=TrainingConfig(baseline=False), **QUICK).fit(frame, y)
            )
    answers = [model.predict_proba(frame)[:, 1] for model in models]
    spread = [float(one.std()) for one in answers]
    assert spread[0] > spread[1] > spread[2]
    assert (models[0].predict(frame) != models[2].predict(frame)).any()
    assert models[0].score(frame, y) > models[2].score(frame, y)


def test_auto_values_come_from_the_table_and_are_kept(people, monkeypatch):
    frame, y = people
    model = SenSRClassifier(ExpertSubspace(["sex", "race"]), **QUICK)
    monkeypatch.setattr(
        "likewise.training.estimators.robust_classifier.too_costly", lambda lost, without: False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # of 60 steps
        model.fit(frame, y)
    assert (model.batch_size_, model.validation_, model.patience_) == (64, 0.2, 4)
    assert model.n_steps_ == 60 < auto_schedule(300).n_steps
    assert model.blind_to_ == "subspace"
    assert model.search_.subspace_steps == 0
    x = model.encoder_.encode_array(frame)
    pairs = model.metric_.pairwise(x[:150], x[150:])
    assert model.eps_ == pytest.approx(1e-4 * pairs.mean(), rel=0.1)
    seen = model.beside_baseline_
    assert seen.n == 60  # a fifth
    assert seen.twin_flips == 0.0 < seen.baseline_twin_flips
    assert 0.0 < seen.gap < seen.baseline_gap
    assert 0.0 < seen.lost_error < 0.1
    assert seen.robust_loss < seen.baseline_robust_loss
    assert seen.balanced_accuracy > seen.chance == 0.5


def test_a_budget_that_costs_too_much_is_lowered(people, monkeypatch):
    frame, y = people
    monkeypatch.setattr("likewise.training.estimators.automatic._EPS_SHARE", 0.5)
    model = SenSRClassifier(ExpertSubspace(["sex"]), validation=0.3, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # chance, at half of all distances
        stubborn = clone(model).set_params(eps=2.0, **QUICK).fit(frame, y)
        model.fit(frame, y)
    assert stubborn.eps_ == 2.0
    assert model.eps_ == 0.0
    assert model.beside_baseline_.balanced_accuracy > stubborn.beside_baseline_.balanced_accuracy + 0.1


def test_the_first_step_is_in_units_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + X[:, 2] > 0
    metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0, 1.0]]))
    small, large = (
        SenSRClassifier(metric, blind_to=None, training=TrainingConfig(baseline=False), **FEW)
        .fit(X * scale, y)
        .search_.subspace_step_size
        for scale in (1.0, 10.0)
    )
    assert large == pytest.approx(10.0 * small)


def test_it_is_said_when_everything_is_free(people):
    frame, y = people
    nearly = np.eye(6)[:4] + np.eye(6)[[1, 2, 3, 4]] * 1e-3  # oblique, so that no column is free as a whole
    metric = FairMetric.from_subspace(Subspace.from_directions(nearly))
    X = np.column_stack(
        [frame["skill"], frame["score"], *(frame[f"test {i}"] for i in range(3)), frame["job"] == "x"]
    )
    with pytest.warns(TrainingWarning) as given:
        model = SenSRClassifier(metric, validation=0.3, **QUICK).fit(X, y)
    assert {finding.code for finding in model.findings_} >= {"subspace_swallows", "near_chance"}
    assert model.blind_to_ == "columns"
    assert any("ExpertSubspace" in str(one.message) for one in given)


def test_every_way_not_to_help_is_said():
    def codes(**changes):
        good = {
            "n": 500, "balanced_accuracy": 0.7, "baseline_balanced_accuracy": 0.71, "chance": 0.5, "twin_flips": 0.0,
            "baseline_twin_flips": 0.2, "robust_loss": 0.5, "baseline_robust_loss": 0.9,
        }  # fmt: skip
        return [one.code for one in compared(BesideBaseline(**{**good, **changes}), owner="fit")]

    assert codes() == []
    assert codes(balanced_accuracy=0.51) == ["near_chance"]
    assert codes(balanced_accuracy=0.66) == ["less_accurate"]
    assert codes(lost_error=0.02) == ["cost_uncertain"]
    assert codes(lost_error=0.01) == []
    assert codes(twin_flips=0.15) == ["flips_not_down"]
    assert codes(gap=0.3, baseline_gap=0.5) == ["gap_not_halved"]
    assert codes(gap=0.2, baseline_gap=0.5) == codes(gap=0.045, baseline_gap=0.05) == []
    assert codes(robust_loss=0.9) == ["not_more_robust"]
    plain = BesideBaseline(500, 0.51, 0.52, 0.5, 0.0, 0.0, 0.5, 0.9)
    assert "check the target" in compared(plain, owner="fit")[0].message


def test_advice_is_given_only_if_it_can_help():
    costly = BesideBaseline(500, 0.66, 0.72, 0.5, 0.0, 0.1, 0.5, 0.9)

    def said(**choices):
        return compared(costly, owner="fit", names=("sex",), **choices)[0].message

    assert "Lower 'eps' (it was 0.1) or make only" in said(eps=0.1, asked=True, freed=0.1)
    assert "Lower 'eps' (it was 0.1)." in said(eps=0.1, asked=True)  # nothing but the columns is free
    for eps in (0.0, 0.1):
        assert "eps" not in said(eps=eps, freed=0.1), "what it was raised to was shown to cost little"
        assert "no metric that makes them free keeps more" in said(eps=eps)
        for asked in (True, False):
            assert "80% of the other columns' variance free, whatever 'eps' is" in said(
                eps=eps, asked=asked, freed=0.8
            )
    for freed in (0.1, 0.8):
        assert "metric=ExpertSubspace(['sex'])" in said(freed=freed)


@both
def test_advice_that_is_followed_works(kind):
    """A wide table in which the column that tells most of y carries sex: what a learned metric frees."""
    rng = np.random.default_rng(3)
    n, width = 600, 40
    sex = rng.random(n) < 0.5
    X = rng.normal(size=(n, width))
    X[:, 0] += 2.0 * sex
    y = (X[:, :4] @ [2.0, 1.0, 1.0, 1.0] + 0.3 * rng.logistic(size=n) > 2.0).astype(int)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(width)]).assign(sex=np.where(sex, "M", "F"))
    known, new = slice(0, 400), slice(400, None)

    def right(model):
        fitted = model.fit(frame[known], y[known])
        return balanced_accuracy(y[new], fitted.predict(frame[new]))

    blind = MLPBaselineClassifier(**SHORT).fit(frame[known].drop(columns="sex"), y[known])
    plain = balanced_accuracy(y[new], blind.predict(frame[new].drop(columns="sex")))
    with pytest.warns(TrainingWarning, match=r"fairness costs accuracy.*metric=ExpertSubspace\(\['sex'\]\)"):
        assert right(kind(AttributeSubspace(["sex"]), **SHORT)) < plain - 0.03
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        assert right(kind(ExpertSubspace(["sex"]), **SHORT)) > plain - 0.03


def test_too_few_people_are_warned_of_once_in_a_search():
    doubtful = [
        BesideBaseline(500, 0.70, plain, 0.5, 0.0, 0.1, 0.5, 0.9, lost_error=0.03) for plain in (0.70, 0.71)
    ]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for seen in doubtful:
            warn_about(compared(seen, owner="SenSRClassifier"))
    assert [str(one.message).split(" tell")[0] for one in told] == [
        "SenSRClassifier: the people are too few to"
    ]


def test_a_part_that_was_asked_for_is_all_that_is_held_out(people):
    frame, y = people
    model = SenSRClassifier(ExpertSubspace(["sex"]), validation=0.3, eps=0.0, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        assert model.fit(frame, y).beside_baseline_.n == 90


def test_the_error_of_a_loss_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    lost, errors = [], []
    for _ in range(400):
        y = np.repeat([0, 1], [300, 100])
        own, plain = (np.where(rng.random(400) < share, y, 1 - y) for share in (0.7, 0.75))
        one, error = balanced_loss(y, own, plain)
        lost.append(one)
        errors.append(error)
    assert np.mean(lost) == pytest.approx(0.05, abs=0.005)
    assert np.mean(errors) == pytest.approx(np.std(lost), rel=0.1)


def test_the_gap_of_people_held_out_is_the_transport_problem_solved():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)), np.array([0, 1, 0, 1, 1, 0])
    x[:, 1] = rng.integers(0, 2, 6)
    net = mlp(2, (4,), 2, generator=torch.Generator().manual_seed(0))
    metric = FairMetric.from_subspace(Subspace.from_directions([[0.0, 1.0]]))
    rows = np.concatenate([np.column_stack([x[:, 0], np.full(6, kind)]) for kind in (0.0, 1.0)])
    losses = -np.log(scipy.special.softmax(scores_of(net, rows), axis=1))[:, y].T
    own = -np.log(scipy.special.softmax(scores_of(net, x), axis=1))[np.arange(6), y]
    cost = np.square(x[:, None, 0] - rows[None, :, 0])
    for eps in (0.0, 0.1):
        solved = scipy.optimize.linprog(
            -losses.ravel() / 6,
            A_ub=cost.ravel()[None] / 6,
            b_ub=[eps],
            A_eq=np.kron(np.eye(6), np.ones(12)),
            b_eq=np.ones(6),
        )
        people = Batch(torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y))
        assert held_out_gap(net, people, [1], metric, eps=eps) == pytest.approx(
            -solved.fun - own.mean(), abs=1e-6
        )


def test_no_run_ends_at_chance_silently_also_where_nothing_is_compared():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] > 0
    how = TrainingConfig(search_domain=None, baseline=False)
    ruinous = {"blind_to": None, "training": how, "validation": None, "eps": 50.0}
    with pytest.warns(
        TrainingWarning, match="near chance: balanced accuracy 0.5.* on the people it was trained on"
    ):
        SenSeIClassifier(ExpertSubspace([0]), rho=100.0, **ruinous, **QUICK).fit(X, y)
    with pytest.warns(TrainingWarning, match="near chance: .* on people held out"):
        SenSeIClassifier(ExpertSubspace([0]), rho=100.0, **{**ruinous, "validation": 0.2}, **QUICK).fit(X, y)
    # The advice is about what the estimator has: there is no ε here.
    linear = {**QUICK, "hidden_layer_sizes": ()}
    with pytest.warns(TrainingWarning, match="projected off: add hidden layers, name fewer attributes"):
        ProjectClassifier(ExpertSubspace([0, 1]), **linear).fit(X, y)


def test_bad_choices_are_refused(people):
    frame, y = people
    with pytest.raises(
        InputError, match=r"'blind_to' must be one of 'auto', 'subspace', 'columns', .* got 'sex'"
    ):
        SenSRClassifier(ExpertSubspace(["sex"]), blind_to="sex", **QUICK).fit(frame, y)
    with pytest.raises(InputError, match="'blind_to' must be one word, and directions beside it"):
        SenSRClassifier(ExpertSubspace(["sex"]), blind_to=["columns", "auto"], **QUICK).fit(frame, y)


# ---- sample_weight --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MLPBaselineClassifier(batch_size=32, **QUICK),
        MLPBaselineClassifier(batch_size=32, training=TrainingConfig(sampling="uniform"), **QUICK),
        SenSRClassifier(ExpertSubspace([0]), batch_size=32, validation=None, **QUICK),
    ],
    ids=["balanced", "uniform", "sensr"],
)
def test_a_weight_of_two_is_two_of_a_row(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] > 0, "yes", "no")
    weight = rng.integers(0, 4, 60)
    weighted = clone(estimator).fit(X, y, sample_weight=weight)
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    order = rng.permutation(60)
    shuffled = clone(estimator).fit(X[order], y[order], sample_weight=weight[order])
    assert shuffled.predict_proba(X).tobytes() == weighted.predict_proba(X).tobytes()
    listed = np.repeat(np.arange(60), weight)
    # A weight nobody has makes the repeated rows be drawn in the same way.
    tiny = np.ones(len(listed) + 1)
    tiny[-1] = 0.0
    again = clone(estimator).fit(
        np.concatenate([X[listed], X[:1]]), np.concatenate([y[listed], y[:1]]), sample_weight=tiny
    )
    np.testing.assert_allclose(again.predict_proba(X), weighted.predict_proba(X), atol=1e-6)
    assert abs(repeated.predict_proba(X) - weighted.predict_proba(X)).mean() < 0.15


def test_weights_move_the_decision_and_equal_ones_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    plain = MLPBaselineClassifier(training=TrainingConfig(sampling="uniform"), **QUICK)
    equal = clone(plain).fit(X, y, sample_weight=np.full(300, 2.5))
    assert equal.predict_proba(X).tobytes() == clone(plain).fit(X, y).predict_proba(X).tobytes()
    leaning = clone(plain).fit(X, y, sample_weight=np.where(y == 1, 9.0, 1.0))
    assert leaning.predict(X).mean() > equal.predict(X).mean() + 0.1


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1.0] + [1.0] * 59, "'sample_weight' must be numbers >= 0, not all of them 0, got -1"),
        ([0.0] * 60, "got only zeros"),
        ([1.0] * 3, "sample_weight has 3"),
        (np.ones((60, 2)), "one number per row"),
    ],
    ids=["negative", "zeros", "short", "matrix"],
)
def test_bad_weights_are_refused(weight, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InputError, match=message):
        MLPBaselineClassifier(**QUICK).fit(X, X[:, 0] > 0, sample_weight=weight)


def test_who_counts_for_nothing_is_not_there(people):
    frame, y = people
    weight = np.where(np.arange(300) < 200, 1.0, 0.0)
    weight[0] = 2.0
    model = SenSRClassifier(AttributeSubspace(), training=TrainingConfig(baseline=False), **QUICK)
    outside = frame["sex"]
    rest = frame.drop(columns=["sex", "race"])
    a = clone(model).fit(rest, y, sensitive_features=outside, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        b = clone(model).set_params(domain=a.encoder_)
        b.fit(rest[:200], y[:200], sensitive_features=outside[:200], sample_weight=weight[:200])
    assert a.metric_.subspace.dim == b.metric_.subspace.dim
    assert len(a.history_) == len(b.history_)
