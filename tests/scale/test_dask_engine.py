"""Audits on a small real Dask cluster: the numbers of the local engine, whatever happens to a worker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.auditor import audit_asked
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.partitions.engine import LocalEngine
from likewise.auditing.partitions.runner import Sizes
from likewise.auditing.partitions.tables import ParquetTable
from likewise.auditing.search.candidates import CandidateSearch
from likewise.core.errors import InputError

pytest.importorskip("distributed")

# A worker that is started anew imports the same libraries for four seconds.
FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}
SAME = ("n", "value", "base_loss", "pure_gap", "flipped", "lambda_", "transport")


@pytest.fixture(scope="module")
def engine():
    """One cluster for all tests here: two worker processes, forked from the process that forks those of model files."""
    import dask
    from distributed import utils

    from likewise.auditing import DaskEngine

    with pytest.MonkeyPatch.context() as patch, dask.config.set(FORKED):
        patch.setattr(utils, "_forkserver_preload_set", True)
        with DaskEngine(workers=2) as started:
            yield started


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    german = lw.datasets.load_german()
    frame = german.frame[["age", "credit_amount", "housing", "sex"]][:400]
    data = SimpleNamespace(frame=frame, y=german.y[:400], domain=lw.data.TabularDomain.from_frame(frame))
    folder = tmp_path_factory.mktemp("german")
    table = data.frame.assign(credit=np.where(data.y == 1, "good", "bad"))
    for k in range(4):
        table.iloc[100 * k : 100 * (k + 1)].to_parquet(folder / f"part-{k}.parquet", index=False)
    metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame).metric_
    return data, folder, metric


def score(frame):
    return 1 / (1 + np.exp(-(frame["sex"] == "male") - frame["age"] / 50 + 1))


def old_score(frame):
    return 1 / (1 + np.exp(-(frame["age"] - 45) / 10 - 0.5 * (frame["sex"] == "male")))


def audit_german(german, model, engine, map_folder=None, **sizes):
    data, folder, metric = german
    search = CandidateSearch(edits=["sex"], pool_rows=50)
    return audit_asked(
        AuditRequest(model, metric, (search,), data.domain, eps=0.02),
        ParquetTable.find(folder, ("credit", "good")),
        None,
        engine=engine,
        sizes=Sizes(**({"part": 100, "chunk": 52} | sizes)),
        map_folder=map_folder,
    )


def check_same(one, other):
    for name in SAME:
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9), name
    budgets = np.linspace(0.0, float(one.curve.eps[-1]), 50)
    assert one.curve.gap(budgets) == pytest.approx(other.curve.gap(budgets), abs=1e-9)
    assert one.interval.low == pytest.approx(other.interval.low, abs=1e-9)
    assert one.test.p_value == pytest.approx(other.test.p_value, abs=1e-9)
    for name in ("unfair_map", "pure_map"):
        pd.testing.assert_frame_equal(getattr(one, name).top(100), getattr(other, name).top(100))


def test_adult_gives_the_same_numbers_here_and_there(engine, tmp_path):
    import torch

    data = lw.datasets.load_adult()
    table = data.frame.assign(income=data.y)[:3_500]
    table.to_parquet(tmp_path / "adult.parquet", index=False, row_group_size=550)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(41, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
    metric = lw.AttributeSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
    given = (
        AuditRequest(
            net,
            metric,
            (CandidateSearch(edits=["sex"], pool_rows=20),),
            data.domain,
            eps=0.02,
        ),
        ParquetTable.find(tmp_path, "income"),
        None,
    )
    # Bins as for a table too large to keep every step of.
    sizes = Sizes(part=625, exact=300)
    here = audit_asked(*given, engine=LocalEngine(), sizes=sizes)
    there = audit_asked(*given, engine=engine, sizes=sizes)
    check_same(here, there)
    assert there.n == 3_500
    assert there.settings["engine"] == "dask, 2 workers"
    assert there.settings["parts"] == 7


def test_a_worker_that_dies_twice_changes_nothing(engine, german, tmp_path):
    driver, marks, folder = os.getpid(), tmp_path / "marks", tmp_path / "maps"
    marks.mkdir()
    folder.mkdir()

    def deadly(frame):
        # Once in the search, and once while the map is written.
        stage = "map" if any(path.name.startswith(".map-") for path in folder.iterdir()) else "search"
        if os.getpid() != driver:
            try:
                (marks / stage).open("x").close()
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return 1 / (1 + np.exp(-(frame["sex"] == "male") - frame["age"] / 50 + 1))

    found = audit_german(german, deadly, engine, folder / "map")
    assert sorted(path.name for path in marks.iterdir()) == ["map", "search"]
    expected = audit_german(german, score, LocalEngine(), folder / "expected")
    check_same(found, expected)
    assert sorted(path.name for path in folder.iterdir()) == ["expected", "map"]
    written, wanted = (pd.read_parquet(folder / name) for name in ("map", "expected"))
    assert written["person"].tolist() == list(range(400))
    pd.testing.assert_frame_equal(written, wanted)


def test_the_model_is_opened_once_in_each_worker(engine, german, tmp_path):
    class Model:
        def __setstate__(self, state):
            self.__dict__ = state
            (self.folder / f"{os.getpid()}-{len(list(self.folder.iterdir()))}").touch()

        def __init__(self, folder):
            self.folder = folder

        def __call__(self, frame):
            return 1 / (1 + np.exp(-(frame["sex"] == "male") - frame["age"] / 50 + 1))

    folder = tmp_path / "opened"
    folder.mkdir()
    found = audit_german(german, Model(folder), engine, part=40, chunk=40)
    assert found.settings["parts"] == 12
    workers = [path.name.split("-")[0] for path in folder.iterdir()]
    assert 1 <= len(workers) <= 2
    assert len(set(workers)) == len(workers)


def test_the_command_gives_the_same_document(engine, german, tmp_path, monkeypatch, capsys):
    from likewise.cli.app import main
    from likewise.training import MLPBaselineClassifier

    data, folder, _ = german
    monkeypatch.chdir(tmp_path)
    net = MLPBaselineClassifier(domain=data.domain, n_steps=5, hidden_layer_sizes=(4,), random_state=0)
    net.fit(data.frame, np.where(data.y == 1, "good", "bad")).save("model.safetensors")
    words = [
        "audit",
        "model.safetensors",
        str(folder / "part-[01].parquet"),
        "--target",
        "credit",
        "--sensitive",
        "sex",
        "--eps",
        "0",
    ]
    scheduler = engine._client.scheduler.address
    documents = []
    for more in (("-o", "here.parquet"), ("--set", f"engine=dask:{scheduler}", "-o", "map.parquet")):
        with pytest.raises(SystemExit) as ended:
            main([*words, "-o", "-", *more])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        documents.append(json.loads(out))
    assert "200 people are read part by part" in err
    assert documents[0]["numbers"] == documents[1]["numbers"]
    assert len(pd.read_parquet("map.parquet")) == 200


def test_a_search_of_ones_own_gives_the_bits_of_the_local_engine(engine, german, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "auditing")
    import own_search

    # What a notebook defines travels to the workers by itself; a module beside the tests must be told to.
    cloudpickle.register_pickle_by_value(own_search)
    data, folder, _ = german
    metric = lw.ExpertSubspace(["sex", "age"], domain=data.domain).fit(data.frame).metric_
    searches = [lw.auditing.CandidateSearch(use_rows="pool", pool_rows=60), own_search.OtherAges()]
    given = {"metric": metric, "domain": data.domain, "eps": 0.05, "search": searches}
    files, there = (
        lw.audit(old_score, folder, ("credit", "good"), **given, **more) for more in ({}, {"engine": engine})
    )
    assert files.search == "candidates, other ages, part by part"
    for name in (*SAME, "sensitive", "interval", "test"):
        assert getattr(files, name) == getattr(there, name), name
    assert files.curve.values.tobytes() == there.curve.values.tobytes()
    top = [result.unfair_map.top(50) for result in (files, there)]
    pd.testing.assert_frame_equal(top[0], top[1], check_exact=True)


def small_people(folder):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 24)
    people = pd.DataFrame(
        {"age": rng.integers(20, 60, 24), "pay": rng.normal(30, 8, 24).round(1), "sex": sex}
    )
    y = ((people["pay"] - 30) / 8 + (sex == "m") + rng.normal(0, 0.5, 24) > 0.5).to_numpy().astype(int)
    for k, at in enumerate(np.split(np.arange(24), 4)):
        people.iloc[at].assign(paid=y[at]).to_parquet(folder / f"{k}.parquet", index=False)
    domain = lw.data.TabularDomain.from_frame(people)
    return people, y, domain, lw.AttributeSubspace(["sex"], domain=domain).fit(people).metric_


@pytest.mark.parametrize("kind", ["gradient", "exact"])
def test_gradient_and_exact_searches_survive_a_worker_and_give_the_numbers_of_memory(engine, tmp_path, kind):
    import torch
    from sklearn.linear_model import LogisticRegression

    people, y, domain, metric = small_people(tmp_path)
    driver, mark = os.getpid(), tmp_path / "killed"

    class KillOnce(lw.auditing.Search):
        """The first worker that comes here ends."""

        name = "kill once"
        in_parts = True

        def extend(self, problem, support, eps, budget):
            if os.getpid() != driver and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return lw.auditing.Found(support)

    rows = domain.encode(people).to_numpy(dtype=float)
    if kind == "exact":
        model = LogisticRegression(max_iter=3000).fit(rows, y)
    else:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    given = {"metric": metric, "domain": domain, "eps": 0.05, "search": [KillOnce(), kind]}
    there = lw.audit(model, tmp_path, "paid", engine=engine, **given)
    here = lw.audit(model, tmp_path, "paid", **given)
    memory = lw.audit(model, people, y, **given)
    assert mark.exists()
    check_same(there, here)
    assert there.value == here.value
    for name in SAME:
        assert getattr(there, name) == pytest.approx(getattr(memory, name), rel=1e-6, abs=1e-9), name
    assert [one.upper for one in there.brackets] == [one.upper for one in here.brackets]
    if kind == "exact":
        assert there.certificate.bound.value == pytest.approx(memory.certificate.bound.value, rel=1e-6)


def test_errors_of_a_part_come_back_as_they_are_and_leave_nothing(engine, german, tmp_path):
    def broken(frame):
        return np.full(len(frame), np.nan if (frame["age"] > 60).any() else 0.5)

    with pytest.raises(lw.core.ModelError, match="finite"):
        audit_german(german, broken, engine, tmp_path / "map")
    assert list(tmp_path.iterdir()) == []
    check_same(audit_german(german, score, engine), audit_german(german, score, LocalEngine()))


def test_files_that_a_worker_cannot_see(engine):
    with pytest.raises(InputError, match=r"sees 0 of 1 Parquet files; missing is /nowhere/a\.parquet"):
        engine.check(["/nowhere/a.parquet"])


def test_a_model_that_cannot_be_sent(engine, german):
    import threading

    lock = threading.Lock()

    def locked(frame):
        with lock:
            return score(frame)

    with pytest.raises(InputError, match="cannot send the model"):
        audit_german(german, locked, engine)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("return '0.0.1'", r"has likewise 0\.0\.1, this process has"),
        ("raise metadata.PackageNotFoundError(name)", r"does not have likewise.*pip install"),
    ],
    ids=["other", "missing"],
)
def test_a_worker_with_another_version_or_none_is_refused(tmp_path, version, said):
    """A scheduler and a worker of their own, which have likewise 0.0.1 or none at all."""
    from likewise.auditing import DaskEngine

    script = tmp_path / "old.py"
    script.write_text(
        "import asyncio, importlib.metadata as metadata\n"
        "real = metadata.version\n"
        "def version(name):\n"
        "    if name == 'likewise':\n"
        f"        {version}\n"
        "    return real(name)\n"
        "metadata.version = version\n"
        "from distributed import Scheduler, Worker\n"
        "async def main():\n"
        "    async with Scheduler(port=0, host='127.0.0.1', dashboard=False) as scheduler:\n"
        "        async with Worker(scheduler.address, dashboard=False) as worker:\n"
        "            print(scheduler.address, flush=True)\n"
        "            await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as old:
        try:
            address = old.stdout.readline().strip()
            with (
                pytest.raises(InputError, match=said),
                DaskEngine(address),
            ):
                pass
        finally:
            old.kill()
