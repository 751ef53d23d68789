"""HardDebias against the formulas of Bolukbasi et al. 2016, and on real word vectors."""

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.datasets import load_sentiment
from likewise.mitigation import HardDebias
from likewise.mitigation.hard_debias import bias_subspace, equalize, neutralize


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.fixture
def words():
    rng = np.random.default_rng(0)
    names = ["she", "he", "woman", "man", "nurse", "cook", "king", "queen", "zero"]
    table = pd.DataFrame(rng.normal(size=(9, 5)), index=names, columns=list("abcde"))
    table.loc["zero"] = 0.0
    return table


def test_bias_subspace_is_the_top_of_the_scatter_of_the_sets():
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(k, 6)) for k in (2, 2, 3)]
    scatter = sum((d - d.mean(0)).T @ (d - d.mean(0)) / len(d) for d in sets)
    values, vectors = np.linalg.eigh(scatter)
    found, explained = bias_subspace(sets, 2)
    assert float(found.principal_angles(Subspace.from_directions(vectors[:, -2:].T))[0]) < 1e-10
    np.testing.assert_allclose(explained[:2], values[::-1][:2] / values.sum(), atol=1e-12)


def test_neutralised_words_have_unit_length_and_no_bias(words):
    debias = HardDebias([("she", "he"), ("woman", "man")]).fit(words)
    out = debias.transform(words)
    assert list(out.columns) == list("abcde")
    assert out.index.equals(words.index)
    np.testing.assert_allclose(debias.subspace_.coordinates(out.to_numpy()), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(out.drop("zero"), axis=1), 1.0)
    assert (out.loc["zero"] == 0).all()


def test_equality_sets_are_equally_far_from_every_neutral_word(words):
    debias = HardDebias([("she", "he"), ("woman", "man")], equality=[("king", "queen"), ("she", "he")])
    out = debias.fit_transform(words)
    for a, b in (("king", "queen"), ("she", "he")):
        np.testing.assert_allclose(np.linalg.norm(out.loc[[a, b]], axis=1), 1.0)
        for neutral in ("nurse", "cook"):
            assert out.loc[neutral] @ out.loc[a] == pytest.approx(out.loc[neutral] @ out.loc[b])
        difference = (out.loc[a] - out.loc[b]).to_numpy()
        np.testing.assert_allclose(debias.subspace_.remove(difference[None]), 0.0, atol=1e-12)
        # Which side a word was on it stays on.
        before = debias.subspace_.coordinates(unit(words.loc[[a, b]].to_numpy()))
        after = debias.subspace_.coordinates(out.loc[[a, b]].to_numpy())
        assert np.sign(before[0] - before[1]) == np.sign(after[0] - after[1])


def test_equalize_by_hand():
    # μ = (.3, .9), ν = (0, .9), so each word is (±√(1 − .81), .9).
    moved = equalize(np.array([[0.6, 0.8], [0.0, 1.0]]), Subspace.from_directions([[1.0, 0.0]]))
    np.testing.assert_allclose(moved, [[np.sqrt(0.19), 0.9], [-np.sqrt(0.19), 0.9]])
    raw = equalize(np.array([[6.0, 8.0], [0.0, 10.0]]), Subspace.from_directions([[1.0, 0.0]]), unit=False)
    np.testing.assert_allclose(raw, [[3.0, 9.0], [-3.0, 9.0]])


def test_lengths_may_stay(words):
    debias = HardDebias([("she", "he")], normalize=False).fit(words)
    out = debias.transform(words)
    np.testing.assert_allclose(out, debias.subspace_.remove(words.to_numpy()), atol=1e-12)
    np.testing.assert_allclose(out, neutralize(words.to_numpy(), debias.subspace_, unit=False))


def test_specific_words_stay(words):
    out = HardDebias([("she", "he")], specific=["king"]).fit_transform(words)
    np.testing.assert_allclose(out.loc["king"], unit(words.loc["king"].to_numpy()))


def test_words_rows_vectors_and_a_lookup_mean_the_same(words):
    by_word = HardDebias([("she", "he")]).fit(words).subspace_
    values = words.to_numpy()
    for debias in (
        HardDebias([(0, 1)]).fit(values),
        HardDebias([(values[0], values[1])]).fit(values[2:]),
        HardDebias([("she", "he")], vectors={w: words.loc[w].to_numpy() for w in words.index}).fit(
            values[4:5]
        ),
    ):
        assert float(debias.subspace_.principal_angles(by_word)[0]) < 1e-7


def test_sentiment_words_lose_their_gender():
    data = load_sentiment()
    debias = HardDebias(data.gender_pairs, vectors=data.vectors).fit(data.X)
    assert 0.2 < debias.explained_[0] < 1.0
    direction = debias.subspace_.basis[:, 0]
    she, he = (unit(np.asarray(data.vectors[word], dtype=float)) for word in ("she", "he"))
    assert abs(float(unit(she - he) @ direction)) > 0.7
    assert np.abs(unit(data.X) @ direction).max() > 0.2
    assert np.abs(debias.transform(data.X) @ direction).max() < 1e-5


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"definitional": []}, "at least one set"),
        ({"definitional": ["she"]}, "the word 'she' as a set"),
        ({"definitional": [("she",)]}, "two words or more"),
        ({"definitional": [("she", "hee")]}, "no vector for the word 'hee'.*did you mean 'he'"),
        ({"definitional": [("she", 99)]}, "names row 99, but X has 9 rows"),
        ({"definitional": [("she", [1.0, 2.0])]}, "vectors of length 5"),
        ({"definitional": [("she", "she")]}, "span 0 direction"),
        ({"definitional": [("she", "he")], "n_components": 2}, "span 1 direction"),
        ({"definitional": [("she", "he")], "n_components": 0}, "whole number >= 1"),
        ({"definitional": [("she", "he")], "equality": [("cook", "cook")]}, "does not differ"),
        ({"definitional": [("she", "he")], "vectors": {"she": np.ones(5)}}, "no vector for the word 'he'"),
    ],
)
def test_bad_choices(words, choices, message):
    with pytest.raises(InputError, match=message):
        HardDebias(**choices).fit(words)


def test_nan_is_refused(words):
    words.iloc[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        HardDebias([("she", "he")]).fit(words)
