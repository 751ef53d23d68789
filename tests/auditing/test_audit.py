"""The verb `audit` end to end: kinds of input, invariances, failures that must never read as fair, files."""

import dataclasses
import json
import re

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import likewise as lw
from likewise.auditing import AuditResult, audit
from likewise.core.errors import FormatError, InputError, ModelError, NotConvergedError, UnfairError


@pytest.fixture(scope="module")
def data():
    """Eighty people to audit say what two hundred do, in a third of the time."""
    german = lw.datasets.load_german()
    return dataclasses.replace(german, test_index=german.test_index[:80])


@pytest.fixture(scope="module")
def metric(data):
    return lw.ExpertSubspace(["sex", "personal_status"], domain=data.domain).fit(data.frame_train).metric_


@pytest.fixture(scope="module")
def net(data):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(data.X.shape[1], 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    X, y = torch.tensor(data.X_train.to_numpy(), dtype=torch.float32), torch.tensor(data.y_train)
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(X), y).backward()
        optimiser.step()
    return module


@pytest.fixture(scope="module")
def result(data, metric, net):
    return audit(net, data.frame_test, data.y_test, metric=metric, domain=data.domain, eps=0.1, delta=0.05)


def same(a: AuditResult, b: AuditResult, tolerance: float) -> None:
    for name in ("value", "base_loss", "pure_gap", "lambda_"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=tolerance, rel=tolerance), name


def test_the_numbers_hang_together(result, data):
    assert result.status == "converged"
    assert 0 < result.pure_gap <= result.gap
    assert result.transport <= result.eps + 1e-12
    assert result.value == pytest.approx(result.curve.value(0.1))
    assert result.n == len(data.y_test)
    frame = result.unfair_map.frame
    assert (frame["harm"] >= -1e-12).all()
    assert frame["harm"].mean() <= result.gap + 1e-9
    assert (result.pure_map.outcomes["squared_distance"] == 0).all()
    assert "gap at ε" in str(result)


def test_people_and_twins_are_valid_rows_in_original_units(result, data):
    for unfair in (result.unfair_map, result.pure_map):
        assert list(unfair.twins.columns) == list(data.frame.columns)
        assert data.domain.validate(unfair.twins) == ()
        pd.testing.assert_frame_equal(unfair.people, data.frame_test.reset_index(drop=True))


def test_losses_and_decisions_in_the_map_are_the_models_own(result, data, net):
    model = lw.models.as_model(net)
    twins = data.domain.encode_array(result.unfair_map.twins)
    outcomes = result.unfair_map.outcomes
    np.testing.assert_allclose(model.losses(twins, data.y_test), outcomes["twin_loss"], atol=1e-6)
    np.testing.assert_array_equal(model.predict(twins), outcomes["twin_decision"])


def test_raw_and_encoded_rows_give_the_same_audit(result, data, metric, net):
    plain = metric.without_feature_map()
    for X in (data.X_test, data.X_test.to_numpy()):
        again = audit(
            net,
            X,
            data.y_test,
            metric=plain,
            domain=data.domain,
            eps=0.1,
            edits=["sex", "personal_status"],
        )
        same(result, again, 1e-6)


def test_tables_of_other_libraries_give_the_same_audit(data, metric):
    raw = LogisticRegression(max_iter=2000).fit(data.X_train.to_numpy(), data.y_train)
    domain = lw.TabularDomain.from_frame(pl.from_pandas(data.frame))
    other = (
        lw.ExpertSubspace(["sex", "personal_status"], domain=domain)
        .fit(pl.from_pandas(data.frame_train))
        .metric_
    )
    one = audit(raw, data.frame_test, data.y_test, metric=metric, domain=data.domain, search="candidates")
    two = audit(
        raw, pl.from_pandas(data.frame_test), data.y_test, metric=other, domain=domain, search="candidates"
    )
    same(one, two, 1e-9)


def test_a_pipeline_on_raw_frames(data, metric):
    words = [c for c in data.frame.columns if data.frame[c].dtype.kind not in "biuf"]
    encode = ColumnTransformer([("words", OneHotEncoder(), words)], remainder="passthrough")
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=5000, C=0.01)).fit(
        data.frame_train, data.y_train
    )
    found = audit(pipeline, data.frame_test, data.y_test, metric=metric, domain=data.domain)
    assert found.search == "enumeration, domain"
    assert found.gap >= found.pure_gap > 0


def test_row_order_does_not_matter(result, data, metric, net):
    order = np.random.default_rng(0).permutation(len(data.y_test))
    kwargs = {"metric": metric, "domain": data.domain, "eps": 0.1}
    two = audit(net, data.frame_test.iloc[order], data.y_test[order], **kwargs)
    same(result, two, 1e-5)
    np.testing.assert_allclose(result.pure_map.harm[order], two.pure_map.harm, atol=1e-5)


def test_same_seed_same_bytes_and_the_model_leaves_as_it_came(data, metric, net, result):
    net.train()
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    rng = torch.get_rng_state()
    again = audit(net, data.frame_test, data.y_test, metric=metric, domain=data.domain, eps=0.1, delta=0.05)
    assert net.training
    assert all(p.requires_grad for p in net.parameters())
    assert all(torch.equal(state[name], tensor) for name, tensor in net.state_dict().items())
    assert torch.equal(rng, torch.get_rng_state())
    for unfair, other in ((result.unfair_map, again.unfair_map), (result.pure_map, again.pure_map)):
        assert unfair.outcomes.to_csv() == other.outcomes.to_csv()
        pd.testing.assert_frame_equal(unfair.twins, other.twins)
    assert result.value == again.value


def test_threads_do_not_matter(data, metric, net):
    before = torch.get_num_threads()
    found = []
    for number in sorted({before, 1, 2}):
        torch.set_num_threads(number)
        try:
            found.append(
                audit(net, data.frame_test[:20], data.y_test[:20], metric=metric, domain=data.domain, eps=0.1)
            )
        finally:
            torch.set_num_threads(before)
    for other in found[1:]:
        same(found[0], other, 1e-5)


def test_unfair_models_stop_a_build_and_fair_ones_do_not(result, data, metric):
    with pytest.raises(UnfairError, match=r"adds .* more than delta=0\.01"):
        result.raise_if_unfair(delta=0.01)
    result.raise_if_unfair(delta=100.0)
    assert result.verdict(0.01) == "unfair (shown)"
    constant = audit(
        lambda X: np.tile([0.3, 0.7], (len(X), 1)),
        data.frame_test,
        data.y_test,
        metric=metric,
        domain=data.domain,
    )
    assert constant.gap == pytest.approx(0, abs=1e-12)
    assert constant.test.p_value == 1
    constant.raise_if_unfair(delta=0.0)


def test_a_model_with_nan_weights_is_an_error_never_fair(data, metric, net):
    import copy

    broken = copy.deepcopy(net)
    with torch.no_grad():
        broken[0].weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match="not finite"):
        audit(broken, data.frame_test, data.y_test, metric=metric, domain=data.domain)


def test_a_search_that_did_not_converge_never_passes_the_gate(result):
    from dataclasses import replace

    reasons = ("the search met values that are not finite for 3 people",)
    broken = replace(result, worst_case=replace(result.worst_case, status="failed", reasons=reasons))
    with pytest.raises(NotConvergedError, match="3 people"):
        broken.raise_if_unfair(delta=100.0)
    assert broken.verdict(100.0) == "not converged"


def test_a_model_that_answers_in_the_wrong_shape(data, metric):
    with pytest.raises(ModelError, match="shape"):
        audit(lambda X: np.ones(3), data.frame_test, data.y_test, metric=metric, domain=data.domain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": -1}, "'eps' must be a finite number >= 0"),
        ({"search": "magic"}, "one of auto, candidates, gradient, domain, exact"),
        ({"metric": 3}, "FairMetric, a learner"),
        ({"delta": "big"}, "'delta'"),
        ({"edits": ["gender"]}, "gender"),
        ({"confidence": 1}, "'confidence'"),
    ],
)
def test_bad_parameters_say_what_to_do(data, metric, net, change, message):
    given = {"metric": metric, "domain": data.domain} | change
    with pytest.raises(InputError, match=message):
        audit(net, data.frame_test, data.y_test, **given)


def test_bad_rows_say_what_to_do(data, metric, net):
    with pytest.raises(InputError, match="lengths differ"):
        audit(net, data.frame_test, data.y_test[:-1], metric=metric, domain=data.domain)
    frame = data.frame_test.copy()
    frame.loc[frame.index[3], "purpose"] = "a trip to Mars"
    with pytest.raises(InputError, match="Mars"):
        audit(net, frame, data.y_test, metric=metric, domain=data.domain)
    with pytest.raises(InputError, match="search='gradient' cannot be used: the model has no gradient"):
        audit(
            lambda X: np.ones((len(X), 2)) / 2,
            data.X_test.to_numpy(),
            data.y_test,
            metric=metric,
            search="gradient",
        )


def test_a_learner_is_fitted_on_the_table(data, net):
    found = audit(
        net,
        data.frame_test,
        data.y_test,
        metric=lw.ExpertSubspace(["sex"], domain=data.domain),
        domain=data.domain,
    )
    assert found.settings["sensitive"] == ["sex"]


def test_save_and_load(result, tmp_path):
    path = tmp_path / "audit.json"
    result.save(path)
    back = AuditResult.load(path)
    *kept, recorded = back.findings
    assert recorded.kind == "recorded"  # A file cannot prove anything.
    assert str(dataclasses.replace(back, findings=tuple(kept))) == str(result)
    assert back.certificate == result.certificate
    assert back.test == result.test
    pd.testing.assert_frame_equal(back.unfair_map.frame, result.unfair_map.frame)
    np.testing.assert_array_equal(back.curve.values, result.curve.values)
    with pytest.raises(InputError, match="overwrite=True"):
        result.save(path)
    result.save(path, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["audit.json"]
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), lw.report.json_schema())
    result.save(tmp_path / "audit.html")
    written = (tmp_path / "audit.html").read_text(encoding="utf-8")
    again = lw.report.render_html(json.loads(path.read_text(encoding="utf-8")))
    # The file written also says when, and with which versions.
    parts = r"(?s)<h[1-3].*?</h[1-3]>|<tr data-person.*?</tr>|<p>.*?</p>"
    assert len(re.findall(parts, again)) > 10
    assert set(re.findall(parts, again)) <= set(re.findall(parts, written))
    result.save(tmp_path / "evidence")
    assert (tmp_path / "evidence" / "evidence.json").is_file()
    with pytest.raises(InputError, match=r"ends in \.json, \.html or \.csv"):
        result.save(tmp_path / "audit.docx")


def test_foreign_damaged_and_newer_files_are_refused(result, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        AuditResult.load(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds no evidence"):
        result.save(tmp_path / "mine", overwrite=True)
    path = tmp_path / "audit.json"
    lw.report.write_json(result, path)
    with pytest.raises(FormatError, match="not the whole result"):
        AuditResult.load(path)
    result.save(path, overwrite=True)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"schema_version": 99}))
    with pytest.raises(FormatError, match="newer version"):
        AuditResult.load(path)
    path.write_text(json.dumps(document)[:-40])
    with pytest.raises(FormatError, match="damaged"):
        AuditResult.load(path)
    document["result"]["worst_case"]["unfair_map"]["people"] = {"likewise:parquet": "UEFSMSBub3RoaW5n"}
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match="damaged"):
        AuditResult.load(path)
    document["result"]["worst_case"]["unfair_map"]["people"] = {}
    document["result"]["__class__"] = "os.system"
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match="damaged"):
        AuditResult.load(path)


def test_a_linear_model_gets_bounds_from_above(data, metric):
    model = LogisticRegression(max_iter=3000).fit(data.X_train.to_numpy(), data.y_train)
    # Four of the people whose bounds close soonest.
    rows, labels = data.frame_test.iloc[4:8], data.y_test[4:8]
    found = audit(model, rows, labels, metric=metric, domain=data.domain, eps=0.05, search="exact")
    bound, population = found.certificate.bound, found.population_bound
    assert bound.value >= found.value - 1e-9
    assert population.about == "population"
    assert population.confidence == 0.95
    assert population.value > bound.value - 0.5
    assert found.verdict(bound.gap + 1e-6) == "fair (proved)"
    assert found.verdict(found.gap - 1e-6) == "unfair (shown)"
