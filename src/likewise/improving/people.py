"""The people that models are compared on: a table cut into training people, folds of them, and people never seen."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.case import build_metric, table_request
from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.editable_rows import MAX_VALUES, few_values
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.sources import loaded_model
from likewise.auditing.worst_case import prepare_people, search_people
from likewise.core.checks import (
    FloatArray,
    check_integer,
    check_labels,
    check_number,
    check_same_length,
    check_share,
)
from likewise.core.decisions import decide
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, to_pandas, with_columns
from likewise.core.messages import Message
from likewise.counterfactuals.correspondence import correspondence_study
from likewise.counterfactuals.edits import Edit, Edits, edited_columns, read_edits
from likewise.data.case import People, take_people
from likewise.data.opening import TableChoices
from likewise.data.tabular import TabularDomain
from likewise.data.target import stratified_split
from likewise.improving.figures import Spread, Tally
from likewise.models.matching import model_columns

if TYPE_CHECKING:
    from likewise.fair_metrics import FairMetric

# Groups with fewer training people of some class have no rates worth comparing.
MIN_OF_CLASS = 30
# People of a fold, and of those never seen, who are asked about with other values of the sensitive columns.
MAX_AUDITED = 2000
# People of these whose worst case over the domain is searched for; fewer if the table is wide, since that costs more.
MAX_SEARCHED, MIN_SEARCHED, MAX_SEARCHED_CELLS = 300, 50, 12_000
# Numbers of people at which a learner changes: from there on some are held out to stop by, or several ε are tried.
SIZE_RULES = (100, 2000, 6000)
# From so many training people on three folds say enough.
MANY = 100_000


@dataclass(frozen=True, eq=False)
class SplitData:
    """A table of people, cut, and how unfairness is measured on it."""

    frame: pd.DataFrame
    labels: np.ndarray[Any, Any]
    classes: np.ndarray[Any, Any]
    sensitive: tuple[str, ...]
    twin_values: Mapping[str, tuple[Any, ...]]
    edits: tuple[Any, ...]
    groups: Mapping[str, tuple[Any, ...]]
    domain: TabularDomain
    metric: FairMetric
    eps: float
    train: np.ndarray[Any, Any]
    test: np.ndarray[Any, Any]
    folds: tuple[np.ndarray[Any, Any], ...]
    n_audited: int
    n_searched: int
    seed: int
    metric_given: bool = False
    notes: tuple[str, ...] = ()

    @property
    def twin_edits(self) -> tuple[Any, ...]:
        """All that twins exchange, in the language of `correspondence_study`."""
        return (*(Edit(name, values) for name, values in self.twin_values.items()), *self.edits)

    def kept(self, fold: int) -> np.ndarray[Any, Any]:
        """Training people outside of a fold."""
        return np.sort(np.concatenate([part for i, part in enumerate(self.folds) if i != fold]))

    @property
    def final(self) -> np.ndarray[Any, Any]:
        """Who the chosen model is trained on: all training people, or as many as make it the learner of the folds."""
        smallest = len(self.train) - max(map(len, self.folds))
        limit = next((size for size in SIZE_RULES if smallest < size <= len(self.train)), None)
        if limit is None:
            return self.train
        random = np.random.default_rng([self.seed, 2])
        return np.sort(random.choice(self.train, limit - 1, replace=False))

    def settings(self) -> dict[str, Any]:
        """Everything that figures depend on besides the candidate, as JSON values; the table by its digest."""
        scales = {c.name: c.curve.name for c in self.domain.columns_ if c.curve is not None}
        return ({"scales": scales} if scales else {}) | {
            "table": _digest(self.frame, self.labels),
            "metric": _metric_digest(self.metric, self.frame) if self.metric_given else "learned",
            "sensitive": list(self.sensitive),
            "edits": repr(self.edits),
            "eps": self.eps,
            "folds": len(self.folds),
            "test": len(self.test),
            "seed": self.seed,
        }


def split_data(
    X: Any,
    y: Any,
    *,
    sensitive_features: Sequence[str],
    model: Any = None,
    edits: Edits | None = None,
    metric: FairMetric | str | None = None,
    eps: float = 0.1,
    test_share: float = 0.2,
    folds: int | None = None,
    scales: Mapping[str, Any] | None = None,
    missing: str = "auto",
    seed: int = 0,
) -> SplitData:
    """Cut a table and learn who is comparable; the parameters are those of `improve`."""
    owner = "improve"
    names = (sensitive_features,) if isinstance(sensitive_features, str) else tuple(sensitive_features)
    if not names:
        raise InputError(
            "improve: 'sensitive_features' names no column. Say which columns shall not decide: ['sex']."
        )
    edited = () if edits is None else read_edits(edits, owner=owner)
    needed = (*names, *edited_columns(edited))
    people = X if isinstance(X, People) else _people(X, y, needed, metric, model, missing)
    frame, labels = people.frame, check_labels(people.labels, owner=owner)
    budget = check_number(eps, owner=owner, name="eps", low=0)
    share = check_share(test_share, owner=owner, name="test_share")
    for value, many in zip(*np.unique(labels, return_counts=True), strict=True):
        if many < 20:
            raise InputError(
                f"improve: {many} people have the label {value}; to choose and to check the choice takes 20 of each. "
                "Pass more people."
            )
    train, test = stratified_split(labels, share, np.random.default_rng([seed, 0]))
    count = (3 if len(train) >= MANY else 5) if folds is None else folds
    check_integer(count, owner=owner, name="folds", low=2)
    parts = _folds(labels, train, count, seed)
    groups, notes = _groups(frame.iloc[train], labels[train], names)
    # Of all people, so that nobody has a category never heard of; no label is used.
    known = getattr(getattr(metric, "feature_map", None), "columns_", ())
    learned_scales = {c.name: c.curve for c in known if c.curve is not None and c.name in frame}
    domain = TabularDomain.from_frame(frame, scales={**learned_scales, **(scales or {})} or None)
    n_audited = min(MAX_AUDITED, len(test), *map(len, parts))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        comparable = build_metric(metric, frame.iloc[train], names, domain, owner=owner)
    notes = (*notes, *dict.fromkeys(str(warning.message) for warning in caught))
    return SplitData(
        frame,
        labels,
        np.unique(labels),
        names,
        {name: tuple(few_values(frame[name].iloc[train])) for name in names},
        edited,
        groups,
        domain,
        comparable,
        float(budget),
        train,
        test,
        parts,
        n_audited,
        min(n_audited, max(MIN_SEARCHED, min(MAX_SEARCHED, MAX_SEARCHED_CELLS // len(frame.columns)))),
        int(seed),
        metric is not None,
        (*(() if isinstance(X, People) else people.notes), *notes),
    )


def _people(X: Any, y: Any, needed: Sequence[str], metric: Any, model: Any, missing: str) -> People:
    """Prepare a table of Python as the command line prepares a file; missing cells are filled."""
    frame = to_pandas(X, owner="improve", name="X")
    check_same_length("improve", X=frame, y=check_labels(y, owner="improve"))
    check_columns(frame, needed, owner="improve", name="X")
    used = () if model is None else model_columns(loaded_model(model, frame))[0] or ()
    asked = table_request(
        None,
        metric,
        (*needed, *(name for name in used if name in frame)),
        target="y",
        choices=TableChoices(missing=missing),
        widest=None,
    )
    return take_people(frame, y, asked, name="X")


def _folds(labels: Any, train: Any, count: int, seed: int) -> tuple[Any, ...]:
    random = np.random.default_rng([seed, 1])
    fold = np.empty(len(train), dtype=np.int64)
    start = 0
    for value in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels[train] == value))
        fold[own] = (start + np.arange(len(own))) % count
        start += len(own)  # so that the folds differ by one person at most
    return tuple(train[fold == number] for number in range(count))


def _groups(frame: pd.DataFrame, labels: Any, names: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Groups that are large enough, and what was left out."""
    found, notes = {}, []
    for name in names:
        if frame[name].nunique() > MAX_VALUES:
            notes.append(Message("improve.note_no_groups", column=str(name), most=MAX_VALUES))
            continue
        counts = pd.crosstab(frame[name].to_numpy(), labels)
        large = counts.index[(counts >= MIN_OF_CLASS).all(axis=1)]
        small = [str(value) for value in counts.index if value not in large]
        if len(large) >= 2:
            found[name] = tuple(large.tolist())
        if small:
            notes.append(
                Message("improve.note_small", column=str(name), values=", ".join(small), least=MIN_OF_CLASS)
            )
    return found, tuple(notes)


def _digest(frame: pd.DataFrame, labels: Any) -> str:
    whole = with_columns(frame, {"": labels})
    hashed = pd.util.hash_pandas_object(whole, index=False).to_numpy()
    return hashlib.sha256(repr(list(frame.columns)).encode() + hashed.tobytes()).hexdigest()[:16]


def _metric_digest(metric: FairMetric, frame: pd.DataFrame) -> str:
    places = np.asarray(metric.embed(frame.head(200)), dtype=np.float64)
    # Rounded, so that another order of the same sums is not another metric.
    return hashlib.sha256((places.round(6) + 0.0).tobytes()).hexdigest()[:16]


# One model, some people: count what it decides, what it decides about their counterparts, and their worst cases.


def tally_model(model: Any, data: SplitData, rows: Any, *, seed: int) -> Tally:
    """Ask a model about people of the table."""
    frame, labels = data.frame.iloc[rows].reset_index(drop=True), data.labels[rows]
    decided = decide(model, frame, len(frame), owner="improve")
    right = (decided == labels).astype(np.int64)
    codes = np.searchsorted(data.classes, labels)
    n_classes = len(data.classes)
    groups = {}
    for attribute, values in data.groups.items():
        members = frame[attribute].to_numpy()
        counts = np.zeros((len(values), n_classes, 2), dtype=np.int64)
        for place, value in enumerate(values):
            own = members == value
            counts[place] = _by_class(codes[own], right[own], n_classes)
        groups[attribute] = counts
    random = np.random.default_rng(seed)
    some = np.sort(random.permutation(len(frame))[: data.n_audited])
    people, their_labels = frame.iloc[some].reset_index(drop=True), labels[some]
    study = correspondence_study(model, people, list(data.twin_edits), allow_new=True)
    changed = int(study.flipped.sum())
    few = np.sort(random.permutation(len(people))[: data.n_searched])
    frontier = _frontier(model, data, people.iloc[few].reset_index(drop=True), their_labels[few])
    gains = worst_case_gains(frontier, (0.0, data.eps))
    return Tally(
        _by_class(codes, right, n_classes),
        groups,
        np.array([len(people) - changed, changed]),
        *(Spread.of(gain) for gain in gains),
    )


def worst_case_gains(frontier: Frontier, budgets: tuple[float, ...]) -> tuple[FloatArray, ...]:
    """Return what the worst case at each budget adds to everybody's loss; its mean is the gap."""
    curve = dual_curve(frontier)
    found = []
    for eps in budgets:
        # V(ε) = λ*ε + mean_i max_j (ℓ_ij − λ* d²_ij), equation 4 at its minimiser.
        lam = float(curve.lambda_(eps))
        found.append(np.asarray(lam * eps + frontier.conjugate(lam) - frontier.base_loss))
    return tuple(found)


def _frontier(model: Any, data: SplitData, people: Any, labels: Any) -> Frontier:
    """Worst cases over the domain, by the search of `audit` that takes any model; what it finds depends on the person alone."""
    asked = AuditRequest.of(
        search="domain",
        model=model,
        metric=data.metric,
        domain=data.domain,
        edits=list(data.twin_edits),
        eps=data.eps,
        random_state=data.seed,
    )
    prepared = prepare_people(asked, people, labels)
    return search_people(prepared, prepared.problem).found.support.frontier


def _by_class(codes: Any, right: Any, n_classes: int) -> Any:
    return np.bincount(2 * codes + right, minlength=2 * n_classes).reshape(n_classes, 2).astype(np.int64)
