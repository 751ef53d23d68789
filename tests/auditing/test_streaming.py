"""Parquet files of any size: the same numbers whatever the chunks, and the same people at the top."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.auditing import audit
from likewise.auditing.auditor import audit_asked
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.engine import Engine
from likewise.auditing.partitions.runner import Sizes
from likewise.auditing.partitions.tables import ParquetTable, parts_of
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.errors import InputError

N = 200
COLUMNS = ["age", "credit_amount", "housing", "personal_status", "sex"]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    german = lw.datasets.load_german()
    frame = german.frame[COLUMNS][:N]
    domain = lw.data.TabularDomain.from_frame(frame)
    data = SimpleNamespace(frame=frame, X=domain.encode(frame), y=german.y[:N], domain=domain)
    folder = tmp_path_factory.mktemp("people")
    table = data.frame.assign(credit=np.where(data.y == 1, "good", "bad"))
    table.iloc[:120].to_parquet(folder / "a.parquet", index=False)
    table.iloc[120:].to_parquet(folder / "b.parquet", index=False, row_group_size=31)
    model = LogisticRegression(max_iter=3000).fit(data.X.to_numpy(), data.y)
    metric = lw.ExpertSubspace(["sex", "personal_status"], domain=data.domain).fit(data.frame).metric_
    return data, folder, model, metric


def stream(
    setting,
    *,
    pool_rows=50,
    sensitive=("personal_status", "sex"),
    eps=0.05,
    engine=None,
    map_folder=None,
    **sizes,
):
    data, folder, model, metric = setting
    search = CandidateSearch(edits=sensitive, pool_rows=pool_rows)
    return audit_asked(
        AuditRequest(model, metric, (search,), data.domain, eps=eps),
        ParquetTable.find(folder / "*.parquet", ("credit", "good")),
        None,
        sizes=Sizes(**sizes),
        engine=engine,
        map_folder=map_folder,
    )


def test_chunks_change_nothing(setting):
    whole, parts, single = (stream(setting, part=rows, chunk=rows) for rows in (5000, 48, N - 1))
    for other in (parts, single):
        assert other.value == pytest.approx(whole.value, abs=1e-9)
        assert other.pure_gap == pytest.approx(whole.pure_gap, abs=1e-9)
        assert other.flipped == whole.flipped
        assert other.unfair_map.outcomes["person"].tolist() == whole.unfair_map.outcomes["person"].tolist()


def test_with_everybody_in_the_pool_it_is_the_audit_in_memory(setting):
    data, _, model, metric = setting
    streamed = stream(setting, pool_rows=N, chunk=80)
    memory = audit(
        model, data.frame, data.y, metric=metric, domain=data.domain, eps=0.05, search="candidates"
    )
    for name in ("value", "base_loss", "pure_gap", "flipped", "lambda_"):
        assert getattr(streamed, name) == pytest.approx(getattr(memory, name), abs=1e-8), name


def test_the_map_shows_the_most_harmed_and_says_of_how_many(setting):
    found = stream(setting, pool_rows=100, top=25)
    everybody = stream(setting, pool_rows=100, top=N)
    assert len(found.unfair_map.outcomes) == 25
    assert found.unfair_map.total == N
    assert sorted(found.unfair_map.harm)[::-1] == pytest.approx(sorted(everybody.unfair_map.harm)[::-1][:25])
    assert setting[0].domain.validate(found.unfair_map.twins) == ()


class AnyOrder(Engine):
    """Works on the parts in another order, and on some of them twice, as after a failure."""

    def map(self, function, shared, items):
        order = np.random.default_rng(len(items)).permutation(len(items))
        answers = {k: function(shared, items[k]) for k in (*order[:3], *order)}
        return iter([answers[k] for k in range(len(items))])


def test_where_and_how_often_parts_are_worked_on_changes_nothing(setting, tmp_path):
    choices = {"part": 65, "chunk": 45, "exact": 10, "pool_rows": 30}
    one, other = (
        stream(setting, engine=engine, map_folder=tmp_path / name, **choices)
        for engine, name in ((None, "one"), (AnyOrder(), "other"))
    )
    for name in ("value", "base_loss", "pure_gap", "flipped", "lambda_", "interval", "test"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.curve.values.tolist() == other.curve.values.tolist()
    pd.testing.assert_frame_equal(one.unfair_map.frame, other.unfair_map.frame)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "one"), pd.read_parquet(tmp_path / "other"))
    assert other.settings["engine"] == "AnyOrder"


def test_bins_and_shards_give_the_exact_numbers(setting, monkeypatch):
    exact = stream(setting, pool_rows=75)
    binned = stream(setting, pool_rows=75, exact=10, part=100)
    monkeypatch.setattr("likewise.auditing.search.candidates.SHARD", 30)
    sharded = stream(setting, pool_rows=75, chunk=100, part=100)
    assert len(binned.curve.eps) < len(exact.curve.eps)
    for other in (binned, sharded):
        for name in ("value", "pure_gap", "flipped", "lambda_", "transport"):
            assert getattr(other, name) == pytest.approx(getattr(exact, name), abs=1e-9), name
        assert other.interval.high == pytest.approx(exact.interval.high, abs=1e-9)
        pd.testing.assert_frame_equal(other.unfair_map.top(50), exact.unfair_map.top(50))


def test_the_map_of_everybody_is_written_as_files(setting, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.auditing.search.candidates.SHARD", 20)
    found = stream(setting, part=65, chunk=45, pool_rows=30, map_folder=tmp_path / "map")
    written = pd.read_parquet(tmp_path / "map")
    assert written["person"].tolist() == list(range(N))
    assert len(list((tmp_path / "map").iterdir())) == found.settings["parts"] == 4
    shown = found.unfair_map.frame.sort_values("person", ignore_index=True)
    pd.testing.assert_frame_equal(written, shown, check_dtype=False)
    assert len(written) == N
    with pytest.raises(InputError, match="exists"):
        stream(setting, map_folder=tmp_path / "map")
    assert [path.name for path in tmp_path.iterdir()] == ["map"]


def test_everybody_with_their_own_twins_only(setting):
    data, folder, model, metric = setting
    search = CandidateSearch(edits=["sex", "personal_status"], use_rows=False)
    given = {"metric": metric, "domain": data.domain, "search": search, "eps": 0.0}
    streamed = audit(model, folder, ("credit", "good"), **given)
    memory = audit(model, data.frame, data.y, **given)
    assert streamed.pure_gap == pytest.approx(memory.pure_gap, abs=1e-9)


def test_parts_cover_every_row_once(tmp_path):
    frame = pd.DataFrame({"x": np.arange(1000), "y": 0})
    frame[:10].to_parquet(tmp_path / "a.parquet", row_group_size=3, index=False)
    frame[10:10].to_parquet(tmp_path / "b.parquet", index=False)
    frame[10:].to_parquet(tmp_path / "c.parquet", row_group_size=400, index=False)
    table = ParquetTable.find(tmp_path, "y")
    for rows in (7, 150, 10_000):
        parts = table.parts(rows)
        assert max(part.rows for part in parts) <= rows
        assert [part.first for part in parts] == np.cumsum([0, *(p.rows for p in parts)])[:-1].tolist()
        read = [chunk["x"] for part in parts for chunk, _, _ in table.chunks(part, 64)]
        assert np.concatenate(read).tolist() == list(range(1000))
    found = parts_of(np.array([0, 9, 10, 500, 999]), table.parts())
    picked, _, _ = table.joined([table.pick(*one) for one in found], [4, 0, 3, 1, 2])
    assert picked["x"].tolist() == [999, 0, 500, 9, 10]


def test_a_missing_or_damaged_part_leaves_nothing(setting, tmp_path):
    data, folder, model, metric = setting
    there, out = tmp_path / "people", tmp_path / "out"
    there.mkdir()
    out.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (there / name).write_bytes((folder / name).read_bytes())
    table = ParquetTable.find(there, ("credit", "good"))
    asked = AuditRequest(model, metric, (CandidateSearch(),), data.domain, eps=0.05)
    given = (asked, table, None)
    content = bytearray((there / "b.parquet").read_bytes())
    content[40:400] = bytes(360)
    (there / "b.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"b\.parquet cannot be read"):
        audit_asked(*given, map_folder=out / "map")
    (there / "b.parquet").unlink()
    with pytest.raises(InputError, match=r"there is no file '.*b\.parquet'. A part of the table is missing"):
        audit_asked(*given, map_folder=out / "map")
    data.frame.drop(columns="age").assign(credit="good").to_parquet(there / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has no column 'age'"):
        audit_asked(*given, map_folder=out / "map")
    assert list(out.iterdir()) == []


def test_paths_through_the_verb_with_a_domain_of_its_own(setting):
    data, folder, _, _ = setting

    def score(frame):
        return 1 / (1 + np.exp(-(frame["sex"] == "male") - frame["age"] / 50 + 1))

    found = audit(
        score, str(folder / "*.parquet"), ("credit", "good"), metric=lw.ExpertSubspace(["sex"]), eps=0.0
    )
    assert found.n == N
    assert found.settings["sensitive"] == ["sex"]
    direct = audit(score, data.frame, data.y, metric=lw.ExpertSubspace(["sex"]), eps=0.0, search="candidates")
    assert found.pure_gap == pytest.approx(direct.pure_gap, rel=1e-6)


def test_bad_paths_and_targets(setting, tmp_path):
    data, folder, model, metric = setting
    given = {"metric": metric, "domain": data.domain}
    with pytest.raises(InputError, match="no file fits"):
        audit(model, str(tmp_path / "none*.parquet"), "credit", **given)
    with pytest.raises(InputError, match="must name the target column"):
        audit(model, str(folder / "*.parquet"), "income", **given)
    (tmp_path / "x.parquet").write_text("<html>not found</html>")
    with pytest.raises(InputError, match="not a readable Parquet"):
        audit(model, str(tmp_path / "x.parquet"), "credit", **given)
