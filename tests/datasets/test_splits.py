from __future__ import annotations

import numpy as np
import pytest

from likewise.core.errors import InputError
from likewise.datasets.bundled import split_indices


def test_parts_are_disjoint_complete_and_of_the_asked_size():
    train, test = split_indices(101, 0, test_share=0.2, owner="f")
    assert len(test) == 21
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(101))


def test_a_whole_number_of_rows_is_not_rounded_up_by_floating_point():
    assert len(split_indices(30, 0, test_share=0.1, owner="f")[1]) == 3


def test_split_i_does_not_depend_on_what_ran_before_or_on_global_state():
    before = split_indices(500, 7, test_share=0.2, owner="f")[1]
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the point is that it stays as it was
    split_indices(500, 3, test_share=0.2, owner="f")
    np.testing.assert_array_equal(split_indices(500, 7, test_share=0.2, owner="f")[1], before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_ten_splits_differ():
    tests = {split_indices(500, i, test_share=0.2, owner="f")[1].tobytes() for i in range(10)}
    assert len(tests) == 10


@pytest.mark.parametrize("split", [-1, 1.0, "0", True, None])
def test_bad_split_is_named(split):
    with pytest.raises(InputError, match="load_adult: 'split' must be a whole number >= 0"):
        split_indices(10, split, test_share=0.2, owner="load_adult")
