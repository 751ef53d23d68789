from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from likewise.core.errors import FormatError, InputError
from likewise.datasets import Coverage, WordVectors, load_sentiment
from likewise.datasets.words import GENDER_PAIRS, evaluation_names, opinion_words


@pytest.fixture(scope="module")
def data():
    return load_sentiment()


@pytest.fixture(scope="module")
def lexicon():
    return [word for words in opinion_words() for word in words]


def test_counts_with_the_bundled_vectors(data):
    # The paper's vectors (glove.42B.300d) cover 49 white and 45 black names.
    assert data.coverage == {
        "positive words": Coverage(1891, 2003),
        "negative words": Coverage(4342, 4780),
        "names": Coverage(4263, 5084),
        "white names": Coverage(48, 50),
        "black names": Coverage(38, 50),
    }
    assert data.X.shape == (1891 + 4342, 100)
    assert data.X.dtype == np.float32
    assert data.y.sum() == 1891
    assert data.evaluation_names["gender"].value_counts().to_dict() == {"male": 47, "female": 39}


def test_rows_are_the_vectors_of_their_words(data):
    positive, negative = opinion_words()
    for row in (0, 1890, 1891, 6232):
        word = data.words[row]
        assert word in (positive if data.y[row] else negative)
        assert np.array_equal(data.X[row], data.vectors[word])
    assert np.array_equal(data.name_vectors[5], data.vectors[data.name_words[5]])
    names = data.evaluation_names
    assert data.evaluation_vectors.shape == (len(names), 100)
    assert np.array_equal(data.evaluation_vectors[60], data.vectors[names["name"][60]])
    assert names.index.tolist() == list(range(86))
    assert len(set(data.words)) == len(data.words)
    assert not {"envious", "enviously", "enviousness"} & set(data.words)


def test_sentence_vectors_are_means_of_word_vectors(data):
    expected = data.vectors.take(["let", "go", "get", "mexican", "food"]).mean(axis=0)
    np.testing.assert_allclose(data.sentence_vectors[1], expected, rtol=1e-6)
    assert data.sentences[0] == "Let's go get Italian food"
    italian, mexican = data.vectors["italian"], data.vectors["mexican"]
    np.testing.assert_allclose(
        data.sentence_vectors[0] - data.sentence_vectors[1], (italian - mexican) / 5, atol=1e-6
    )


def test_evaluation_names_leave_the_metric_list_unless_asked_to_stay(data):
    evaluated = set(evaluation_names()["name"])
    assert not evaluated & set(data.name_words)
    kept = load_sentiment(exclude_evaluation_names=False)
    assert kept.coverage["names"] == Coverage(4341, 5163)
    assert set(kept.name_words) - set(data.name_words) == evaluated & set(kept.name_words)


def test_splits_are_90_10_seeded_and_share_the_words(data):
    assert (len(data.train_index), len(data.test_index)) == (5609, 624)
    assert not set(data.train_index) & set(data.test_index)
    other = data.with_split(4)
    assert np.array_equal(other.test_index, load_sentiment(split=4).test_index)
    assert not np.array_equal(other.test_index, data.test_index)
    assert other.X is data.X
    assert np.array_equal(data.X_train, data.X[data.train_index])
    assert np.array_equal(data.X_test, data.X[data.test_index])
    assert np.array_equal(data.y_train, data.y[data.train_index])
    assert np.array_equal(data.y_test, data.y[data.test_index])


def test_a_caller_cannot_corrupt_what_the_next_one_gets(data):
    spoiled = load_sentiment()
    spoiled.X[:] = 0
    spoiled.vectors.vectors[:] = 0
    spoiled.evaluation_names.loc[:, "race"] = "?"
    again = load_sentiment()
    assert np.array_equal(again.X, data.X)
    assert np.array_equal(again.vectors.vectors, data.vectors.vectors)
    assert again.evaluation_names.equals(data.evaluation_names)


def test_gender_pairs_are_keys_of_the_lookup(data):
    assert len(data.gender_pairs) == len(GENDER_PAIRS)
    assert ("mary", "john") in data.gender_pairs
    assert all(word in data.vectors for pair in data.gender_pairs for word in pair)


def test_the_same_vectors_from_a_glove_file_give_the_same_data(data, tmp_path):
    path = tmp_path / "glove.txt"
    with path.open("w") as stream:
        for word, vector in zip(data.vectors.words, data.vectors.vectors, strict=True):
            stream.write(f"{word} {' '.join(map(str, vector.tolist()))}\n")
    read = load_sentiment(path)
    assert read.words.tolist() == data.words.tolist()
    assert np.array_equal(read.X, data.X)
    assert np.array_equal(read.evaluation_vectors, data.evaluation_vectors)
    assert np.array_equal(read.sentence_vectors, data.sentence_vectors)
    assert read.coverage == data.coverage


def cased_vectors(lexicon):
    names = evaluation_names()["name"].str.capitalize().tolist()
    words = [
        *lexicon,
        *names,
        "Hope",
        "let",
        "Let",
        "go",
        "get",
        "Italian",
        "Mexican",
        "food",
        "Mary",
        "John",
    ]
    words = list(dict.fromkeys(words))
    return WordVectors(words, np.random.default_rng(0).standard_normal((len(words), 4)))


def test_in_a_cased_file_names_are_capitalised_and_words_are_not(lexicon):
    vectors = cased_vectors(lexicon)
    read = load_sentiment(vectors, names=["hope", "joy"])
    # "Joy" has no vector: the opinion word "joy" must not stand in for it.
    assert read.name_words.tolist() == ["hope"]
    assert np.array_equal(read.name_vectors[0], vectors["Hope"])
    assert np.array_equal(read.evaluation_vectors[0], vectors["Adam"])
    assert np.array_equal(read.X[read.words == "joy"][0], vectors["joy"])
    expected = vectors.take(["let", "go", "get", "Italian", "food"]).mean(axis=0)
    np.testing.assert_allclose(read.sentence_vectors[0], expected, rtol=1e-6)
    assert read.gender_pairs == (("Mary", "John"),)


def test_a_file_that_lacks_most_words_says_how_many_it_has(tmp_path, lexicon):
    path = tmp_path / "few.txt"
    path.write_text("".join(f"{word} 1 2\n" for word in lexicon[:100]))
    with pytest.raises(FormatError, match="lacks most words: it has 100 of the 6,783 opinion words"):
        load_sentiment(path)
    path.write_text("un 1 2\ndeux 3 4\n")
    with pytest.raises(FormatError, match="has 0 of the 6,783"):
        load_sentiment(path)


def test_vectors_without_names_or_sentence_words_are_refused(lexicon):
    everyday = ["let", "go", "get", "italian", "mexican", "food"]
    names = evaluation_names()

    def having(words):
        words = list(dict.fromkeys([*lexicon, *words]))
        return WordVectors(words, np.ones((len(words), 2)))

    with pytest.raises(FormatError, match="no vector for 'italian' of the sentence"):
        load_sentiment(having(["anna", "let", "go", "get", "food", *names["name"]]), names=["anna"])
    white = names["name"][names["race"] == "white"]
    with pytest.raises(FormatError, match="none of the black evaluation names, so no race gap"):
        load_sentiment(having(["anna", *everyday, *white]), names=["anna"])
    with pytest.raises(InputError, match="exclude_evaluation_names=False"):
        load_sentiment(having([*everyday, *names["name"]]), names=["adam"])


def test_bad_vectors_argument_is_named():
    with pytest.raises(
        InputError, match="load_sentiment: 'vectors' must be None, the path of a vectors file"
    ):
        load_sentiment(np.ones((3, 3)))
    with pytest.raises(InputError, match=r"there is no file .*nowhere\.txt"):
        load_sentiment("nowhere.txt")


def test_google_news_npz_finds_what_its_own_index_lists(shared_file):
    index = json.loads(shared_file("googlenews_300d_words.lists.json").read_text())["item_to_key"]
    read = load_sentiment(
        shared_file("googlenews_300d_words.npz"),
        shared_file("nyc_popular_baby_names.csv"),
        exclude_evaluation_names=False,
    )
    assert read.X.shape[1] == 300
    assert read.coverage["white names"] == Coverage(38, 50)
    assert read.coverage["black names"] == Coverage(33, 50)
    assert set(read.evaluation_names["name"]) == {*index["white_names"], *index["black_names"]}
    assert set(read.name_words) == set(index["nyc_names_all"])
    both = {"envious", "enviously", "enviousness"}
    assert set(read.words) == {*index["positive"], *index["negative"]} - both
    row = read.evaluation_names["name"].tolist().index("adam")
    assert np.array_equal(read.evaluation_vectors[row], read.vectors["Adam"])
    expected = read.vectors.take(["let", "go", "get", "Italian", "food"]).mean(axis=0)
    np.testing.assert_allclose(read.sentence_vectors[0], expected, rtol=1e-6)


def test_nyc_names_with_the_bundled_vectors(shared_file):
    path = shared_file("nyc_popular_baby_names.csv")
    read = load_sentiment(names=path, exclude_evaluation_names=False)
    assert len(pd.read_csv(path)) == 11_345
    assert read.coverage["names"] == Coverage(1552, 1775)
    # Without regard to case; the paper counts 32.
    assert len(set(read.name_words) & set(evaluation_names()["name"])) == 38
    assert len(load_sentiment(names=path).name_words) == 1552 - 38
