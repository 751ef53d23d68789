"""What a page carries so that its reader can edit a person: exact, checked, not too large, and with the gaps people have."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from likewise.core.errors import InputError
from likewise.data import find_missing
from likewise.models import as_model
from likewise.models.matching import MissingCellsModel
from likewise.models.tree_ensemble import TreeEnsemble
from likewise.report.explore import explore_document, page_model
from likewise.report.explore.document import choose_people
from likewise.report.explore.models import MAX_MODEL_BYTES, pack, tree_document, unpack


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "pay": rng.normal(20.0, 5.0, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    return frame, (frame["age"] + 10 * (frame["sex"] == "M") > 55).astype(int).to_numpy()


@given(hnp.arrays(st.sampled_from([np.float64, np.float32, np.int32, np.bool_]), st.integers(0, 20)))
@settings(max_examples=60, deadline=None)
def test_arrays_come_back_exactly(values):
    np.testing.assert_array_equal(unpack(pack(values)), values)


def test_two_hundred_trees_of_depth_six_fit_into_a_page():
    """Every node with numbers that only double precision holds: no ensemble of this size is larger."""
    rng = np.random.default_rng(0)
    left, right = [], []
    for tree in range(200):
        at = 127 * tree
        left += [at + 2 * i + 1 if i < 63 else -1 for i in range(127)]
        right += [at + 2 * i + 2 if i < 63 else -1 for i in range(127)]
    n = len(left)
    trees = TreeEnsemble.from_nodes(
        roots=range(0, n, 127), left=left, right=right, feature=rng.integers(0, 41, n), threshold=rng.normal(size=n),
        missing_left=rng.random(n) < 0.5, values=rng.normal(size=(n, 1)), base=[0.0], kind="scores", n_features=41,
    )  # fmt: skip
    document = tree_document(trees)
    assert len(json.dumps(document)) < MAX_MODEL_BYTES
    # What was packed are the same trees, walked in another order.
    feature, jump = unpack(document["feature"]), unpack(document["right"])
    leaves, threshold, x = unpack(document["leaves"]), unpack(document["threshold"]), rng.normal(size=41)
    total = 0.0
    for root in unpack(document["roots"]):
        node = int(root)
        while feature[node] >= 0:
            node += 1 if x[feature[node]] <= threshold[node] else int(jump[node])
        total += float(leaves[int((feature[:node] < 0).sum()), 0])
    assert total == pytest.approx(float(trees.outputs(x[None])[0, 0]), abs=1e-12)


def test_a_model_that_is_too_large_or_cannot_be_read_says_what_to_do(people):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    forest = RandomForestClassifier(20, random_state=0).fit(domain.encode_array(frame), y)
    with pytest.raises(InputError, match=r"a page may carry 0\.0 MB.*likewise serve"):
        page_model(as_model(forest), domain, frame, max_bytes=1000)
    black_box = as_model(lambda table: (table["age"] > 40).astype(float), takes_frame=True)
    with pytest.raises(InputError, match=r"cannot travel inside a page.*likewise serve"):
        page_model(black_box, domain, frame)


def test_codes_that_no_step_encodes_travel_as_numbers(people):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame, y = people
    frame = frame.assign(member=pd.Categorical((frame["pay"] > 20).astype(int)))
    encoder = make_column_transformer(
        (StandardScaler(), ["age", "member"]), (OneHotEncoder(), ["sex", "job"])
    )
    fitted = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
    domain = lw.TabularDomain.from_frame(frame)
    document = page_model(as_model(fitted), domain, frame)
    member = document["features"][1]
    assert member["column"] == list(frame).index("member")
    assert member["unseen"] == "refused"
    assert len(member["answers"]) == 2


def test_why_a_model_stays_is_said_once(people):
    frame, _ = people
    black_box = as_model(lambda table: (table["age"] > 40).astype(float), takes_frame=True)
    with pytest.raises(InputError) as caught:
        page_model(black_box, lw.TabularDomain.from_frame(frame), frame)
    assert "read_" not in str(caught.value)


def test_a_copy_that_does_not_answer_as_the_model_is_refused(people, monkeypatch):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)

    own = LogisticRegression.predict_proba

    def colder(model, rows):
        found = own(model, rows) ** 2
        return found / found.sum(axis=1, keepdims=True)

    # It has the type and the weights of a logistic regression, and answers as none.
    fitted = LogisticRegression().fit(domain.encode_array(frame), y)
    monkeypatch.setattr(LogisticRegression, "predict_proba", colder)
    with pytest.raises(InputError, match="does not give its answers"):
        page_model(as_model(fitted), domain, frame)


def test_the_document_holds_the_rules_of_the_domain(people):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame, immutable=["job"], ranges={"pay": (0, None)})
    fitted = DecisionTreeClassifier(max_depth=3).fit(domain.encode_array(frame), y)
    document = explore_document(
        domain, frame, y, models={"tree": fitted}, sensitive_features=["sex", "faith"],
        labels={0: "no", 1: "yes"},
    )  # fmt: skip
    age, pay, job, sex = document["columns"]
    assert (age["kind"], age["low"], age["high"]) == (
        "integer",
        int(frame["age"].min()),
        int(frame["age"].max()),
    )
    assert (pay["kind"], pay["low"], pay["high"]) == ("number", 0, None)
    assert (job["kind"], job["categories"], job["locked"]) == ("category", ["clerk", "cook", "nurse"], True)
    # What the model does not see cannot be edited.
    assert (sex["sensitive"], [c["name"] for c in document["columns"]]) == (True, list(frame.columns))
    assert document["models"][0]["classes"] == ["no", "yes"]
    assert document["people"][0]["cells"][1] == frame["pay"].iloc[0]
    assert document == json.loads(json.dumps(document, allow_nan=False))


def test_people_whose_decision_would_change_are_marked_and_named_by_their_place(people):
    frame, y = people
    domain = lw.TabularDomain.from_frame(frame)
    model = as_model(LogisticRegression().fit(domain.encode_array(frame), y))
    result = lw.audit(model, frame, y, sensitive_features=["sex"], domain=domain, encoded=None)
    places = np.arange(len(frame)) + 5_000
    document = explore_document(domain, frame, y, models={"m": model}, results={"m": result}, places=places)
    others = frame.assign(sex=frame["sex"].map({"F": "M", "M": "F"}))
    decided = [model.predict(domain.encode_array(rows)) for rows in (frame, others)]
    changed = set(np.flatnonzero(decided[0] != decided[1]).tolist())
    assert changed
    assert {one["person"] for one in document["people"] if one["found"] == [True]} == changed
    assert document["first"] == result.listed[0].person
    assert all(one["row"] == str(5_000 + one["person"]) for one in document["people"])


def test_people_with_gaps_have_them_in_the_page(people):
    frame, y = people
    table = frame.assign(pay=frame["pay"].where(frame.index % 7 > 0))
    gaps = find_missing(table)
    marked = gaps.marked(table)
    domain = lw.TabularDomain.from_frame(marked, immutable=["pay is missing"])
    inner = DecisionTreeClassifier(max_depth=3).fit(table[["age", "pay"]], y)
    model = MissingCellsModel(as_model(inner, takes_frame=True), gaps)
    document = explore_document(domain, marked, y, models={"tree": model}, sensitive_features=["sex"])
    by_name = {column["name"]: (j, column) for j, column in enumerate(document["columns"])}
    at, pay = by_name["pay"]
    assert pay["missing"] is True
    assert pay["fill"] == gaps.fills["pay"]
    assert by_name["pay is missing"][1]["marks"] == "pay"
    first = next(one for one in document["people"] if one["person"] == 0)
    assert first["cells"][at] is None
    assert document["models"][0]["model"]["takes_missing"] is True


def test_those_who_change_are_carried_and_the_rest_is_a_sample():
    from types import SimpleNamespace

    listed = [SimpleNamespace(person=person) for person in (17, 3, 49, 60)]
    results = [SimpleNamespace(listed=listed, effects=None, direction=lambda one: "gain")]
    chosen = choose_people(50, results, max_people=10)
    assert len(chosen) == 10
    assert {3, 17, 49} <= set(chosen.tolist())
    assert chosen.tolist() == choose_people(50, results, max_people=10).tolist()
    assert choose_people(5, [], max_people=10).tolist() == [0, 1, 2, 3, 4]
