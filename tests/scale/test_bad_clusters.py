"""No scheduler, no workers, no package, other versions, no Dask at all: one clear sentence each."""

import socket
import sys

import pytest

import likewise as lw
from likewise.core.errors import InputError, MissingExtraError

pytest.importorskip("distributed")


@pytest.fixture
def closed():
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def test_no_scheduler_at_the_address(closed):
    from likewise.auditing import DaskEngine

    engine = DaskEngine(closed, timeout=0.5)
    with pytest.raises(InputError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1"), engine:
        pass
    with (
        pytest.raises(InputError, match="No Dask scheduler answers at nonsense"),
        DaskEngine("nonsense", timeout=0.5),
    ):
        pass


def test_the_command_leaves_with_2_and_writes_nothing(closed, tmp_path, monkeypatch, capsys):
    from likewise.cli.app import main

    monkeypatch.chdir(tmp_path)
    data = lw.datasets.load_german()
    data.frame.assign(credit=data.y).to_parquet("people.parquet")
    monkeypatch.setitem(sys.modules, "scorer", type(sys)("scorer"))
    sys.modules["scorer"].score = lambda frame: frame["age"] / 100
    words = ["audit", "scorer:score", "people.parquet", "--target", "credit", "--sensitive", "sex"]
    monkeypatch.setattr("likewise.auditing.partitions.dask.TIMEOUT", 0.5)
    for more, said in (
        (["--set", f"engine=dask:{closed}"], "No Dask scheduler answers"),
        (["--set", "engine=local:2"], "'engine' must be local, dask"),
        (["-o", "people.parquet"], "exists"),
        (["-o", "none/map.parquet"], "does not exist"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*words, "-o", "page.html", *more])
        err = capsys.readouterr().err
        assert ended.value.code == 2
        assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["people.parquet"]


def info(likewise="0.1.0", python="3.11.5.final.0", numpy="2.0.0"):
    return {"packages": {"likewise": likewise, "python": python, "numpy": numpy}}


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (
            info(likewise=None),
            r"worker tcp://w:1 does not have likewise.*pip install 'likewise\[scale\]==0\.1\.0'",
        ),
        (info(likewise="0.2.0"), r"worker tcp://w:1 has likewise 0\.2\.0, this process has 0\.1\.0"),
        (info(python="3.12.1.final.0"), r"worker tcp://w:1 has Python 3\.12, this process has 3\.11"),
        (None, "worker tcp://w:1 does not have likewise"),
    ],
    ids=["missing", "other", "python", "silent"],
)
def test_workers_that_do_not_fit(theirs, said):
    from likewise.auditing.partitions.dask import check_versions

    with pytest.raises(InputError, match=said):
        check_versions({"client": info(), "scheduler": info(), "workers": {"tcp://w:1": theirs}})
    with pytest.raises(InputError, match="The Dask scheduler"):
        check_versions({"client": info(), "scheduler": theirs, "workers": {}})


def test_other_numeric_libraries_are_warned_of():
    from likewise.auditing.partitions.dask import check_versions

    check_versions({"client": info(), "scheduler": info(), "workers": {"tcp://w:1": info(python="3.11.9")}})
    with pytest.warns(UserWarning, match=r"numpy 1\.26, this process has 2\.0\.0"):
        check_versions({"client": info(), "scheduler": info(), "workers": {"tcp://w:1": info(numpy="1.26")}})


def test_a_worker_that_joins_late_with_another_version():
    from likewise.auditing.partitions.dask import Sealed

    with pytest.raises(InputError, match=r"was started with 9\.9"):
        Sealed("token", b"", "9.9", 0).open()


def test_without_dask_only_the_engine_misses_it(monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    from likewise.auditing import DaskEngine

    with pytest.raises(MissingExtraError, match=r"pip install 'likewise\[scale\]'"), DaskEngine():
        pass
    with pytest.raises(InputError, match="'workers' must be a whole number >= 1"):
        DaskEngine(workers=0)
    with pytest.raises(InputError, match="are for Parquet files"):
        lw.audit(lambda X: X[:, 0], [[0.1], [0.2]], [0, 1], metric=lw.euclidean(1), engine=DaskEngine())
