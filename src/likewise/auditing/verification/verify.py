"""Over all people who could exist: where the decision is the same whatever the sensitive columns are, and where not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likewise.auditing.bounds.families import family_at
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.reading_check import Asker, check_rows
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.coordinates import Coordinates, tabular
from likewise.auditing.problem import AuditProblem
from likewise.auditing.verification.asked_shares import (
    Decide,
    Flip,
    FlipExamples,
    Sampled,
    SensitiveValues,
    changed_people,
    proved_same,
    sample_rows,
)
from likewise.auditing.verification.undecided_regions import Decider, UndecidedRegions, describe
from likewise.core.checks import FloatArray, to_numpy
from likewise.core.errors import InputError, LikewiseError, bad_parameter
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.fair_metrics import euclidean
from likewise.models import CallableModel, Model, as_model
from likewise.models.losses import ZeroOne

# Model, domain and people of a verification in one coordinate system: the same preparation as an audit's.


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model that can be asked about every row of a domain."""

    problem: AuditProblem
    layout: TableLayout
    asker: Asker
    values: SensitiveValues
    has_people: bool

    def family(self) -> TreeFamily | NetworkFamily:
        """Read the model; raises `InputError` if it cannot be read or answers differently than was read."""
        found = family_at(self.problem.coordinates, self.problem.X)
        check_rows(found, self.asker, self.people(), decides=True)
        return found

    def people(self) -> FloatArray:
        """The people as rows of values, (n, P); without rows if nobody was given."""
        found = self.layout.values(self.problem.X)
        return found if self.has_people else found[:0]


def prepare(
    model: Any, domain: Any, names: Sequence[str], *, people: Any = None, encoded: bool | None = None
) -> Prepared:
    """Bring a model, a domain and people together."""
    layout = TableLayout.of(domain)
    values = SensitiveValues.of(layout, names)
    known = tabular(domain)
    raw = known is not None and encoded is not True
    adapter = _adapter(model, takes_frame=raw)
    # Sensitive columns are changed here, whatever else may not change in an audit.
    free = domain if known is None else _without_immutable(known)
    rows = _rows(people, free, layout, raw=raw)
    metric = euclidean(layout.width)
    problem = AuditProblem.build(
        adapter,
        rows,
        np.zeros(len(rows), dtype=np.int64),
        metric=metric if known is None else replace(metric, feature_map=free),
        domain=free,
        edits=[int(i) for i in values.columns] if known is None else list(names),
        encoded=not raw,
    )
    _check_kind(problem.coordinates, layout, encoded)
    classes = adapter.known_classes
    if classes is not None:
        problem = replace(problem, y=np.full(problem.n, classes[0]))
    return Prepared(problem, layout, Asker(problem.coordinates, layout), values, people is not None)


def _adapter(model: Any, *, takes_frame: bool) -> Model:
    """The model under the 0–1 loss: only decisions count."""
    if isinstance(model, Model):
        return model.with_loss(ZeroOne())
    try:
        adapter = as_model(model)
    except InputError:
        return as_model(model, loss=ZeroOne())
    if isinstance(adapter, CallableModel) and takes_frame:
        adapter = as_model(model, takes_frame=True)
    return adapter.with_loss(ZeroOne())


def _without_immutable(domain: Any) -> Any:
    if not any(column.immutable for column in domain.columns_):
        return domain
    described = domain.to_dict()
    described["parameters"]["immutable"] = []
    for column in described["columns"]:
        column["immutable"] = False
    return type(domain).from_dict(described)


def _rows(people: Any, domain: Any, layout: TableLayout, *, raw: bool) -> Any:
    """The people as a raw table or as encoded rows; without people one row from the middle of the domain."""
    if people is None:
        people = layout.encode(_middle(layout))
    is_table = is_frame(people) and not declared_encoded(people)
    if not raw:
        return domain.encode_array(people) if is_table else _encoded(people, domain)
    if not is_table:
        return to_pandas(domain.decode(_encoded(people, domain)), owner="verify").reset_index(drop=True)
    names = {column.name for column in layout.columns}
    table = to_pandas(people, owner="verify", name="people")
    return table[[name for name in table.columns if name in names]]


def _encoded(people: Any, domain: Any) -> FloatArray:
    known = tabular(domain)
    if known is not None and is_frame(people):
        return np.asarray(known.encoding_.read_encoded(people, owner="verify"), dtype=np.float64)
    return np.asarray(to_numpy(people), dtype=np.float64)


def _middle(layout: TableLayout) -> FloatArray:
    row = []
    for column in layout.columns:
        low, high = np.nan_to_num([column.lower, column.upper], neginf=-1e6, posinf=1e6)
        row.append(0.0 if column.categories else float(np.clip(np.floor((low + high) / 2), low, high)))
    return np.array([row])


def _check_kind(place: Coordinates, layout: TableLayout, encoded: bool | None) -> None:
    """Raise if it cannot be told, or is told wrongly, whether the model takes the table or encoded rows."""
    if encoded is False and place.takes == "encoded":
        raise InputError(
            "verify: encoded=False says that the model takes the table, but its columns are those of encoded rows. "
            "Pass encoded=True."
        )
    plain = all(
        column.mean == 0.0 and column.scale == 1.0 and column.curve is None and column.width == 1
        for column in layout.columns
    )
    if encoded is None and place.takes == "numbers" and place.model.n_features == layout.width and not plain:
        raise InputError(
            "verify: the model's columns fit both the table and its encoding. Pass encoded=True or False."
        )


@dataclass(frozen=True)
class FlipRule:
    """A part of the domain where decisions flip."""

    share: float
    within: float
    rows: str


@dataclass(frozen=True, eq=False)
class Verification:
    """What is known of the whole domain."""

    proved: float
    flips: float
    undecided: float
    people: tuple[float, float, float] | None
    examples: tuple[Flip, ...]
    rules: tuple[FlipRule, ...]
    regions: int
    seconds: float
    stopped: bool = False
    sampled: Sampled | None = None
    trivial: bool = False
    reason: str = ""


def verify(
    model: Any,
    domain: Any,
    sensitive_features: Sequence[str],
    *,
    people: Any = None,
    encoded: bool | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
    random_state: int = 0,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Prove where a model's decision does not depend on the sensitive columns, over all rows that can exist.

    With a table the domain is made from it, and its people are counted; missing cells, words, codes and ids are prepared
    as `audit` does.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        Of a tree ensemble, a ReLU network or a linear model shares of the domain are proved. Any other model is asked:
        about the people, and about random rows of the domain.
    domain : table, TabularDomain or BoxDomain
        The people, in original units; or which rows can exist.
    sensitive_features : sequence of str
        Columns of the domain; every combination of their values is looked at.
    people : DataFrame, or float array of shape (n, d), optional
        A table, or encoded rows: the shares are then also given of these people, as `audit` counts them.
    encoded : bool, optional
        Whether the model was trained on encoded rows and not on the table; by default that is told from the number
        and the names of its columns, and where both fit it must be said.
    seconds : float, default=60
        CPU time of the proof.
    max_regions : int, default=1,000,000
    random_state : int, default=0
        For the random rows.
    progress : callable, optional
        Called about once a second with what is known by then.

    Returns
    -------
    Verification
        Ctrl-C ends the proof and returns what is known by then.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from likewise.data import TabularDomain
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 0, 1, 1])
    >>> found = verify(tree, domain, ["sex"], encoded=True)
    >>> found.proved, found.flips, found.trivial
    (1.0, 0.0, True)
    """
    _check_seconds(seconds)
    if is_frame(domain) and people is None and not encoded:
        from likewise.auditing.verification.table import verify_table

        return verify_table(
            model,
            domain,
            sensitive_features,
            seconds=seconds,
            max_regions=max_regions,
            random_state=random_state,
            progress=progress,
        )
    asked = prepare(model, domain, sensitive_features, people=people, encoded=encoded)
    family, reason = None, ""
    try:
        family = asked.family()
    except InputError as error:
        reason = str(error).removeprefix("family_of: ")
    values = asked.values if family is None else _read_values(family, asked.values, sensitive_features)
    same = None if family is None else partial(proved_same, family, asked.values)
    rows = asked.people()
    examples = FlipExamples(asked.layout, values or asked.values, asked.asker.decisions, rows)
    shares = None
    if asked.has_people:
        kept, changed = changed_people(asked.problem, same, rows)
        shares = _three(kept, changed)
        examples.add_people(rows, np.flatnonzero(changed))
    sampled = None
    try:
        sampled = sample_rows(
            asked.layout,
            values or asked.values,
            asked.asker.decisions,
            same=same,
            random_state=random_state,
            on_progress=examples.add,
        )
    except LikewiseError as error:
        reason = reason or f"the model does not answer about rows that the domain allows: {error}"
    if values is None and examples.found:
        family, reason = (
            None,
            "the model was read as if it did not use these columns, and its answers depend on them.",
        )
    if family is None:
        return Verification(0.0, 0.0, 1.0, shares, examples.found, (), 0, 0.0, sampled=sampled, reason=reason)
    if values is None:
        return Verification(1.0, 0.0, 0.0, shares, (), (), 0, 0.0, sampled=sampled, trivial=True)
    beside = _Beside(shares, sampled)
    return _prove(family, values, examples, beside, seconds, max_regions, progress)


def shares_of_people(
    model: Any, domain: Any, sensitive_features: Sequence[str], people: Any, *, encoded: bool | None = None
) -> tuple[float, float, float]:
    """Return the shares of people whose decision is the same, is not, or is open, by asking the model alone."""
    asked = prepare(model, domain, sensitive_features, people=people, encoded=encoded)
    return _three(*changed_people(asked.problem, None, asked.people()))


def _three(kept: Any, changed: Any) -> tuple[float, float, float]:
    return float(kept.mean()), float(changed.mean()), float((~kept & ~changed).mean())


def verify_family(
    family: Decider,
    sensitive_features: Sequence[str],
    *,
    decide: Decide | None = None,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Prove what `verify` proves of a family that is at hand already."""
    _check_seconds(seconds)
    every = SensitiveValues.of(family.layout, sensitive_features)
    values = _read_values(family, every, sensitive_features)
    if values is None:
        return Verification(1.0, 0.0, 0.0, None, (), (), 0, 0.0, trivial=True)
    examples = FlipExamples(family.layout, values, decide or family.decisions)
    return _prove(family, values, examples, _Beside(None, None), seconds, max_regions, progress)


class _Beside(NamedTuple):
    """What stands beside a proof."""

    people: tuple[float, float, float] | None
    sampled: Sampled | None


def _check_seconds(seconds: float) -> None:
    if not seconds > 0:
        raise bad_parameter("verify", "seconds", allowed="a number above 0", got=seconds)


def _read_values(family: Decider, values: SensitiveValues, names: Sequence[str]) -> SensitiveValues | None:
    """Values of the columns that the model reads, None if it reads none: what it does not read cannot change it."""
    read = [name for name, i in zip(names, values.columns, strict=True) if family.reads(int(i))]
    return SensitiveValues.of(family.layout, read) if read else None


def _prove(
    family: Decider,
    values: SensitiveValues,
    examples: FlipExamples,
    beside: _Beside,
    seconds: float,
    max_regions: int,
    progress: Callable[[Verification], None] | None,
) -> Verification:
    work, stopped = UndecidedRegions(family, values, examples), False
    # What is compiled is compiled by now.
    clock = told = time.process_time()
    try:
        while work.heap and time.process_time() - clock < seconds and work.looked < max_regions:
            work.advance()
            if progress is not None and time.process_time() - told > 1.0:
                told = time.process_time()
                progress(_known(work, beside, told - clock, False))
    except KeyboardInterrupt:
        stopped = True
    return _known(work, beside, time.process_time() - clock, stopped)


def _known(work: UndecidedRegions, beside: _Beside, seconds: float, stopped: bool) -> Verification:
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
    return Verification(
        proved,
        flips,
        work.undecided,
        beside.people,
        work.examples.found,
        rules,
        work.looked,
        seconds,
        stopped,
        beside.sampled,
    )
