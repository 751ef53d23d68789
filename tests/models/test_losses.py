"""Losses: their bounds, their torch and numpy sides, and what is not a loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.core.errors import InputError, ModelError
from likewise.models import CrossEntropy, CustomLoss, Hinge, Squared, ZeroOne, as_loss

SCORES = np.random.default_rng(0).normal(scale=3, size=(40, 4))
TARGET = np.random.default_rng(1).integers(0, 4, 40)


@pytest.mark.parametrize("loss", [CrossEntropy(), Hinge(), ZeroOne()], ids=lambda loss: loss.name)
def test_numpy_and_torch_agree(loss):
    own = loss.torch_losses(torch.tensor(SCORES), torch.tensor(TARGET)).numpy()
    np.testing.assert_allclose(loss.losses(SCORES, TARGET), own, atol=1e-12)
    np.testing.assert_allclose(loss.table(SCORES)[:, TARGET], loss.pairwise(SCORES, TARGET))


@pytest.mark.parametrize("loss", [CrossEntropy(), Hinge()], ids=lambda loss: loss.name)
def test_slopes(loss):
    scores = torch.tensor(SCORES, requires_grad=True)
    expected = loss.torch_losses(scores, torch.tensor(TARGET))
    expected.sum().backward()
    found, slope = loss.value_and_slope(torch.tensor(SCORES), torch.tensor(TARGET))
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(slope, scores.grad)
    margin = torch.linspace(-40, 40, 81, dtype=torch.float64)
    two = torch.stack([-margin / 2, margin / 2], dim=1)
    by_margin = loss.margin_value_and_slope(margin)
    by_scores = loss.value_and_slope(two, torch.ones(81, dtype=torch.int64))
    torch.testing.assert_close(by_margin[0], by_scores[0], atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(by_margin[1], by_scores[1][:, 1])


def test_cross_entropy_is_finite_and_bounded_and_the_same_by_either_road():
    p = np.array([[0.0, 1.0], [1e-30, 1.0], [0.25, 0.75]])
    loss = CrossEntropy()
    table = loss.table(p, probabilities=True)
    assert np.isfinite(table).all()
    assert table.max() == loss.upper_bound == pytest.approx(-np.log(1e-12))
    by_scores = loss.table(np.array([[-1e4, 1e4], [-70.0, 0.0], [0.0, np.log(3)]]))
    np.testing.assert_allclose(by_scores, table, atol=1e-12)
    assert CrossEntropy(floor=1e-3).table(p, probabilities=True).max() == pytest.approx(-np.log(1e-3))


def test_without_a_floor_there_is_no_bound():
    loss = CrossEntropy(floor=0)
    assert loss.upper_bound == np.inf
    assert loss.table(np.array([[0.0, 1.0]]), probabilities=True)[0, 0] == np.inf
    assert loss.table(np.array([[-500.0, 500.0]]))[0, 0] == 1000.0
    for floor in (-0.1, 0.5, np.nan, "a"):
        with pytest.raises(InputError, match="'floor'"):
            CrossEntropy(floor=floor)


def test_torch_cross_entropy_is_not_clipped():
    loss, slope = CrossEntropy().value_and_slope(torch.tensor([[-500.0, 500.0]]), torch.tensor([0]))
    assert loss.item() == 1000.0
    torch.testing.assert_close(slope, torch.tensor([[-1.0, 1.0]]))


def test_hinge_of_equal_scores_and_two_classes():
    np.testing.assert_allclose(Hinge().table(np.array([[2.0, 2.0, 0.0]])), [[1.0, 1.0, 3.0]])
    f = np.array([-3.0, 0.2, 4.0])
    table = Hinge().table(np.column_stack([-f / 2, f / 2]))
    np.testing.assert_allclose(table, np.maximum(0, 1 - np.column_stack([-f, f])))
    with pytest.raises(InputError, match="class scores"):
        Hinge().table(np.array([[0.5, 0.5]]), probabilities=True)


def test_names():
    for name, kind in (
        ("cross_entropy", CrossEntropy),
        ("hinge", Hinge),
        ("zero_one", ZeroOne),
        ("squared", Squared),
    ):
        assert isinstance(as_loss(name), kind)
        assert as_loss(name) == as_loss(name)
    loss = Hinge()
    assert as_loss(loss) is loss
    assert isinstance(as_loss(torch.nn.functional.cross_entropy), CustomLoss)
    for wrong in ("cross-entropy", 3, None):
        with pytest.raises(InputError, match="'loss'"):
            as_loss(wrong)


def test_own_loss():
    own = CustomLoss(lambda s, y: torch.nn.functional.cross_entropy(s, y, reduction="none"), upper_bound=50.0)
    np.testing.assert_allclose(own.table(SCORES), CrossEntropy(floor=0).table(SCORES))
    np.testing.assert_allclose(own.losses(SCORES, TARGET), CrossEntropy(floor=0).losses(SCORES, TARGET))
    assert own.upper_bound == 50.0
    assert own.pairwise(SCORES, []).shape == (40, 0)
    with pytest.raises(ModelError, match=r"shape \(\) for 40 rows"):
        CustomLoss(torch.nn.functional.cross_entropy).losses(SCORES, TARGET)
    with pytest.raises(ModelError, match="one value per row"):
        CustomLoss(lambda s, y: s).losses(SCORES, TARGET)
    absolute = CustomLoss(lambda out, y: (out[:, 0] - y).abs(), regression=True)
    np.testing.assert_allclose(
        absolute.pairwise(np.array([[1.0], [2.0]]), [0.5, 3.0]), [[0.5, 2.0], [1.5, 1.0]]
    )
    with pytest.raises(InputError, match="pairwise"):
        absolute.table(np.array([[1.0]]))
