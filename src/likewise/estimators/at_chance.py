"""A network that learned nothing says so, also where it is compared with nothing."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from likewise.core.arrays import to_numpy
from likewise.estimators.networks import scores_of
from likewise.evaluation.accuracy import balanced_accuracy
from likewise.training.batch import Batch
from likewise.training.findings import Finding

__all__ = ["ENOUGH_STEPS", "at_chance"]

# After fewer nobody expects a network to have learned anything.
ENOUGH_STEPS = 50
# What balanced accuracy should be above that of guessing.
_ABOVE = 0.03
# So many people know it to a percent or two.
_MOST = 2000


def at_chance(net: nn.Module, people: Batch, *, seen: bool, owner: str, other: str) -> tuple[Finding, ...]:
    """Return a finding where a network decides no better than a guess.

    Parameters
    ----------
    net : torch.nn.Module
        Of encoded rows.
    people : Batch
    seen : bool
        Whether it was trained on them.
    owner : str
        For the message.
    other : str
        What it may be besides columns that do not tell y, and what to do then.

    Examples
    --------
    >>> people = Batch(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1]))
    >>> net = nn.Linear(1, 2)
    >>> _ = nn.init.zeros_(net.weight)
    >>> [finding.code for finding in at_chance(net, people, seen=True, owner="fit", other="too few steps")]
    ['near_chance']
    """
    some = np.unique(np.linspace(0, len(people) - 1, min(len(people), _MOST)).astype(np.int64))
    rows = people.take(torch.as_tensor(some, device=people.x.device))
    y = to_numpy(rows.y)
    classes = len(np.unique(y))
    if classes < 2:
        return ()
    right = balanced_accuracy(y, scores_of(net, np.asarray(to_numpy(rows.x), dtype=float)).argmax(axis=1))
    if right >= 1.0 / classes + _ABOVE:
        return ()
    whom = "the people it was trained on" if seen else "people held out"
    return (
        Finding(
            "near_chance",
            f"{owner}: the network is near chance: balanced accuracy {right:.3f} on {whom}, guessing "
            f"{1.0 / classes:.3f}. Either these columns do not tell y, or {other}.",
            1.0,
        ),
    )
