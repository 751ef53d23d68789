"""Question 1 of a table in files, whatever is missing in it: the numbers of the table in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import likewise as lw
from likewise.auditing.partitions.engine import LocalEngine
from likewise.auditing.sources import open_people
from likewise.core.errors import InputError
from likewise.data.case import TableRequest

N = 900


def make_people(seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N).astype(float),
            "pay": rng.gamma(2.0, 900.0, N),
            "job": rng.choice(["cook", "clerk", "nurse"], N),
            "sex": rng.choice(["f", "m"], N),
            "code": rng.integers(1, 5, N),
        }
    )
    # Values that one person has, far from the beginning.
    people.loc[700, "job"] = "diver"
    people.loc[811, "sex"] = "x"
    people.loc[rng.random(N) < 0.1, "pay"] = np.nan
    people.loc[(rng.random(N) < 0.1) & (np.arange(N) > 400), "age"] = np.nan
    people.loc[(rng.random(N) < 0.05) & (np.arange(N) > 500), ["job"]] = None
    people.loc[(rng.random(N) < 0.05) & (np.arange(N) > 500), ["sex"]] = None
    paid = people["pay"].fillna(1500) + 500 * (people["sex"] == "m") + 300 * (people["job"] == "nurse")
    y = np.where(paid + rng.normal(0, 300, N) > 1800, "yes", "no")
    return people, y


def write(folder, people, y):
    """Three files, so that there are three parts."""
    for k, at in enumerate(np.split(np.arange(N), 3)):
        people.iloc[at].assign(paid=y[at]).to_parquet(folder / f"{k}.parquet", index=False)


@pytest.fixture
def files(tmp_path, monkeypatch):
    people, y = make_people()
    folder = tmp_path / "people"
    folder.mkdir()
    write(folder, people, y)
    monkeypatch.setattr("likewise.auditing.sources.SAMPLE_ROWS", 80)
    return people, y, folder


def takes_gaps(frame):
    return 1 / (
        1
        + np.exp(
            1.5
            - frame["pay"].fillna(2000) / 1300
            + 0.8 * frame["age"].isna()
            - 0.7 * (frame["sex"] == "m")
            + 0.4 * frame["sex"].isna()
            - 0.3 * (frame["code"] == 3)
            - 0.5 * (frame["job"] == "diver")
        )
    )


def takes_none(frame):
    if frame.isna().any(axis=None):
        raise ValueError("missing")
    return takes_gaps(frame)


def pipeline(people, y):
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    encode = make_column_transformer((words, ["job", "sex"]), (SimpleImputer(), ["age", "pay", "code"]))
    return make_pipeline(encode, LogisticRegression(max_iter=5000)).fit(people, y)


def numbers(result):
    """All counts of question 1; means of losses, if they were asked for, to their rounding."""
    found = result.sensitive
    losses = {}
    if result.worst_case is not None:
        losses = {"gap": round(found.gap, 12), "loss": round(result.base_loss, 12)}
    return losses | {
        "changed": result.changed.count,
        "effects": result.effects.to_dict("records"),
        "groups": sorted(map(str, found.groups)),
        "outcomes": sorted(str((one.values, sorted(one.decisions), one.people)) for one in found.outcomes),
        "people": sorted((one.row, str(one.cells), str(one.twin), one.twin_decision) for one in found.people),
    }


@pytest.mark.parametrize("labelled", [True, False], ids=["labels", "no labels"])
@pytest.mark.parametrize("model", [takes_gaps, takes_none, pipeline], ids=["kept", "filled", "pipeline"])
def test_parts_with_missing_cells_give_the_numbers_of_memory(files, model, labelled):
    people, y, folder = files
    model = pipeline(people, y) if model is pipeline else model
    given = {"sensitive_features": ["sex", "code"]} | ({"favourable": "yes", "eps": 0.0} if labelled else {})
    memory = lw.audit(model, people, y if labelled else None, **given)
    if labelled:
        parts = lw.audit(model, folder, "paid", **given)
    else:
        parts = lw.audit(model, without_target(folder), None, **given)
    wanted, found = numbers(memory), numbers(parts)
    places = [(row - 1, *rest) for row, *rest in found.pop("people")]
    assert places == [(row, *rest) for row, *rest in wanted.pop("people")]
    assert found == wanted
    assert parts.sensitive.exact
    assert parts.changed.count > 50


def without_target(folder):
    bare = folder.parent / "bare"
    bare.mkdir()
    for path in folder.iterdir():
        pd.read_parquet(path).drop(columns="paid").to_parquet(bare / path.name, index=False)
    return bare


@pytest.mark.parametrize("missing", ["impute", "category", "drop"])
def test_what_the_user_chooses_for_missing_cells(files, missing):
    people, y, folder = files
    given = {"sensitive_features": ["sex"], "favourable": "yes", "missing": missing}
    memory, parts = (lw.audit(takes_none, *table, **given) for table in ((people, y), (folder, "paid")))
    wanted, found = numbers(memory), numbers(parts)
    assert [row - 1 for row, *_ in found.pop("people")] == [row for row, *_ in wanted.pop("people")]
    assert found == wanted


def test_people_without_a_label_are_left_out_and_the_others_keep_their_place(files, tmp_path):
    people, y, folder = files
    y = y.astype(object)
    y[[3, 4, 620]] = None
    write(folder, people, y)
    parts = lw.audit(takes_gaps, folder, "paid", sensitive_features=["sex"], favourable="yes")
    told = pd.Series(y).notna().to_numpy()
    memory = lw.audit(
        takes_gaps, people[told], y[told].astype(str), sensitive_features=["sex"], favourable="yes"
    )
    assert parts.n == N - 3
    wanted, found = numbers(memory), numbers(parts)
    assert [row - 1 for row, *_ in found.pop("people")] == [row for row, *_ in wanted.pop("people")]
    assert found == wanted
    assert any("left out 3 people" in str(line) for line in parts.assumptions)


def test_a_large_text_file_gives_the_numbers_of_memory(files, tmp_path, monkeypatch):
    people, y, _ = files
    path = tmp_path / "people.csv"
    people.assign(paid=y).to_csv(path, index=False)
    given = {"sensitive_features": ["sex", "code"], "favourable": "yes"}
    memory = lw.audit(takes_gaps, path, "paid", **given)
    monkeypatch.setattr("likewise.auditing.sources.STREAM_ROWS", 100)
    parts = lw.audit(takes_gaps, path, "paid", **given)
    assert numbers(parts) == numbers(memory)
    assert any("written as Parquet" in str(line) for line in parts.assumptions)
    assert memory.scope == parts.scope


def test_one_hot_values_outside_of_the_sample(files):
    people, y, folder = files
    people = people.fillna({"age": 40.0, "pay": 1500.0, "job": "cook", "sex": "f"})
    write(folder, people, y)
    hot = pd.get_dummies(people).astype(float)
    model = LogisticRegression(max_iter=5000).fit(hot, y)
    given = {"sensitive_features": ["sex"], "favourable": "yes"}
    memory, parts = (lw.audit(model, *table, **given) for table in ((people, y), (folder, "paid")))
    assert parts.effects.to_dict("records") == memory.effects.to_dict("records")
    assert "x" in set(parts.effects["instead"])


def test_a_target_with_three_values_is_cut_in_two_in_every_part(files):
    people, y, folder = files
    write(folder, people, np.where(np.arange(N) < 10, "maybe", y))
    found = open_people(folder, TableRequest(target="paid", favourable="yes", keeps_missing=True))
    table = found.audited(["age"], ["sex"], found.filled, found.labels)
    labels = [chunk.y for part in table.parts() for chunk in table.chunks(part, 100)]
    cut = np.where((y == "yes") & (np.arange(N) >= 10), "yes", "not yes")
    assert np.concatenate(labels).tolist() == cut.tolist()


def test_a_table_without_anybody_left_is_refused(files):
    *_, folder = files
    for path in folder.iterdir():
        people = pd.read_parquet(path)
        people.loc[::2, "pay"], people.loc[1::2, "age"] = np.nan, np.nan
        people.to_parquet(path, index=False)
    with pytest.raises(InputError, match="nobody is left"):
        lw.audit(takes_gaps, folder, "paid", sensitive_features=["sex"], favourable="yes", missing="drop")


def test_files_that_say_less_of_a_column_than_others(files):
    """The first file has a column without a cell, whole numbers, and other categories than the next one."""
    people, y, folder = files
    people.loc[:299, "job"] = None
    people["age"] = people["age"].fillna(40.0)
    people["wage"] = people["code"] + 0.5 * (np.arange(N) >= 300)
    people["town"] = np.where(np.arange(N) < 300, "a", np.where(np.arange(N) < 600, "b", "c"))
    for k, at in enumerate(np.split(np.arange(N), 3)):
        some = people.iloc[at].assign(paid=y[at], town=lambda frame: frame["town"].astype("category"))
        if k == 0:
            some = some.astype({"age": "int64", "wage": "int64"})
            some["job"] = pd.Series([None] * len(some), index=some.index, dtype=object)
        some.to_parquet(folder / f"{k}.parquet", index=False)
    given = {"sensitive_features": ["sex", "town"], "favourable": "yes"}
    memory, parts = (lw.audit(takes_gaps, *table, **given) for table in ((people, y), (folder, "paid")))
    wanted, found = numbers(memory), numbers(parts)
    assert [row - 1 for row, *_ in found.pop("people")] == [row for row, *_ in wanted.pop("people")]
    assert found == wanted


class Watched(LocalEngine):
    """An engine that runs only while it is entered, as workers do."""

    depth = started = 0

    def __enter__(self):
        self.started += self.depth == 0
        self.depth += 1
        return self

    def __exit__(self, *error):
        self.depth -= 1

    def map(self, function, shared, items):
        assert self.depth > 0
        return super().map(function, shared, items)


def test_an_engine_is_started_once_and_parts_are_told_of(files):
    _, _, folder = files
    engine, told = Watched(), []
    given = {"sensitive_features": ["sex"], "favourable": "yes"}
    found = lw.audit(
        takes_gaps, folder, "paid", engine=engine, progress=lambda name, share: told.append(share), **given
    )
    assert (engine.started, engine.depth) == (1, 0)
    assert told == [None, pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    assert found.settings["engine"] == "local"
    assert found.effects.equals(lw.audit(takes_gaps, folder, "paid", **given).effects)
