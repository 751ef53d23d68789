"""What columns look like: codes, counts, ids, dates, text; and the file in which a person corrects it."""

import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from likewise import TabularDomain
from likewise.core.errors import InputError
from likewise.data import infer_types, read_table, write_columns
from likewise.data.column import read_plans
from likewise.data.type_inference import columns_text, look_at_column


def kinds(frame: pd.DataFrame) -> dict[str, str]:
    return {look.name: look.plan.kind for look in infer_types(frame)}


def test_codes_are_categories_and_counts_stay_whole(trouble):
    assert kinds(read_table(trouble("codes")).frame) == {
        "age": "integer",
        "height": "number",
        "SEX": "category",
        "male": "category",
        "MARRIAGE": "category",
        "priors_count": "integer",
        "job": "category",
        "paid": "category",
    }


def test_ids_dates_and_text_are_left_out_and_said(trouble):
    looks = {look.name: look for look in infer_types(read_table(trouble("ids_and_dates")).frame)}
    said = {name: look.why for name, look in looks.items() if look.plan.kind == "left out"}
    assert set(said) == {"id", "key", "dob", "seen", "remark", "account"}
    assert "id" in said["id"]
    assert "id" in said["key"]
    assert "id" in said["account"]
    assert said["dob"] == said["seen"] == "dates"
    assert said["remark"].startswith("free text")


def test_thousands_of_values_and_nothing_at_all(trouble):
    assert kinds(read_table(trouble("many_categories")).frame)["street"] == "left out"
    looks = {look.name: look for look in infer_types(read_table(trouble("gaps_everywhere")).frame)}
    assert looks["nothing"].why == "empty"
    # Gaps change nothing about what a column is.
    assert looks["SEX"].plan.kind == "category"
    assert looks["age"].plan.kind == "integer"
    assert 0 < looks["age"].missing < looks["age"].rows


def test_what_stands_for_missing_and_what_never_changes_is_said():
    debts, waits = [0, 5, 900, -999, -999], [0.5, 5, 9, -99, -99]
    frame = pd.DataFrame(
        {"debt": debts, "wait": waits, "below": [-5, 5, 9, -99, -99], "one": ["x"] * 5, "two": 7}
    )
    said = {look.name: look.why for look in infer_types(frame)}
    assert "40.0% are -999" in said["debt"]
    assert "40.0% are -99:" in said["wait"]
    assert said["below"] == ""  # numbers below zero are nothing special there
    assert said["one"] == said["two"] == "the same for everybody"


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("education-num", list(range(1, 17)) * 3, "integer"),
        ("number_of_dependents", [1, 2, 3] * 20, "integer"),
        ("tier", [1, 2, 3, 4, 5, 6] * 10, "integer"),
        ("EDUCATION", [0, 1, 2, 3, 4, 5, 6] * 10, "category"),
        ("x", [3.5, 2.0] * 20, "number"),
        ("flag", [True, False] * 10, "category"),
        ("x", [1.0, np.inf] * 20, "number"),
        ("when", pd.date_range("2020", periods=40), "left out"),
        ("customerId", list(range(100, 200)), "left out"),
        ("lsat", [30.0, 31.5, 44.0] * 20, "number"),
        ("capital", [0] * 90 + [10_000] * 5 + [99_999] * 5, "integer"),
    ],
)
def test_one_column_at_a_time(name, values, kind):
    assert look_at_column(pd.Series(values, name=name)).plan.kind == kind


def test_the_published_tables(published):
    compas = kinds(read_table(published("compas-scores-two-years.csv")).frame)
    out = {name for name, kind in compas.items() if kind == "left out"}
    assert {"id", "c_jail_in", "violent_recid", "c_charge_desc", "screening_date"} <= out
    assert {compas[name] for name in ("sex", "race", "is_recid", "two_year_recid")} == {"category"}
    assert {compas[name] for name in ("age", "priors_count", "juv_fel_count")} == {"integer"}
    law = kinds(read_table(published("law_school.csv")).frame)
    assert law["male"] == law["fulltime"] == law["race"] == "category"
    assert law["lsat"] == law["ugpa"] == "number"
    assert law["decile1b"] == law["fam_inc"] == "integer"


# ------------------------------------------------------------------------------------ the file of columns


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
        st.sampled_from([[1, 2, 3], ["a", "b"], [0.5, 1e300], [None, 1.0], [True, False]]),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=100, deadline=None)
def test_any_names_survive_the_file(columns):
    frame = pd.DataFrame({name: (values * 3)[:3] for name, values in columns.items()})
    looks = infer_types(frame)
    read = read_plans(tomllib.loads(columns_text(looks, table="a\nb.csv")), owner="test")
    assert {name: plan.kind for name, plan in read.items()} == {look.name: look.plan.kind for look in looks}


def test_the_file_makes_the_domain_that_its_columns_say(people, tmp_path):
    frame = people().drop(columns="paid")
    path = tmp_path / "columns.toml"
    write_columns(infer_types(frame), path, table="people.csv")
    domain = TabularDomain.from_frame(frame, columns=path)
    assert domain.column("male").kind == "categorical"
    assert domain.column("SEX").categories == (1, 2)
    text = path.read_text().replace('[SEX]\nkind = "category"', '[SEX]\nkind = "left out"')
    text = text.replace("[age]\n", "[age]\nimmutable = true\nrange = [16, 90]\n")
    path.write_text(text)
    domain = TabularDomain.from_frame(frame, columns=path)
    assert "SEX" not in domain.feature_names_in_
    assert (domain.column("age").lower, domain.column("age").upper) == (16, 90)
    assert domain.column("age").immutable
    # Every decoded row is valid: a float column of codes takes its codes only.
    rows = np.random.default_rng(0).normal(size=(100, domain.n_features)) * 3
    decoded = domain.decode(rows)
    assert set(decoded["male"]) <= {0.0, 1.0}
    assert domain.validate(decoded) == ()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": "count"}, "kind must be one of"),
        ({"age": {"range": [1, 2]}}, "must say its kind"),
        ({"age": {"kind": "integer", "rnage": [1, 2]}}, "did you mean 'range'"),
        ({"age": {"kind": "integer", "range": [1]}}, r"\[lowest, highest\]"),
        ({"age": {"kind": "integer", "values": [1]}}, "'values' are for categories"),
        ({"job": "number"}, "holds no numbers"),
        ({"jobs": "category"}, "did you mean 'job'"),
        ({"age": {"kind": "integer", "immutable": "yes"}}, "true or false"),
        (3, "a dict from column names"),
        ("nowhere.toml", "there is no file"),
    ],
)
def test_mistakes_in_columns(people, columns, said):
    with pytest.raises(InputError, match=said):
        TabularDomain.from_frame(people(), columns=columns)


def test_columns_of_polars_and_arrow(people):
    import polars as pl

    domain = TabularDomain.from_frame(
        pl.from_pandas(people()), columns={"male": "category", "job": "left out"}
    )
    assert domain.column("male").kind == "categorical"
    assert "job" not in domain.feature_names_in_


def test_a_scale_is_advised_in_the_file_and_read_once_it_is_taken():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "gain": np.where(rng.random(400) < 0.9, 0, rng.integers(1, 99999, 400)),
            "fine": np.exp(rng.normal(0, 2, 400)),
            "age": rng.integers(18, 80, 400),
        }
    )
    text = columns_text(infer_types(frame), table="people.csv")
    assert tomllib.loads(text) == {
        "gain": {"kind": "integer"},
        "fine": {"kind": "number"},
        "age": {"kind": "integer"},
    }
    assert text.count('\n# scale = "signed log"\n') == 2
    taken = tomllib.loads(text.replace('# scale = "signed log"\n', 'scale = "signed log"\n'))
    assert [read_plans(taken, owner="audit")[name].scale for name in frame] == ["signed log"] * 2 + [None]
    # What was chosen is written as it is.
    looks = tuple(
        replace(look, plan=replace(look.plan, scale="rank")) if look.name == "age" else look
        for look in infer_types(frame)
    )
    assert tomllib.loads(columns_text(looks, table="people.csv"))["age"]["scale"] == "rank"
