"""What has to be right before a verdict: do the model and the table belong together, and is the question trivial.

A model fitted on z-scores and asked about a raw table answers, and its answers prove nothing about anybody. A model that
does not read a column cannot be moved by it, whatever it does with its proxies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import softmax

from likewise.auditing.dual.frontier import Floats
from likewise.auditing.inference.known_columns import FEWEST_CUTS, KnownColumns, Scale, known_columns
from likewise.core.messages import Message
from likewise.core.plain import plain_cell
from likewise.counterfactuals.edits import edited_columns

if TYPE_CHECKING:
    from likewise.auditing.people import AuditedPeople
    from likewise.auditing.results.effects import SensitiveSums

FindingKind = Literal[
    "unstable",
    "units",
    "values",
    "one class",
    "guessing",
    "same",
    "encoding",
    "unread",
    "unmoved",
    "recorded",
]
_SAID: tuple[FindingKind, ...] = ("same", "encoding", "unread", "unmoved", "recorded")

# A column tells of its units if the table has so many values of it.
_VALUES = 10
# Spreads from a scaler's centre beyond which most people are not expected to be, and the range of a whole table that is
# hardly a place on its scale.
_FAR, _NARROW = 5.0, 0.05
# Share of people up to which values of a sensitive column may be new to the model, and values that are shown.
_NEW, _SHOWN = 0.05, 6
# Share of people with one decision, and the share of that label up to which labels do not look like that.
_NEARLY_ALL, _NOT_ALL = 0.995, 0.95
# Share of a label below which one probability for everybody is that of no fitted model, and what is one probability.
_BALANCED, _FLAT = 0.75, 1e-6
# People of a class below which nothing is said about it.
_FEW = 10
# Standard errors that are chance (one-sided 5%), and those that are not, with the least share of the loss.
_CHANCE, _CLEAR, _MARGIN = 1.645, 3.0, 0.25
# Balanced accuracy that people enough can tell from chance, and an error of a mean probability that is large.
_TELLS, _OFF = 0.05, 0.1
# Balanced accuracy above chance that is hardly any, for a model with so many times the loss of the shares.
_HARDLY, _TIMES = 0.15, 3.0
_LEAST = 1e-12


@dataclass(frozen=True)
class Finding:
    """Something that a reader has to know before any number of an audit.

    Parameters
    ----------
    kind : {"unstable", "units", "values", "one class", "guessing", "same", "encoding", "unread", "unmoved", "recorded"}
        The model does not give the same answer twice; the table lies outside of all that the model distinguishes; it does
        not know the table's values; nearly everybody gets one decision, and the labels differ; the model is worse than a
        constant on the labels; everybody gets one decision, whatever the sensitive columns are; nothing says how a table
        becomes the numbers that the model takes; the model does not read a sensitive column; no answer about these people depends on one; the result was read from a file.
    sentence : str
        In words.
    columns : tuple of str
        The columns it is about, if it is about columns.
    """

    kind: FindingKind
    sentence: str
    columns: tuple[str, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether nothing can be concluded from the audit until this is settled."""
        return self.kind not in _SAID


def check_before_verdict(problem: AuditedPeople, asked: SensitiveSums | None = None) -> tuple[Finding, ...]:
    """Look for reasons not to believe an audit, or to call its answer trivial.

    `asked` is what was found by asking about everybody; by default that is done here.
    """
    from likewise.auditing.results.effects import SensitiveSums
    from likewise.auditing.results.sensitive import enumerate_sensitive

    known = known_columns(problem)
    found = [*_values(problem, known), *_units(known), *_labels(problem)]
    if not problem.repeats:
        found.insert(0, Finding("unstable", Message("gate.unstable")))
    if found:
        # Nothing else is worth saying about a model and a table that do not belong together.
        return tuple(found)
    if asked is None:
        found_by_asking = enumerate_sensitive(problem)
        asked = None if found_by_asking is None else SensitiveSums.of(found_by_asking)
    return (*_unread(problem, known, asked), *_same(problem, asked))


# ---- values ----------------------------------------------------------------------------------------------


def _values(problem: AuditedPeople, known: KnownColumns) -> Iterator[Finding]:
    """Values of the table that the model's encoders do not know, so that it takes them all for the same.

    A rare new value of an honest table is none of this: two values of a sensitive column have to be known, and nearly
    everybody's; of another column one value.
    """
    sensitive = {str(name) for name in _sensitive_columns(problem)}
    for column, values in known.categories.items():
        cells = known.cells(column)
        if cells is None or not len(cells):
            continue
        listed = {value for value in values if value == value}
        here = cells.unique().tolist()
        new = [value for value in here if value not in listed]
        if column in sensitive:
            wrong = bool(new) and (len(here) - len(new) < 2 or float(cells.isin(new).mean()) > _NEW)
        else:
            wrong = len(new) == len(here) and len(here) <= len(cells) / 2
        if wrong:
            said = Message("gate.values", column=column, new=_quoted(new), known=_quoted(listed))
            yield Finding("values", said, (column,))


def _quoted(values: Collection[Any]) -> list[str]:
    shown = [repr(plain_cell(value)) for value in sorted(values, key=str)[:_SHOWN]]
    return [*shown, "…"] if len(values) > _SHOWN else shown


# ---- units -----------------------------------------------------------------------------------------------


def far_from_range(cuts: Any, values: Any) -> bool:
    """Whether the places where a model cuts a column lie far from all the values that a table has of it.

    True if no cut separates any two people, and the way from the table's range to the nearest cut is longer than
    that range or than the range of the cuts, whichever is shorter. Columns with few cuts or few values tell nothing.
    """
    places = np.unique(np.asarray(cuts, dtype=np.float64))
    places = places[np.isfinite(places)]
    if len(places) < FEWEST_CUTS:
        return False
    known = np.asarray(values, dtype=np.float64)
    known = np.unique(known[np.isfinite(known)])
    if len(known) < _VALUES:
        return False
    away = max(known[0] - places[-1], places[0] - known[-1])
    return bool(away > min(known[-1] - known[0], places[-1] - places[0]))


def _units(known: KnownColumns) -> Iterator[Finding]:
    cut = () if known.trees is None else known.trees.cuts()
    far = tuple(dict.fromkeys(name for name, cuts, values in cut if far_from_range(cuts, values)))
    if far:
        yield Finding("units", Message("gate.thresholds", columns=list(far)), far)
    far = tuple(name for name, scale in known.scaled.items() if _far_from_centre(known.cells(name), scale))
    if far:
        yield Finding("units", Message("gate.scaler", columns=list(far), far=_FAR), far)


def _far_from_centre(cells: Any, scale: Scale) -> bool:
    """Whether most people are too far from a scaler's centre, or all of them at one place of its scale."""
    try:
        values = scale(np.asarray(cells, dtype=np.float64))
    except (TypeError, ValueError):
        return False
    if len(np.unique(values)) < _VALUES:
        return False
    return bool(np.median(np.abs(values)) > _FAR or (np.ptp(values) < _NARROW and np.abs(values).min() > 1.0))


# ---- labels ----------------------------------------------------------------------------------------------


def one_class(
    decided: Any, target: Any, probability: Any = None, *, loss: Any = None, constant: Any = None
) -> tuple[int, float, float] | None:
    """Return the class that nearly everybody gets although the labels do not look like that.

    A weak model may give everybody the most frequent class with good reason; then its mean probability of that class
    is about the class's share of the labels. If another class is clearly more frequent, one decision for everybody may
    come from the threshold, of a model whose probabilities are better than the same ones for everybody; else nothing
    speaks for it.
    """
    kinds, counts = np.unique(decided, return_counts=True)
    top, n = int(kinds[counts.argmax()]), len(decided)
    share, labelled = float(counts.max() / n), float((np.asarray(target) == top).mean())
    if share < _NEARLY_ALL or labelled > _NOT_ALL or n * (1.0 - labelled) < _FEW:
        return None
    believed = 1.0 if probability is None else float(np.asarray(probability)[:, top].mean())
    doubted = believed > (1.0 + labelled) / 2.0
    if probability is not None and labelled < _BALANCED:
        # The very same probability for everybody.
        doubted |= bool(np.ptp(np.asarray(probability)[:, top]) < _FLAT)
    if loss is not None and np.mean(loss) >= np.mean(constant):
        most = float(np.unique(target, return_counts=True)[1].max() / n)
        # The variance of a difference of two shares of the same people is at most their sum over the number of people.
        doubted |= most - labelled > _CLEAR * float(np.sqrt((most + labelled) / n))
    return (top, share, labelled) if doubted else None


def worse_than_guessing(
    decided: Any, target: Any, loss: Any, constant: Any, probability: Any = None
) -> tuple[float, float, float] | None:
    """Return balanced accuracy and both mean losses if the model is worse than one answer for everybody.

    Decisions that are right clearly less often, class by class, than by chance are those of a model that knows the
    labels by other names. Else everything has to speak against it: decisions that are right no more often than by
    chance, with people enough to tell, or hardly more often at several times the loss; a mean loss clearly above that
    of the labels' own shares; and mean probabilities that are not those shares. A model may be certain of itself and
    often right, or weak and careful; that is not a sign that it was not made for these people.
    """
    decided, target = np.asarray(decided), np.asarray(target)
    kinds, counts = np.unique(target, return_counts=True)
    least = 1.0 / len(kinds)
    kinds, counts = kinds[counts >= _FEW], counts[counts >= _FEW]
    if len(kinds) < 2:
        return None
    above = float(np.mean([(decided[target == kind] == kind).mean() for kind in kinds])) - 1.0 / len(kinds)
    # The variance of a share is at most 1/4 over the number of people.
    chance = _CHANCE * float(np.sqrt((0.25 / counts).sum())) / len(kinds)
    guessing = above <= chance and (above < -chance or chance <= _TELLS)
    mean, guessed = float(np.mean(loss)), float(np.mean(constant))
    off = probability is None or _mean_is_off(np.asarray(probability), target)
    if probability is not None:
        guessing = guessing or (above < _HARDLY and mean > _TIMES * guessed)
    right = above + 1.0 / len(kinds)
    reversed_ = right < least - max(_TELLS, _CLEAR / _CHANCE * chance) and mean > guessed
    doubted = guessing and off and _clearly_above(np.asarray(loss), np.asarray(constant))
    return (right, mean, guessed) if reversed_ or doubted else None


def _mean_is_off(probability: Floats, target: Any) -> bool:
    """Whether some class's mean probability is far from its share of the labels."""
    excess = probability - (np.asarray(target)[:, None] == np.arange(probability.shape[1]))
    error = excess.std(axis=0) / np.sqrt(len(excess))
    return bool((np.abs(excess.mean(axis=0)) > np.maximum(_OFF, _CLEAR * error)).any())


def _clearly_above(loss: Floats, constant: Floats, margin: float = _MARGIN) -> bool:
    excess = loss - constant
    error = float(excess.std(ddof=1)) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    return bool(excess.mean() > max(margin * constant.mean(), _CLEAR * error))


def _labels(problem: AuditedPeople) -> Iterator[Finding]:
    model = problem.coordinates.model
    target = problem.target
    if not problem.decides:
        residual, spread = (np.square(target - centre) for centre in (problem.decisions, target.mean()))
        # Twice the spread of the labels: no model that was fitted on such people errs that much.
        if problem.n >= _FEW and _clearly_above(residual, spread, margin=1.0):
            said = Message("gate.guessing_number", error=float(residual.mean()), guess=float(spread.mean()))
            yield Finding("guessing", said)
        return
    decided = problem.decided
    counts = np.bincount(target) / problem.n
    probability: Floats | None = None
    loss, constant = (decided != target).astype(np.float64), (counts.argmax() != target).astype(np.float64)
    if model.loss.wants not in ("scores", "decisions"):
        probability = problem.outputs if model.gives_probabilities else softmax(problem.outputs, axis=1)
        own = probability[np.arange(problem.n), target]
        loss, constant = -np.log(np.maximum(own, _LEAST)), -np.log(counts[target])
    alone = one_class(decided, target, probability, loss=loss, constant=constant)
    if alone is not None:
        top, share, labelled = alone
        name = str(model.classes_[top]) if model.classes_ is not None else str(top)
        yield Finding("one class", Message("gate.one_class", name=name, share=share, labelled=labelled))
    worse = worse_than_guessing(decided, target, loss, constant, probability)
    if worse is not None:
        right, mean, guessed = worse
        key = "gate.guessing" if probability is not None else "gate.guessing_errors"
        yield Finding("guessing", Message(key, accuracy=right, loss=mean, guess=guessed))


# ---- columns that are not read ---------------------------------------------------------------------------


def _sensitive_columns(problem: AuditedPeople) -> tuple[Any, ...]:
    """The edited columns that were called sensitive and may change."""
    fixed = problem.coordinates.fixed_names()
    return tuple(name for name in edited_columns(problem.sensitive_edits) if name not in fixed)


def _absent(problem: AuditedPeople) -> tuple[str, ...]:
    """Columns that the metric was told of and that are not in the table that the model gets."""
    place = problem.coordinates
    metric = getattr(place, "metric", None)
    if metric is None:
        return ()
    known = {*(place.encoding.names if place.encoding else ()), *getattr(problem.rows, "columns", ())}
    return tuple(name for name in metric.sensitive_features if known and name not in known)


def _unread(problem: AuditedPeople, known: KnownColumns, asked: SensitiveSums | None) -> Iterator[Finding]:
    """Sensitive columns that the model does not read, and those that move no answer about anybody who was asked about."""
    told: dict[FindingKind, list[str]] = {"unread": [*_absent(problem)], "unmoved": []}
    for column in _sensitive_columns(problem):
        name = str(column)
        if asked is not None and name not in asked.unmoved:
            continue
        if known.reads(problem, column) is False:
            told["unread"].append(name)
        elif asked is not None and asked.telling:
            told["unmoved"].append(name)
    keys = {"unread": "gate.unread", "unmoved": "gate.unmoved"}
    for kind, names in told.items():
        if names:
            yield Finding(kind, Message(keys[kind], columns=names), tuple(names))


def _same(problem: AuditedPeople, asked: SensitiveSums | None) -> Iterator[Finding]:
    """One decision for everybody and every counterpart: true, and no evidence of anything."""
    if not problem.decides or asked is None or asked.changed:
        return
    decisions = {one.decision for one in asked.groups} or set(np.unique(problem.decisions).tolist())
    if len(decisions) == 1 and problem.n > 1:
        columns = tuple(map(str, asked.columns))
        yield Finding("same", Message("gate.same", name=str(*decisions), columns=list(columns)), columns)
