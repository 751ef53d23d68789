"""The sentiment study: what each method gets, what is measured, and Figure 2; quick trials of the real thing."""

import json
import pickle

import numpy as np
import pytest

from likewise.core.errors import InputError
from likewise.datasets import load_sentiment
from likewise.datasets.words import SENTENCES, evaluation_names, sentence_tokens
from likewise.experiments.sentiment import SentimentStudy, name_sentiments
from likewise.experiments.sentiment_data import debiased, leading_directions, sentiment_words
from likewise.improving.cells import CellResult

METHODS = ("Baseline", "SenSR", "SenSR-E", "Project", "Sinha+", "Bolukbasi+")


def write_vectors(path, change):
    lookup = load_sentiment().vectors
    np.savez(path, words=np.array(lookup.words), vectors=change(lookup.vectors))
    return path


@pytest.fixture(scope="module")
def quick_cells():
    study = SentimentStudy(quick=True)
    return {(method, 0): study.run(method, 0) for method in study.methods}


# ---- what a study says of itself ---------------------------------------------------------------------------


def test_methods_and_published_figures_are_those_of_table_1():
    study = SentimentStudy()
    assert study.methods == METHODS
    assert {key for method, key in study.published if method == "SenSR"} == {
        "accuracy", "race gap", "gender gap", "cuisine gap",
    }  # fmt: skip
    assert {method for method, _ in study.published} == set(METHODS)
    figure = study.published["Project", "gender gap"]
    assert (figure.mean, figure.se) == (1.99, 0.58)
    assert study.published["SenSR-E", "accuracy"].mean == 0.93


def test_settings_are_table_3_but_for_the_number_of_steps():
    settings = SentimentStudy().settings("SenSR")
    estimator = settings["estimator"]
    assert estimator["n_steps"] == 200
    assert estimator["batch_size"] == 1000
    assert estimator["hidden_layer_sizes"] == [1000]
    assert estimator["eps"] == 0.1
    search = estimator["search"]
    assert (search["subspace_steps"], search["subspace_step_size"]) == (10, 0.1)
    assert (search["full_steps"], search["full_step_size"]) == (10, 0.01)
    assert SentimentStudy().settings("Sinha+")["estimator"]["search"]["subspace_steps"] == 0
    assert json.loads(json.dumps(settings)) == settings


@pytest.mark.parametrize("change", [{"n_steps": 7}, {"n_directions": 5}, {"quick": True}], ids=str)
def test_settings_tell_other_choices_apart(change):
    assert SentimentStudy(**change).settings("SenSR") != SentimentStudy().settings("SenSR")


def test_every_method_is_trained_equally_long():
    study = SentimentStudy(n_steps=321)
    assert {study.settings(method)["estimator"]["n_steps"] for method in METHODS} == {321}
    assert any("321 steps" in remark and "4,000" in remark for remark in study.remarks)
    assert any("4,000 steps, as the paper's" in remark for remark in SentimentStudy(n_steps=4000).remarks)


def test_it_can_be_sent_to_a_worker():
    study = SentimentStudy(quick=True, n_steps=3)
    assert pickle.loads(pickle.dumps(study)) == study


def test_each_choice_of_files_and_steps_has_its_own_folder(tmp_path):
    path = write_vectors(tmp_path / "GloVe.42B 300d.npz", lambda v: v)
    assert SentimentStudy().name == "sentiment"
    assert SentimentStudy(quick=True, vectors=path).name == "sentiment-glove-quick"
    assert SentimentStudy(vectors=path, n_steps=4000).name == "sentiment-glove-4000-steps"
    assert SentimentStudy(vectors=path) == SentimentStudy(vectors=str(path))


@pytest.mark.parametrize("name", ["vectors", "names"])
def test_a_file_that_is_not_there_is_told_at_once(name):
    with pytest.raises(InputError, match=f"'{name}': there is no file 'nowhere.txt'"):
        SentimentStudy(**{name: "nowhere.txt"})


@pytest.mark.parametrize("value", [0, -3, 1.5, True], ids=str)
def test_numbers_of_steps_that_are_none(value):
    with pytest.raises(InputError, match="n_steps"):
        SentimentStudy(n_steps=value)


# ---- vectors ------------------------------------------------------------------------------------------------


def test_vectors_of_a_file_are_brought_to_the_size_of_the_bundled_ones(tmp_path):
    path = write_vectors(tmp_path / "small.npz", lambda v: v / 4)
    words = sentiment_words(str(path))
    assert words.scale == pytest.approx(4.0, rel=1e-5)
    np.testing.assert_allclose(words.data.X, load_sentiment().X, rtol=1e-5)
    assert "multiplied by 4.00" in " ".join(SentimentStudy(vectors=path).remarks)
    assert SentimentStudy(vectors=path).settings("Baseline") != SentimentStudy().settings("Baseline")


def test_a_file_is_known_by_its_content_and_read_again_when_it_changes(tmp_path):
    one, two = (write_vectors(tmp_path / f"{name}.npz", lambda v: v) for name in ("one", "two"))
    before = SentimentStudy(vectors=one).settings("Baseline")
    assert before == SentimentStudy(vectors=two).settings("Baseline")
    first = sentiment_words(str(one)).data.X
    write_vectors(one, lambda v: v[:, ::-1].copy())
    assert SentimentStudy(vectors=one).settings("Baseline") != before
    np.testing.assert_allclose(sentiment_words(str(one)).data.X, first[:, ::-1], rtol=1e-5)


def test_expert_directions_are_all_names_where_they_leave_half_of_the_space(tmp_path):
    bundled = SentimentStudy()
    assert bundled.directions("SenSR") == bundled.directions("Project") == 16
    assert bundled.directions("SenSR-E") == 16
    assert "16 leading directions of the 86" in bundled.note("SenSR-E")
    rng = np.random.default_rng(0)
    wide = write_vectors(tmp_path / "wide.npz", lambda v: rng.normal(size=(len(v), 180)).astype(np.float16))
    study = SentimentStudy(vectors=wide)
    assert study.directions("SenSR") == 30
    assert study.directions("SenSR-E") == 86
    assert "the span of the 86" in study.note("SenSR-E")
    assert SentimentStudy(n_expert_directions=40).directions("SenSR-E") == 40


# ---- what each method is told ----------------------------------------------------------------------------------


def test_the_metric_is_learned_without_the_evaluation_names_except_for_the_expert():
    study = SentimentStudy()
    data = study._words().data
    assert not set(data.name_words) & set(data.evaluation_names["name"])
    general, project, expert = (study._metric(m, data) for m in ("SenSR", "Project", "SenSR-E"))
    np.testing.assert_array_equal(general.basis, project.basis)
    people = data.evaluation_vectors.astype(float)
    left = [np.square(m.subspace.remove(people)).sum() for m in (general, expert)]
    best = np.square(np.linalg.svd(people, compute_uv=False)[16:]).sum()
    assert left[1] == pytest.approx(best, rel=1e-6)
    assert left[0] > 1.2 * left[1]


def test_leading_directions_hold_the_most_whatever_the_sign():
    rows = np.random.default_rng(1).normal(size=(9, 4)) * [5, 3, 1, 0.1]
    found = leading_directions(rows, 2)
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(leading_directions(-rows, 2), found, atol=1e-12)
    kept = np.square(rows @ found.T).sum()
    assert kept == pytest.approx(np.square(np.linalg.svd(rows, compute_uv=False)[:2]).sum())


def test_debiased_vectors_have_one_length_no_gender_and_sentences_of_debiased_words():
    data = sentiment_words().data.with_split(3)
    moved = debiased(data)
    assert moved.split == 3
    length = np.sqrt(np.square(data.X).sum(axis=1).mean())
    np.testing.assert_allclose(np.linalg.norm(moved.evaluation_vectors, axis=1), length, rtol=1e-5)
    pairs = [moved.vectors[a].astype(float) - moved.vectors[b] for a, b in moved.gender_pairs]
    gender = pairs[0] / np.linalg.norm(pairs[0])
    # Equalised pairs differ by gender alone, and neutral words have none of it.
    assert all(abs(d @ gender) == pytest.approx(np.linalg.norm(d), rel=1e-4) for d in pairs)
    assert np.abs(moved.X @ gender).max() < 1e-4
    tokens = [b if b in moved.vectors else a for a, b in sentence_tokens(SENTENCES[0])]
    np.testing.assert_allclose(moved.sentence_vectors[0], moved.vectors.take(tokens).mean(axis=0), rtol=1e-5)


# ---- cells and the figure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_has_every_measure_and_the_names_behind_it(quick_cells, method):
    cell = quick_cells[method, 0]
    assert list(cell.values) == [measure.key for measure in SentimentStudy().measures]
    assert np.isfinite(list(cell.values.values())).all()
    assert cell.extras["steps"] == 30
    assert cell.extras["status"] == "finished"
    assert ("lambda" in cell.extras) == (method in ("SenSR", "SenSR-E", "Sinha+"))
    names = evaluation_names().set_index("name")
    names["score"] = names.index.map(cell.extras["sentiment"])
    names = names.dropna()
    for column, (first, second) in (("race", ("white", "black")), ("gender", ("female", "male"))):
        means = names.groupby(column)["score"].mean()
        assert cell.values[f"{column} gap"] == pytest.approx(abs(means[first] - means[second]), abs=1e-5)
    assert cell.values["spread"] == pytest.approx(names["score"].std(ddof=0), abs=1e-5)
    json.dumps(cell.extras)


def test_even_a_quick_trial_shows_what_the_methods_do(quick_cells):
    values = {method: quick_cells[method, 0].values for method in METHODS}
    for method in ("SenSR", "SenSR-E", "Project"):
        assert values[method]["race gap"] < 0.5 * values["Baseline"]["race gap"]
    for method in ("SenSR", "SenSR-E"):
        assert values[method]["spread"] < 0.6 * values["Baseline"]["spread"]
    assert min(v["accuracy"] for v in values.values()) > 0.7


def test_a_cell_depends_on_method_and_seed_alone(quick_cells):
    study = SentimentStudy(quick=True)
    again = study.run("Project", 0)
    assert again == quick_cells["Project", 0]
    assert study.run("Project", 1).values != again.values


def test_figure_2_has_a_box_for_each_method_and_group(quick_cells):
    study = SentimentStudy(quick=True)
    figure = study.figures(quick_cells)["names"]
    labels = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]
    assert labels == [["white", "black"], ["female", "male"]]
    assert [tick.get_text() for tick in figure.axes[-1].get_xticklabels()] == list(METHODS)
    sentiment = quick_cells["SenSR", 0].extras["sentiment"]
    race = evaluation_names().set_index("name")["race"]
    white = np.median([score for name, score in sentiment.items() if race[name] == "white"])
    lines = (line.get_ydata() for line in figure.axes[0].lines)
    assert any(len(y) == 2 and np.allclose(y, white) for y in lines)


def test_figure_2_with_cells_missing(quick_cells):
    study = SentimentStudy(quick=True)
    assert study.figures({}) == {}
    some = {key: quick_cells[key] for key in [("Project", 0), ("Baseline", 0)]}
    figure = study.figures(some)["names"]
    assert [tick.get_text() for tick in figure.axes[-1].get_xticklabels()] == ["Baseline", "Project"]


def test_names_are_averaged_over_seeds():
    cells = {("SenSR", i): CellResult({}, {"sentiment": {"anna": i, "bob": 1.0}}) for i in (0, 4)}
    assert name_sentiments(cells, METHODS) == {"SenSR": {"anna": 2.0, "bob": 1.0}}
