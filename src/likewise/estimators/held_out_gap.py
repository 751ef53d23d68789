"""The gap of a network on people held out, over them and their twins: to compare two networks by, in a moment."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax
from torch import nn

from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.core.arrays import FloatArray, to_numpy
from likewise.estimators.networks import scores_of
from likewise.fair_metrics import FairMetric
from likewise.training.batch import Batch

__all__ = ["AUDITED_EPS", "commonest_kinds", "held_out_gap"]

# The budget that `likewise.audit` has by default.
AUDITED_EPS = 0.1
# More would only cost time: a gap is wanted to a tenth of itself.
_MOST_PEOPLE, _MOST_KINDS = 250, 4


def held_out_gap(
    net: nn.Module, people: Batch, sensitive: list[int], metric: FairMetric, *, eps: float = AUDITED_EPS
) -> float:
    """Return V(ε) minus the mean loss, where each person may become any other or one of the others' twins.

    What `likewise.audit` starts from, without its searches: a lower bound of its gap.

    Parameters
    ----------
    net : torch.nn.Module
        Of encoded rows.
    people : Batch
        Those held out; some hundred of them are looked at.
    sensitive : list of int
        Coordinates of the sensitive columns.
    metric : FairMetric
        Who is comparable.
    eps : float, default=0.1
        The budget ε, in the units of `likewise.audit`.

    Examples
    --------
    >>> import torch
    >>> from likewise.fair_metrics import euclidean
    >>> net = nn.Linear(1, 2, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> people = Batch(torch.tensor([[0.0], [-0.5]]), torch.tensor([1, 1]))
    >>> gaps = [held_out_gap(net, people, [], euclidean(1), eps=eps) for eps in (0.0, 0.125)]
    >>> gaps[0], round(gaps[1], 2)  # the budget pays for one of two who would have to move by 0.5
    (0.0, 0.31)
    """
    some = np.unique(np.linspace(0, len(people) - 1, min(len(people), _MOST_PEOPLE)).astype(np.int64))
    x, y = np.asarray(to_numpy(people.x), dtype=float)[some], to_numpy(people.y)[some]
    others = [x]
    for kind in commonest_kinds(x, sensitive, _MOST_KINDS) if sensitive else ():
        others.append(x.copy())
        others[-1][:, sensitive] = kind
    candidates = np.concatenate(others)
    table = -log_softmax(scores_of(net, candidates), axis=1)
    base = table[np.arange(len(y)), y]
    losses = table[:, y].T
    row, candidate = np.nonzero(losses > base[:, None])
    distance = np.asarray(to_numpy(metric.pairwise(x, candidates)), dtype=float)
    frontier = Frontier.from_points(
        base_loss=base,
        row=row,
        squared_distance=np.maximum(distance[row, candidate], 0.0),
        loss=losses[row, candidate],
        candidate=candidate,
    )
    return float(dual_curve(frontier).gap(eps))


def commonest_kinds(x: FloatArray, sensitive: list[int], most: int) -> FloatArray:
    """Return the combinations of values of the sensitive coordinates that people have, the commonest first.

    Examples
    --------
    >>> commonest_kinds(np.array([[1.0, 5.0], [0.0, 6.0], [0.0, 7.0]]), [0], 2).tolist()
    [[0.0], [1.0]]
    """
    kinds, counts = np.unique(x[:, sensitive], axis=0, return_counts=True)
    return np.asarray(kinds[np.argsort(-counts, kind="stable")[:most]])
