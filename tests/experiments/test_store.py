"""Cells on disk: kept whole, found again, and never mixed with cells of other settings."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from likewise.core.errors import InputError
from likewise.improving.cells import Cell, CellResult, Store, versions
from likewise.improving.runner import plan_run

_spec = importlib.util.spec_from_file_location("fake_study", Path(__file__).with_name("fake_study.py"))
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)
FakeStudy = fake.FakeStudy


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "fake", FakeStudy())


def cell(method="Fine", seed=0, **values):
    return Cell(
        method, seed, CellResult({"good": 0.1, "gap": 0.2, **values}, {"a": [1]}), 1.5, ("mind",), versions()
    )


def test_a_cell_comes_back_as_it_was(store):
    kept = cell(good=0.1 + 0.2, gap=float("nan"))
    store.write(kept)
    found = store.find(["Fine"], range(3))
    (back,) = found.cells.values()
    assert back.result.values["good"] == 0.1 + 0.2  # to the last digit
    assert np.isnan(back.result.values["gap"])
    assert (back.result.extras, back.warnings, back.cpu_seconds) == ({"a": [1]}, ("mind",), 1.5)
    assert back.versions == versions()
    assert list(store.folder.iterdir()) == [store.path]


def test_more_seeds_compute_only_what_is_missing(store):
    for seed in range(3):
        store.write(cell(seed=seed))
    plan = plan_run([(store.study, store)], seeds=10, methods=["fine"])
    assert [task.seed for task in plan.tasks] == list(range(3, 10))
    assert plan.finished == 3


@pytest.mark.parametrize("text", ['{"kind": "likewise.exp', "\x00\x01"], ids=["cut", "binary"])
def test_a_damaged_line_is_computed_again(store, text):
    store.path.parent.mkdir()
    store.path.write_text(text)
    store.write(cell(seed=1))  # on a line of its own, though the run before was killed in the middle of one
    plan = plan_run([(store.study, store)], seeds=2, methods=["Fine"])
    assert [task.seed for task in plan.tasks] == [0]
    assert "line 1, is damaged" in plan.damaged[0]


@pytest.mark.parametrize(("kept", "room"), [(0, 0), (1, 0), (1, 20)])
def test_a_full_disk_leaves_the_cells_before_and_no_empty_file(store, kept, room):
    resource = pytest.importorskip("resource")
    for seed in range(kept):
        store.write(cell(seed=seed))
    size = store.path.stat().st_size if kept else 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))  # stands for the disk
    try:
        with pytest.raises(OSError, match="large"):
            store.write(cell(seed=5))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(store.find(["Fine"], range(9)).cells) == kept
    assert store.path.exists() == bool(kept)


def test_the_last_cell_of_a_method_and_seed_counts(store):
    store.write(cell(good=0.1))
    store.write(cell(good=0.7))
    assert store.find(["Fine"], [0]).cells["Fine", 0].result.values["good"] == 0.7


def test_a_cell_with_a_part_missing_is_damaged(store):
    store.write(cell())
    content = json.loads(store.path.read_text())
    del content["values"]["gap"]
    store.path.write_text(json.dumps(content))
    found = store.find(["Fine"], [0])
    assert "gap" in found.damaged[0]
    assert not found.cells


def test_cells_of_other_settings_are_neither_used_nor_replaced_unasked(store, tmp_path):
    store.write(cell())
    other = Store(store.folder, FakeStudy(steps=6))
    assert other.find(["Fine"], [0]).cells == {}
    with pytest.raises(InputError, match=r"steps is 5, not 6.*replace_other=True"):
        plan_run([(other.study, other)], seeds=2, methods=["Fine"])
    plan = plan_run([(other.study, other)], seeds=2, methods=["Fine"], replace_other=True)
    assert len(plan.tasks) == 2
    assert len(plan.replaced) == 1


@pytest.mark.parametrize(
    "content",
    ['{"hello": 1}', "[1, 2]", '{"kind": "likewise.report.audit"}'],
    ids=["dict", "list", "other kind"],
)
def test_a_foreign_file_is_refused(store, content):
    store.path.parent.mkdir(parents=True)
    store.path.write_text(content)
    with pytest.raises(InputError, match="not a cell"):
        store.find(["Fine"], [0])


def test_cells_of_another_study_are_refused(store):
    store.write(cell())
    store.path.write_text(store.path.read_text().replace('"study": "fake"', '"study": "adult"'))
    with pytest.raises(InputError, match="belongs to adult"):
        store.find(["Fine"], [0])


def test_a_method_that_is_none(store):
    with pytest.raises(InputError, match="'Fine'"):
        plan_run([(store.study, store)], seeds=1, methods=["finest"])
