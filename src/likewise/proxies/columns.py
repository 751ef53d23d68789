"""The proxy test: columns that carry an attribute, move decisions, or are needed for the target."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from likewise.core.checks import FloatArray, IntArray, check_integer, check_same_length, check_share
from likewise.core.decisions import decide
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.core.intervals import Measure, bounded_mean_interval, share_limits
from likewise.core.plain import Written
from likewise.proxies.probabilities import GroupProbabilities
from likewise.proxies.removal import as_numbers, shuffled, without_attribute

# An AUC this far above that of the legitimate columns is carrying; fewer decisions than this are not moving.
_CARRIES, _MOVES = 0.02, 0.005
# Above this many people one draw of the replaced values tells the share well enough.
_MANY = 10_000
# Attributes dealt out at random.
_DEALT = 5
_STRATA = 8


@dataclass(frozen=True)
class ProxyColumn:
    """What one column, or two together, have to do with an attribute.

    Parameters
    ----------
    columns : tuple of str
    carries : Measure
        How well the attribute can be told from it and the legitimate columns: the area under the ROC curve (AUC), of
        people that were not learned from; 0.5 is chance. Its interval is of trees that learn from so many people.
    moves : Measure
        Share of decisions that change if its part that carries the attribute is removed. Its interval is of everybody: it
        allows for what is not known of them and of their distributions.
    placebo : float
        The same share for an attribute that was dealt out at random: what the method itself moves.
    used : float
        Share of decisions that change if its values are exchanged at random.
    needed : Measure or None
        By how much the accuracy of models trained for comparison falls without it; None without a target. Its interval is
        of these models, asked about everybody.
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
            self.baseline = self._carries(legitimate).value
            least = max(100, len(frame) // 50)
            tree = DecisionTreeClassifier(max_leaf_nodes=_STRATA, min_samples_leaf=least, random_state=0)
            self.strata = np.unique(tree.fit(rest, group).apply(rest), return_inverse=True)[1]

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
        carries = self._carries([*self.legitimate, *names])
        share = float(np.mean([self.share(self._removed(names, self.group)) for _ in range(self.draws)]))
        placebo = np.array([self.share(self._removed(names, self._dealt())) for _ in range(_DEALT)])
        tail, n = (1 - self.level) / 2, len(self.frame)
        low, high = map(float, share_limits(share * n, n, confidence=self.level))
        # The distributions that groups are moved to are known from these people only. How much that alone moves is shown by
        # an attribute dealt out at random; this is the limit of one more deal.
        spread = float(placebo.std(ddof=1)) * np.sqrt(1 + 1 / _DEALT)
        noise = float(placebo.mean()) - float(stdtrit(_DEALT - 1, tail)) * spread
        low, high = share - np.hypot(share - low, noise), share + np.hypot(high - share, noise)
        moves = Measure(
            "moves", share, max(float(low), 0.0), min(float(high), 1.0), "exact, and of the removal"
        )
        used = self.share({name: shuffled(self.frame[name], self.strata, self.rng) for name in names})
        # Three standard errors, as many columns are looked at.
        error = (carries.high - carries.low) / 2 / -float(ndtri(tail))
        carrying = carries.value - self.baseline > max(_CARRIES, 3.0 * error)
        moving = moves.low > _MOVES
        verdict = ("proxy" if moving else "carries") if carrying else "used" if used > _MOVES else "neither"
        return ProxyColumn(names, carries, moves, float(placebo.mean()), used, needed, verdict)

    def _dealt(self) -> IntArray:
        """The attribute dealt out at random among people who are alike in the legitimate columns."""
        return shuffled(pd.Series(self.group), self.strata, self.rng).to_numpy()

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

    def _carries(self, names: list[str]) -> Measure:
        """AUC of the attribute from columns, of people that a tree has not learned from; groups weighted by their size.

        Each tree's AUC has DeLong's variance (1988) over the people who are asked. It is doubled: people ask and teach, so
        if a column tells little, what one fold shows by chance the others show again, and the variance of the mean is twice
        that of independent folds, however many there are. The limits are those of a share of as many people as that is
        worth, no more than Birnbaum and Klose (1957) allow for any AUC.
        """
        group, n = self.group, len(self.group)
        sizes = np.bincount(group)
        weights = sizes / n
        least = max(20, int(np.sqrt(n)))
        words = [not pd.api.types.is_numeric_dtype(self.frame[name].dtype) for name in names]
        X = as_numbers(self.frame[names])
        auc, variance, folds = 0.0, 0.0, 3
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, group):
            learn, ask = X[train], X[test]
            if any(words):
                learn, ask = _by_group(learn, ask, group[train], words)
            tree = DecisionTreeClassifier(min_samples_leaf=least, random_state=0).fit(learn, group[train])
            influence = np.zeros(len(test))
            for a, chance in zip(tree.classes_, tree.predict_proba(ask).T, strict=True):
                mine = group[test] == a
                ahead = _ahead(mine, chance)
                value = float(ahead[mine].mean())
                auc += weights[a] * value / folds
                influence += weights[a] * (ahead - value) / np.where(mine, mine.sum(), (~mine).sum())
            variance += 2.0 * float((influence / folds) @ (influence / folds))
        people = float((weights[sizes > 0] / np.sqrt(np.minimum(sizes, n - sizes)[sizes > 0])).sum()) ** -2
        auc = min(auc, 1.0)
        if variance > 0:
            people = min(people, auc * (1 - auc) / variance)
        low, high = share_limits(auc * people, people, confidence=self.level)
        return Measure("carries", auc, float(low), float(high), "DeLong")


def _ahead(mine: Any, chance: FloatArray) -> FloatArray:
    """Of each person, the share of the others' side whom the chance puts on the right side of them; a half for ties."""
    inside = np.empty(len(mine))
    for side in (mine, ~mine):
        inside[side] = rankdata(chance[side])
    below = rankdata(chance) - inside
    return np.asarray(np.where(mine, below / (~mine).sum(), 1.0 - below / mine.sum()))


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
