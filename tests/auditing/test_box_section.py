"""Where oblique free directions cut a box: steps that never leave it nor turn."""

import numpy as np
import pytest
import torch

from likewise.auditing.search.gradient.spaces import BoxSection


def random_section(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    k = int(rng.integers(1, d))
    Q = np.linalg.qr(rng.normal(size=(d, k)))[0]
    fixed = np.zeros(d, dtype=bool)
    fixed[0] = seed % 5 == 4 and k < d - 1
    X = rng.uniform(-1, 1, size=(8, d))
    # Some people stand on their bounds.
    X[0, 0], X[1, :2] = 1.0, -1.0
    section = BoxSection(*(torch.as_tensor(part) for part in (Q, -np.ones(d), np.ones(d), fixed)))
    return rng, section, Q, X, fixed


@pytest.mark.parametrize("seed", range(30))
def test_a_slide_stays_inside_and_never_turns_back(seed):
    rng, section, Q, X, _ = random_section(seed)
    z, x = torch.zeros(8, Q.shape[1], dtype=torch.float64), torch.as_tensor(X)
    for _ in range(3):
        step = torch.as_tensor(rng.normal(size=z.shape) * 3)
        gone = section.slide(z, step, x)
        assert ((gone * step).sum(1) >= -1e-7).all()
        z = z + gone
        assert ((x + z @ section.basis.T).abs() <= 1 + 1e-8).all()


def test_a_step_that_meets_nothing_is_gone_whole():
    _, section, Q, X, _ = random_section(3)
    step = torch.full((8, Q.shape[1]), 1e-6, dtype=torch.float64)
    x = torch.as_tensor(X) / 2
    torch.testing.assert_close(section.slide(torch.zeros_like(step), step, x), step)
