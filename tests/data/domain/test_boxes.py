import numpy as np
import pandas as pd
import pytest
import torch

from likewise.core.errors import InputError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, DataRangeDomain, Domain, Unbounded


def test_unbounded_leaves_rows_alone_and_has_no_bounds():
    X = np.array([[1e300, -1e300]])
    domain = Unbounded()
    assert domain.project(X) is X
    assert domain.n_features is None
    assert domain.contains(X).all()
    lower, upper = domain.bounds()
    assert (lower < X).all()
    assert (upper > X).all()


def test_box_clips_each_coordinate():
    box = BoxDomain([0.0, -np.inf, 2.0], [1.0, 5.0, np.inf])
    projected = box.project(np.array([[-1.0, -9.0, 0.0], [2.0, 9.0, 9.0]]))
    np.testing.assert_array_equal(projected, [[0.0, -9.0, 2.0], [1.0, 5.0, 9.0]])
    np.testing.assert_array_equal(box.bounds()[0], [0.0, -np.inf, 2.0])


def test_box_puts_immutable_coordinates_back_to_the_origin():
    box = BoxDomain([0.0, 0.0], [1.0, 1.0], immutable=[1])
    origin = np.array([[0.5, 7.0]])
    np.testing.assert_array_equal(box.project(np.array([[3.0, 3.0]]), origin), [[1.0, 7.0]])
    np.testing.assert_array_equal(box.project(np.array([[3.0, 3.0]])), [[1.0, 1.0]])
    assert box.contains(np.array([[0.2, 7.0], [0.2, 0.3]]), np.repeat(origin, 2, axis=0)).tolist() == [
        True,
        False,
    ]


def test_box_from_a_frame_takes_names():
    frame = pd.DataFrame({"a": [1.0, 3.0], "b": [5.0, 4.0]})
    box = BoxDomain.from_data(frame, immutable=["b"])
    assert box.immutable == (1,)
    np.testing.assert_array_equal(box.bounds(), [[1.0, 4.0], [3.0, 5.0]])


def test_box_bounds_cannot_be_changed_from_outside():
    lower = np.zeros(2)
    box = BoxDomain(lower, 1.0)
    lower[0] = -5.0
    box.bounds()[0][1] = -5.0
    np.testing.assert_array_equal(box.project(np.full((1, 2), -9.0)), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BoxDomain([1.0], [0.0]), "1 > 0 in column 0"),
        (lambda: BoxDomain([np.nan], [0.0]), "not a number in column 0"),
        (lambda: BoxDomain(0.0, 1.0), "numpy.full"),
        (lambda: BoxDomain([0.0, 1.0], [1.0, 2.0, 3.0]), "as many in one as in the other"),
        (lambda: BoxDomain(["a"], [1.0]), "must be numbers"),
        (lambda: BoxDomain([0.0], [1.0], immutable=[1]), "0 to 0, got 1"),
        (lambda: BoxDomain([0.0], [1.0], immutable=[True]), "positions of columns"),
        (lambda: BoxDomain.from_data(np.zeros((2, 1)), immutable=["a"]), "columns of 'X', got 'a'"),
        (lambda: BoxDomain.from_data(np.zeros((0, 1))), "is empty"),
        (lambda: BoxDomain([0.0], [1.0]).project(np.zeros((1, 2))), "2 columns, the domain has 1"),
        (lambda: BoxDomain([0.0], [1.0]).project(np.zeros(1)), r"X\.reshape\(1, -1\)"),
        (
            lambda: BoxDomain([0.0], [1.0], immutable=[0]).project(np.zeros((2, 1)), np.zeros((3, 1))),
            "'origin' has 3 rows, 'X' has 2",
        ),
    ],
)
def test_box_errors_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_data_range_stops_along_the_subspace_and_nowhere_else():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 4))
    subspace = Subspace.from_directions(rng.normal(size=(2, 4)))
    domain = DataRangeDomain.from_data(data, subspace)
    assert domain.contains(data).all()
    far = 100 * rng.normal(size=(20, 4))
    projected = domain.project(far)
    coordinates = subspace.coordinates(projected)
    assert (coordinates <= domain.upper + 1e-9).all()
    assert (coordinates >= domain.lower - 1e-9).all()
    np.testing.assert_allclose(subspace.remove(projected), subspace.remove(far), atol=1e-9)
    assert not domain.contains(far).any()


def test_data_range_bounds_are_finite_only_where_an_axis_lies_in_the_subspace():
    data = np.array([[1.0, 2.0, 5.0], [3.0, -1.0, 6.0]])
    tilted = Subspace.from_directions([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    lower, upper = DataRangeDomain.from_data(data, tilted).bounds()
    assert np.isfinite(lower[:2]).all()
    assert lower[2] == -np.inf
    assert upper[2] == np.inf
    one = Subspace.from_directions([[1.0, 1.0, 0.0]])
    assert np.isinf(DataRangeDomain.from_data(data, one).bounds()).all()


def test_data_range_bounds_are_tight():
    data = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5]])
    domain = DataRangeDomain.from_data(data, Subspace.from_directions([[1.0, 2.0], [2.0, -1.0]]))
    lower, upper = domain.bounds()
    corners = np.array(
        [[a, b] for a in (domain.lower[0], domain.upper[0]) for b in (domain.lower[1], domain.upper[1])]
    )
    points = corners @ domain.subspace.basis.T
    np.testing.assert_allclose(points.min(axis=0), lower, atol=1e-12)
    np.testing.assert_allclose(points.max(axis=0), upper, atol=1e-12)


def test_data_range_of_a_subspace_without_directions_is_everything():
    domain = DataRangeDomain.from_data(np.zeros((2, 3)), Subspace(np.zeros((3, 0))))
    X = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(domain.project(X), X)


def test_data_range_errors():
    subspace = Subspace.from_directions([[1.0, 0.0]])
    with pytest.raises(InputError, match="3 columns, the subspace lives in 2"):
        DataRangeDomain.from_data(np.zeros((2, 3)), subspace)
    with pytest.raises(InputError, match="each of the 1 directions"):
        DataRangeDomain(subspace, [0.0, 1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="at most 'upper'"):
        DataRangeDomain(subspace, [2.0], [1.0])


def test_data_range_takes_a_torch_subspace():
    subspace = Subspace.from_directions(torch.tensor([[1.0, 0.0]]))
    domain = DataRangeDomain.from_data(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), subspace)
    assert domain.project(torch.tensor([[9.0, 9.0]])).tolist() == [[2.0, 9.0]]


def test_a_domain_of_ones_own_needs_only_the_three_hooks():
    class Ball(Domain):
        n_features = 2

        def project(self, X, origin=None):
            return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))

        def bounds(self):
            return -np.ones(2), np.ones(2)

    ball = Ball()
    assert ball.contains(np.array([[0.6, 0.8], [1.0, 1.0]])).tolist() == [True, False]
    np.testing.assert_array_equal(ball.nearest_valid(np.array([[2.0, 0.0]])), [[1.0, 0.0]])
