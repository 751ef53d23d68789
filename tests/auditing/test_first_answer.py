"""The first question is answered without the machinery of the worst case, and the worst case on top of the same answer."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import likewise as lw

PARTS_OF_THE_WORST_CASE = (
    "fair_metrics/",
    "auditing/dual/",
    "auditing/search/",
    "auditing/bounds/",
    "unfair_map",
)


def people(n=40):
    random = np.random.default_rng(0)
    return pd.DataFrame({"skill": random.normal(size=n), "sex": random.choice(["F", "M"], n)})


def score(frame):
    return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))


def files_run(run):
    seen = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def test_the_first_answer_needs_no_metric_no_search_and_no_dual():
    table = people()
    y = (table["skill"] > 0).astype(int)
    lw.audit(score, table, y, sensitive_features=["sex"])
    files = files_run(lambda: lw.audit(score, table, y, sensitive_features=["sex"]))
    assert [file for file in files if any(part in file for part in PARTS_OF_THE_WORST_CASE)] == []


@pytest.mark.parametrize(
    "asked", [{"eps": 0.0}, {"eps": 0.1}, {"delta": 0.1}, {"tau": 0.01}, {"search": "domain"}, {"metric": "columns"}]
)  # fmt: skip
def test_the_worst_case_is_added_to_the_same_answer(asked):
    table = people()
    y = (table["skill"] > 0).astype(int)
    first = lw.audit(score, table, y, sensitive_features=["sex"])
    wider = lw.audit(score, table, y, sensitive_features=["sex"], **asked)
    assert first.worst_case is None
    assert wider.worst_case is not None
    assert str(first.headline) == str(wider.headline)
    assert first.changed == wider.changed
    for name in ("effects", "outcomes", "group_rates", "people"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(wider, name))


def test_what_was_not_asked_for_says_how_to_ask():
    result = lw.audit(score, people(), sensitive_features=["sex"])
    for name in ("gap", "value", "pure_gap", "unfair_map", "certificate", "curve", "brackets", "test", "eps"):
        with pytest.raises(lw.core.NotAskedError, match=r"Ask for it: audit\(…, eps=0\.1\)"):
            getattr(result, name)
    assert not hasattr(result, "gap")
    with pytest.raises(AttributeError, match="was not asked for"):
        result.verdict(0.1)
    assert result.status == "converged"


def test_a_first_answer_is_saved_and_read_again(tmp_path):
    result = lw.audit(score, people(), sensitive_features=["sex"], limit=0.5)
    result.save(tmp_path / "audit.json")
    again = lw.AuditResult.load(tmp_path / "audit.json")
    assert again.worst_case is None
    assert str(again.headline) == str(result.headline)
    pd.testing.assert_frame_equal(again.effects, result.effects)
    result.save(tmp_path / "audit.html")
    result.save(tmp_path / "evidence")
    assert not (tmp_path / "evidence" / "tables" / "curve.csv").exists()


def test_a_sensitive_column_that_may_not_change_is_an_error():
    table = people()
    domain = lw.TabularDomain.from_frame(table, immutable=["sex"])
    with pytest.raises(lw.InputError, match="may change"):
        lw.audit(score, table, sensitive_features=["sex"], domain=domain)
