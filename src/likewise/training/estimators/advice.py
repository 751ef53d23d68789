"""What is said about a trained network: sentences that tell what was seen and what helps, each a `Finding`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from likewise.core.checks import to_numpy
from likewise.evaluation.summary import balanced_accuracy
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import MOST
from likewise.training.batch import Batch
from likewise.training.estimators.automatic import AUDITED_EPS, DOUBT, MAX_LOSS, BesideBaseline
from likewise.training.networks import scores_of
from likewise.training.results import Finding

# What is freed by rounding.
_NOTHING = 1e-6
# After fewer nobody expects a network to have learned anything.
ENOUGH_STEPS = 50
# What balanced accuracy should be above that of guessing.
_ABOVE = 0.03
# So many people know it to a percent or two.
_MOST_PEOPLE = 2000
# Decisions that may change with the sensitive columns alone before it is said.
_FLIPS = 0.01
# The gap that should be left, as a share of a plain network's; and one below which there is nothing to halve.
_GAP, _SMALL_GAP = 0.5, 0.05


def _only_columns(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names)) or "..."
    return f"make only the sensitive columns themselves free: metric=ExpertSubspace([{listed}])"


def at_chance(net: nn.Module, people: Batch, *, seen: bool, owner: str, other: str) -> tuple[Finding, ...]:
    """Return a finding if a network decides no better than a guess."""
    some = np.unique(np.linspace(0, len(people) - 1, min(len(people), _MOST_PEOPLE)).astype(np.int64))
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


def frees_too_much(freed: float, metric: FairMetric, owner: str) -> tuple[Finding, ...]:
    """Return a finding if most of the variance of the columns that are not sensitive costs nothing."""
    if freed <= MOST:
        return ()
    named = f" (told: {', '.join(metric.sensitive_features)})" if metric.sensitive_features else ""
    return (
        Finding(
            "subspace_swallows",
            f"{owner}: {freed:.0%} of the variance of all other columns costs nothing under the metric{named}, "
            f"{metric.null_space.dim} of {metric.n_features} directions: people who differ in nearly everything count as "
            f"comparable, and little may be learned. Merge rare categories, or {_only_columns(metric.sensitive_features)}.",
            freed,
        ),
    )


def compared(
    seen: BesideBaseline,
    *,
    owner: str,
    eps: float = 0.0,
    asked: bool = False,
    freed: float = 0.0,
    names: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Return what a user should be told about the comparison; nothing if the method did what it is for.

    `asked` says whether the user chose ε, `freed` what share of the other columns' variance the metric makes free, and
    `names` what it was told is sensitive.
    """
    advice = _what_keeps_accuracy(eps if asked else 0.0, freed, names)
    said = (
        _about_accuracy(seen, owner, advice),
        _about_flips(seen, owner),
        _about_robustness(seen, owner, eps),
    )
    return tuple(one for one in said if one is not None)


def _what_keeps_accuracy(eps: float, freed: float, names: Sequence[str]) -> str:
    """Return advice that helps: an ε found by "auto" costs little, and a metric that frees the columns alone frees least."""
    if freed > MOST:
        return f"The metric makes {freed:.0%} of the other columns' variance free, whatever 'eps' is: {_only_columns(names)}"
    ways = [f"lower 'eps' (it was {eps:.2g})"] if eps > 0 else []
    ways += [_only_columns(names)] if freed > _NOTHING else []
    if not ways:
        return "It is the sensitive columns themselves that tell y, and no metric that makes them free keeps more"
    advice = " or ".join(ways)
    return advice[0].upper() + advice[1:]


def _about_accuracy(seen: BesideBaseline, owner: str, advice: str) -> Finding | None:
    lost, gained = seen.lost, seen.balanced_accuracy - seen.chance
    shown = (
        f"balanced accuracy {seen.balanced_accuracy:.3f} on {seen.n} people held out, a plain network "
        f"{seen.baseline_balanced_accuracy:.3f}, guessing {seen.chance:.3f}"
    )
    if gained < max(0.03, 0.25 * (lost + gained)):
        why = (
            "The plain network hardly predicts y from these columns either: check the target and the columns"
            if lost <= MAX_LOSS
            else f"The metric calls people comparable who differ in what predicts y. {advice}"
        )
        return Finding("near_chance", f"{owner}: the network is near chance: {shown}. {why}.", 1.0)
    if lost > MAX_LOSS:
        return Finding(
            "less_accurate",
            f"{owner}: fairness costs accuracy here: {shown}. What predicts y also tells the sensitive attributes. "
            f"{advice}.",
            lost,
        )
    most = lost + DOUBT * seen.lost_error
    if most > MAX_LOSS:
        return Finding(
            "cost_uncertain",
            f"{owner}: {seen.n} people held out are too few to tell whether fairness costs more than {MAX_LOSS:.2f} of "
            f"balanced accuracy here: {shown}, a difference of {-lost:+.3f} ± {DOUBT * seen.lost_error:.3f}. Collect "
            "more people (of the rarer class above all), or compare over several splits before you rely on it (`likewise "
            "improve` cross-validates).",
            most,
            # Without figures: the same for every fit of a search, so Python shows it once.
            summary=f"{owner}: the people are too few to tell whether fairness costs more than {MAX_LOSS:.2f} of balanced "
            "accuracy; `findings_` has the figures. Collect more (of the rarer class above all), or compare over several "
            "splits (`likewise improve` cross-validates)",
        )
    return None


def _about_flips(seen: BesideBaseline, owner: str) -> Finding | None:
    flips, before = seen.twin_flips, seen.baseline_twin_flips
    if flips is None or before is None or flips <= _FLIPS:
        return None
    return Finding(
        "flips_not_down",
        f"{owner}: the decisions of {flips:.1%} of the people held out still change with the sensitive "
        f"columns alone (plain network: {before:.1%}). Leave 'blind_to' at its default, which makes that "
        "impossible, or train longer.",
        flips,
    )


def _about_robustness(seen: BesideBaseline, owner: str, eps: float) -> Finding | None:
    if not seen.robust_loss < seen.baseline_robust_loss:
        return Finding(
            "not_more_robust",
            f"{owner}: the robust loss on people held out is {seen.robust_loss:.4g}, no lower than a plain network's "
            f"{seen.baseline_robust_loss:.4g}: the method did not help. Try more 'n_steps', or another 'lr' or 'eps'.",
            1.0,
        )
    if seen.gap is None or seen.baseline_gap is None:
        return None
    if seen.gap <= max(_SMALL_GAP, _GAP * seen.baseline_gap):
        return None
    return Finding(
        "gap_not_halved",
        f"{owner}: the gap at ε = {AUDITED_EPS} is about {seen.gap:.3f} on people held out, a plain network's "
        f"{seen.baseline_gap:.3f}: people a little apart are still treated differently, and more robustness "
        f"would have cost accuracy or was not asked for. To choose fairness, pass an 'eps' larger than {eps:.2g}.",
        seen.gap / seen.baseline_gap,
    )
