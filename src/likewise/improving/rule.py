"""The rule by which one of several models is chosen: accurate enough, and of those the least unfair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.improving.figures import ACCURACY, CHANGED, GAP, GROUP_GAP, PURE_GAP
from likewise.texts import Said

__all__ = ["UNFAIRNESS", "Rule"]

UNFAIRNESS = (CHANGED, PURE_GAP, GAP, GROUP_GAP)
_WORDS = {
    CHANGED: "improve.changed",
    PURE_GAP: "improve.pure_gap",
    GAP: "improve.gap",
    GROUP_GAP: "improve.a_group_gap",
}
# What the command line calls them.
SHORT = {"changed": CHANGED, "pure": PURE_GAP, "gap": GAP, "group": GROUP_GAP}


@dataclass(frozen=True)
class Rule:
    """Take the least unfair model within some distance of the best balanced accuracy.

    Parameters
    ----------
    within : float, default=0.01
        How much balanced accuracy may be given up against the most accurate model.
    least : tuple of str
        What is to be least, one after the other: the next counts between models that are alike in those before it.
        Of "changed decisions", "pure gap", "gap at ε" and "group gap".
    alike : float, default=0.005
        Values are rounded to multiples of it before they are compared: what differs by less is not worth a choice.

    Examples
    --------
    >>> figures = {
    ...     "plain": {"balanced accuracy": 0.80, "changed decisions": 0.1, "pure gap": 0.1, "gap at ε": 0.2, "group gap": 0.1},
    ...     "blind": {"balanced accuracy": 0.795, "changed decisions": 0.0, "pure gap": 0.0, "gap at ε": 0.2, "group gap": 0.1},
    ...     "robust": {"balanced accuracy": 0.792, "changed decisions": 0.001, "pure gap": 0.0, "gap at ε": 0.1, "group gap": 0.1},
    ...     "useless": {"balanced accuracy": 0.5, "changed decisions": 0.0, "pure gap": 0.0, "gap at ε": 0.0, "group gap": 0.0},
    ... }
    >>> Rule().choose(figures), Rule(least=("changed decisions",), alike=0.0).choose(figures), Rule(within=1).choose(figures)
    ('robust', 'blind', 'useless')
    >>> print(Rule(least=("gap at ε",)))
    the least gap at ε of the models within 0.01 of the best balanced accuracy
    """

    within: float = 0.01
    least: tuple[str, ...] = UNFAIRNESS
    alike: float = 0.005

    def __post_init__(self) -> None:
        check_number(self.within, owner="Rule", name="within", low=0, high=1)
        check_number(self.alike, owner="Rule", name="alike", low=0, high=1)
        object.__setattr__(self, "least", tuple(self.least))
        wrong = [name for name in self.least if name not in UNFAIRNESS]
        if wrong or not self.least:
            allowed = "one or more of " + ", ".join(repr(name) for name in UNFAIRNESS)
            raise bad_parameter("Rule", "least", allowed=allowed, got=self.least)

    def allowed(self, figures: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
        """Names of the models that are accurate enough."""
        best = max(values[ACCURACY] for values in figures.values())
        return tuple(name for name, values in figures.items() if values[ACCURACY] >= best - self.within)

    def choose(self, figures: Mapping[str, Mapping[str, float]]) -> str:
        """Return the name of the model that the rule takes.

        Parameters
        ----------
        figures : mapping of str to mapping
            Model's name to its figures: "balanced accuracy" and those of `least`. Between models that are alike in
            all of them the more accurate is taken, and of equals the first.
        """

        def rank(name: str) -> tuple[float, ...]:
            values = figures[name]
            return (*(self._coarse(values[key]) for key in self.least), -values[ACCURACY])

        return min(self.allowed(figures), key=rank)

    def looser(self, figures: Mapping[str, Mapping[str, float]]) -> tuple[str, Rule] | None:
        """Return the model that halves what is to be least, with the rule that gives up just enough accuracy to take it.

        None where no model does, or where the one that this rule takes leaves nothing to be halved.

        Parameters
        ----------
        figures : mapping of str to mapping
            As in `choose`.

        Examples
        --------
        >>> figures = {
        ...     "plain": {"balanced accuracy": 0.80, "changed decisions": 0.1},
        ...     "blind": {"balanced accuracy": 0.768, "changed decisions": 0.0},
        ... }
        >>> Rule(least=("changed decisions",)).looser(figures)
        ('blind', Rule(within=0.04, least=('changed decisions',), alike=0.005))
        """
        first, best = self.least[0], max(values[ACCURACY] for values in figures.values())
        own = self._coarse(figures[self.choose(figures)][first])
        for lost in sorted(best - values[ACCURACY] for values in figures.values()):
            wider = replace(self, within=max(self.within, float(np.ceil(round(100 * lost, 6)) / 100)))
            name = wider.choose(figures)
            if 2 * self._coarse(figures[name][first]) <= own and own > 0:
                return name, wider
        return None

    def _coarse(self, value: float) -> float:
        return float(np.round(value / self.alike)) if self.alike > 0 else value

    @staticmethod
    def words_of(figure: str) -> Said:
        """Return a figure's name in words that can be said in another language."""
        return Said(_WORDS[figure])

    def words(self) -> Said:
        """Return the rule in words that can be said in another language."""
        first, *more = (Said(_WORDS[name]) for name in self.least)
        if not more:
            return Said("improve.rule_one", first=first, within=self.within)
        then = more[0]
        for word in more[1:]:
            then = Said("improve.rule_then", one=then, two=word)
        return Said("improve.rule_many", first=first, then=then, alike=self.alike, within=self.within)

    def __str__(self) -> str:
        return str(self.words())
