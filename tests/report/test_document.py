"""The document says what the result says, follows its published schema, and is plain JSON."""

from __future__ import annotations

import copy
import dataclasses
import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.inference.certificate import Bound, Certificate
from likewise.auditing.results.unfair_map import make_unfair_map
from likewise.core.plain import plain_cell
from likewise.report import audit_document, comparison_document, json_schema, write_json
from likewise.report.unfair_map_values import MAX_COLUMNS, map_document


def validate(document, kind):
    schema = json_schema(kind)
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    validator(schema).validate(document)


def test_an_audit_follows_the_schema(samples):
    evaluation, result = samples.adult_result()
    validate(audit_document(result, max_people=20), "audit")
    rich = audit_document(result, name="m", evaluation=evaluation, diagnoses=["text"], max_people=20)
    validate(rich, "audit")
    validate(audit_document(samples.nasty_result()), "audit")
    first = audit_document(dataclasses.replace(result, worst_case=None), evaluation=evaluation, max_people=20)
    validate(first, "audit")
    assert first["maps"] == []
    assert "gap" not in first["numbers"]


def test_a_comparison_follows_its_schema_and_embeds_that_of_the_audit(samples):
    validate(comparison_document(samples.comparison(), max_people=20), "comparison")
    assert json_schema("comparison")["$defs"]["audit"] == json_schema("audit")


def test_the_schema_refuses_what_is_not_a_document(samples):
    good = audit_document(samples.nasty_result(), max_people=5)
    for path, value in (
        (("numbers", "people"), "many"),
        (("verdict", "kind"), "maybe"),
        (("curve", "gap"), []),
        (("maps",), []),
        (("surprise",), 1),
    ):
        bad = copy.deepcopy(good)
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            validate(bad, "audit")
    compared = comparison_document(samples.comparison(), max_people=5)
    compared["entries"][1]["audit"]["numbers"]["people"] = -1
    with pytest.raises(jsonschema.ValidationError):
        validate(compared, "comparison")


def test_a_real_diagnosis_follows_the_schema(samples):
    from likewise.core.intervals import Measure
    from likewise.fair_metrics.diagnosis import Diagnosis, ProbeScores
    from likewise.fair_metrics.stability import Stability

    measure = Measure("linear", 0.9, 0.8, float("nan"))
    diagnosis = Diagnosis(
        attribute="sex", kind="categorical", score="AUC", n_rows=10, n_folds=5, dim=1,
        probes=(ProbeScores("linear", measure, measure),), variance_removed={"age": 0.1, "sex": 1.0},
        total_variance_removed=0.2, stability=Stability((measure,), 10, 0, (1, 1)), notes=("a note",),
    )  # fmt: skip
    document = audit_document(samples.nasty_result(), diagnoses=[diagnosis])
    validate(document, "audit")
    assert document["diagnoses"][0]["variance_removed"][0] == {"column": "sex", "share": 1.0}
    assert document["diagnoses"][0]["probes"][0]["before"]["high"] is None


def test_numbers_are_those_of_the_result(samples):
    _, result = samples.adult_result()
    document = audit_document(result)
    numbers = document["numbers"]
    assert numbers["gap"]["value"] == result.gap
    assert numbers["pure_gap"]["value"] == result.pure_gap
    assert (numbers["gap"]["low"], numbers["gap"]["high"]) == (result.interval.low, result.interval.high)
    assert numbers["changed_decisions"] == result.flipped
    free, budget = document["maps"]
    assert free["changed_decisions"] == int(result.pure_map.flipped.sum())
    assert budget["harmed"] == int((result.unfair_map.harm > 0).sum())
    assert document["verdict"]["kind"] == document["summary"]["badge"]["kind"] == "depends"
    assert document["verdict"]["words"] == result.verdict() == "unfair (shown)"
    for words in (f"{result.n:,} people", "95%", "δ = 0.05"):
        assert words in document["verdict"]["gap_sentence"]


def test_the_curve_is_the_curve_at_every_point_written(samples):
    _, result = samples.adult_result()
    curve = audit_document(result)["curve"]
    assert curve["eps"][0] == 0
    assert result.eps in curve["eps"]
    assert curve["eps"] == sorted(curve["eps"])
    assert np.allclose(curve["gap"], result.curve.gap(np.array(curve["eps"])), rtol=1e-7)
    assert np.isclose(curve["eps"][-1], result.curve.eps[-1])
    # Linear interpolation between the points, as the page does, stays close to the curve around ε.
    at = np.linspace(0, 4 * result.eps, 333)
    assert np.abs(np.interp(at, curve["eps"], curve["gap"]) - result.curve.gap(at)).max() < 2e-3


def test_people_are_the_most_harmed_with_their_twins_in_original_units(samples):
    _, result = samples.adult_result()
    unfair = result.pure_map
    document = map_document(unfair, id="free", eps=0.0, max_people=40)
    rows = document["people"]["rows"]
    assert len(rows) == 40
    harms = [row["harm"] for row in rows]
    assert harms == sorted(harms, reverse=True)
    assert harms[0] == pytest.approx(unfair.harm.max())
    changed = [row for row in rows if row["decision"] != row["twin_decision"]]
    assert len(changed) >= min(20, document["changed_decisions"])
    for row in rows[:10]:
        person, twin = unfair.people.iloc[row["person"]], unfair.twins.iloc[row["person"]]
        assert row["cells"] == [value if isinstance(value, str) else value.item() for value in person]
        assert row["twin"] == {name: twin[name] for name in person.index if person[name] != twin[name]}


def test_wide_tables_are_cut_and_say_so():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(60, 90)), columns=[f"dim{i}" for i in range(90)])
    people["name"] = [f"person {i}" + "x" * 500 for i in range(60)]
    twins = people.copy()
    twins["dim77"] += 1.0
    unfair = make_unfair_map(
        people, twins, label=np.zeros(60), loss=np.zeros(60), twin_loss=np.ones(60), decision=np.zeros(60),
        twin_decision=np.ones(60), squared_distance=np.zeros(60),
    )  # fmt: skip
    document = map_document(unfair, id="free", eps=0.0)
    assert len(document["people"]["columns"]) == MAX_COLUMNS
    assert document["people"]["left_out_columns"] == 91 - MAX_COLUMNS
    assert "dim77" in document["people"]["columns"]


def test_dates_truths_and_wide_numbers_become_plain():
    people = pd.DataFrame(
        {
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            "id": [2**60, 1],
            "kind": pd.Categorical(["a", "b"]),
            "flag": [True, False],
        }
    )
    unfair = make_unfair_map(
        people, people, label=["n", "y"], loss=[0.0, 0.0], twin_loss=[1.0, 0.5], decision=[0, 1],
        twin_decision=[1, 1], squared_distance=[0.0, 0.0],
    )  # fmt: skip
    rows = map_document(unfair, id="free", eps=0.0)["people"]["rows"]
    assert rows[0]["cells"] == ["2020-01-01 00:00:00", str(2**60), "a", True]
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_cells_become_null(missing):
    assert plain_cell(missing) is None


def test_labels_get_their_names(samples):
    evaluation, result = samples.adult_result()
    document = audit_document(result, evaluation=evaluation, labels={0: "poor", 1: "rich"})
    said = {row[key] for row in document["maps"][0]["people"]["rows"] for key in ("label", "decision")}
    assert said <= {"poor", "rich"}
    assert document["evaluation"]["studies"][0]["decisions"] == ["poor", "rich"]


def test_every_verdict_has_its_sentence(samples):
    _, result = samples.adult_result()
    bound = Bound(value=result.value + 0.1, gap=result.gap + 0.1, eps=result.eps, n=result.n, method="exact")
    proven = samples.with_worst_case(
        result, certificate=Certificate(result.certificate.estimate, bound), delta=2.0
    )
    cases = {
        "unfair (shown)": result,
        "fair (proved)": proven,
        "undecided": samples.with_worst_case(result, delta=2.0),
        None: samples.with_worst_case(result, delta=None),
        "not converged": samples.with_worst_case(
            result, delta=2.0, status="not_converged", reasons=("it still rose",)
        ),
    }
    # What listed people attain refutes, however the search ended: one verdict, on the page and as exit code.
    still = samples.with_worst_case(result, status="not_converged", reasons=("it still rose",))
    assert audit_document(still)["verdict"]["words"] == "unfair (shown)" == still.verdict()
    with pytest.raises(lw.UnfairError):
        still.raise_if_unfair()
    for words, case in cases.items():
        document = audit_document(case, max_people=5)
        validate(document, "audit")
        # The gap decides nothing about the badge, which counts decisions.
        assert (document["verdict"]["kind"], document["verdict"]["words"]) == ("depends", words)
        assert (document["verdict"]["gap_sentence"] is None) == (words is None)
        assert document["asked"] == {"metric": True, "delta": words is not None, "limit": False}
    said = audit_document(proven)["verdict"]["gap_sentence"]
    assert f"by more than {bound.gap:.3f}" in said
    assert "upper bound" in said


def test_json_is_written_whole_and_not_over_another_file(samples, tmp_path):
    target = tmp_path / "audit.json"
    result = samples.nasty_result()
    write_json(result, target)
    first = target.read_bytes()
    assert json.loads(first) == json.loads(json.dumps(audit_document(result)))
    with pytest.raises(lw.InputError, match="exists"):
        write_json(result, target)
    write_json(result, target, overwrite=True)
    assert target.read_bytes() == first
    with pytest.raises(lw.InputError, match="does not exist"):
        write_json(result, tmp_path / "no" / "audit.json")
    with pytest.raises(lw.InputError, match="is a folder"):
        write_json(result, tmp_path, overwrite=True)
    with pytest.raises(lw.InputError, match="an AuditResult, a Comparison"):
        write_json({"gap": 1}, tmp_path / "other.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.json"]


def test_bad_kind_of_schema():
    with pytest.raises(lw.InputError, match="'audit' or 'comparison'"):
        json_schema("page")
