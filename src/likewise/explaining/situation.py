"""A model, a table and the possible changes, prepared for explanations: refused people, counterparts, and the engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from likewise.auditing.bounds.families import random_rows
from likewise.auditing.bounds.networks import NetworkFamily
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.case import MatchedPeople
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.sources import match_table, sensitive_names
from likewise.auditing.verification.preparation import Prepared, prepare_found, prepare_matched
from likewise.core.checks import BoolArray, FloatArray
from likewise.core.errors import InputError, LikewiseError, NotConvergedError, bad_parameter
from likewise.core.messages import Message
from likewise.core.plain import plain_cell
from likewise.counterfactuals.plausibility import learn_rules
from likewise.counterfactuals.rules import Rules, read_rules
from likewise.explaining.engine import Effort, Engine, Least, SearchEngine, Status
from likewise.explaining.moves import CostUnit, Moves, read_action
from likewise.explaining.networks import MOST_LISTED, LinearEngine, NetworkEngine
from likewise.explaining.trees import TreeEngine

LEARNED = "learned"
_MOST_TWINS = 24
# Rows about which models are asked to be told apart.
_ROWS = 2_000


@dataclass(frozen=True)
class ExplanationRequest:
    """What a user asks for, beside model, table and sensitive columns."""

    favourable: Any = None
    actions: Mapping[str, Any] | None = None
    rules: Any = LEARNED
    cost: CostUnit = "range"
    effort: Effort = field(default_factory=Effort)
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class Situation:
    """People of a table as rows of values, and engines for their least changes."""

    owner: str
    found: MatchedPeople
    request: ExplanationRequest
    # With marks of missing cells, if people have some; and of the people without.
    all: Prepared
    plain: Prepared
    # The sensitive columns that the model uses, and all of them.
    names: tuple[str, ...]
    sensitive: tuple[str, ...]
    rules: Rules

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What has to be known before any answer, as before an audit's; raises if model and table do not belong together."""
        found = self.all.findings()
        against = " ".join(finding.sentence for finding in found if finding.blocks)
        if against:
            raise NotConvergedError(f"The question could not be answered. {against}")
        return found

    @property
    def not_read(self) -> tuple[str, ...]:
        """Sensitive columns that the model does not read."""
        return tuple(name for name in self.sensitive if name not in self.names)

    @property
    def layout(self) -> Any:
        """Columns of the rows of values."""
        return self.all.layout

    @cached_property
    def people(self) -> FloatArray:
        """Everybody as rows of values, (n, P)."""
        return self.all.people()

    @cached_property
    def decisions(self) -> Any:
        """The model's own decisions, as positions of classes, (n,)."""
        parts = np.array_split(self.people, max(1, len(self.people) // 20_000))
        return np.concatenate([self.all.asker.decisions(part) for part in parts])

    @cached_property
    def digest(self) -> str:
        """Tells people and models apart: what was read of the model, and what it decides about people and other rows."""
        rows = random_rows(self.layout, self.people, np.random.default_rng(0), _ROWS)
        read = () if self.family[0] is None else self.family[0].numbers
        total = hashlib.sha256()
        for array in (self.people, self.decisions, self.all.asker.decisions(rows), *read):
            total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()

    @cached_property
    def favourable(self) -> int:
        """Position of the favourable class."""
        classes, wanted = self.all.given.known_classes, self.request.favourable
        if classes is None:
            classes = np.arange(int(self.decisions.max(initial=1)) + 1)
        listed = [plain_cell(one) for one in classes]
        allowed = f"one of the decisions {listed[:12]}"
        if wanted is None:
            if len(listed) == 2:
                return 1
            remedy = "With more than two decisions it has to be said."
            raise bad_parameter(self.owner, "favourable", allowed, "nothing", remedy)
        found = next((i for i, one in enumerate(listed) if one == wanted or str(one) == str(wanted)), None)
        if found is None:
            raise bad_parameter(self.owner, "favourable", allowed, repr(wanted))
        return found

    @cached_property
    def refused(self) -> Any:
        """Numbers of the people who do not get the favourable decision."""
        return np.flatnonzero(self.decisions != self.favourable)

    @cached_property
    def gaps(self) -> BoolArray:
        """Which columns of the layout a person has no value in, (n, P): these stay as they are."""
        missing = np.zeros((len(self.people), self.layout.n_columns), dtype=bool)
        frame = self.found.people.frame
        for p, column in enumerate(self.layout.columns):
            if column.name in frame.columns:
                missing[:, p] = frame[column.name].isna().to_numpy()
        return missing

    @cached_property
    def moves(self) -> Moves:
        """What can be changed, and what it costs."""
        return Moves.of(
            self.layout,
            self.people,
            actions=self.actions,
            fixed=self.names,
            rules=self.rules,
            unit=self.request.cost,
            owner=self.owner,
        )

    @property
    def actions(self) -> dict[str, Any]:
        """What the user says of columns, in the call or in columns.toml."""
        known = {column.name for column in self.layout.columns}
        planned = {name: plan.action for name, plan in self.found.people.plans.items() if plan.action}
        return {name: said for name, said in planned.items() if name in known} | dict(
            self.request.actions or {}
        )

    @cached_property
    def _constant(self) -> BoolArray:
        """Columns that no answer depends on: not read, or set by the model itself (`TwinConsensus`); none with a rule, (P,)."""
        names = [column.name for column in self.layout.columns]
        found = np.zeros(len(names), dtype=bool)
        family = self.family[0]
        if family is not None and self.reader is not None:
            n = self.plain.layout.n_columns
            found[:n] = [not family.reads(p) for p in range(n)]
        model: Any = self.all.problem.coordinates.model
        while model is not None:
            found |= np.isin(names, list(getattr(model, "constant_columns", ())))
            model = getattr(model, "inner", None)
        for clause in self.moves.clauses:
            found[[atom.column for atom in clause]] = False
        return found

    def alike(self, own: FloatArray, twin: FloatArray) -> bool:
        """Whether it is known that two people have the same least changes: they differ in nothing that answers depend on."""
        return bool(self._constant[own != twin].all())

    @property
    def settings(self) -> dict[str, Any]:
        """Plain values that say how least changes were computed."""
        moves, engine = self.moves, self.reader
        columns = [*zip(self.layout.columns, moves.actions, moves.steps, strict=True)]
        free = [(c, a, step) for c, a, step in columns if a.actionable]
        return {
            "cost": moves.unit,
            "engine": "search" if engine is None else type(engine).__name__.removesuffix("Engine").lower(),
            "why_not_proved": self.family[1],
            "fixed": [c.name for c, a, _ in columns if not a.actionable],
            "directions": {c.name: a.direction for c, a, _ in free if a.direction != "any"},
            "steps": {c.name: step for c, _, step in free if not c.categories},
            "rules": list(self.rules.sentences()),
            "seed": self.request.random_state,
        }

    def counterparts(self, own: FloatArray) -> list[tuple[FloatArray, bool]]:
        """A person under other combinations of sensitive values, with what follows, and whether the rules allow it."""
        found: list[tuple[FloatArray, bool]] = []
        values = self.all.values
        for combination in values.asked if self.names else ():
            twin = own.copy()
            twin[values.columns] = combination
            if (twin != own).any():
                twin = self.moves.repaired(twin)
                found.append((twin, not self.moves.breaks_rule(twin)))
        return found[:_MOST_TWINS]

    def ask(self, rows: FloatArray) -> BoolArray:
        """Whether the model itself gives rows of values the favourable decision."""
        return np.asarray(self.all.asker.decisions(rows) == self.favourable)

    @cached_property
    def family(self) -> tuple[TreeFamily | NetworkFamily | None, str]:
        """The model as it was read and checked, or why it was not."""
        try:
            return self.plain.family(), ""
        except InputError as error:
            return None, str(error)

    @cached_property
    def search(self) -> SearchEngine:
        """The engine for any model."""
        favoured = self.people[self.decisions == self.favourable]
        return SearchEngine(self.moves, favoured, self.request.random_state)

    @cached_property
    def reader(self) -> Engine | None:
        """The engine that proves, for people without missing cells; None if the model could not be read."""
        family = self.family[0]
        if family is None:
            return None
        moves = self.moves
        if self.all is not self.plain:
            # The columns of the reading, without the marks of missing cells, which come last.
            n = self.plain.layout.n_columns
            moves = replace(
                moves,
                layout=self.plain.layout,
                actions=moves.actions[:n],
                scales=moves.scales[:n],
                steps=moves.steps[:n],
            )
        if isinstance(family, TreeFamily):
            return TreeEngine(family, moves, self.favourable)
        form = family.net.linear_form(regression=False)
        if form is not None and len(form[0]) == 2:
            return LinearEngine(family, moves, self.favourable)
        n = moves.layout.n_columns
        if any(not moves.straight(p) and moves.positions(p) > MOST_LISTED for p in range(n)):
            return None
        return NetworkEngine(family, moves, self.favourable, SearchEngine(moves, self.search.favoured[:, :n]))

    def least(self, own: FloatArray, fixed: BoolArray, *, whole: bool, fewest: bool = False) -> Least:
        """The least change of a row of values, asked of the model; `whole` says that it has no missing cells."""
        effort = self.request.effort
        if whole and self.reader is not None:
            found = self.proved(own, fixed, effort, fewest=fewest)
            if found.status == "bracket" and not isinstance(self.reader, NetworkEngine):
                # The upper end is the cheaper of what was found and what a search finds.
                other = self.search.least(own, fixed, self.ask, effort, fewest=fewest)
                if other.cost < found.cost:
                    status: Status = "proved" if other.cost <= found.lower + 1e-12 else "bracket"
                    found = replace(found, status=status, cost=other.cost, values=other.values)
            if found.values is None or self.confirms(own, found.values[None, :], fixed)[0]:
                return found
            self.withdraw()
        found = self.search.least(own, fixed, self.ask, effort, fewest=fewest)
        good = found.values is None or self.confirms(own, found.values[None, :], fixed)[0]
        return found if good else Least("not found", np.inf, 0.0, None, found.looked)

    def proved(
        self, own: FloatArray, fixed: BoolArray, effort: Effort, *, fewest: bool = False, **known: Any
    ) -> Least:
        """What the reading says of a row of values; its caller asks the model. `known` is for the engine."""
        engine, n = self.reader, self.plain.layout.n_columns
        assert engine is not None
        tail = own[n:]

        def ask(rows: FloatArray) -> BoolArray:
            return self.ask(np.hstack([rows, np.tile(tail, (len(rows), 1))]) if len(tail) else rows)

        found = engine.least(own[:n], fixed[:n], ask, effort, fewest=fewest, **known)
        if found.values is None or not len(tail):
            return found
        return replace(found, values=np.append(found.values, tail))

    def withdraw(self) -> None:
        """Believe the reading no more: the model decided otherwise about a row."""
        self.__dict__["reader"] = None
        self.__dict__["findings"] = tuple(one for one in self.findings if one.kind != "unread")
        self.__dict__.pop("_constant", None)
        self.__dict__["family"] = (None, str(Message("why_not.read_differently")))

    def confirms(self, own: FloatArray, rows: FloatArray, fixed: BoolArray | None = None) -> BoolArray:
        """Whether the model gives rows of values the favourable decision, and rules and domain allow them."""
        good = self.valid(own, rows, fixed)
        if good.any():
            good[good] = self.ask(rows[good])
        return good

    def scores(self, rows: FloatArray) -> FloatArray:
        """The model's own score of the favourable decision: its probability if it gives one, (n,)."""
        model = self.all.problem.coordinates.model.graded()
        return np.asarray(model.outputs(self.all.asker.shown(rows)[0])[:, self.favourable])

    def valid(self, own: FloatArray, rows: FloatArray, fixed: BoolArray | None = None) -> BoolArray:
        """Whether rows of values are possible for a person, or a person each, by the rules and by the domain itself."""
        good = self.moves.possible(own, rows, fixed)
        moved = rows != np.broadcast_to(own, rows.shape)
        domain = self.all.problem.coordinates.domain
        places = {column.name: p for p, column in enumerate(self.layout.columns)}
        # What is not possible by the rules need not be a row at all.
        at = np.flatnonzero(good)
        for wrong in domain.validate(self.all.table(rows[at])) if len(at) else ():
            good[at[wrong.row]] &= not moved[at[wrong.row], places[wrong.column]]
        return good

    def cells(self, rows: FloatArray, gaps: BoolArray | None = None) -> list[dict[str, Any]]:
        """Rows of values in original units without marks of missing cells; columns of `gaps` (P,) are None."""
        names = set(self.found.people.frame.columns)
        records = []
        for record in self.all.table(rows).to_dict("records"):
            empty = {c.name for p, c in enumerate(self.layout.columns) if gaps is not None and gaps[p]}
            kept = {str(k): plain_cell(v) for k, v in record.items() if k in names}
            records.append({k: None if k in empty else v for k, v in kept.items()})
        return records


def situate(
    model: Any,
    X: Any,
    sensitive_features: Sequence[str],
    request: ExplanationRequest,
    *,
    missing: str = "auto",
    columns: Any = None,
    owner: str = "explain",
) -> Situation:
    """Bring a model and a table of Python together."""
    names = sensitive_names(sensitive_features, owner, some=False)
    found = match_table(model, X, None, names, missing=missing, columns=columns, owner=owner)
    return situation_of(found, names, request, owner=owner)


def situation_of(
    found: MatchedPeople, names: Sequence[str], request: ExplanationRequest, *, owner: str = "explain"
) -> Situation:
    """The situation of a model and people that were matched, as the command line has them."""
    marked, plain = found.matched, found.plain
    known = [name for name in names if name in plain.columns]
    # A preparation wants a column; what nobody asked about is not looked at.
    prepared = known or [plain.columns[0]]
    if found.matched.model.loss.regression:
        raise InputError(
            f"{owner}: the model predicts numbers, and what is explained are decisions. Pass a classifier."
        )
    for name, said in (request.actions or {}).items():
        if name in names and read_action(said, f"{owner}: actions[{name!r}]").actionable:
            allowed = "about columns that are not sensitive: nobody is told to change these"
            raise bad_parameter(owner, "actions", allowed, repr(name))
    rules = _rules(request.rules, found, names, owner)
    everybody = prepare_found(found, prepared, places=found.people.places)
    if not everybody.repeats():
        raise LikewiseError(
            f"{owner}: the model answers differently when it is asked about the same rows twice."
        )
    proof = everybody
    if marked is not plain:
        proof = prepare_matched(plain, prepared, found.people.filled)
    return Situation(owner, found, request, everybody, proof, tuple(known), tuple(names), rules)


def _rules(said: Any, found: MatchedPeople, names: Sequence[str], owner: str) -> Rules:
    """Rules of the user, or those that the table shows: combinations with a sensitive value that nobody has."""
    table = found.people.frame
    if isinstance(said, str) and said == LEARNED:
        learned = Rules()
        for name in names:
            try:
                learned = learned | learn_rules(table, name).rules
            except InputError:
                # A number with many values has no groups to learn from.
                continue
        return learned
    rules = read_rules(said, owner=owner).matched_to(table)
    rules.check(table, owner=owner)
    return rules
