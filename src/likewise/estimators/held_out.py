"""Who a network is trained on, and who is held out to stop by and to compare on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from likewise.estimators.row_weights import classes_alike
from likewise.training.batch import Batch

__all__ = ["HeldOut", "hold_out", "other_folds"]


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
    return _apart(batch, np.asarray(held, dtype=np.intp), alike)


def other_folds(
    batch: Batch, first: HeldOut, rng: np.random.Generator, *, alike: bool
) -> tuple[HeldOut, ...]:
    """Hold out those trained on so far, part by part of about the same size, class by class.

    Parameters
    ----------
    batch : Batch
        Everybody.
    first : HeldOut
        The part that was held out before.
    rng : numpy Generator
    alike : bool
        As in `hold_out`.

    Examples
    --------
    >>> batch = Batch(torch.zeros(10, 1), torch.tensor([0] * 8 + [1] * 2))
    >>> first = hold_out(batch, 0.25, np.random.default_rng(0), alike=False)
    >>> [fold.people.y.tolist() for fold in other_folds(batch, first, np.random.default_rng(0), alike=False)]
    [[0, 0, 0, 1], [0, 0, 0]]
    """
    codes, rest = batch.y.numpy(), first.rows.numpy()
    count = max(2, round(len(rest) / max(len(first.people), 1)))
    place = np.zeros(len(rest), dtype=np.intp)
    for code in np.unique(codes[rest]):
        own = rng.permutation(np.flatnonzero(codes[rest] == code))
        place[own] = np.arange(len(own)) % count
    return tuple(_apart(batch, rest[place == fold], alike) for fold in range(count))


def _apart(batch: Batch, held: np.ndarray[Any, np.dtype[np.intp]], alike: bool) -> HeldOut:
    out = np.zeros(len(batch), dtype=bool)
    out[held] = True
    people = batch.take(torch.as_tensor(np.flatnonzero(out)))
    if alike:
        given = None if people.weight is None else people.weight.numpy().astype(float)
        weight = torch.as_tensor(classes_alike(people.y.numpy(), given)).to(people.x)
        people = replace(people, weight=weight)
    return HeldOut(torch.as_tensor(np.flatnonzero(~out)), people)
