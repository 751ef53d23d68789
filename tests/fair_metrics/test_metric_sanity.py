"""A metric that makes nearly everything free says so and names the attribute; columns that mislead are named."""

import numpy as np
import pandas as pd
import pytest

from likewise.core.subspace import Subspace
from likewise.data import TabularDomain
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace, diagnose
from likewise.fair_metrics.diagnosis import why_uneven
from likewise.fair_metrics.learner import removed_share, removed_variance_words


@pytest.fixture(scope="module")
def people():
    """Six regions that the columns tell apart take five directions; sex takes one."""
    rng = np.random.default_rng(0)
    n = 400
    region = rng.integers(6, size=n)
    columns = {f"c{i}": rng.normal(size=n) + 2.0 * (region == i) for i in range(6)}
    columns |= {f"d{i}": rng.normal(size=n) for i in range(1)}
    sex = np.where(columns["c0"] + rng.normal(size=n) > 0, "F", "M")
    gain = np.where(rng.random(n) < 0.9, 0, rng.integers(1, 10**5, n))
    return pd.DataFrame({**columns, "gain": gain, "sex": sex, "region": region.astype(str)})


def test_a_learner_that_takes_most_of_the_table_names_the_attribute(people):
    frame = people.drop(columns="gain")
    with pytest.warns(UserWarning, match=r"by the 5 directions of 'region'") as said:
        AttributeSubspace(["sex", "region"]).fit(frame)
    assert "ExpertSubspace" in str(said[0].message)
    # One that takes little says nothing.
    AttributeSubspace(["sex"]).fit(people)
    ExpertSubspace(["region"]).fit(people)


def test_a_metric_that_is_zero_names_the_attribute_too(people):
    frame = people[["c0", "c1", "c2", "region"]]
    with pytest.warns(UserWarning, match=r"the metric is zero.*directions of 'region'"):
        AttributeSubspace(["region"], rounds=3).fit(frame)


def test_the_share_is_that_of_the_variance_outside_the_sensitive_columns():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 4)) * [1.0, 2.0, 3.0, 100.0]
    free = Subspace.from_directions(np.eye(4)[[1, 3]])
    variance = x.var(axis=0)
    assert removed_share(x, free, [3]) == pytest.approx(variance[1] / variance[:3].sum())
    assert removed_variance_words(x, {"sex": np.eye(4)[[1]]}, [3], free) is None


def test_diagnose_advises_a_scale_for_a_mass_at_one_value(people):
    learner = AttributeSubspace(["sex"]).fit(people)
    notes = diagnose(learner.metric_, people, "sex", n_resamples=0, folds=2).notes
    assert any("'gain' mislead: 9" in note and "scales={'gain': 'signed log'}" in note for note in notes)
    assert not any("'c0' mislead" in note for note in notes)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.r_[np.zeros(60), np.arange(40)], "61% of the rows have one value"),
        (np.exp(3.0 * np.random.default_rng(0).normal(size=1000)), "times what its middle half"),
        (np.random.default_rng(0).normal(size=1000), None),
        (np.r_[np.zeros(90), np.ones(10)], None),
        (np.ones(10), None),
    ],
    ids=["mass", "tail", "normal", "two values", "constant"],
)
def test_which_columns_mislead(values, said):
    found = why_uneven(values.astype(float))
    assert found is None if said is None else said in found


def test_diagnose_is_content_with_a_scale_of_choice(people):
    domain = TabularDomain.from_frame(people, scales={"gain": "signed log"})
    learner = AttributeSubspace(["sex"], domain=domain).fit(people)
    notes = diagnose(learner.metric_, people, "sex", n_resamples=0, folds=2).notes
    assert not any("'gain' mislead" in note for note in notes)
