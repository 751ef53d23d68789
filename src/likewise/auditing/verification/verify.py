"""Over all people who could exist: where the decision is the same whatever the sensitive columns are, and where not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.bounds.family import Family
from likewise.auditing.case import MatchedPeople, with_encoding, with_unused
from likewise.auditing.inference.sanity import Finding
from likewise.auditing.inference.verdict import Badge
from likewise.auditing.sources import match_table, sensitive_names
from likewise.auditing.verification.asked_shares import (
    Decide,
    Flip,
    FlipExamples,
    Sampled,
    SensitiveValues,
    proved_same,
    sample_rows,
)
from likewise.auditing.verification.preparation import (
    Prepared,
    prepare,
    prepare_found,
    prepare_matched,
    read_values,
)
from likewise.auditing.verification.undecided_regions import UndecidedRegions, describe
from likewise.core.checks import check_labels, check_parameters, check_same_length
from likewise.core.errors import InputError, LikewiseError, bad_parameter
from likewise.core.messages import Message
from likewise.core.plain import beside
from likewise.data.case import Counted
from likewise.data.domain import Domain

Shares = tuple[float, float, float]

_MOST_SHOWN = 20
# What a table of pairs says besides the cells.
PAIR_COLUMNS = ("decision", "pair", "row")


@dataclass(frozen=True)
class FlipRule:
    """A part of the domain where decisions flip."""

    share: float
    within: float
    rows: str


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What is known of everybody who could exist, and of the people of a table.

    Parameters
    ----------
    proved, flips, undecided : float
        Shares of all rows of the domain: the same decision, proved; a different one, shown; neither.
    people : tuple of float or None
        The same three of the people, who were asked about one by one.
    examples : DataFrame
        Pairs that differ in the sensitive columns alone and are decided differently, in original units, a row for each of
        the two; ``decision``, ``pair``, and ``row``: where the person is in the table, None if both are made up.
    rules : tuple of FlipRule
        Where decisions flip most.
    regions : int
        Parts of the domain that were looked at.
    seconds : float
        CPU time of the proof.
    stopped : bool
        Whether Ctrl-C ended it.
    sampled : Sampled or None
        Share of random rows of the domain that flip, with an exact 95% interval, whatever was proved.
    trivial : bool
        The model does not read the sensitive columns.
    reason : str
        Why nothing could be proved.
    sensitive_features : tuple of str
    findings : tuple of Finding
        What has to be known first. If one of them blocks, nothing is claimed.
    counted : {"index", "line", "row"}
        How the places of people in the table are counted.
    labelled : bool
        Whether labels were compared with the model's decisions.
    """

    proved: float
    flips: float
    undecided: float
    people: Shares | None
    examples: pd.DataFrame
    rules: tuple[FlipRule, ...] = ()
    regions: int = 0
    seconds: float = 0.0
    stopped: bool = False
    sampled: Sampled | None = None
    trivial: bool = False
    reason: str = ""
    sensitive_features: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    counted: Counted = "index"
    labelled: bool = False

    @property
    def answered(self) -> bool:
        """Whether the model and the table seem to belong together, so that this says something about them."""
        return not any(finding.blocks for finding in self.findings)

    @property
    def pairs(self) -> int:
        """Number of listed pairs."""
        return len(self.examples) // 2

    @property
    def badge(self) -> Badge:
        """What is known in a word; never "independent" over a finding that speaks against it."""
        if not self.answered:
            return "unanswered"
        if self.pairs or self.flips or (self.people is not None and self.people[1]):
            return "depends"
        if self.trivial:
            return "not_read"
        same = any(finding.kind == "same" for finding in self.findings)
        return "independent" if self.proved == 1.0 and not same else "not_found"

    def __repr__(self) -> str:
        title = Message(f"badge.{self.badge}", columns=list(self.sensitive_features))
        return f"<Verification: {title}, {self.proved:.1%} proved, {self.flips:.1%} shown to flip, {self.undecided:.1%} undecided>"

    def __str__(self) -> str:
        text: str = import_module("likewise.report.writing").text_of(self)
        return text


def verify(
    model: Any,
    X: Any,
    sensitive_features: Sequence[str],
    *,
    y: Any = None,
    domain: Any = None,
    encoded: bool | None = None,
    missing: str = "auto",
    budget_seconds: float = 60.0,
    max_regions: int = 1_000_000,
    random_state: int = 0,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Prove where a model's decision does not depend on the sensitive columns, over all rows that can exist.

    Everybody who can exist is every combination of the values in the ranges of the table, or of a domain. The people of
    the table are asked about one by one, prepared as `audit` does; and what speaks against the model and the table is said
    first: then nothing is called proved.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        Of a tree ensemble, a ReLU network or a linear model shares of the domain are proved. Any other model is asked:
        about the people, and about random rows of the domain.
    X : table, or TabularDomain or BoxDomain
        The people, in original units; or, without people, which rows can exist.
    sensitive_features : sequence of str
        Every combination of their values is looked at, for each person up to 50,000. Of an attribute in several 0/1 columns
        name all of them; they take the combinations that people have.
    y : array-like, optional
        Labels, to check that the model and the table belong together.
    domain : TabularDomain or BoxDomain, optional
        Which rows can exist; by default made from the table. With it `X` may also be encoded rows.
    encoded : bool, optional
        Whether the model was trained on encoded rows of the domain and not on the table; by default that is told from the
        number and the names of its columns, and if both fit it must be said.
    missing : {"auto", "keep", "impute", "drop", "category"}, default="auto"
        As in `audit`. What is proved is about people without missing cells.
    budget_seconds : float, default=60
        CPU time of the proof; as much again may go into asking about people.
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
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": [0, 1, 0, 1]})
    >>> tree = DecisionTreeClassifier(random_state=0).fit(people, [0, 1, 0, 1])
    >>> found = verify(tree, people, sensitive_features=["sex"])
    >>> found
    <Verification: Depends on sex, 0.0% proved, 100.0% shown to flip, 0.0% undecided>
    >>> found.examples.head(2)
       age  sex  decision  pair row
    0   20    0         0     0   0
    1   20    1         1     0   0
    """
    check_parameters(verify, locals())
    if isinstance(progress, bool):
        raise bad_parameter("verify", "progress", "a function", progress)
    names = sensitive_names(sensitive_features, "verify")
    choices: dict[str, Any] = {
        "seconds": budget_seconds,
        "max_regions": max_regions,
        "random_state": random_state,
        "progress": progress,
    }
    if isinstance(X, Domain):
        if domain is not None or y is not None:
            raise bad_parameter(
                "verify", "X", allowed="the people, if 'y' or 'domain' is given", got="a domain"
            )
        return _verify(prepare(model, X, names, encoded=encoded), None, **choices)
    if y is not None:
        y = check_labels(y, owner="verify", min_classes=1)
        check_same_length("verify", X=X, y=y)
    if domain is not None:
        asked = prepare(model, domain, names, people=X, encoded=encoded, labels=y)
        return _verify(asked, asked, **choices)
    if encoded:
        raise bad_parameter("verify", "encoded", allowed="False without 'domain'", got=encoded)
    return verify_people(match_table(model, X, y, names, missing=missing, owner="verify"), names, **choices)


def verify_people(
    found: MatchedPeople, sensitive_features: Sequence[str], *, seconds: float = 60.0, **choices: Any
) -> Verification:
    """Verify a model over everybody who could exist, and count the people of its table."""
    known = [name for name in sensitive_features if name in found.plain.columns]
    if not known:
        # The model has a list of columns, and these are not among them.
        found = with_unused(found, sensitive_features)
    names = known or list(sensitive_features)
    plain, people = found.plain, found.people
    restored = None if found.gaps is None else found.gaps.restored
    places = np.arange(1, len(found.frame) + 1) if people.places is None else people.places
    asked = prepare_found(found, names, labels=people.labels, places=places, restored=restored)
    proof = asked
    if found.matched is not plain:
        # What is proved is about people without missing cells; further examples are made of them.
        whole = people.frame[list(plain.columns)].notna().all(axis=1).to_numpy()
        proof = prepare_matched(
            plain, names, people.filled[whole] if whole.any() else None, restored=restored
        )
    result = _verify(proof, asked, seconds=seconds, absent=not known, **choices)
    return replace(
        result,
        sensitive_features=tuple(sensitive_features),
        counted=people.counted,
        findings=with_encoding(plain, result.findings),
    )


def _verify(
    proof: Prepared,
    asked: Prepared | None,
    *,
    seconds: float,
    max_regions: int = 1_000_000,
    random_state: int = 0,
    progress: Callable[[Verification], None] | None = None,
    absent: bool = False,
) -> Verification:
    """Prove what can be proved, and ask about people; `asked` has those who are asked about."""
    unknown: Shares | None = None if asked is None else (0.0, 0.0, 1.0)
    labelled = asked is not None and asked.labels is not None
    nothing = Verification(
        0.0, 0.0, 1.0, unknown, pd.DataFrame(), sensitive_features=proof.names, labelled=labelled
    )
    if not (asked or proof).repeats():
        return replace(nothing, reason=str(Message("why_not.not_repeated")))
    findings = () if asked is None else asked.findings()
    start = replace(nothing, findings=findings)
    if not start.answered:
        # What is proved of a model and a table that do not belong together is proved of nobody.
        return start
    if absent:
        return replace(start, proved=1.0, undecided=0.0, people=(1.0, 0.0, 0.0), trivial=True)
    family, reason = None, ""
    try:
        family = proof.family()
    except InputError as error:
        reason = str(error)
    values = proof.values if family is None else read_values(family, proof.names, proof.groups)
    same = None if family is None else partial(proved_same, family, proof.values)
    made_up = FlipExamples(proof.layout, values or proof.values, proof.asker.decisions, proof.people())
    own, shares = made_up, None
    if asked is not None:
        kept, changed = asked.changed_people(same if asked is proof else None, seconds)
        shares = float(kept.mean()), float(changed.mean()), float((~kept & ~changed).mean())
        if asked is not proof:
            own = FlipExamples(asked.layout, asked.values, asked.asker.decisions, asked.people())
        own.add_people(asked.people(), np.flatnonzero(changed))
    sampled = None
    try:
        sampled = sample_rows(
            proof.layout,
            values or proof.values,
            proof.asker.decisions,
            same=same,
            random_state=random_state,
            on_progress=made_up.add,
        )
    except LikewiseError as error:
        reason = reason or f"the model does not answer about rows that the domain allows: {error}"
    if values is None and (own.found or made_up.found):
        family, reason = (
            None,
            "the model was read as if it did not use these columns, and its answers depend on them.",
        )

    def known(work: UndecidedRegions | None, spent: float = 0.0, stopped: bool = False) -> Verification:
        examples = _pairs(asked, own.found, proof, () if own is made_up else made_up.found)
        base = replace(start, people=shares, sampled=sampled, reason=reason, examples=examples)
        return base if work is None else _with_shares(base, work, spent, stopped)

    if family is None:
        return known(None)
    if values is None:
        return replace(known(None), proved=1.0, undecided=0.0, trivial=True)
    return _prove(family, values, made_up, known, seconds, max_regions, progress)


def _pairs(
    asked: Prepared | None, own: Sequence[Flip], proof: Prepared, made_up: Sequence[Flip]
) -> pd.DataFrame:
    """Pairs in original units, each once: people as the user knows them, then rows that are made up."""
    pairs, seen = [], set()
    flips = [(flip, asked or proof) for flip in own] + [(flip, proof) for flip in made_up]
    for flip, place in flips[:_MOST_SHOWN]:
        both, row = place.table(np.stack([flip.first, flip.second])), None
        if flip.person is not None:
            person, row = place.person(flip.person)
            other = both.iloc[[1]].reset_index(drop=True)
            twin = person.assign(**{name: other[name] for name in place.names})
            both = pd.concat([person, twin], ignore_index=True)
        # Two rows of values may be one row of the table: its columns may be of single precision.
        key = frozenset(map(repr, both.to_dict("records")))
        if key not in seen:
            seen.add(key)
            pairs.append((both, [place.decision(position) for position in flip.decisions], row))
    return _listed(pairs)


def _listed(pairs: Sequence[tuple[pd.DataFrame, Sequence[Any], Any]]) -> pd.DataFrame:
    """Put pairs below each other, with what is decided and where the person is."""
    if not pairs:
        return pd.DataFrame()
    found = pd.concat([both for both, _, _ in pairs], ignore_index=True)
    found = found.rename(columns=lambda name: beside(name, PAIR_COLUMNS))
    found["decision"] = [decision for _, decided, _ in pairs for decision in decided]
    found["pair"] = np.repeat(np.arange(len(pairs)), 2)
    found["row"] = pd.Series(np.repeat(np.array([row for _, _, row in pairs], dtype=object), 2), dtype=object)
    return found


def verify_family(
    family: Family,
    sensitive_features: Sequence[str],
    *,
    decide: Decide | None = None,
    budget_seconds: float = 60.0,
    max_regions: int = 1_000_000,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Prove what `verify` proves of a family that is at hand already; examples are rows of values."""
    check_parameters(verify_family, locals(), owner="verify")
    SensitiveValues.of(family.layout, sensitive_features)
    values = read_values(family, sensitive_features)
    start = Verification(0.0, 0.0, 1.0, None, pd.DataFrame(), sensitive_features=tuple(sensitive_features))
    if values is None:
        return replace(start, proved=1.0, undecided=0.0, trivial=True)
    examples = FlipExamples(family.layout, values, decide or family.decisions)
    names = [column.name for column in family.layout.columns]

    def known(work: UndecidedRegions, spent: float, stopped: bool) -> Verification:
        pairs = [
            (pd.DataFrame([flip.first, flip.second], columns=names), flip.decisions, None)
            for flip in examples.found
        ]
        return _with_shares(replace(start, examples=_listed(pairs)), work, spent, stopped)

    return _prove(family, values, examples, known, budget_seconds, max_regions, progress)


def _prove(
    family: Family,
    values: SensitiveValues,
    examples: FlipExamples,
    known: Callable[[UndecidedRegions, float, bool], Verification],
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
                progress(known(work, told - clock, False))
    except KeyboardInterrupt:
        stopped = True
    return known(work, time.process_time() - clock, stopped)


def _with_shares(found: Verification, work: UndecidedRegions, seconds: float, stopped: bool) -> Verification:
    """What is known by now. The three shares add up to 1; what is not settled is never claimed."""
    rules = tuple(
        FlipRule(
            part.flips,
            part.flips / part.volume,
            describe(work.layout, part.low, part.high, part.allowed, work.values.columns),
        )
        for part in work.worst()
    )
    return replace(
        found,
        proved=min(max(work.proved, 0.0), 1.0),
        flips=min(max(work.flips, 0.0), 1.0),
        undecided=work.undecided,
        rules=rules,
        regions=work.looked,
        seconds=seconds,
        stopped=stopped,
    )
