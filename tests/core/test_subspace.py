import numpy as np
import pytest
import scipy.linalg
import torch

from likewise.core.errors import InputError, LikewiseError
from likewise.core.subspace import Subspace

KINDS = [
    pytest.param(lambda a: np.asarray(a, dtype=np.float64), 1e-10, id="numpy64"),
    pytest.param(lambda a: np.asarray(a, dtype=np.float32), 1e-4, id="numpy32"),
    pytest.param(lambda a: torch.as_tensor(np.asarray(a), dtype=torch.float64), 1e-10, id="torch64"),
    pytest.param(lambda a: torch.as_tensor(np.asarray(a), dtype=torch.float32), 1e-4, id="torch32"),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("kind", "tol"), KINDS)
def test_every_product_equals_the_explicit_matrix(kind, tol, rng):
    directions, X = rng.normal(size=(3, 7)), rng.normal(size=(5, 7))
    P = directions.T @ np.linalg.pinv(directions.T)
    sub, rows = Subspace.from_directions(kind(directions)), kind(X)
    for got, expected in [
        (sub.project(rows), X @ P),
        (sub.remove(rows), X - X @ P),
        (sub.complement().project(rows), X - X @ P),
    ]:
        assert type(got) is type(rows)
        assert got.dtype == rows.dtype
        np.testing.assert_allclose(np.asarray(got), expected, atol=tol)
    assert sub.coordinates(rows).shape == (5, 3)


@pytest.mark.parametrize(("kind", "tol"), KINDS)
def test_zero_duplicate_and_collinear_directions_add_nothing(kind, tol, rng):
    a, b = rng.normal(size=(2, 6))
    sub = Subspace.from_directions(kind([a, b, a, 0 * a, 3 * a - 2 * b, 1e-6 * b]))
    assert sub.dim == 2
    np.testing.assert_allclose(np.asarray(sub.remove(kind([a, b]))), 0, atol=10 * tol)


def test_a_direction_counts_whatever_its_length():
    assert Subspace.from_directions([[1e-12, 0, 0], [0, 1e6, 0]]).dim == 2


def test_only_zero_directions_span_nothing():
    sub = Subspace.from_directions(np.zeros((2, 4)))
    assert (sub.dim, sub.n_features) == (0, 4)
    np.testing.assert_array_equal(sub.remove(np.ones((1, 4))), np.ones((1, 4)))
    assert sub.complement().dim == 4
    assert sub.principal_angles(sub).shape == (0,)


@pytest.mark.parametrize(("kind", "tol"), KINDS)
def test_principal_angles_agree_with_scipy(kind, tol, rng):
    for k1, k2 in [(2, 2), (3, 1), (1, 4), (5, 5)]:
        A, B = rng.normal(size=(k1, 12)), rng.normal(size=(k2, 12))
        expected = scipy.linalg.subspace_angles(A.T, B.T)
        got = Subspace.from_directions(kind(A)).principal_angles(Subspace.from_directions(kind(B)))
        np.testing.assert_allclose(np.asarray(got), expected, atol=10 * tol)


def test_small_angles_are_accurate():
    for angle in [1e-12, 1e-8, 1e-4, 0.7, np.pi / 2 - 1e-9]:
        a = Subspace.from_directions([[1.0, 0.0]])
        b = Subspace.from_directions([[np.cos(angle), np.sin(angle)]])
        assert a.principal_angles(b)[0] == pytest.approx(angle, rel=1e-6, abs=1e-15)


def test_union_spans_both(rng):
    A, B = rng.normal(size=(2, 6)), rng.normal(size=(1, 6))
    both = Subspace.from_directions(A) | Subspace.from_directions(B)
    assert both.dim == 3
    np.testing.assert_allclose(both.remove(np.vstack([A, B])), 0, atol=1e-12)
    assert (both | Subspace.from_directions(A)).dim == 3


def test_same_directions_same_bytes(rng):
    A = rng.normal(size=(3, 5))
    one, two = Subspace.from_directions(A), Subspace.from_directions(A.copy())
    assert one.basis.tobytes() == two.basis.tobytes()


def test_products_are_differentiable_in_torch():
    sub = Subspace.from_directions([[1.0, 0.0, 0.0]])
    x = torch.ones(2, 3, requires_grad=True)
    (sub.remove(x) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 2, 2], [0, 2, 2]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Subspace(np.ones((3, 2))), "orthonormal"),
        (lambda: Subspace(np.ones(3)), "one column per direction"),
        (lambda: Subspace.from_directions([[1.0, np.nan]]), "direction 0 is not finite at coordinate 1"),
        (lambda: Subspace.from_directions(np.zeros((1, 2, 3))), "one row per direction"),
        (lambda: Subspace.from_directions([[1.0, 0]]).project(np.ones((1, 3))), "rows have 3 columns"),
        (
            lambda: Subspace.from_directions([[1.0, 0]]) | Subspace.from_directions([[1.0]]),
            "2 and 1 dimensions",
        ),
    ],
)
def test_bad_input_says_what_to_do(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert isinstance(error.value, LikewiseError)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_basis_follows_the_directions_in_their_order(kind):
    rng = np.random.default_rng(0)
    given = np.linalg.qr(rng.normal(size=(6, 4)))[0].T
    given = given * np.sign(given[range(4), abs(given).argmax(axis=1)])[:, None]
    given[1] *= 7.0
    more = np.concatenate([given, given[:1] + 1e-12, rng.normal(size=(1, 6))])
    directions = more if kind == "numpy" else torch.as_tensor(more)
    basis = np.asarray(Subspace.from_directions(directions).basis)
    unit = given / np.linalg.norm(given, axis=1, keepdims=True)
    np.testing.assert_allclose(basis[:, :4], unit.T, atol=1e-12)
    assert basis.shape == (6, 5)


def test_directions_that_are_nearly_dependent_still_have_their_rank():
    near = np.array([[1.0, 0, 0], [1.0, 1e-6, 0], [0, 0, 1.0]])
    basis = np.asarray(Subspace.from_directions(near).basis)
    assert basis.shape == (3, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
