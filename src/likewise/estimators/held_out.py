"""Who a network is trained on, and who is held out to stop by and to compare on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from likewise.estimators.row_weights import classes_alike
from likewise.training.batch import Batch

__all__ = ["HeldOut", "hold_out"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Who a network is trained on, and who is held out.

    Parameters
    ----------
    rows : Tensor of int64
        The row numbers to train on.
    people : Batch
        Those held out; their weights make classes count as in training.
    """

    rows: torch.Tensor
    people: Batch


def hold_out(batch: Batch, share: float, rng: np.random.Generator, *, alike: bool) -> HeldOut:
    """Hold out a share of the rows, class by class; at least one of each, and never all.

    Parameters
    ----------
    batch : Batch
    share : float
        Between 0 and 1.
    rng : numpy Generator
    alike : bool
        Whether classes shall count for the same among those held out, as in balanced batches.

    Examples
    --------
    >>> batch = Batch(torch.zeros(10, 1), torch.tensor([0] * 8 + [1] * 2))
    >>> held = hold_out(batch, 0.25, np.random.default_rng(0), alike=True)
    >>> held.people.y.tolist(), held.people.weight.tolist()
    ([0, 0, 1], [0.25, 0.25, 0.5])
    """
    held: list[int] = []
    codes = batch.y.numpy()
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        count = min(max(1, round(share * len(own))), len(own) - 1)
        held += rng.permutation(own)[:count].tolist()
    out = np.zeros(len(codes), dtype=bool)
    out[held] = True
    people = batch.take(torch.as_tensor(np.flatnonzero(out)))
    if alike:
        given = None if people.weight is None else people.weight.numpy().astype(float)
        weight = torch.as_tensor(classes_alike(people.y.numpy(), given)).to(people.x)
        people = replace(people, weight=weight)
    return HeldOut(torch.as_tensor(np.flatnonzero(~out)), people)
