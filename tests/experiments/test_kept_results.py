"""The results that docs/reproduction.md shows: of today's settings, whole, and what is said of them holds."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from likewise.experiments import AdultStudy, SentimentStudy, Store, ToyStudy
from likewise.experiments.output import cells_csv, table_csv
from likewise.experiments.study import make_table

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "reproduction"
GOOGLE = "sentiment-googlenews-300d-words"
STUDIES = [ToyStudy(), SentimentStudy(), AdultStudy()]
GAPS = ["Gap_RMS sex", "Gap_RMS race", "Gap_max sex", "Gap_max race"]


def means(study):
    """Ours, methods in rows and measures in columns."""
    return pd.read_csv(KEPT / study / "table.csv").pivot_table(
        index="method", columns="measure", values="mean"
    )


def figures(study, method):
    """A method's line for every measure: mean, paper_mean, combined_se, …."""
    table = pd.read_csv(KEPT / study / "table.csv")
    return table[table.method == method].set_index("measure")


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_cells_are_of_todays_settings_and_the_tables_are_theirs(study):
    found = Store(KEPT / study.name, study).find(study.methods, range(10))
    assert not found.other
    assert not found.damaged
    assert set(found.cells) == {(method, seed) for method in study.methods for seed in range(10)}
    table = make_table(study, found.cells, 10)
    assert (KEPT / study.name / "table.csv").read_text() == table_csv(table)
    assert (KEPT / study.name / "cells.csv").read_text() == cells_csv(table, found.cells)


def test_googlenews_has_the_settings_of_the_bundled_vectors_but_for_the_vectors():
    study = SentimentStudy()
    cells = [json.loads(line) for line in Store(KEPT / GOOGLE, study).path.read_text().splitlines()]
    assert {(cell["method"], cell["seed"]) for cell in cells} == {
        (method, seed) for method in study.methods for seed in range(10)
    }
    for cell in cells:
        wanted = study.settings(cell["method"])
        assert cell["study"] == GOOGLE
        assert cell["settings"]["estimator"] == json.loads(json.dumps(wanted["estimator"]))
        assert cell["settings"]["names"] == wanted["names"]
        assert cell["settings"]["vectors"] != wanted["vectors"]


def test_the_page_shows_what_is_kept():
    done = subprocess.run(
        [sys.executable, DOCS / "tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ---- what is said of them -----------------------------------------------------------------------------------


def test_sensr_on_adult_is_the_papers():
    ours = figures("adult", "SenSR")
    for key in ["S-Con", "GR-Con", *GAPS]:
        allowed = max(0.01, 2 * ours.combined_se[key])
        assert ours["mean"][key] == pytest.approx(ours.paper_mean[key], abs=allowed), key
    assert ours["mean"]["balanced accuracy"] >= 0.785


def test_the_order_of_table_2():
    ours = means("adult").loc[["Baseline", "Project", "Adv. debiasing", "CoCL", "SenSR"]]
    assert ours["S-Con"].idxmax() == "SenSR"
    assert ours["Gap_RMS sex"].idxmin() == ours["Gap_max sex"].idxmin() == "SenSR"
    assert ours["GR-Con"]["Project"] == 1.0
    assert ours["S-Con"]["Adv. debiasing"] <= ours["S-Con"]["Baseline"]


def test_the_best_preset_is_ahead_of_the_papers_sensr_in_every_column():
    best, paper = means("adult").loc["likewise best"], figures("adult", "SenSR").paper_mean
    for measure in AdultStudy().measures:
        ahead = best[measure.key] - paper[measure.key]
        assert ahead > 0 if measure.better == "higher" else ahead < 0, measure.key


def test_sensr_with_the_bundled_vectors():
    ours = means("sentiment")
    sensr, plain = ours.loc["SenSR"], ours.loc["Baseline"]
    assert sensr["accuracy"] == pytest.approx(plain["accuracy"], abs=0.02)
    for key, share in {"race gap": 0.2, "gender gap": 0.5, "spread": 0.6}.items():
        assert sensr[key] <= share * plain[key], key


def test_sensr_with_googlenews_vectors():
    ours = means(GOOGLE)
    expert, plain = ours.loc["SenSR-E"], ours.loc["Baseline"]
    assert expert["accuracy"] == pytest.approx(plain["accuracy"], abs=0.02)
    for key in ("race gap", "gender gap"):
        assert expert[key] <= plain[key] / 20, key
    others = ours.loc[["Project", "Sinha+", "Bolukbasi+"], "race gap"]
    assert ours["race gap"]["SenSR"] < others.min()


def test_the_toy_boundary_is_level():
    tilt = means("toy")["tilt"]
    assert tilt["Baseline"] > 0.2
    assert tilt["SenSR"] < 0.01
