"""The proxy test: columns that carry an attribute, move decisions, or are needed for the target."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from likewise.core.checks import FloatArray, IntArray, check_integer, check_same_length, check_share
from likewise.core.decisions import decide
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.core.intervals import Interval, Measure, bounded_mean_interval, proportion_interval
from likewise.core.plain import Written
from likewise.proxies.probabilities import GroupProbabilities
from likewise.proxies.removal import as_numbers, shuffled, without_attribute

# An AUC this far above that of the legitimate columns is carrying; fewer decisions than this are not moving.
_CARRIES, _MOVES = 0.02, 0.005
# Above this many people one draw of the replaced values tells the share well enough.
_MANY = 10_000
_STRATA = 8


@dataclass(frozen=True)
class ProxyColumn:
    """What one column, or two together, have to do with an attribute.

    Parameters
    ----------
    columns : tuple of str
    carries : Measure
        How well the attribute can be told from it and the legitimate columns: the area under the ROC curve (AUC), of
        people that were not learned from; 0.5 is chance.
    moves : Measure
        Share of decisions that change if its part that carries the attribute is removed.
    placebo : float
        The same share for an attribute that was dealt out at random: what the method itself moves.
    used : float
        Share of decisions that change if its values are exchanged at random.
    needed : Measure or None
        By how much accuracy falls without it; None without a target.
    verdict : {"proxy", "carries", "used", "neither"}
        "proxy" carries and moves; "carries" does not move decisions; "used" moves decisions and does not carry.

    Examples
    --------
    >>> half = Measure("", 0.5, 0.45, 0.55)
    >>> ProxyColumn(("age",), half, Measure("", 0.0, 0.0, 0.01), 0.0, 0.2, None, "used").verdict
    'used'
    """

    columns: tuple[str, ...]
    carries: Measure
    moves: Measure
    placebo: float
    used: float
    needed: Measure | None
    verdict: str

    @property
    def name(self) -> str:
        """The column, or two joined by " + "."""
        return " + ".join(self.columns)


@dataclass(frozen=True)
class ProxyTest(Written):
    """Which columns of a model stand in for an attribute.

    Parameters
    ----------
    attribute : str
    columns : tuple of ProxyColumn
        Single columns, those that carry and move most first, then pairs.
    direct : float or None
        Share of decisions that change if the attribute itself is exchanged at random; None if it is not in the table.
    baseline : float
        AUC of the legitimate columns alone; 0.5 without any.
    legitimate : tuple of str
    people : int
    by_probability : bool
        Whether the attribute was known by probability only.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 1000)
    >>> X = pd.DataFrame({"height": rng.normal(size=1000) + 2 * (sex == "m"), "skill": rng.normal(size=1000)})
    >>> proxy_test(lambda X: (X["height"] + X["skill"] > 1).astype(int), X, sex).proxies
    ('height',)
    """

    attribute: str
    columns: tuple[ProxyColumn, ...]
    direct: float | None
    baseline: float
    legitimate: tuple[str, ...]
    people: int
    by_probability: bool = False

    @property
    def proxies(self) -> tuple[str, ...]:
        """Single columns that carry the attribute and move decisions."""
        return tuple(one.name for one in self.columns if one.verdict == "proxy" and len(one.columns) == 1)

    @property
    def table(self) -> pd.DataFrame:
        """One row per column or pair."""
        rows = []
        for one in self.columns:
            needed = one.needed or Measure("", np.nan, np.nan, np.nan)
            row: dict[str, Any] = {"column": one.name}
            for name, value in (("carries", one.carries), ("moves", one.moves), ("needed", needed)):
                row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            rows.append(row | {"placebo": one.placebo, "used": one.used, "verdict": one.verdict})
        return pd.DataFrame(rows)


def proxy_test(
    model: Any,
    X: Any,
    attribute: Any,
    *,
    y: Any = None,
    legitimate: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    pairs: int = 6,
    confidence: float = 0.95,
    random_state: int = 0,
) -> ProxyTest:
    """Find the columns that carry an attribute into the decisions of a model.

    Parameters
    ----------
    model : object with `predict`, or callable
        Takes the table, returns one decision per row.
    X : DataFrame of n rows
        What the model takes.
    attribute : str, array-like of shape (n,), or GroupProbabilities
        A column of X, its values, or how likely everybody is of each group (`group_probabilities`).
    y : array-like of shape (n,), optional
        The target, to tell what each column is needed for.
    legitimate : sequence of str
        Columns that may decide although they differ between groups. Others are looked at given these.
    columns : sequence of str, optional
        Columns to look at; by default all but the attribute and the legitimate ones.
    pairs : int, default=6
        How many pairs to look at, of the columns that carry most.
    confidence : float, default=0.95
    random_state : int, default=0

    Returns
    -------
    ProxyTest

    Notes
    -----
    To remove the part of a column that carries the attribute, every group is moved to the distribution that all groups have
    together, given the legitimate columns: a number to the same rank there, a category only as often as a group has too many
    of it. What is left tells nothing about the attribute. If the attribute is known by probability, groups are drawn from
    the probabilities, which makes carrying and moving smaller than they are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 1000)
    >>> X = pd.DataFrame({"height": rng.normal(size=1000) + 2 * (sex == "m"), "skill": rng.normal(size=1000)})
    >>> print(proxy_test(lambda X: (X["skill"] > 0).astype(int), X, sex).columns[0].verdict)
    carries
    """
    owner = "proxy_test"
    frame = to_pandas(X, owner=owner, name="X").reset_index(drop=True)
    level = check_share(confidence, owner=owner, name="confidence")
    rng = np.random.default_rng(check_integer(random_state, owner=owner, name="random_state", low=0))
    check_integer(pairs, owner=owner, name="pairs", low=0)
    check_columns(frame, [*legitimate, *(columns or ())], owner=owner, name="X")
    if len(frame) < 50:
        raise bad_parameter(owner, "X", "a table of at least 50 people", f"{len(frame)}")
    name, group, soft, keep = _attribute(attribute, frame, rng, owner)
    frame, group = frame[keep].reset_index(drop=True), group[keep]
    target = None if y is None else np.asarray(y)[keep]
    own = [name] if isinstance(attribute, str) else []
    looked = [c for c in (columns if columns is not None else frame.columns) if c not in {*own, *legitimate}]
    if not looked:
        raise InputError(
            f"{owner}: no column is left to look at beside the attribute and the legitimate ones."
        )
    test = _Test(model, frame, group, list(legitimate), rng, level, owner)
    needed = {} if target is None else _needed(frame, target, looked, list(legitimate), level, random_state)
    singles = [test.column((c,), needed.get((c,))) for c in looked]
    order = {"proxy": 0, "carries": 1, "used": 2, "neither": 3}
    singles.sort(key=lambda one: (order[one.verdict], -one.moves.value, -one.carries.value, one.name))
    first = [one.columns[0] for one in sorted(singles, key=lambda one: -one.carries.value - one.used)[:5]]
    chosen = list(itertools.combinations(first, 2))[:pairs]
    joint = (
        {}
        if target is None or not chosen
        else _needed(frame, target, chosen, list(legitimate), level, random_state, of=looked)
    )
    both = [test.column(pair, joint.get(pair)) for pair in chosen]
    both.sort(key=lambda one: (order[one.verdict], -one.moves.value))
    direct = None
    if own:
        direct = test.share({name: shuffled(frame[name], np.zeros(len(frame), int), rng)})
    return ProxyTest(name, (*singles, *both), direct, test.baseline, tuple(legitimate), len(frame), soft)


def _attribute(
    given: Any, frame: pd.DataFrame, rng: np.random.Generator, owner: str
) -> tuple[str, IntArray, bool, Any]:
    """Name of the attribute, codes of everybody's group, whether they were drawn, and who has one."""
    if isinstance(given, GroupProbabilities):
        p = given.table.to_numpy(float)
        check_same_length(owner, X=frame, attribute=p)
        drawn = (rng.uniform(size=(len(p), 1)) > p.cumsum(1)).sum(1).clip(max=p.shape[1] - 1)
        codes, name, soft = drawn, ", ".join(map(str, given.table.columns)), True
    else:
        if isinstance(given, str):
            check_columns(frame, [given], owner=owner, name="X")
            values, name = frame[given], given
        else:
            values = pd.Series(np.asarray(given, dtype=object))
            name = str(getattr(given, "name", None) or "attribute")
            check_same_length(owner, X=frame, attribute=values)
        codes, soft = pd.factorize(values)[0], False
    # The distribution of a group of a few people is not known.
    sizes = np.bincount(codes[codes >= 0], minlength=1)
    keep = (codes >= 0) & (sizes[codes] >= 20)
    if len(np.unique(codes[keep])) < 2:
        raise bad_parameter(
            owner, "attribute", "two or more groups of at least 20 people", f"{sizes.tolist()[:6]}"
        )
    return name, np.asarray(codes), soft, keep


class _Test:
    """One model and table, asked again and again with other columns."""

    def __init__(
        self,
        model: Any,
        frame: pd.DataFrame,
        group: IntArray,
        legitimate: list[str],
        rng: np.random.Generator,
        level: float,
        owner: str,
    ) -> None:
        self.model, self.frame, self.group, self.rng, self.owner = model, frame, group, rng, owner
        self.level, self.legitimate = level, legitimate
        self.own = decide(model, frame, len(frame), owner=owner)
        self.draws = 1 if len(frame) > _MANY else 3
        everybody = np.zeros(len(frame), dtype=int)
        self.strata, self.baseline = everybody, 0.5
        if legitimate:
            rest = as_numbers(frame[legitimate])
            self.baseline = self._auc(legitimate)
            least = max(100, len(frame) // 50)
            tree = DecisionTreeClassifier(max_leaf_nodes=_STRATA, min_samples_leaf=least, random_state=0)
            self.strata = np.unique(tree.fit(rest, group).apply(rest), return_inverse=True)[1]
        # An attribute dealt out at random among people who are alike in the legitimate columns.
        self.dealt = shuffled(pd.Series(group), self.strata, rng).to_numpy()

    def share(self, changed: dict[str, pd.Series[Any]]) -> float:
        """Share of decisions that change with these columns."""
        if all(column is self.frame[name] for name, column in changed.items()):
            return 0.0
        # Not `assign`: columns may have any name.
        other = self.frame.copy(deep=False)
        for name, column in changed.items():
            other[name] = column
        return float(np.mean(decide(self.model, other, len(other), owner=self.owner) != self.own))

    def column(self, names: tuple[str, ...], needed: Measure | None) -> ProxyColumn:
        """All numbers of a column or a pair."""
        auc = self._auc([*self.legitimate, *names])
        carries = _auc_measure(auc, np.bincount(self.group), self.level)
        shares, placebo = (
            [self.share(self._removed(names, by)) for _ in range(self.draws)]
            for by in (self.group, self.dealt)
        )
        n, share = len(self.frame), float(np.mean(shares))
        moves = Measure.of("moves", share, proportion_interval(round(share * n), n, confidence=self.level))
        used = self.share({name: shuffled(self.frame[name], self.strata, self.rng) for name in names})
        floor = float(np.mean(placebo))
        # Four standard errors, as many columns are looked at.
        error = (carries.high - carries.low) / 2 / -float(ndtri((1 - self.level) / 2))
        carrying = auc - self.baseline > max(_CARRIES, 4.0 * error)
        moving = moves.low > max(_MOVES, floor)
        verdict = ("proxy" if moving else "carries") if carrying else "used" if used > _MOVES else "neither"
        return ProxyColumn(names, carries, moves, floor, used, needed, verdict)

    def _removed(self, names: tuple[str, ...], group: IntArray) -> dict[str, pd.Series[Any]]:
        """The columns without the part that carries a grouping; the second given the first."""
        changed: dict[str, pd.Series[Any]] = {}
        before = after = self.strata
        for name in names:
            changed[name] = without_attribute(self.frame[name], group, before, after, self.rng)
            if name != names[-1]:
                bins, edges = _bins(self.frame[name])
                before = self.strata * _STRATA + bins
                after = self.strata * _STRATA + _bins(changed[name], edges)[0]
        return changed

    def _auc(self, names: list[str]) -> float:
        """AUC of the attribute from columns, of people that a tree has not learned from; groups weighted by their size."""
        chances = np.zeros((len(self.frame), int(self.group.max()) + 1))
        least = max(20, int(np.sqrt(len(self.frame))))
        words = [not pd.api.types.is_numeric_dtype(self.frame[name].dtype) for name in names]
        X = as_numbers(self.frame[names])
        smallest = int(np.bincount(self.group)[np.unique(self.group)].min())
        folds = StratifiedKFold(min(3, smallest), shuffle=True, random_state=0)
        for train, test in folds.split(X, self.group):
            learn, ask = X[train], X[test]
            if any(words):
                learn, ask = _by_group(learn, ask, self.group[train], words)
            tree = DecisionTreeClassifier(min_samples_leaf=least, random_state=0).fit(
                learn, self.group[train]
            )
            chances[np.ix_(test, tree.classes_)] = tree.predict_proba(ask)
        sizes = np.bincount(self.group, minlength=chances.shape[1])
        aucs = [
            roc_auc_score(self.group == a, chances[:, a]) if size else 0.0 for a, size in enumerate(sizes)
        ]
        return float(np.average(aucs, weights=sizes))


def _by_group(
    learn: FloatArray, ask: FloatArray, group: IntArray, words: list[bool]
) -> tuple[FloatArray, FloatArray]:
    """Categories in the order of how many of their people are of each group, so that a tree finds them at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = "multiclass" if len(np.unique(group)) > 2 else "binary"
        encoder = TargetEncoder(target_type=kind, cv=3, random_state=0)
        coded = encoder.fit_transform(learn[:, words], group), encoder.transform(ask[:, words])
    plain = [not word for word in words]
    return np.hstack([learn[:, plain], coded[0]]), np.hstack([ask[:, plain], coded[1]])


def _bins(column: pd.Series[Any], edges: Any = None) -> tuple[IntArray, Any]:
    """A few classes of a column: its most common values, or quarters of its numbers."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        if edges is None:
            edges = (
                np.unique(np.nanquantile(numbers, [0.25, 0.5, 0.75]))
                if np.isfinite(numbers).any()
                else np.zeros(0)
            )
        return np.searchsorted(edges, numbers, "left").clip(max=_STRATA - 1), edges
    words = column.astype(str)
    if edges is None:
        edges = words.value_counts().index[: _STRATA - 1]
    found = pd.Index(edges).get_indexer(pd.Index(words))
    return np.where(found < 0, _STRATA - 1, found), edges


def _auc_measure(auc: float, sizes: IntArray, level: float) -> Measure:
    """The AUC with Hanley and McNeil's interval, for one group against the others."""
    n = int(sizes.sum())
    first = int(sizes.max())
    a, b = min(max(auc / (2 - auc), 0.0), 1.0), 2 * auc**2 / (1 + auc)
    m, k = first, max(n - first, 1)
    variance = (auc * (1 - auc) + (m - 1) * (a - auc**2) + (k - 1) * (b - auc**2)) / (m * k)
    reach = -float(ndtri((1 - level) / 2)) * float(np.sqrt(max(variance, 0.0)))
    return Measure.of(
        "carries", auc, Interval(max(auc - reach, 0.0), min(auc + reach, 1.0), level, "Hanley–McNeil")
    )


def _needed(
    frame: pd.DataFrame,
    y: Any,
    looked: Sequence[Any],
    legitimate: list[str],
    level: float,
    seed: int,
    of: Sequence[str] | None = None,
) -> dict[tuple[str, ...], Measure]:
    """By how much the accuracy of boosted trees on other people falls without each column or pair."""
    known = ~pd.isna(y)
    table, target = frame[known], pd.factorize(np.asarray(y)[known])[0]
    names = [*(of or looked), *legitimate]
    if len(np.unique(target)) < 2 or np.bincount(target).min() < 4:
        raise bad_parameter("proxy_test", "y", "two or more classes of at least 4 people", "others")
    codes = as_numbers(table[names])
    train = np.zeros(len(target), dtype=bool)
    train[next(StratifiedKFold(2, shuffle=True, random_state=seed).split(codes, target))[0]] = True

    def right(left_out: tuple[str, ...]) -> FloatArray:
        kept = [i for i, name in enumerate(names) if name not in left_out]
        if not kept:
            common = np.bincount(target[train]).argmax()
            return np.asarray(target[~train] == common, dtype=float)
        model = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0)
        model.fit(codes[train][:, kept], target[train])
        return np.asarray(model.predict(codes[~train][:, kept]) == target[~train], dtype=float)

    whole, found = right(()), {}
    for one in looked:
        out = one if isinstance(one, tuple) else (one,)
        loss = whole - right(out)
        interval = bounded_mean_interval(loss, -1.0, 1.0, confidence=level)
        found[out] = Measure.of("needed", float(loss.mean()), interval)
    return found
