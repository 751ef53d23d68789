"""Which rows to ask about next: moves of one and of two columns, by what single moves did from where the person stands.

A move of a column is expected to do what it did alone, in a scale where the effects of columns add up (for cross-entropy
the margin); its fair distance is known exactly. So few rows need to be asked about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.auditing.search.domain.column_options import Options
from likewise.auditing.support.frontier import Floats, Ints
from likewise.models.losses import CrossEntropy, Loss

__all__ = ["Proposals", "Scale"]


@dataclass(frozen=True)
class Scale:
    """Where the effects of columns add up: margins for cross-entropy, else the loss itself.

    Parameters
    ----------
    margins : bool
        Whether a loss ℓ is log(1 + eᵐ) of a margin m.

    Examples
    --------
    >>> scale = Scale(margins=True)
    >>> scale.loss(scale.effect(np.array([0.1, 3.0])))
    array([0.1, 3. ])
    """

    margins: bool

    @classmethod
    def of(cls, loss: Loss) -> Scale:
        """Return the scale of a loss."""
        return cls(margins=isinstance(loss, CrossEntropy))

    def effect(self, loss: Floats) -> Floats:
        """From losses to the scale."""
        if not self.margins:
            return np.asarray(loss, dtype=np.float64)
        # m = log(eˡ − 1) = l + log(1 − e⁻ˡ)
        held = np.maximum(loss, 1e-12)
        return np.where(np.isneginf(loss), -np.inf, held + np.log(-np.expm1(-held)))

    def loss(self, effect: Floats) -> Floats:
        """From the scale to losses."""
        return np.logaddexp(0.0, effect) if self.margins else effect


@dataclass(frozen=True, eq=False)
class Proposals:
    """What is known of single moves.

    Parameters
    ----------
    options : Options
    scale : Scale
    effect : float array of shape (n, M)
        What an option adds when it alone is taken; −∞ where it is none, or too far to matter.
    singles : int
        Of the most promising moves of one column so many are tried two by two.
    width : int
        Rows that are proposed from each row.
    """

    options: Options
    scale: Scale
    effect: Floats
    singles: int
    width: int

    def __call__(self, person: Ints, rows: Ints, loss: Floats, lam: Floats) -> tuple[Ints, Floats]:
        """Propose rows that promise the largest loss − λ d².

        Parameters
        ----------
        person : int array of shape (m,)
        rows : int array of shape (m, P)
            Rows of options to move on from.
        loss : float array of shape (m,)
        lam : float array of shape (m,)

        Returns
        -------
        rows : int array of shape (m, width, P)
        promise : float array of shape (m, width)
            −∞ where there is no proposal.
        """
        options, column = self.options, self.options.column
        now = rows[:, column]
        at = person[:, None]
        stays = now == np.arange(len(column))
        gain = self.effect[person] - self.effect[at, now]
        gain = np.where(stays, -np.inf, gain)
        here = self.scale.effect(loss)[:, None]
        length, place = options.sums(person, rows)
        longer = options.length[person] - options.length[at, now]
        shift = options.place[person] - options.place[at, now]
        one = self._promise(here + gain, length[:, None] + longer, place[:, None] + shift, lam)
        best = _top(one, self.singles)
        first, second = np.triu_indices(best.shape[1], 1)
        a, b = best[:, first], best[:, second]
        who = np.arange(len(rows))[:, None]
        apart = column[a] != column[b]
        two = self._promise(
            np.where(apart, here + gain[who, a] + gain[who, b], -np.inf),
            length[:, None] + longer[who, a] + longer[who, b],
            place[:, None] + shift[who, a] + shift[who, b],
            lam,
        )
        promise = np.concatenate([one, two], axis=1)
        chosen = _top(promise, self.width)
        made = np.repeat(rows[:, None, :], chosen.shape[1], axis=1)
        single = chosen < len(column)
        pair = np.where(single, 0, chosen - len(column))
        for move in (
            np.where(single, chosen, a[who, pair] if a.shape[1] else chosen),
            np.where(single, chosen, b[who, pair] if b.shape[1] else chosen),
        ):
            np.put_along_axis(made, column[move][:, :, None], move[:, :, None], axis=2)
        return made, np.take_along_axis(promise, chosen, axis=1)

    def _promise(self, effect: Floats, length: Floats, place: Floats, lam: Floats) -> Floats:
        cost = self.options.cost(length, place)
        free = np.isinf(lam)[:, None]
        price = np.where(free, np.where(cost > 0, np.inf, 0.0), np.where(free, 0.0, lam[:, None]) * cost)
        with np.errstate(invalid="ignore"):
            found = self.scale.loss(effect) - price
        return np.where(np.isfinite(effect) & np.isfinite(price), found, -np.inf)


def _top(values: Floats, count: int) -> Ints:
    """Places of the largest values of each row, largest first; of equals the first."""
    count = min(count, values.shape[1])
    return np.argsort(-values, axis=1, kind="stable")[:, :count].astype(np.int64)
