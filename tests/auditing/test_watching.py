"""A function that looks on hears how far an audit is, and ends it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.auditor import unbroken


@pytest.fixture(scope="module")
def case():
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {"skill": random.normal(size=40), "age": random.integers(18, 60, 40), "sex": ["F", "M"] * 20}
    )

    def score(frame):
        return 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M") + 0.02 * frame["age"]))

    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    return (score, people, (people["skill"] > 0).astype(int).to_numpy()), {"metric": metric, "eps": 0.1}


def test_every_search_is_heard_of_and_changes_nothing(case):
    heard = []
    watched = lw.audit(*case[0], **case[1], progress=lambda name, share: heard.append((name, share)))
    assert ("enumeration", None) in heard
    assert ("domain", None) in heard
    assert all(share is None or 0 <= share <= 1 for _, share in heard)
    assert any(name == "domain" and share is not None for name, share in heard)
    assert watched.value == lw.audit(*case[0], **case[1]).value


def test_what_was_found_before_is_kept(case):
    def enough(name, share):
        if name == "domain" and share is not None:
            raise KeyboardInterrupt

    broken = lw.audit(*case[0], **case[1], progress=enough)
    assert broken.status == "not_converged"
    assert any("domain search was broken off" in reason for reason in broken.reasons)
    assert broken.pure_gap > 0
    with pytest.raises(KeyboardInterrupt):  # beside other models it would look fairer than it is
        unbroken(broken)


def test_nothing_found_yet_is_no_result(case):
    def at_once(name, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.audit(*case[0], **case[1], progress=at_once)


def test_a_proof_by_branch_and_bound_can_be_ended(case):
    from sklearn.tree import DecisionTreeClassifier

    (_, people, y), _ = case
    people = people.assign(skill=100 * people["skill"])
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    domain = lw.TabularDomain.from_frame(people)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(domain.encode_array(people), y)
    told = []

    def enough(name, share):
        told.append((name, share))
        if share is not None:
            raise KeyboardInterrupt

    found = lw.audit(
        tree, people, y, metric=metric, domain=domain, eps=0.1, search=["candidates", "exact"],
        budget_seconds=20.0, progress=enough,
    )  # fmt: skip
    assert [name for name, share in told if share is not None] != []
    assert found.status == "not_converged"
