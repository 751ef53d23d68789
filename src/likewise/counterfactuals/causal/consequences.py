"""Counterparts that carry the consequences of an edit along rules and a graph, and the metric learned from them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_no_missing, to_pandas, with_columns
from likewise.core.messages import Message
from likewise.counterfactuals.causal.conditionals import Boosting
from likewise.counterfactuals.causal.graphs import ColumnGraph, read_graph
from likewise.counterfactuals.causal.moved_columns import CauseCodes, MovedColumn, fit_column
from likewise.counterfactuals.cells import put_rows
from likewise.counterfactuals.edited_rows import AttributeTwins, MadeTwins, ready_maker
from likewise.counterfactuals.edits import Edit
from likewise.counterfactuals.plausibility import LearnedRules, learn_rules
from likewise.counterfactuals.rules import Rules, read_rules
from likewise.data.encoding import category_codes
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import ComparableSubspace

# Numbers in [0, 1) that belong to a person: the same for the same row, in every table and every process.


Keys = np.ndarray[Any, np.dtype[np.uint64]]


def row_keys(frame: pd.DataFrame, columns: Sequence[str]) -> Keys:
    """Return one number per row that depends on the values of some columns and on nothing else."""
    keys = np.zeros(len(frame), dtype=np.uint64)
    for name in columns:
        column = frame[name]
        numbers = getattr(column.dtype, "kind", "O") in "iufb"
        # 30 and 30.0 are one value, whatever library read the table.
        values = column.astype(float) if numbers else column.astype(object).astype(str)
        hashed = pd.util.hash_array(np.asarray(values, dtype=float if numbers else object))
        keys = _mixed(keys ^ hashed)
    return keys


def position_of(keys: Keys, name: str, seed: int) -> FloatArray:
    """Return a position in [0, 1) per key, another for every name and seed."""
    return np.asarray((_salted(keys, name, seed) >> np.uint64(11)).astype(float) / 2.0**53)


def fold_of(keys: Keys, folds: int, seed: int) -> IntArray:
    """Return the fold of each key, 0 to folds − 1."""
    return (_salted(keys, "fold", seed) % np.uint64(folds)).astype(np.int64)


def _salted(keys: Keys, name: str, seed: int) -> Keys:
    salt = np.array([zlib.crc32(name.encode()) + (seed << 32)], dtype=np.uint64)
    return _mixed(keys ^ _mixed(salt))


def _mixed(x: Keys) -> Keys:
    # The finaliser of splitmix64; products wrap around on purpose.
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


# Counterparts that carry the consequences of an edit (*mutatis mutandis*): rules, and transport along a causal
# graph.


BROKEN = Message("twins.unusable.rule")
NO_GROUP = Message("twins.unusable.group")
# So many people that what stays tells apart are enough to break ties by it.
_MANY_KEYS = 200


@dataclass(frozen=True)
class Consequences:
    """What changes along with an edited column.

    Parameters
    ----------
    graph : mapping, networkx.DiGraph, str or path, optional
        Which column is a cause of which: ``{"sex": ["occupation", "hours-per-week"]}`` (cause to effects), a directed
        networkx graph, DOT text or a DOT file. Columns downstream of the edited one follow it.
    rules : Rules, mapping, path or "learned", optional
        Values that become others, implications and forbidden combinations; "learned" finds those that the people
        show (`learn_rules`).
    boosting : Boosting, optional
        How the conditional distributions are learned.
    random_state : int, default=0
        Breaks ties; the same person moves alike every time.

    Examples
    --------
    >>> from likewise.counterfactuals import Edit, correspondence_study
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 2, "role": ["Wife", "Husband", "Child", "Child"]})
    >>> spouse = Consequences(rules={"map": [
    ...     {"when": {"sex": "F"}, "column": "role", "values": {"Husband": "Wife"}},
    ...     {"when": {"sex": "M"}, "column": "role", "values": {"Wife": "Husband"}}]})
    >>> biased = lambda table: table["role"] == "Husband"
    >>> correspondence_study(biased, people, Edit("sex")).consistency
    1.0
    >>> correspondence_study(biased, people, Edit("sex", consequences=spouse)).consistency
    0.5
    """

    graph: Any = None
    rules: Any = None
    boosting: Boosting = field(default_factory=Boosting)
    random_state: int = 0

    def maker(self, edit: Edit) -> ConsequenceTwins:
        """Return the maker of twins that an edit with these consequences stands for."""
        return ConsequenceTwins(Edit(edit.column, edit.values), **vars(self))


class ConsequenceTwins:
    """The attribute changes, and what follows from it.

    Parameters
    ----------
    edit : Edit or str
        One column, and the values its counterparts get.
    graph, rules, boosting, random_state
        As in `Consequences`.

    Attributes
    ----------
    rules_ : Rules
        The user's, or those learned.
    learned_ : LearnedRules or None
        What was learned, with its support.
    graph_ : ColumnGraph
    moved_ : tuple of str
        Columns that are moved along the graph, causes first.
    columns_ : dict of str to MovedColumn
        Their conditional distributions.

    Examples
    --------
    Men earn 2 more; the rank among the own sex stays:

    >>> rng = np.random.default_rng(0)
    >>> sex = np.array(["F", "M"] * 300)
    >>> people = pd.DataFrame({"sex": sex, "pay": rng.normal(10, 1, 600) + 2 * (sex == "M")})
    >>> twins = ConsequenceTwins("sex", graph={"sex": ["pay"]}).fit(people).make(people)
    >>> gain = twins.tables[1]["pay"] - people["pay"]
    >>> bool(abs(gain[sex == "F"].mean() - 2) < 0.2), float(gain[sex == "M"].abs().max())
    (True, 0.0)
    """

    def __init__(
        self,
        edit: Edit | str,
        *,
        graph: Any = None,
        rules: Any = None,
        boosting: Boosting | None = None,
        random_state: int = 0,
    ) -> None:
        self.edit = edit if isinstance(edit, Edit) else Edit(edit)
        self.graph = graph
        self.rules = rules
        self.boosting = Boosting() if boosting is None else boosting
        self.random_state = random_state

    checked_rules_: Rules

    @property
    def attribute(self) -> str:
        """The edited column."""
        return str(self.edit.column)

    @property
    def fitted(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "columns_")

    @property
    def n_variants(self) -> int:
        """How many variants everybody has."""
        return len(self.values_)

    def fit(self, people: Any) -> Self:
        """Learn the conditional distributions of all columns that follow.

        Parameters
        ----------
        people : table of n people
            Without missing values in the edited column. Who lacks another value lacks it as a counterpart too.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        frame = to_pandas(people, owner=owner, name="people", needed=[self.attribute])
        self.plain_ = AttributeTwins(Edit(self.edit.column, self.edit.values)).fit(frame)
        self.values_ = self.plain_.values_of(self.edit.column)
        self.rules_, self.learned_ = self._rules(frame, owner)
        self.graph_ = self._graph(frame, owner)
        self.moved_ = self.graph_.downstream(self.attribute)
        self._choose_keys(frame)
        self.codes_ = CauseCodes.of(frame, self.attribute, self.values_)
        group = self._groups(frame, owner)
        known = np.flatnonzero(group >= 0)
        some = frame.iloc[known]
        fold = fold_of(row_keys(some, self.fold_key_), self.boosting.folds, self.random_state)
        self.columns_: dict[str, MovedColumn] = {
            name: fit_column(
                name,
                some,
                self.codes_,
                self.graph_.parents(name),
                group[known],
                fold,
                boosting=self.boosting,
                seed=self.random_state,
            )
            for name in self.moved_
        }
        return self

    @classmethod
    def by_rules(cls, edit: Edit, rules: Rules, cells: tuple[dict[str, Any], ...]) -> ConsequenceTwins:
        """Return a fitted maker whose counterparts follow rules alone, for which nothing is learned from people.

        Parameters
        ----------
        edit : Edit
            With its values listed.
        rules : Rules
        cells : tuple of dict
            For each value what it writes in which column.
        """
        made = cls(edit, rules=rules)
        values = tuple(edit.values or ())
        made.plain_ = AttributeTwins(edit)
        made.plain_.variants_ = tuple({edit.column: value} for value in values)
        made.plain_.cells_ = cells
        made.values_, made.rules_, made.checked_rules_, made.learned_ = values, rules, rules, None
        made.graph_, made.moved_, made.columns_ = ColumnGraph(), (), {}
        made.codes_ = CauseCodes(made.attribute, values, {})
        made.crossed_, made.fold_key_, made.position_key_ = True, (), ()
        return made

    def as_rules(self) -> dict[str, Any]:
        """Return what `by_rules` makes the same twins of, if these follow rules alone."""
        values = tuple(variant[self.edit.column] for variant in self.plain_.variants_)
        cells = tuple(dict(one) for one in self.plain_.cells_)
        return {"edit": Edit(self.attribute, values), "rules": self.rules_, "cells": cells}

    def anew(self) -> ConsequenceTwins:
        """Return a maker with the same choices that has learned nothing.

        Rules that were checked once are not checked again: people drawn anew may lack a value that a rule names.
        """
        fresh = Consequences(self.graph, self.rules, self.boosting, self.random_state).maker(self.edit)
        if self.fitted and self.learned_ is None:
            fresh.checked_rules_ = self.rules_
        return fresh

    def metric_learner(self, *, owner: str) -> Any:
        """Return `TwinSubspace` of these twins, for whatever takes a metric."""
        return TwinSubspace(self)

    def check(self, people: Any) -> Self:
        """Read rules and graph and raise if they do not fit a table, before anything is learned."""
        owner = type(self).__name__
        frame = to_pandas(people, owner=owner, name="people", needed=[self.attribute])
        self._rules(frame, owner)
        self._graph(frame, owner)
        return self

    def make(self, people: Any) -> MadeTwins:
        """Return everybody in every group; people of a group are themselves in it.

        Parameters
        ----------
        people : table of people
            The same or others, with the same columns.
        """
        owner = type(self).__name__
        if not self.fitted:
            raise InputError(f"{owner}: nothing is learned yet. Call fit(people) first.")
        frame = to_pandas(people, owner=owner, name="people", needed=self._needed())
        plain = self.plain_.make(frame)
        if not self.moved_ and not self.rules_.columns:
            return plain
        group = self._groups(frame, owner)
        tables, broken = [], np.zeros_like(plain.own)
        for number, (edited, variant) in enumerate(zip(plain.tables, plain.variants, strict=True)):
            concerned = np.flatnonzero(~plain.own[number])
            if len(concerned):
                target = self.values_.index(variant[self.edit.column])
                twins = self._twins(frame.iloc[concerned], edited.iloc[concerned], group[concerned], target)
                wrong = self.rules_.broken(twins)
                broken[number, concerned] = wrong
                unknown = (group[concerned] < 0) & bool(self.moved_)
                # Who cannot be a person is replaced by the person, who is not compared.
                back = np.flatnonzero(wrong | unknown)
                twins = put_rows(twins, frame.iloc[concerned[back]], back)
                edited = put_rows(frame, twins, concerned)
            else:
                edited = frame
            tables.append(edited)
        # What follows from the attribute is known between the groups; others have no rank to keep.
        outside = np.zeros_like(broken)
        if self.moved_:
            outside[:, group < 0] = True
        broken &= ~outside
        why: dict[str, Any] = {
            words: mask for words, mask in ((BROKEN, broken), (NO_GROUP, outside)) if mask.any()
        }
        return MadeTwins(tuple(tables), plain.variants, plain.own, ~broken & ~outside, why)

    def _twins(self, own: pd.DataFrame, edited: pd.DataFrame, group: IntArray, target: int) -> pd.DataFrame:
        """The twins of people of other groups in the target group: the rules' maps first, then down the graph."""
        twins = self.rules_.repaired(edited)
        position_keys = row_keys(own, self.position_key_)
        fold = None
        if self.crossed_:
            fold = fold_of(row_keys(own, self.fold_key_), self.boosting.folds, self.random_state)
        to = np.full(len(own), target, dtype=np.int64)
        for name, column in self.columns_.items():
            mapped = name in self.rules_.mapped
            position = position_of(position_keys, name, self.random_state)
            # A column with a map has followed the attribute already: what is left is to follow its other causes.
            followed = {self.attribute: edited[self.attribute], name: twins[name]} if mapped else {}
            moved = column.move(
                with_columns(own, followed), twins, to if mapped else group, to, fold, position, self.codes_
            )
            twins = with_columns(twins, {name: moved})
        return twins

    def _rules(self, frame: pd.DataFrame, owner: str) -> tuple[Rules, LearnedRules | None]:
        if hasattr(self, "checked_rules_"):
            return self.checked_rules_, None
        if isinstance(self.rules, str) and self.rules == "learned":
            learned = learn_rules(frame, self.attribute)
            return learned.rules, learned
        rules = read_rules(self.rules, owner=owner).matched_to(frame)
        rules.check(frame, owner=owner)
        if self.attribute in rules.mapped:
            raise InputError(
                f"{owner}: a rule maps {self.attribute!r}, the column that is edited. Map the columns that follow it."
            )
        return rules, None

    def _graph(self, frame: pd.DataFrame, owner: str) -> ColumnGraph:
        if self.graph is None:
            return ColumnGraph()
        graph = read_graph(self.graph, [str(name) for name in frame.columns], owner=owner)
        if graph.edges and not graph.downstream(self.attribute):
            raise InputError(
                f"{owner}: nothing in 'graph' follows from {self.attribute!r}: no arrow leaves it. Add its effects, or "
                "leave the graph out to change the attribute alone."
            )
        return graph

    def _choose_keys(self, frame: pd.DataFrame) -> None:
        """Ties are broken by what stays; if that tells too few people apart, also by what moves in steps."""
        moving = {self.attribute, *self.moved_, *self.rules_.mapped}
        stays = tuple(str(name) for name in frame.columns if name not in moving)
        n_keys = len(np.unique(row_keys(frame, stays))) if stays else 1
        self.crossed_ = n_keys >= min(_MANY_KEYS, len(frame) / 10)
        if self.crossed_:
            self.fold_key_ = self.position_key_ = stays
            return
        from likewise.counterfactuals.causal.moved_columns import column_kind

        steps = tuple(c for c in (*self.moved_, *self.rules_.mapped) if column_kind(frame[c]) != "smooth")
        self.position_key_ = (*stays, *dict.fromkeys(steps))
        self.fold_key_ = tuple(str(name) for name in frame.columns)

    def _groups(self, frame: pd.DataFrame, owner: str) -> IntArray:
        check_no_missing(frame[[self.attribute]], owner=owner, name="people")
        return category_codes(frame[self.attribute], self.values_)

    def _needed(self) -> list[str]:
        causes = [cause for name in self.moved_ for cause in self.graph_.parents(name)]
        return list(
            dict.fromkeys([self.attribute, *self.moved_, *causes, *self.rules_.columns, *self.position_key_])
        )


class TwinSubspace(BaseEstimator):
    """Learner of a fair metric: people and their counterparts are comparable groups (`ComparableSubspace`).

    What SenSR, SenSeI, FairBoosting or an audit take as ``metric=`` to treat counterparts with consequences alike. An
    ``Edit("sex", consequences=...)`` as ``metric=`` stands for it.

    Parameters
    ----------
    edits : Edit with consequences, or TwinMaker
    n_components : int, float in (0, 1) or "auto", default="auto"
        As in `ComparableSubspace`.
    feature_map : TabularDomain, optional
        Fitted; turns the table into numbers. Learned from the people and their counterparts by default.

    Attributes
    ----------
    metric_ : FairMetric
    maker_ : TwinMaker

    Examples
    --------
    >>> from likewise.counterfactuals import ConsequenceTwins
    >>> rng = np.random.default_rng(0)
    >>> sex = np.array(["F", "M"] * 100)
    >>> people = pd.DataFrame({"sex": sex, "pay": rng.normal(0, 1, 200) + 2 * (sex == "M"), "age": rng.normal(size=200)})
    >>> metric = TwinSubspace(ConsequenceTwins("sex", graph={"sex": ["pay"]})).fit(people).metric_
    >>> twins = ConsequenceTwins("sex", graph={"sex": ["pay"]}).fit(people).make(people).tables[1]
    >>> bool(metric.squared_distance(people, twins).mean() < 0.05 * metric.squared_distance(people, people[::-1]).mean())
    True
    """

    def __init__(self, edits: Any = None, *, n_components: Any = "auto", feature_map: Any = None) -> None:
        self.edits = edits
        self.n_components = n_components
        self.feature_map = feature_map

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the counterparts of people and learn in what they differ.

        Parameters
        ----------
        X : table of n people
            Raw, without missing values.
        y : ignored
        """
        owner = type(self).__name__
        frame = to_pandas(X, owner=owner, name="X").reset_index(drop=True)
        maker = ready_maker(self.edits, frame, owner=owner)
        if maker is None:
            raise bad_parameter(
                owner,
                "edits",
                "an Edit with consequences, or a maker of twins",
                type(self.edits).__name__,
                "For plain edits name the column: AttributeSubspace(['sex']).",
            )
        self.maker_ = maker
        made = maker.make(frame)
        rows, groups = [frame], [np.arange(len(frame))]
        for table, compared in zip(made.tables, made.compared, strict=True):
            rows.append(table[compared])
            groups.append(np.flatnonzero(compared))
        everybody = pd.concat(rows, ignore_index=True)
        encoder = TabularDomain.from_frame(everybody) if self.feature_map is None else self.feature_map
        learner = ComparableSubspace(n_components=self.n_components, feature_map=encoder)
        learned = learner.fit(everybody, groups=np.concatenate(groups)).metric_
        told = getattr(maker, "attribute", None)
        self.metric_ = learned if told is None else replace(learned, sensitive_features=(told,))
        return self
