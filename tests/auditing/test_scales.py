"""Models, metrics and domains that put one number on different scales: what still holds, and what is refused."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.auditing.bounds.exact_search import BranchAndBoundSearch
from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.linear.search import LinearSearch
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.problem import AuditProblem
from likewise.auditing.search.black_box import draw_rows, probe_cuts
from likewise.auditing.search.domain import options_of
from likewise.auditing.search.gradient.search import GradientSearch, refine
from likewise.core.errors import InputError
from likewise.data import TabularDomain
from likewise.fair_metrics import euclidean
from likewise.models import as_model

SCALES = ("signed log", "rank", "value or not")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(120) < 0.7, 0, rng.integers(1, 10, 120))
    gain[:10] = range(10)
    frame = pd.DataFrame({"gain": gain, "sex": rng.choice(["F", "M"], 120)})
    y = (np.log1p(gain) + 0.5 * (frame["sex"] == "M") + rng.normal(0, 0.3, 120) > 0.8).astype(int)
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def domains(people):
    return {
        scale: TabularDomain.from_frame(people[0], scales={"gain": scale}) for scale in ("linear", *SCALES)
    }


@pytest.fixture(scope="module")
def networks(people, domains):
    """Networks that carry the encoding they were trained with."""
    return {
        scale: lw.MLPBaselineClassifier(
            hidden_layer_sizes=(4,), n_steps=60, batch_size=60, domain=domain, random_state=0
        ).fit(*people)
        for scale, domain in domains.items()
        if scale in ("linear", "signed log")
    }


def problem_of(model, people, metric_domain, domain, rows=6):
    frame, y = people
    metric = lw.ExpertSubspace(["sex"], domain=metric_domain).fit(frame).metric_
    return AuditProblem.build(model, frame[:rows], y[:rows], metric=metric, domain=domain)


@pytest.mark.parametrize("scale", SCALES)
def test_a_model_keeps_its_own_scale_under_a_metric_with_another(people, domains, networks, scale):
    """The table goes to the model's own encoder; what needs one map between the encodings is left out."""
    model, domain = networks["linear"], domains[scale]
    problem = problem_of(model, people, domain, domain)
    place = problem.coordinates
    every = pd.DataFrame(product(range(10), "FM"), columns=["gain", "sex"])
    labels = np.ones(len(every), dtype=int)
    expected = as_model(model).losses(every, labels)
    np.testing.assert_allclose(place.losses_encoded(domain.encode_array(every), labels), expected, rtol=1e-9)
    assert place.own is None
    assert "on another scale" in place.why_no_gradient()
    for search in (BranchAndBoundSearch(), LinearSearch(), GradientSearch()):
        assert search.why_not(problem), search.name


def test_no_bound_over_a_linear_domain_of_a_model_with_a_logarithm_inside(people, domains, networks):
    """A network of encoded rows must never be read as one of the table's numbers."""
    problem = problem_of(networks["signed log"], people, domains["linear"], domains["linear"])
    assert problem.coordinates.own is None
    assert BranchAndBoundSearch().why_not(problem)
    with pytest.raises(InputError, match="own encoding"):
        family_of(networks["signed log"], domains["linear"], encoded=False)
    assert family_of(networks["signed log"], domains["signed log"], encoded=True)


def test_one_scale_for_all_keeps_gradients_and_bounds(people, domains, networks):
    problem = problem_of(networks["signed log"], people, domains["signed log"], domains["signed log"])
    assert problem.coordinates.own.is_identity
    assert BranchAndBoundSearch().why_not(problem) is None
    assert GradientSearch().why_not(problem) is None


def test_a_metric_with_another_scale_than_the_domain_is_refused(people, domains, networks):
    for one, two in (("linear", "rank"), ("rank", "linear"), ("signed log", "value or not")):
        with pytest.raises(
            InputError, match=r"cannot be re-expressed .*'gain' is on the scale.*Use one domain"
        ):
            problem_of(networks["linear"], people, domains[one], domains[two])


def test_a_metric_of_plain_numbers_is_refused_on_a_curved_domain(people):
    frame, y = people
    numbers = frame.assign(sex=(frame["sex"] == "M").astype(int))
    domain = TabularDomain.from_frame(numbers, scales={"gain": "rank"})
    model = LogisticRegression().fit(numbers, y)
    with pytest.raises(InputError, match="cannot be re-expressed"):
        AuditProblem.build(model, numbers[:5], y[:5], metric=euclidean(2), domain=domain)


def test_a_linear_model_of_raw_numbers_has_no_linear_form(people):
    frame, y = people
    numbers = frame.assign(sex=(frame["sex"] == "M").astype(int))
    domain = TabularDomain.from_frame(numbers, scales={"gain": "signed log"})
    model = LogisticRegression().fit(numbers, y)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(numbers).metric_
    problem = AuditProblem.build(model, numbers[:5], y[:5], metric=metric, domain=domain)
    assert problem.coordinates.linear_form() is None
    assert "not linear functions" in problem.coordinates.why_no_gradient()
    np.testing.assert_allclose(
        problem.coordinates.losses_encoded(domain.encode_array(numbers[:5]), y[:5]),
        as_model(model).losses(numbers[:5], y[:5]),
    )


def test_a_training_metric_with_another_scale_is_refused(people, domains):
    frame, y = people
    metric = lw.ExpertSubspace(["sex"], domain=domains["linear"]).fit(frame).metric_
    with pytest.raises(InputError, match="another scale of 'gain'"):
        lw.SenSRClassifier(metric, domain=domains["rank"], n_steps=2).fit(frame, y)


def test_a_trained_model_is_saved_with_its_scale(people, networks, tmp_path):
    path = tmp_path / "model.safetensors"
    networks["signed log"].save(path)
    again = lw.training.load(path)
    np.testing.assert_array_equal(
        again.predict_proba(people[0]), networks["signed log"].predict_proba(people[0])
    )
    assert again.encoder_.column("gain").curve.name == "signed log"


# ---- searches that step along a curve ------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_options_are_rows_that_can_exist_at_the_distances_of_the_encoding(domains, scale):
    domain = domains[scale]
    layout, metric = TableLayout.of(domain), euclidean(2)
    own = np.array([[0.0, 0.0], [7.0, 1.0]])
    for cuts in (None, {"gain": [0.5, 2.5, 6.5]}):
        options = options_of(layout, metric, own, cuts)
        at = np.flatnonzero(options.column == 0)
        for i, person in enumerate(own):
            values = options.value[i, at]
            values = values[np.isfinite(values)]
            assert set(values) <= set(range(10))
            assert len(values) > 1
            length = options.length[i, at][np.isfinite(options.value[i, at])]
            moved = domain.column("gain").place(values) - domain.column("gain").place(person[0])
            np.testing.assert_allclose(length, moved**2, atol=1e-15)


@pytest.mark.parametrize("scale", SCALES)
def test_probed_cuts_are_those_of_the_model(domains, scale):
    layout = TableLayout.of(domains[scale])
    found = probe_cuts(lambda X: (X[:, [0]] > 4) * 1.0, layout, calls=2000)
    assert found["gain"] == [4.0]
    assert set(draw_rows(layout, 200)[:, 0]) <= set(range(10))
    amounts = pd.DataFrame({"x": np.exp(np.linspace(-3, 6, 60)).round(4)})
    alone = TableLayout.of(TabularDomain.from_frame(amounts, scales={"x": scale}))
    found = probe_cuts(lambda X: (X > 0.7) * 1.0, alone, calls=4000)
    np.testing.assert_allclose(found["x"], [0.7], rtol=1e-2)


@pytest.mark.parametrize("scale", SCALES)
def test_refined_rows_exist_and_attain_what_is_said(scale):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"gain": np.where(rng.random(200) < 0.6, 0, rng.integers(1, 5000, 200))})
    domain = TabularDomain.from_frame(frame, scales={"gain": scale})

    def losses(rows, labels):
        values = domain.decode(rows)["gain"].to_numpy()
        return np.exp(-(((values - 3000.0) / 700.0) ** 2))

    origin = domain.encode_array(frame[:20])
    found = refine(
        origin + 0.01, origin, np.zeros(20), losses=losses, metric=euclidean(1), domain=domain, lam=0.05
    )
    assert not domain.validate(found)
    before = losses(origin, None)
    after = losses(found, None) - 0.05 * ((found - origin) ** 2).sum(axis=1)
    assert (after >= before - 1e-9).all()
    assert (after > before + 0.1).any()


def test_edits_of_encoded_rows_are_in_original_units(people, domains):
    from likewise.auditing.editable_rows import EditableArray

    domain = domains["signed log"]
    rows = EditableArray(domain.encode_array(people[0]), domain.encoding_.by_name)
    field = rows.field("gain", [0, 5])
    changed = rows.rewrite(np.arange(4), [(field, np.array([1, 1, 0, -1]))])
    assert domain.decode(changed)["gain"].tolist() == [5, 5, 0, people[0]["gain"][3]]
    assert set(rows.field("gain").values) == set(range(10))
