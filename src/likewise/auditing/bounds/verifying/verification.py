"""Over all people who could exist: where the decision is the same whatever the sensitive columns are, and where not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.families import family_of
from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.verifying.flip_examples import Flip
from likewise.auditing.bounds.verifying.region_rules import describe
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.auditing.bounds.verifying.undecided_regions import Decider, UndecidedRegions, settled
from likewise.core.arrays import FloatArray
from likewise.core.errors import bad_parameter
from likewise.models.losses import ZeroOne

__all__ = ["Decider", "Flip", "FlipRule", "Verification", "verify", "verify_family"]

# People decided at once.
_PEOPLE = 512


@dataclass(frozen=True)
class FlipRule:
    """A part of the domain where decisions flip.

    Parameters
    ----------
    share : float
        Of the domain: rows of this part whose decision is shown to flip.
    within : float
        Of this part: how many of its rows are shown to flip, at least.
    rows : str
        Which rows they are, in original units.
    """

    share: float
    within: float
    rows: str


@dataclass(frozen=True, eq=False)
class Verification:
    """What is known of the whole domain.

    Parameters
    ----------
    proved : float
        Share of the domain, sensitive columns aside, where every row keeps its decision whatever they are.
    flips : float
        Share where every row's decision depends on them.
    undecided : float
        The rest.
    people : tuple of float, optional
        The same three shares of the people who were given.
    examples : tuple of Flip
    rules : tuple of FlipRule
        Where decisions flip most, the largest share of the domain first.
    regions : int
        Regions looked at.
    seconds : float
        CPU time.
    stopped : bool
        Whether it was stopped before its time was up.
    """

    proved: float
    flips: float
    undecided: float
    people: tuple[float, float, float] | None
    examples: tuple[Flip, ...]
    rules: tuple[FlipRule, ...]
    regions: int
    seconds: float
    stopped: bool = False


def verify(
    model: Any,
    domain: Any,
    sensitive_features: Sequence[str],
    *,
    people: Any = None,
    encoded: bool | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Prove where a model's decision does not depend on the sensitive columns, over all rows that can exist.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        A tree ensemble, a ReLU network or a linear model.
    domain : TabularDomain or BoxDomain
    sensitive_features : sequence of str
        Columns of the domain; every combination of their values is looked at.
    people : DataFrame, or float array of shape (n, d), optional
        A table, or encoded rows: the shares are then also given of these people.
    encoded : bool, optional
        As in `family_of`.
    seconds : float, default=60
        CPU time.
    max_regions : int, default=1,000,000
    progress : callable, optional
        Called about once a second with what is known by then.

    Returns
    -------
    Verification
        Ctrl-C ends the work and returns what is known by then.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from likewise.domains import TabularDomain
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 0, 1, 1])
    >>> found = verify(tree, domain, ["sex"], encoded=True)
    >>> found.proved, found.flips
    (1.0, 0.0)
    """
    family = family_of(model, domain, loss=ZeroOne(), encoded=encoded)
    rows = None
    if people is not None:
        rows = (
            domain.encode_array(people)
            if hasattr(people, "columns")
            else np.asarray(people, dtype=np.float64)
        )
    return verify_family(
        family, sensitive_features, people=rows, seconds=seconds, max_regions=max_regions, progress=progress
    )


def verify_family(
    family: Decider,
    sensitive_features: Sequence[str],
    *,
    people: FloatArray | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Do what `verify` does for a family that is at hand already.

    Parameters
    ----------
    family : Decider
    sensitive_features, seconds, max_regions, progress
        As in `verify`.
    people : float array of shape (n, d), optional
        Encoded rows.
    """
    if not seconds > 0:
        raise bad_parameter("verify", "seconds", allowed="a number above 0", got=seconds)
    values = SensitiveValues.of(family.layout, sensitive_features)
    # What the model does not read cannot change its decision, wherever one is.
    read = [family.layout.columns[i].name for i in values.columns if family.reads(int(i))]
    if not read:
        people_same = None if people is None else (1.0, 0.0, 0.0)
        return Verification(1.0, 0.0, 0.0, people_same, (), (), 0, 0.0, False)
    values = SensitiveValues.of(family.layout, read)
    shares = None if people is None else shares_of_people(family, values, people)
    work, stopped = UndecidedRegions(family, values), False
    # What is compiled is compiled by now.
    clock = told = time.process_time()
    try:
        while work.heap and time.process_time() - clock < seconds and work.looked < max_regions:
            work.advance()
            if progress is not None and time.process_time() - told > 1.0:
                told = time.process_time()
                progress(_known(work, shares, told - clock, False))
    except KeyboardInterrupt:
        stopped = True
    return _known(work, shares, time.process_time() - clock, stopped)


def _known(
    work: UndecidedRegions, people: tuple[float, float, float] | None, seconds: float, stopped: bool
) -> Verification:
    """What is known by now. The three shares add up to 1; what is not settled is never claimed."""
    rules = tuple(
        FlipRule(
            part.flips,
            part.flips / part.volume,
            describe(work.layout, part.low, part.high, part.allowed, work.values.columns),
        )
        for part in work.tree.worst()
    )
    proved, flips = min(max(work.proved, 0.0), 1.0), min(max(work.flips, 0.0), 1.0)
    examples = tuple(work.examples.found)
    return Verification(proved, flips, work.undecided, people, examples, rules, work.looked, seconds, stopped)


def shares_of_people(
    family: Decider, values: SensitiveValues, people: FloatArray
) -> tuple[float, float, float]:
    """Shares of people whose own decision is proved the same, flips, or is open.

    Parameters
    ----------
    family : Decider
    values : SensitiveValues
    people : float array of shape (n, d)
    """
    layout, size = family.layout, len(values.low)
    same, flips = [], []
    for first in range(0, len(people), _PEOPLE):
        own = layout.values(people[first : first + _PEOPLE])
        allowed = np.zeros((len(own), layout.n_categories), dtype=np.uint8)
        for i in np.flatnonzero(layout.is_category):
            allowed[np.arange(len(own)), layout.offset[i] + own[:, i].astype(np.int64)] = 1
        each = np.repeat(np.arange(len(own)), size)
        regions = Regions(own, own, allowed).take(each)
        there = values.put(layout, regions, np.tile(np.arange(size), len(own)))
        label, _, _ = family.decide(there, family.state(len(each)))
        found = settled(np.asarray(label, dtype=np.int64).reshape(len(own), size), values.covers)
        same.append(found[0])
        flips.append(found[1])
    proved, shown = np.concatenate(same), np.concatenate(flips)
    return float(proved.mean()), float(shown.mean()), float((~proved & ~shown).mean())
