from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from likewise.core.errors import FormatError, InputError
from likewise.datasets import WordVectors, read_word_vectors

WORDS = ["the", "naïve", "good", "Adam", ",", "bad"]
DIM = 7
VECTORS = np.random.default_rng(0).standard_normal((len(WORDS), DIM)).astype(np.float32)


def glove_text(words=WORDS, vectors=VECTORS):
    rows = (f"{w} {' '.join(f'{v:.9g}' for v in row)}\n" for w, row in zip(words, vectors, strict=True))
    return "".join(rows).encode()


def word2vec_text():
    # word2vec.c and fastText end each line with a space.
    return f"{len(WORDS)} {DIM}\n".encode() + glove_text().replace(b"\n", b" \n")


def word2vec_binary(line_breaks=True):
    rows = (
        w.encode() + b" " + row.astype("<f4").tobytes() + (b"\n" if line_breaks else b"")
        for w, row in zip(WORDS, VECTORS, strict=True)
    )
    return f"{len(WORDS)} {DIM}\n".encode() + b"".join(rows)


def npz(words=None, vectors=VECTORS, save=np.savez):
    stream = io.BytesIO()
    save(stream, words=np.array(WORDS) if words is None else words, vectors=vectors)
    return stream.getvalue()


FILES = {
    "glove text": glove_text(),
    "word2vec text": word2vec_text(),
    "word2vec binary": word2vec_binary(),
    "word2vec binary without line breaks": word2vec_binary(line_breaks=False),
    "npz": npz(),
    "npz compressed": npz(save=np.savez_compressed),
    "npz of bytes": npz(words=np.array([w.encode() for w in WORDS])),
    "npz of float64, big-endian": npz(vectors=VECTORS.astype(">f8")),
}


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_every_format_gives_the_same_vectors(tmp_path, kind, gzipped):
    path = tmp_path / "vectors"  # no suffix: the bytes decide
    path.write_bytes(gzip.compress(FILES[kind]) if gzipped else FILES[kind])
    wanted = ["bad", "absent", "naïve", "the", "bad"]
    found = read_word_vectors(path, wanted)
    assert found.words == ("bad", "naïve", "the")
    assert found.vectors.dtype == np.float32
    np.testing.assert_allclose(found.vectors, VECTORS[[5, 1, 0]], rtol=1e-6)


@pytest.mark.parametrize("kind", FILES)
def test_none_of_the_words_is_an_empty_answer(tmp_path, kind):
    path = tmp_path / "vectors"
    path.write_bytes(FILES[kind])
    found = read_word_vectors(str(path), ["absent"])
    assert len(found) == 0


def test_float16_npz_is_read_as_float32(tmp_path):
    path = tmp_path / "v.npz"
    path.write_bytes(npz(vectors=VECTORS.astype(np.float16)))
    found = read_word_vectors(path, WORDS)
    assert np.array_equal(found.vectors, VECTORS.astype(np.float16).astype(np.float32))


def test_npz_in_many_blocks(tmp_path):
    words = np.array([f"word{i}" for i in range(20_000)])
    vectors = np.arange(20_000 * 50, dtype=np.float32).reshape(20_000, 50)  # 4 MB: four blocks
    path = tmp_path / "v.npz"
    np.savez(path, words=words, vectors=vectors)
    picks = [0, 5242, 5243, 12345, 19_999]
    found = read_word_vectors(path, words[picks].tolist())
    assert np.array_equal(found.vectors, vectors[picks])


def test_first_vector_of_a_repeated_word_counts(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("a 1 2\nb 3 4\na 9 9\nc 5 6\n")
    assert read_word_vectors(path, ["a", "c"])["a"].tolist() == [1, 2]


def test_a_word_with_spaces_is_not_taken_for_its_first_part(tmp_path):
    # GloVe 840B has lines such as "at name@domain.com 0.1 …".
    path = tmp_path / "v.txt"
    path.write_text("x 1 2\nat name@domain.com 3 4\nat 5 6\n")
    assert read_word_vectors(path, ["at"])["at"].tolist() == [5, 6]


def test_reading_stops_when_every_word_was_met(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes(b"a 1 2\nb 3 4\n" + b"c 5\n")  # the third row is short, but never needed
    assert len(read_word_vectors(path, ["a", "b"])) == 2
    with pytest.raises(FormatError, match=r"row 3 \('c'\) should have 2 numbers"):
        read_word_vectors(path, ["a", "c"])


def big_file(kind: str, words: int = 60_000, dim: int = 100) -> bytes:
    row = np.linspace(-1, 1, dim, dtype="<f4")
    if kind == "text":
        line = " ".join(f"{v:.6f}" for v in row)
        return "".join(f"word{i} {line}\n" for i in range(words)).encode()
    if kind == "binary":
        body = b"".join(f"word{i} ".encode() + row.tobytes() for i in range(words))
        return f"{words} {dim}\n".encode() + body
    return npz(
        words=np.array([f"word{i}" for i in range(words)]),
        vectors=np.tile(row, (words, 1)),
        save=np.savez_compressed,
    )


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("kind", ["text", "binary", "npz"])
def test_memory_does_not_grow_with_the_file(tmp_path, kind, gzipped):
    path = tmp_path / "big"
    data = big_file(kind)
    unpacked = 60_000 * 100 * 4
    path.write_bytes(gzip.compress(data, 1) if gzipped else data)
    del data
    tracemalloc.start()
    try:
        found = read_word_vectors(path, ["word7", "word59999", "absent"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.words == ("word7", "word59999")
    assert unpacked > 20e6
    assert peak < 8e6


def damaged(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


BAD = {
    "empty": (b"", "some.vec is empty"),
    "prose": (b"It was a dark night.\nThe rain fell.\n", "not a file of word vectors"),
    "csv": (b"name,sex,percent\naaron,male,0.24\n", "not a file of word vectors"),
    "one long line": (b"x" * 100_000, "not a file of word vectors"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "not a file of word vectors"),
    "header of nothing": (b"0 0\n", "header announces"),
    "text cut short": (damaged(word2vec_text()), "damaged or cut short|should have 7 numbers"),
    "binary cut short": (damaged(word2vec_binary()), r"cut short \(it ends after \d of 6 words"),
    "binary of noise": (b"9 9\n" + b"\xff" * 50_000, "has no end"),
    "npz cut short": (damaged(npz()), "damaged or cut short"),
    "gzip cut short": (damaged(gzip.compress(glove_text())), "damaged or cut short"),
    "gzip of prose": (gzip.compress(b"It was a dark night.\n"), "not a file of word vectors"),
    "not finite": (b"the 1 nan\nbad 1 2\n", "'the' has values that are not finite"),
    "no number": (b"a 1 2\nthe 1 x\n", r"row 2 \('the'\) should have 2 numbers"),
    "pickled words": (npz(words=np.array(WORDS, dtype=object)), "'words' holds pickled objects"),
    "pickled vectors": (npz(vectors=VECTORS.astype(object)), "'vectors' holds pickled objects"),
    "numbers for words": (npz(words=np.arange(6)), "'words' is not a list of strings"),
    "too few rows": (npz(vectors=VECTORS[:4]), r"'vectors' should be .*\(4, 7\) for 6 words"),
    "whole numbers": (npz(vectors=np.ones((6, 2), dtype=int)), "'vectors' should be floating"),
    "column by column": (npz(vectors=np.asfortranarray(VECTORS)), "stored column by column"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_vectors_file_says_so(tmp_path, case):
    data, message = BAD[case]
    path = tmp_path / "some.vec"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as caught:
        read_word_vectors(path, ["the", "bad", "absent"], owner="load_sentiment")
    assert str(caught.value).startswith("load_sentiment: some.vec ")


def test_an_npz_or_zip_without_the_two_arrays(tmp_path):
    path = tmp_path / "v.npz"
    np.savez(path, vocab=np.array(["a"]))
    with pytest.raises(FormatError, match="needs the arrays 'words' and 'vectors' and has: vocab"):
        read_word_vectors(path, ["a"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("glove.6B.50d.txt", "a 1 2\n")
    with pytest.raises(FormatError, match="has to be unpacked first"):
        read_word_vectors(path, ["a"])


def test_pickled_npz_runs_no_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "v.npz"
    np.savez(path, words=np.array([Trap()], dtype=object), vectors=np.ones((1, 2)))
    with pytest.raises(FormatError, match="never loaded"):
        read_word_vectors(path, ["a"])
    assert not (tmp_path / "ran").exists()


def test_absent_file_and_folder(tmp_path):
    for path in (tmp_path / "nowhere.txt", tmp_path):
        with pytest.raises(InputError, match=r"there is no file|is a folder"):
            read_word_vectors(path, ["a"])


def test_word_vectors_lookup():
    lookup = WordVectors(WORDS, VECTORS.astype(np.float64))
    assert len(lookup) == 6
    assert "good" in lookup
    assert "Good" not in lookup
    assert np.array_equal(lookup["good"], VECTORS[2])
    with pytest.raises(InputError, match=r"no vector for 1 of 2 word\(s\): 'goodd' \(did you mean 'good'"):
        lookup.take(["bad", "goodd"])
    with pytest.raises(InputError, match="a word twice"):
        WordVectors(("a", "a"), np.ones((2, 2)))
    with pytest.raises(InputError, match="lengths differ"):
        WordVectors(("a",), np.ones((2, 2)))
    with pytest.raises(InputError, match="must be a matrix"):
        WordVectors(("a",), np.ones(1))


def test_what_take_returns_is_a_copy():
    lookup = WordVectors(WORDS, VECTORS.copy())
    lookup.take(["good"])[:] = 0
    lookup["good"][:] = 0
    assert np.array_equal(lookup["good"], VECTORS[2])
