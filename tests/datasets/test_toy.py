from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.datasets import make_toy


def tilt(toy):
    w = LogisticRegression().fit(toy.X, toy.y).coef_[0]
    return w[0] / w[1]


@pytest.mark.parametrize("seed", range(5))
def test_underrepresentation_tilts_logistic_regression_and_costs_the_minority(seed):
    toy = make_toy(random_state=seed)
    model = LogisticRegression().fit(toy.X, toy.y)
    assert abs(tilt(toy)) > 0.2
    correct = model.predict(toy.X) == toy.y
    fresh = make_toy(n=4000, minority=0.5, random_state=100 + seed)
    right = model.predict(fresh.X) == fresh.y
    assert correct[toy.group == 0].mean() > correct[toy.group == 1].mean() + 0.05
    assert right[fresh.group == 0].mean() > right[fresh.group == 1].mean() + 0.1


def test_the_boundary_favours_the_majority_on_the_left():
    assert tilt(make_toy()) < 0  # the same height scores lower on the right


def test_equally_many_in_both_groups_leave_the_boundary_level():
    assert abs(tilt(make_toy(n=4000, minority=0.5))) < 0.02


def test_a_level_line_serves_both_groups_alike():
    toy = make_toy(n=20000, minority=0.5)
    right = (toy.X[:, 1] > 0) == toy.y
    assert abs(right[toy.group == 0].mean() - right[toy.group == 1].mean()) < 0.01
    assert right.mean() > 0.85


def test_groups_sides_shares_and_direction():
    toy = make_toy(n=300, minority=0.1)
    assert toy.X.shape == (300, 2)
    assert toy.group.sum() == 30
    assert toy.X[toy.group == 0, 0].mean() < -1
    assert toy.X[toy.group == 1, 0].mean() > 1
    assert all(abs(toy.y[toy.group == g].mean() - 0.5) < 0.02 for g in (0, 1))
    horizontal = Subspace.from_directions(toy.sensitive_directions)
    np.testing.assert_allclose(horizontal.remove(toy.X)[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(horizontal.remove(toy.X)[:, 1], toy.X[:, 1])


def test_same_seed_same_bytes_and_another_seed_other_points():
    assert make_toy(random_state=3).X.tobytes() == make_toy(random_state=3).X.tobytes()
    assert make_toy(random_state=3).X.tobytes() != make_toy(random_state=4).X.tobytes()


@pytest.mark.parametrize("arguments", [{"n": 3}, {"n": 10.5}, {"minority": 0}, {"minority": 0.7}])
def test_bad_arguments_are_named(arguments):
    with pytest.raises(InputError, match=f"make_toy: '{next(iter(arguments))}' must be"):
        make_toy(**arguments)
