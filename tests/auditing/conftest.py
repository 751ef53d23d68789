"""Random linear models in the boxes of their data, for the exact solver and the searches that are held against it."""

import numpy as np
import pytest

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain
from likewise.fair_metrics import FairMetric, euclidean

METRICS = ("euclidean", "oblique", "axes", "cheap")


def _metric(rng, d, kind):
    """No free direction, oblique ones, coordinates, or oblique ones that cost a little."""
    if kind == "euclidean":
        return euclidean(d)
    if kind == "axes":
        return FairMetric.from_subspace(
            Subspace.from_directions(np.eye(d)[rng.permutation(d)[: rng.integers(1, d)]])
        )
    subspace = Subspace.from_directions(rng.normal(size=(int(rng.integers(1, max(2, d - 1))), d)))
    return FairMetric.from_subspace(
        subspace, weight=0.0 if kind == "oblique" else float(rng.choice([0.01, 0.3]))
    )


def random_boxed_model(seed, n=30, loss="cross_entropy"):
    """Return model, rows, labels, metric and box; the metric's kind goes round with the seed."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    metric = _metric(rng, d, METRICS[seed % len(METRICS)])
    w, b = rng.normal(size=d) * 10 ** rng.uniform(-0.5, 0.7), rng.normal()
    X = rng.normal(size=(n, d))
    y = (X @ w + b + rng.normal(size=n) > 0).astype(int)
    return LinearModel(w, b, loss=loss), X, y, metric, BoxDomain.from_data(X)


@pytest.fixture(scope="session")
def boxed_model():
    """Make a random model by its seed, as `random_boxed_model`."""
    return random_boxed_model
