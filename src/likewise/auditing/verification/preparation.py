"""Model, domain and people of a verification in one coordinate system: the same preparation as an audit's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.bounds.families import Asker, check_rows, family_at, random_rows
from likewise.auditing.bounds.family import Family
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.regions import TableLayout, middle_row
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.case import MatchedPeople
from likewise.auditing.inference.sanity import Finding, check_before_verdict
from likewise.auditing.people import ASKED_TWICE, answers_repeat, differ_alike, tabular
from likewise.auditing.problem import AuditProblem, Coordinates
from likewise.auditing.results.effects import SensitiveSums
from likewise.auditing.results.sensitive import Enumeration, enumerate_sensitive
from likewise.auditing.verification.asked_shares import BATCH, OneHot, SensitiveValues, twin_labels
from likewise.core.checks import BoolArray, FloatArray, to_numpy
from likewise.core.errors import InputError, LikewiseError
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.core.plain import plain_cell
from likewise.fair_metrics import euclidean
from likewise.models import CallableModel, Model, as_model
from likewise.models.losses import ZeroOne
from likewise.models.matching import Matched


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model that can be asked about every row of a domain, and people."""

    problem: AuditProblem
    layout: TableLayout
    asker: Asker
    names: tuple[str, ...]
    groups: tuple[OneHot, ...]
    has_people: bool
    # The model under the loss that it came with, and the labels, if there are any: for what is said before any number.
    given: Model
    labels: Any = None
    # The people as the user knows them, and where they are in the user's table.
    shown: pd.DataFrame | None = None
    places: Any = None
    # Rows that the model's preparation has in other words (dates, ids), as the user knows them.
    restored: Callable[[pd.DataFrame], pd.DataFrame] | None = None

    @cached_property
    def values(self) -> SensitiveValues:
        """The combinations of the sensitive columns."""
        return SensitiveValues.of(self.layout, self.names, self.groups)

    @cached_property
    def enumeration(self) -> Enumeration | None:
        """What the people get under other sensitive values, as an audit asks."""
        return enumerate_sensitive(self.problem)

    def findings(self) -> tuple[Finding, ...]:
        """What has to be known before any number, as before an audit's."""
        if not self.has_people:
            return ()
        place = replace(self.problem.coordinates, model=self.given)
        known = self.given.known_classes
        decided = self.problem.decided if known is None else known[self.problem.decided]
        labels = decided if self.labels is None else np.asarray(self.labels)
        # Labels of other names say nothing about the decisions.
        labelled = self.labels is not None and set(labels.tolist()) <= set(
            decided.tolist() if known is None else known.tolist()
        )
        problem = replace(
            self.problem, coordinates=place, y=labels if labelled else decided, labelled=labelled
        )
        found = self.enumeration
        return check_before_verdict(problem, None if found is None else SensitiveSums.of(found))

    def repeats(self) -> bool:
        """Whether the model gives the same answers when it is asked about the same rows twice."""
        rows = random_rows(self.layout, self.people(), np.random.default_rng(0), ASKED_TWICE)
        try:
            return answers_repeat(self.problem.coordinates.model, lambda at: self.asker.shown(rows[at])[0])
        except LikewiseError:
            # A model may refuse rows that the domain allows.
            return self.problem.repeats

    def changed_people(
        self, same: Callable[[FloatArray], BoolArray] | None = None, seconds: float = 60.0
    ) -> tuple[BoolArray, BoolArray]:
        """Whose decision is the same for all sensitive values, and whose is not, (n,) each."""
        rows, found, decide = self.people(), self.enumeration, self.asker.decisions
        if found is None:
            return np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
        changed = found.changed
        kept = ~changed
        if found.exact:
            return kept, changed
        if same is not None and kept.any():
            kept[kept] = same(rows[kept])
        else:
            kept[:] = False
        left = np.flatnonzero(~kept & ~changed)
        whole, clock = self.values.of_person(), time.process_time()
        at_once = max(1, BATCH // len(whole.asked))
        for first in range(0, len(left) if whole.complete else 0, at_once):
            if time.process_time() - clock > seconds:
                break
            at = left[first : first + at_once]
            labels = twin_labels(decide, whole.rows(rows[at]), len(at))
            own = np.asarray(decide(rows[at]), dtype=np.int64)
            differs = labels != own[:, None]
            some = np.flatnonzero(differs.any(axis=1))
            which = differs[some].argmax(axis=1)
            twins = whole.rows(rows[at[some]])[np.arange(len(some)) * len(whole.asked) + which]
            certain = (own[some] >= 0) & (labels[some, which] >= 0)
            changed[at[some]] = certain & differ_alike(decide, rows[at[some]], twins)
            # Rounding is neither the same decision nor another.
            kept[at] = ~differs.any(axis=1)
        return kept, changed

    def family(self) -> TreeFamily | NetworkFamily:
        """Read the model; raises `InputError` if it cannot be read or answers differently than was read."""
        found = family_at(self.problem.coordinates, self.problem.X)
        check_rows(found, self.asker, self.people(), decides=True)
        return found

    def people(self) -> FloatArray:
        """The people as rows of values, (n, P); without rows if nobody was given."""
        found = self.layout.values(self.problem.X)
        return found if self.has_people else found[:0]

    def table(self, values: FloatArray) -> pd.DataFrame:
        """Return rows of values in original units."""
        place = self.problem.coordinates
        if place.encoding is None:
            return pd.DataFrame(values, columns=[column.name for column in self.layout.columns])
        encoded: Any = self.layout.encode(values)
        found = place.original(place.given(encoded)).copy()
        for i, column in enumerate(self.layout.columns):
            kind: Any = found[column.name].dtype
            if not column.categories and kind.kind in "iuf":
                found[column.name] = pd.Series(values[:, i], index=found.index).astype(kind)
        return found if self.restored is None else self.restored(found)

    def person(self, number: int) -> tuple[pd.DataFrame, Any]:
        """One of the people as the user knows them, and where they are in the user's table."""
        own = self.shown.iloc[[number]] if self.shown is not None else self.table(self.people()[[number]])
        return own.reset_index(drop=True), number if self.places is None else plain_cell(self.places[number])

    def decision(self, position: int) -> Any:
        """The name of a class."""
        known = self.given.known_classes
        return position if known is None else plain_cell(known[position])


def prepare(
    model: Any,
    domain: Any,
    names: Sequence[str],
    *,
    people: Any = None,
    encoded: bool | None = None,
    labels: Any = None,
    shown: pd.DataFrame | None = None,
    places: Any = None,
    restored: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Prepared:
    """Bring a model, a domain and people together."""
    layout = TableLayout.of(domain)
    columns = SensitiveValues.of(layout, names).columns
    if people is None:
        _check_one_hot(layout, names)
    known = tabular(domain)
    raw = known is not None and encoded is not True
    given, adapter = _adapters(model, takes_frame=raw)
    # Sensitive columns are changed here, whatever else may not change in an audit.
    fixed = known is not None and any(column.immutable for column in known.columns_)
    free = known.with_immutable(()) if fixed else domain
    rows = _rows(people, free, layout, raw=raw)
    metric = euclidean(layout.width)
    try:
        problem = AuditProblem.build(
            adapter,
            rows,
            np.zeros(len(rows), dtype=np.int64),
            metric=metric if known is None else replace(metric, feature_map=free),
            domain=free,
            edits=[int(i) for i in columns] if known is None else list(names),
            encoded=not raw,
        )
    except InputError as error:
        # The preparation is an audit's.
        raise InputError(re.sub(r"^audit\b", "verify", str(error))) from error
    _check_kind(problem.coordinates, layout, encoded)
    classes = adapter.known_classes
    if classes is not None:
        problem = replace(problem, y=np.full(problem.n, classes[0]))
    variants = () if known is None else (part for part in problem.edits if isinstance(part, tuple))
    asker = Asker(problem.coordinates, layout)
    if shown is None and is_frame(people) and raw and not declared_encoded(people):
        table = to_pandas(people, owner="verify", name="X")
        shown, places = (
            table[[column.name for column in layout.columns]],
            table.index if places is None else places,
        )
    return Prepared(
        problem,
        layout,
        asker,
        tuple(names),
        tuple(_one_hot(layout, part) for part in variants),
        people is not None,
        given,
        labels,
        shown,
        places,
        restored,
    )


def prepare_matched(matched: Matched, names: Sequence[str], people: Any, **about: Any) -> Prepared:
    """Bring people together with a model and a domain that fit each other already."""
    own = getattr(matched.model, "encoder", None) is not None
    encoded = None if own else not matched.model.takes_frame
    people = None if people is None else people[list(matched.columns)]
    return prepare(matched.model, matched.domain, names, people=people, encoded=encoded, **about)


def prepare_found(found: MatchedPeople, names: Sequence[str], **about: Any) -> Prepared:
    """Bring people together with the model that they were matched with, as the user knows them."""
    shown = found.frame if found.gaps is None else found.gaps.restored(found.frame)
    shown = shown[[name for name in found.plain.columns if name in shown.columns]]
    return prepare_matched(found.matched, names, found.frame, shown=shown, **about)


def read_values(
    family: Family, names: Sequence[str], groups: Sequence[OneHot] = ()
) -> SensitiveValues | None:
    """Values of the columns that the model reads, None if it reads none: what it does not read cannot change it."""
    known = {column.name: i for i, column in enumerate(family.layout.columns)}
    read = [name for name in names if family.reads(known[name])]
    return SensitiveValues.of(family.layout, read, groups) if read else None


def _one_hot(layout: TableLayout, variants: tuple[Any, ...]) -> OneHot:
    """0/1 columns that an audit exchanges together, as codes."""
    known = {column.name: list(column.categories) for column in layout.columns}
    codes = [
        [known[name].index(value) if known[name] else float(value) for name, value in one.items()]
        for one in variants
    ]
    return OneHot(tuple(variants[0]), np.array(codes, dtype=np.float64))


def _check_one_hot(layout: TableLayout, names: Sequence[str]) -> None:
    """Raise if sensitive 0/1 columns are named like parts of one attribute: only people show which of them occur together."""
    bits = [
        column.name
        for column in layout.columns
        if set(column.categories) == {0, 1} or (column.kind, column.lower, column.upper) == ("integer", 0, 1)
    ]
    for name in (name for name in names if name in bits):
        prefixes = [name[: found.end()] for found in re.finditer(r"[_=:.\- ]", name) if found.start() > 0]
        group = [other for other in bits if prefixes and other.startswith(prefixes[0])]
        if len(group) > 1:
            raise InputError(
                f"verify: the columns {', '.join(group[:12])} are named like one attribute (one 1 in each row), and "
                "without people it is not known which of their combinations exist. Pass the table, or keep the "
                "attribute in one column."
            )


def _adapters(model: Any, *, takes_frame: bool) -> tuple[Model, Model]:
    """The model as it is, and under the 0–1 loss: only decisions count."""
    given = isinstance(model, Model)
    try:
        adapter = model if given else as_model(model)
    except InputError:
        adapter = None
    try:
        regression = (adapter or as_model(model, loss="squared")).loss.regression
    except InputError:
        regression = False
    if regression and not callable(model):
        raise InputError(
            "verify: the model predicts numbers, and what is verified are decisions. audit(..., tolerance=…) says whose "
            "prediction changes by more than a tolerance; for a proof pass a classifier, or a function that decides."
        )
    if adapter is None:
        adapter = as_model(model, loss=ZeroOne())
    elif not given and isinstance(adapter, CallableModel) and takes_frame:
        adapter = as_model(model, takes_frame=True)
    return adapter, adapter.with_loss(ZeroOne())


def _rows(people: Any, domain: Any, layout: TableLayout, *, raw: bool) -> Any:
    """The people as a raw table or as encoded rows; without people one row from the middle of the domain."""
    if people is None:
        people = layout.encode(middle_row(layout))
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
