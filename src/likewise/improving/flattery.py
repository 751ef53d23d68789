"""How much a choice flatters what it was made by: the winner's curse, estimated by choosing again without each fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from likewise.improving.figures import figure_values, rule_figures
from likewise.improving.rule import Rule
from likewise.improving.tally import Tally, pooled

__all__ = ["flattery"]


def flattery(folds: Mapping[str, Sequence[Tally]], rule: Rule) -> dict[str, float]:
    """Return by how much the chosen model's figures are expected to change on people it was not chosen by.

    For each fold the rule chooses by the others; what that model shows on the fold, less what it shows on the others, is
    what the choice had of luck (Tibshirani and Tibshirani 2009, Annals of Applied Statistics 3: 822–829, for any rule).
    A model that is chosen every time was not lucky: its folds differ from each other by 0 in the mean.

    Parameters
    ----------
    folds : mapping of str to sequence of Tally
        Of each model, the people of each fold; the same number of folds, of two at least, for every model.
    rule : Rule

    Returns
    -------
    dict of str to float
        Figure's name to the mean over the folds.

    Examples
    --------
    >>> from likewise.improving.tally import Spread
    >>> none = Spread(10, 0.0, 0.0)
    >>> def fold(right):
    ...     return Tally(np.array([[10 - right, right], [10 - right, right]]), {}, np.array([10, 0]), none, none)
    >>> two = {"first": [fold(8), fold(6)], "second": [fold(6), fold(8)]}
    >>> round(flattery(two, Rule())["balanced accuracy"], 3)
    -0.2
    >>> flattery({"first": [fold(8), fold(6)]}, Rule())["balanced accuracy"]
    0.0
    """
    changes: dict[str, list[float]] = {}
    for fold in range(len(next(iter(folds.values())))):
        others = {name: pooled([*parts[:fold], *parts[fold + 1 :]]) for name, parts in folds.items()}
        name = rule.choose({name: rule_figures(tally) for name, tally in others.items()})
        before = figure_values(others[name])
        for figure, value in figure_values(folds[name][fold]).items():
            changes.setdefault(figure, []).append(value - before[figure])
    return {figure: float(np.mean(found)) for figure, found in changes.items()}
