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
    assert found == wanted


def test_people_without_a_label_are_left_out_and_the_others_keep_their_place(files, tmp_path):
    people, y, folder = files
    y = y.astype(object)
    y[[3, 4, 620]] = None
    write(folder, people, y)
    path = tmp_path / "people.csv"
    people.assign(paid=y).to_csv(path, index=False)
    given = {"sensitive_features": ["sex"], "favourable": "yes"}
    told = pd.Series(y).notna().to_numpy()
    wanted = numbers(lw.audit(takes_gaps, people[told], y[told].astype(str), **given))
    rows = [row for row, *_ in wanted.pop("people")]
    tables = {"memory": (people, y), "parts": (folder, "paid"), "text": (path, "paid")}
    for kind, table in tables.items():
        result = lw.audit(takes_gaps, *table, **given)
        found = numbers(result)
        # A line of a text file is counted from 1, with its header.
        assert [row - 2 * (kind == "text") for row, *_ in found.pop("people")] == rows
        assert found == wanted
        assert (result.n, result.scope.supplied) == (N - 3, N)
        assert any("left out 3 people" in str(line) for line in result.assumptions)


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


def test_truth_values_of_a_large_text_file_miss_the_same_cell_as_in_memory(tmp_path, monkeypatch):
    """Parquet has None for them, which an encoder takes for another category than NaN."""
    n = 200
    rng = np.random.default_rng(4)
    people = pd.DataFrame({"skill": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)})
    people["owner"] = pd.Series(rng.random(n) < 0.5, dtype=object).where(rng.random(n) < 0.7)
    path = tmp_path / "people.csv"
    people.to_csv(path, index=False)
    whole = pd.read_csv(path)
    y = whole["skill"] + whole["owner"].isna() + 0.7 * (whole["sex"] == "m") > 0.7
    words = OneHotEncoder(handle_unknown="ignore")
    encode = make_column_transformer((words, ["sex", "owner"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(C=100)).fit(whole, y)
    other = whole.assign(sex=np.where(whole["sex"] == "f", "m", "f"))
    changed = int((model.predict(whole) != model.predict(other)).sum())
    counts = [lw.audit(model, path, sensitive_features=["sex"]).changed.count]
    monkeypatch.setattr("likewise.auditing.sources.STREAM_ROWS", 50)
    counts.append(lw.audit(model, path, sensitive_features=["sex"]).changed.count)
    assert counts == [changed, changed]
    assert changed > 10


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
    assert found == wanted


def columns_of_every_type(n):
    """Columns as pandas keeps them, with missing cells: all types that it notes in a Parquet file."""
    rng = np.random.default_rng(3)
    whole, gap = pd.Series(rng.integers(0, 40, n)), rng.random(n) < 0.2
    words = pd.Series(rng.choice(["u", "v", "w"], n))
    return {
        "Int64": whole.astype("Int64").mask(gap),
        "Int8 whole": whole.astype("Int8"),
        "Float64": pd.Series(rng.normal(size=n)).astype("Float64").mask(gap),
        "boolean": (whole > 20).astype("boolean").mask(gap),
        "string": words.astype("string").mask(gap),
        "object": words.astype(object).where(~gap, None),
        "category": words.mask(gap).astype("category"),
        "numbered category": (whole % 3).astype("category"),
        "arrow": whole.astype("int64[pyarrow]").mask(gap),
        "float32": pd.Series(rng.normal(size=n).astype("float32")),
    }


@pytest.mark.parametrize("kind", columns_of_every_type(1))
def test_a_model_in_parts_is_handed_the_types_of_read_parquet(kind, tmp_path, monkeypatch):
    """Nullable truth values came as objects, and an encoder then took a missing cell for another category."""
    n = 120
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)})
    people["told"] = columns_of_every_type(n)[kind]
    for k in range(3):
        people.iloc[40 * k : 40 * k + 40].to_parquet(tmp_path / f"{k}.parquet", index=False)
    whole = pd.read_parquet(tmp_path)
    monkeypatch.setattr("likewise.auditing.sources.SAMPLE_ROWS", 20)
    seen = set()

    def score(frame):
        # How a cell is written tells True from 1.0, NA from None.
        seen.add(frozenset((name, str(dtype)) for name, dtype in frame.dtypes.items()))
        told = np.array([sum(map(ord, repr(cell))) % 7 for cell in frame["told"]])
        return 1 / (1 + np.exp(2 - frame["skill"] - 0.8 * (frame["sex"] == "m") - told / 3))

    def decided(frame):
        return score(frame).to_numpy() > 0.5

    other = whole.assign(sex=np.where(whole["sex"] == "f", "m", "f"))
    changed = np.flatnonzero(decided(whole) != decided(other))
    assert len(changed) > 5
    assert seen == {frozenset((name, str(dtype)) for name, dtype in whole.dtypes.items())}
    given = {"sensitive_features": ["sex"], "favourable": 1}
    memory, parts = lw.audit(score, whole, **given), lw.audit(score, tmp_path, **given)
    assert len(seen) == 1
    assert memory.changed.count == parts.changed.count == len(changed)
    assert memory.effects.equals(parts.effects)


def test_a_function_reads_ids_and_dates_of_a_table_in_parts(tmp_path, monkeypatch):
    """They were withheld from it, and it raised a KeyError."""
    n = 150
    rng = np.random.default_rng(1)
    days = pd.to_timedelta(rng.integers(0, 900, n), "D")
    people = pd.DataFrame(
        {
            "when": (pd.to_datetime("2020-01-01") + pd.Series(days)).where(rng.random(n) < 0.9),
            "id": [f"P{k:05d}" for k in rng.permutation(n) * 7],
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    for k in range(3):
        people.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet", index=False)
    monkeypatch.setattr("likewise.auditing.sources.SAMPLE_ROWS", 20)

    def score(frame):
        season = frame["when"].dt.month.fillna(20) / 6 + frame["id"].str[-1].astype(int) / 5
        return 1 / (1 + np.exp(2.5 - (frame["age"] - 50) / 20 - (frame["sex"] == "m") - season))

    other = people.assign(sex=np.where(people["sex"] == "f", "m", "f"))
    changed = np.flatnonzero((score(people) > 0.5) != (score(other) > 0.5))
    given = {"sensitive_features": ["sex"], "favourable": 1}
    memory, parts = lw.audit(score, people, **given), lw.audit(score, tmp_path, **given)
    assert len(changed) > 10
    assert sorted(memory.people["row"]) == sorted(parts.people["row"]) == changed.tolist()


def test_whole_numbers_with_a_gap_are_written_as_whole_numbers(tmp_path):
    rng = np.random.default_rng(2)
    people = pd.DataFrame({"age": rng.integers(18, 80, 60), "group": pd.array([1, 2] * 30, dtype="Int64")})
    people.loc[3, "group"] = pd.NA
    (tmp_path / "parts").mkdir()
    people.to_parquet(tmp_path / "parts" / "people.parquet")

    def score(frame):
        return 1 / (1 + np.exp(3 - frame["age"] / 20 - frame["group"].fillna(0).astype(float)))

    given = {"sensitive_features": ["group"], "favourable": 1}
    memory, parts = (lw.audit(score, table, **given) for table in (people, tmp_path / "parts"))
    assert set(map(str, memory.effects["recorded"])) == {"1", "2", "(missing)"}
    assert memory.effects.equals(parts.effects)
    assert str(memory.headline) == str(parts.headline)
    assert memory.people.equals(parts.people)


@pytest.mark.parametrize("lacking", [0, 1], ids=["the first", "a later"])
def test_a_column_that_one_file_lacks_is_said(lacking, files):
    """Absent from the first file it was left out of the table."""
    *_, folder = files
    pd.read_parquet(folder / f"{lacking}.parquet").drop(columns="job").to_parquet(
        folder / f"{lacking}.parquet"
    )
    with pytest.raises(InputError, match=rf"{lacking}\.parquet has no column 'job'. Write all files"):
        lw.audit(takes_gaps, folder, "paid", sensitive_features=["sex"], favourable="yes")


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
