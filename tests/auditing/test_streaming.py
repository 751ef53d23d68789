"""Parquet files of any size: the same numbers whatever the chunks, and the same people at the top."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.auditing import audit
from likewise.auditing.conclusion import Questions
from likewise.auditing.search.candidates import CandidateSearch
from likewise.auditing.streaming import Asked, ParquetTable, Sizes, audit_parquet
from likewise.core.errors import InputError


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    data = lw.datasets.load_german()
    folder = tmp_path_factory.mktemp("people")
    table = data.frame.assign(credit=np.where(data.y == 1, "good", "bad"))
    table.iloc[:600].to_parquet(folder / "a.parquet", index=False)
    table.iloc[600:].to_parquet(folder / "b.parquet", index=False, row_group_size=77)
    model = LogisticRegression(max_iter=3000).fit(data.X_train.to_numpy(), data.y_train)
    metric = lw.ExpertSubspace(["sex", "personal_status"], domain=data.domain).fit(data.frame).metric_
    return data, folder, model, metric


def stream(
    setting, *, pool_rows=300, sensitive=("personal_status", "sex"), eps=0.05, map_folder=None, **sizes
):
    data, folder, model, metric = setting
    return audit_parquet(
        Asked(
            model, metric, data.domain, candidates=CandidateSearch(sensitive=sensitive, pool_rows=pool_rows)
        ),
        ParquetTable.find(folder / "*.parquet", ("credit", "good")),
        Questions(eps, None, 0.01, 0.95),
        sizes=Sizes(**sizes),
        map_folder=map_folder,
    )


def test_chunks_change_nothing(setting):
    whole, parts, single = (stream(setting, part=rows, chunk=rows) for rows in (5000, 137, 999))
    for other in (parts, single):
        assert other.value == pytest.approx(whole.value, abs=1e-9)
        assert other.pure_gap == pytest.approx(whole.pure_gap, abs=1e-9)
        assert other.flipped == whole.flipped
        assert other.unfair_map.outcomes["person"].tolist() == whole.unfair_map.outcomes["person"].tolist()


def test_with_everybody_in_the_pool_it_is_the_audit_in_memory(setting):
    data, _, model, metric = setting
    streamed = stream(setting, pool_rows=1000, chunk=400)
    memory = audit(
        model, data.frame, data.y, metric=metric, domain=data.domain, eps=0.05, search="candidates"
    )
    for name in ("value", "base_loss", "pure_gap", "flipped", "lambda_"):
        assert getattr(streamed, name) == pytest.approx(getattr(memory, name), abs=1e-8), name


def test_the_map_shows_the_most_harmed_and_says_of_how_many(setting):
    found = stream(setting, pool_rows=200, top=25)
    everybody = stream(setting, pool_rows=200, top=1000)
    assert len(found.unfair_map.outcomes) == 25
    assert found.unfair_map.total == 1000
    assert sorted(found.unfair_map.harm)[::-1] == pytest.approx(sorted(everybody.unfair_map.harm)[::-1][:25])
    assert setting[0].domain.validate(found.unfair_map.twins) == ()


def test_paths_through_the_verb_with_a_domain_of_its_own(setting):
    data, folder, _, _ = setting

    def score(frame):
        return 1 / (1 + np.exp(-(frame["sex"] == "male") - frame["age"] / 50 + 1))

    found = audit(
        score, str(folder / "*.parquet"), ("credit", "good"), metric=lw.ExpertSubspace(["sex"]), eps=0.0
    )
    assert found.n == 1000
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
    with pytest.raises(InputError, match="no readable Parquet"):
        audit(model, str(tmp_path / "x.parquet"), "credit", **given)
    with pytest.raises(InputError, match="search='candidates'"):
        audit(model, str(folder / "*.parquet"), "credit", search="gradient", **given)
