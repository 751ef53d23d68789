"""Tables: means, standard errors, marks, and files that do not depend on the order in which cells finished."""

import importlib.util
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from likewise.core.errors import InputError
from likewise.experiments.output import cells_csv, check_folder, markdown, table_csv, write_results
from likewise.experiments.study import Entry, Published, StudyMeasure, make_table
from likewise.improving.cells import Cell, CellResult, Store

_spec = importlib.util.spec_from_file_location("fake_study", Path(__file__).with_name("fake_study.py"))
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)
STUDY = fake.FakeStudy()


def cells(order=(0, 1, 2), method="Fine", seconds=2.0):
    return {
        (method, seed): Cell(
            method, seed, CellResult({"good": 0.8 + seed / 10, "gap": 0.5}), seconds, ("<b>",)
        )
        for seed in order
    }


def test_mean_and_standard_error_are_those_of_the_seeds():
    (row,) = make_table(STUDY, cells(), 3).rows
    good = row.entries[0]
    assert good.mean == pytest.approx(0.9)
    assert good.se == pytest.approx(np.std([0.8, 0.9, 1.0], ddof=1) / math.sqrt(3))
    assert make_table(STUDY, cells([0]), 3).rows[0].entries[0].se is None


@pytest.mark.parametrize(
    ("mean", "se", "paper", "better", "mark"),
    [
        (0.934, 0.01, Published(0.934, 0.012), "higher", ""),
        (0.96, 0.012, Published(0.934, 0.012), "higher", ""),  # 2.6 points, two combined errors are 3.4
        (0.97, 0.012, Published(0.934, 0.012), "higher", "▲"),
        (0.89, 0.012, Published(0.934, 0.012), "higher", "▼"),
        (0.05, 0.001, Published(0.068, 0.004), "lower", "▲"),
        (0.08, 0.001, Published(0.068, 0.004), "lower", "▼"),
        (0.9843, 0.0, Published(0.984, 0.0), "higher", ""),  # the paper's figure is rounded
        (0.9846, 0.0, Published(0.984, 0.0), "higher", "▲"),
        (0.80, 0.001, Published(0.790, None), "higher", "▲"),  # no error told: ours alone counts
        (0.80, None, Published(0.790, 0.001), "higher", ""),  # a single seed says nothing
        (float("nan"), 0.001, Published(0.790, 0.001), "higher", ""),
        (0.80, 0.001, None, "higher", ""),
    ],
)
def test_marks_are_beyond_two_combined_standard_errors(mean, se, paper, better, mark):
    assert Entry(StudyMeasure("m", "m", 3, better), mean, se, paper).mark == mark


def test_the_order_of_cells_and_their_times_leave_no_trace_in_the_csv():
    one, two = cells((0, 1, 2)), cells((2, 0, 1), seconds=99.0)
    tables = [make_table(STUDY, made, 3) for made in (one, two)]
    assert table_csv(tables[0]) == table_csv(tables[1])
    assert cells_csv(tables[0], one) == cells_csv(tables[1], two)
    assert "0.9000000000000000" in table_csv(tables[0]) or "0.9," in table_csv(tables[0])
    lines = table_csv(tables[0]).splitlines()
    assert lines[0].startswith("method,measure,seeds,mean,se,paper_mean,paper_se")
    assert lines[2] == "Fine,gap,3,0.5,0.0,0.5,,0.0,0.0,"


def test_only_seeds_asked_for_count():
    table = make_table(STUDY, cells((0, 1, 2)), 2)
    assert table.rows[0].seeds == (0, 1)
    assert table.missing == {"Raises": 2, "Dies": 2, "Unkeepable": 2}


def test_markdown_has_the_paper_beside_and_keeps_its_columns():
    text = markdown(make_table(STUDY, cells(), 3))
    head, _, row = text.splitlines()[:3]
    assert "Good \\| great ↑" in head
    assert "0.900 ± 0.058<br>paper 0.900 ± 0.010" in row
    assert row.count(" | ") == head.count(" | ") == 3


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_files_of_a_study(tmp_path):
    store = Store(tmp_path / "fake", STUDY)
    for one in cells().values():
        store.write(one)
    table, notes = write_results(store, 3)
    assert notes == ()
    assert {path.name for path in store.folder.iterdir()} == {
        "cells.jsonl", "cells.csv", "index.html", "results.json", "table.csv", "table.md",
    }  # fmt: skip
    results = json.loads((store.folder / "results.json").read_text())
    assert results["methods"][0]["figures"]["good"]["paper"] == {"mean": 0.9, "se": 0.01}
    assert results["methods"][0]["settings"] == {"steps": 5, "method": "Fine"}
    page = _Text()
    page.feed((store.folder / "index.html").read_text())
    assert "A <fake> study" in page.text
    assert "told <nothing>" in page.text
    assert "Warned: <b>" in page.text
    assert not page.tags & {"fake", "nothing", "b", "script"}
    check_folder(store.folder)  # a second run may replace its own
    again, _ = write_results(store, 3)
    assert again == table


def test_cells_of_other_settings_are_left_out_of_the_table(tmp_path):
    for one in cells().values():
        Store(tmp_path, STUDY).write(one)
    table, notes = write_results(Store(tmp_path, fake.FakeStudy(steps=9)), 3)
    assert table.rows == ()
    assert "Fine is left out" in notes[0]


def test_files_that_no_study_wrote_are_not_replaced(tmp_path):
    (tmp_path / "table.csv").write_text("mine")
    with pytest.raises(InputError, match=r"table\.csv was not written by a study"):
        check_folder(tmp_path)
    (tmp_path / "results.json").write_text('{"kind": "other"}')
    with pytest.raises(InputError, match=r"results\.json was not written"):
        check_folder(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "table.csv" / "adult")


def test_without_matplotlib_everything_but_the_figures_is_written(tmp_path, monkeypatch):
    from likewise.core.errors import MissingExtraError
    from likewise.experiments import ToyStudy

    def absent(self, cells):
        raise MissingExtraError("Drawing needs matplotlib.")

    monkeypatch.setattr(ToyStudy, "figures", absent)
    _, notes = write_results(Store(tmp_path, ToyStudy()), 1)
    assert "no figures" in notes[0]
    assert (tmp_path / "index.html").exists()
