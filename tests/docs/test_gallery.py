"""Every example of the gallery runs to its end, without a warning, and draws something: on few people, with one short study."""

import functools
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import likewise.datasets
import likewise.experiments

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


@pytest.fixture
def few_people(monkeypatch, tmp_path):
    """The bundled table with fewer people to audit; the paper's study in its quick form; no window."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    german = likewise.datasets.load_german()
    few = replace(german, test_index=german.test_index[:40])
    monkeypatch.setattr(likewise.datasets, "load_german", lambda: few)
    short = functools.partial(likewise.experiments.ToyStudy, quick=True)
    monkeypatch.setattr(likewise.experiments, "ToyStudy", short)
    monkeypatch.chdir(tmp_path)
    yield plt
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example, few_people):
    made = runpy.run_path(str(example))
    assert few_people.get_fignums() or "figure" in made
    assert made["__doc__"].strip().splitlines()[1].startswith("===")


def test_the_gallery_shows_what_it_promises():
    titles = " ".join(path.read_text(encoding="utf-8").split('"""')[1].split("===")[0] for path in EXAMPLES)
    promised = "pipeline XGBoost torch metric map ε Train Repair Verify Parquet search own Figure"
    assert len(EXAMPLES) >= 12
    assert [word for word in promised.split() if word not in titles] == []
