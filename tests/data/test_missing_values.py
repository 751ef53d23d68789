"""Gaps: filled, marked and restored; and what an audit says of people who lack something, by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from likewise.core.errors import InputError
from likewise.data import find_missing
from likewise.data.missing_values import drop_missing, own_category
from likewise.models.losses import as_loss

# The process of their own that model files get is tested in tests/models.
pytestmark = pytest.mark.usefixtures("files_in_this_process")

CELLS = {
    "age": st.one_of(st.none(), st.integers(0, 90)),
    "height": st.one_of(st.none(), st.floats(1, 2, allow_nan=False)),
    "job": st.one_of(st.none(), st.sampled_from(["clerk", "cook"])),
    "code": st.one_of(st.none(), st.booleans()),
}


@given(st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_marking_is_undone_exactly(rows):
    frame = pd.DataFrame(rows)
    missing = find_missing(frame)
    marked = missing.marked(frame)
    assert not marked.isna().to_numpy().any()
    back = missing.restored(marked)
    assert list(back) == list(frame)
    assert (back.isna() == frame.isna()).to_numpy().all()
    told = frame.notna().to_numpy()
    assert (back.astype(object).to_numpy()[told] == frame.astype(object).to_numpy()[told]).all()
    assert not missing.filled(frame).isna().to_numpy().any()


def test_a_code_is_filled_with_one_that_occurs():
    filled = find_missing(pd.DataFrame({"a": [1.0, 2.0, np.nan]})).filled(
        pd.DataFrame({"a": [1.0, 2.0, np.nan]})
    )
    assert filled["a"].tolist() == [1.0, 2.0, 1.0]


def test_a_category_of_its_own_also_where_the_dtype_lists_them():
    frame = pd.DataFrame({"a": pd.Categorical(["x", None])})
    assert own_category(frame)["a"].tolist() == ["x", "(missing)"]


def test_nobody_left_names_the_emptiest_columns():
    with pytest.raises(InputError, match=r"'b' \(100%\) and 'a' \(50%\)"):
        drop_missing(pd.DataFrame({"a": [1, None], "b": [None, None]}), owner="t")


# ------------------------------------------------------------------------- an audit of people who lack something


def lacking(people, n=120):
    """People without the columns that play no part, a fifth of the numbers missing."""
    frame = people(n)[["age", "height", "job", "SEX", "paid"]]
    rng = np.random.default_rng(3)
    score = (frame["age"] - 45) / 12 + 2 * frame["SEX"] - 3 + rng.normal(size=n) / 2
    frame["paid"] = np.where(score > 0, "yes", "no")
    for name in ("age", "height"):
        frame[name] = frame[name].astype(float).where(rng.random(n) > 0.2)
    return frame


def fitted(frame, *, takes_missing: bool):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    numbers = "passthrough" if takes_missing else StandardScaler()
    encode = make_column_transformer((OneHotEncoder(), ["job"]), (numbers, ["age", "height", "SEX"]))
    model = (
        DecisionTreeClassifier(max_depth=4, min_samples_leaf=5, random_state=0)
        if takes_missing
        else LogisticRegression()
    )
    whole = frame if takes_missing else frame.dropna()
    return make_pipeline(encode, model).fit(whole.drop(columns="paid"), whole["paid"])


@pytest.fixture
def audited(people, tmp_path):
    """A table with gaps in its file, and a model in its file."""
    import skops.io

    def make(*, takes_missing: bool):
        frame = lacking(people)
        frame.to_csv(tmp_path / "people.csv", index=False)
        model = fitted(frame, takes_missing=takes_missing)
        skops.io.dump(model, tmp_path / "model.skops")
        return frame, model

    return make


ASKED = (
    "model.skops",
    "people.csv",
    "--target",
    "paid",
    "--sensitive",
    "SEX",
    "--metric",
    "columns",
    "--eps",
    "0",
)


def solved(frame, model, folder, **other):
    """The audit of the command line, up to its result."""
    from likewise.auditing.auditor import audit_case
    from likewise.cli.case import AuditChoices, make_case
    from likewise.cli.options import TableChoices
    from likewise.models.model_files import LoadedModel

    frame.to_csv(folder / "people.csv", index=False)
    given = {
        "target": "paid", "favourable": None, "sensitive": ("SEX",), "immutable": (), "reading": TableChoices(),
        "edit": (), "eps": "0", "delta": None, "confidence": 0.95, "metric": None, "search": "candidates",
        "budget_seconds": None, "loss": "auto", "seed": 0, "sample": None, "model_takes": "auto", "tolerance": 0.0,
    }  # fmt: skip
    choices = AuditChoices(**given | other)
    return audit_case(make_case(LoadedModel(model, "skops"), folder / "people.csv", choices))


def test_a_model_that_takes_gaps_gets_them_and_the_gap_is_the_one_by_hand(people, tmp_path):
    frame = lacking(people)
    model = fitted(frame, takes_missing=True)
    result = solved(frame, model, tmp_path, metric=Path("columns"))
    features = frame.drop(columns="paid")
    true = (frame["paid"].to_numpy()[:, None] == model.classes_[None, :]).argmax(axis=1)
    losses, decisions = [], []
    for sex in (1, 2):
        # Everything else stays, the gaps too. The package calls no loss more than that of the smallest float.
        answer = model.predict_proba(features.assign(SEX=sex))
        losses.append(as_loss("cross_entropy").losses(answer, true, probabilities=True))
        decisions.append(answer.argmax(axis=1))
    base = np.where(features["SEX"] == 1, losses[0], losses[1])
    wanted = float((np.maximum(*losses) - base).mean())
    flipped = float((decisions[0] != decisions[1]).mean())
    assert wanted > 0.01
    assert flipped > 0
    assert result.pure_gap == pytest.approx(wanted, abs=1e-9)
    assert result.flipped == pytest.approx(flipped)
    assert result.base_loss == pytest.approx(float(base.mean()), abs=1e-9)
    # With the gaps filled the same model says something else, so the gaps did reach it.
    filled = find_missing(features).filled(features)
    assert not np.allclose(model.predict_proba(filled), model.predict_proba(features))


def test_a_model_without_says_what_to_do_and_is_filled_by_default(audited, run):
    audited(takes_missing=False)
    code, _, err = run("audit", *ASKED, "--read", "missing=keep")
    assert code == 2
    assert "'age' and 'height'" in err
    assert "--read missing=impute" in err
    code, _, err = run("audit", *ASKED)
    assert code == 0, err
    assert "were filled" in err


@pytest.mark.parametrize("policy", ["drop", "impute", "category"])
def test_every_other_choice_runs(audited, run, policy):
    audited(takes_missing=False)
    code, _, err = run("audit", *ASKED, "--read", f"missing={policy}", "-q")
    assert code == 0, err


def test_twins_lack_what_their_person_lacks(people, tmp_path):
    """With a budget that lets other columns move too."""
    frame = lacking(people)
    unfair = solved(frame, fitted(frame, takes_missing=True), tmp_path, eps="0.2").unfair_map
    assert list(unfair.people) == ["age", "height", "job", "SEX"]
    assert unfair.people["age"].isna().any()
    for name in ("age", "height"):
        assert (unfair.people[name].isna() == unfair.twins[name].isna()).all()
    assert set(unfair.twins["SEX"]) <= {1, 2}
    assert (unfair.outcomes["changed"] != "").any()
