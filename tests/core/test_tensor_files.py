"""Safetensors whose header does not agree with the file, and plain data in another form than agreed on."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from safetensors.numpy import save_file

from likewise.core.errors import FormatError
from likewise.core.files import (
    Fields,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    Whole,
    check_form,
    check_header,
    plain_dtype,
    read_tensors,
)


def rewritten(path, change, claimed=None):
    """Write a file again with another header."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if claimed is None else claimed) + text + data[8 + length :])


@pytest.fixture
def file(tmp_path):
    save_file({"a": np.arange(6.0).reshape(2, 3)}, tmp_path / "a.safetensors", metadata={"k": "v"})
    return tmp_path / "a.safetensors"


def test_a_sound_file_is_read(file):
    metadata, arrays = read_tensors(file, "numpy")
    assert metadata == {"k": "v"}
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["a"].update(shape=[2**20, 2**20]), "needs 8,796,093,022,208 bytes, and has 48"),
        (lambda h: h["a"].update(shape=[-1, 3]), "from 0"),
        (lambda h: h["a"].update(shape="23"), "must be a list"),
        (lambda h: h["a"].update(shape=[2**50] * 8), "needs"),
        (lambda h: h["a"].update(data_offsets=[0, 2**50]), "has 1,125,899,906,842,624"),
        (lambda h: h["a"].update(data_offsets=[48, 0]), "has -48"),
        (lambda h: h["a"].update(dtype="PICKLE"), "must be one of"),
        (lambda h: h.update(a=3), "must be a mapping"),
        (lambda h: h.update(__metadata__={"k": ["v"]}), "'k' of its metadata must be text, got a list"),
        (lambda h: h.update(__metadata__=[]), "must be a mapping"),
    ],
)
def test_sizes_that_the_file_does_not_bear_out_are_refused(change, message, file):
    rewritten(file, change)
    with pytest.raises(FormatError, match=message):
        read_tensors(file, "numpy")


@pytest.mark.parametrize("claimed", [0, 2**63, 2**40, 10**8])
def test_a_header_longer_than_the_file_is_not_read(claimed, file):
    rewritten(file, lambda header: None, claimed)
    with pytest.raises(FormatError, match="its header claims"):
        check_header(file.read_bytes())


def test_a_deep_header_is_a_sentence(tmp_path):
    deep = b"[" * 100_000
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(deep)) + deep)
    with pytest.raises(FormatError, match="not JSON"):
        check_header((tmp_path / "a").read_bytes())


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part, max_size=3),
    max_leaves=6,
)
FORM = Fields(
    {"a": Maybe(str), "b": ListOf(Whole(0, 9), most=3)},
    {"c": OneOf((1, "x")), "d": MapOf(float), "e": bool},
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from("abcdef"), plain) | plain)
def test_whatever_comes_passes_as_it_is_or_is_a_sentence(value):
    try:
        found = check_form(value, FORM, "it")
    except FormatError:
        return
    assert found is value
    assert value["a"] is None or isinstance(value["a"], str)
    assert all(type(part) is int and 0 <= part <= 9 for part in value["b"])
    assert value.keys() <= set("abcde")
    assert all(np.isfinite(float(part)) for part in value.get("d", {}).values())


@pytest.mark.parametrize(
    "text", ["<U1000000000", "(9,)f8", "f8,f8", "O8,i4", "V9", "nonsense", 8, None, "<M8[ns]"]
)
def test_types_that_would_fill_the_memory_are_refused(text):
    with pytest.raises(FormatError, match="a type of values"):
        plain_dtype(text)


@pytest.mark.parametrize("text", ["<U3", "|b1", "<i8", "<f4", "|O", ">f8"])
def test_types_that_labels_have_are_read(text):
    assert plain_dtype(text) == np.dtype(text)


@pytest.mark.parametrize("value", [2**70, -(2**70), 10**400, float("inf"), float("nan"), True, "1"])
def test_numbers_that_numpy_has_no_room_for_are_none(value):
    """An audit of a column from 0 to 2⁷⁰ ended in numpy's own error."""
    with pytest.raises(FormatError, match="must be a number"):
        check_form(value, float, "it")
