"""Several models side by side: how accurate, how consistent, how unfair in the worst case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from typing import Any, cast

import pandas as pd

from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.results.files import SCHEMA_VERSION
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import Measure
from likewise.core.messages import Message, Texts, collect_messages
from likewise.core.text import interval_ends, short_number
from likewise.evaluation.summary import Evaluation
from likewise.report.document import audit_document, diagnosis_document
from likewise.report.first_words import MAX_LISTED, first_words
from likewise.report.provenance import Provenance
from likewise.report.templates import known_words

ACCURACY = "balanced accuracy"


def unbeaten(points: Sequence[tuple[float, float, str]]) -> tuple[str, ...]:
    """Return the names of those that none beats in both unfairness (first) and accuracy, the fairest first."""
    kept = [p for p in points if not any(q[0] <= p[0] and q[1] >= p[1] and q[:2] != p[:2] for q in points)]
    return tuple(name for *_, name in sorted(kept))


@dataclass(frozen=True, eq=False)
class ComparisonEntry:
    """One model of a comparison.

    Parameters
    ----------
    name : str
        How the page calls it.
    evaluation : Evaluation or None
        Accuracy, consistency and group gaps, from `likewise.evaluate`.
    audit : AuditResult
        From `likewise.audit`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> entry = ComparisonEntry("score", None, result)
    >>> round(entry.pure_gap.value, 3), list(entry.measures())
    (0.243, ['gap at ε = 0'])
    """

    name: str
    evaluation: Evaluation | None
    audit: AuditResult

    def __post_init__(self) -> None:
        if not isinstance(cast("Any", self.name), str) or not self.name.strip():
            allowed = "a name of one letter or more"
            raise bad_parameter("ComparisonEntry", "name", allowed, repr(self.name))
        kinds: dict[str, Any] = {"audit": AuditResult, "evaluation": Evaluation | None}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                allowed = "an AuditResult" if kind is AuditResult else "an Evaluation or None"
                got = f"a {type(value).__name__}"
                raise bad_parameter("ComparisonEntry", name, allowed, got)

    @property
    def pure_gap(self) -> Measure:
        """The gap at ε = 0 with its interval."""
        low, high = self.audit.test.interval
        return Measure("gap at ε = 0", self.audit.pure_gap, low, high, self.audit.test.method)

    @property
    def gap(self) -> Measure:
        """The gap at ε with its interval."""
        found = self.audit.interval
        return Measure(f"gap at ε = {self.audit.eps:g}", self.audit.gap, found.low, found.high, found.method)

    def measures(self) -> dict[str, Measure]:
        """Everything that is compared, by name: of the evaluation, then the audited gaps."""
        found = {m.name: m for m in (self.evaluation.measures if self.evaluation else ())}
        return found | {m.name: m for m in (self.pure_gap, self.gap)}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several audited models, the first of which is the one that the others are compared with.

    Parameters
    ----------
    entries : tuple of ComparisonEntry
        With different names, and audits at the same ε.

    Examples
    --------
    >>> Comparison(())
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: Comparison: 'entries' must be one ComparisonEntry or more, got none.
    """

    entries: tuple[ComparisonEntry, ...]

    def __post_init__(self) -> None:
        entries = tuple(self.entries)
        object.__setattr__(self, "entries", entries)
        if not entries:
            raise bad_parameter("Comparison", "entries", "one ComparisonEntry or more", "none")
        for entry in cast("tuple[Any, ...]", entries):
            if not isinstance(entry, ComparisonEntry):
                got = f"a {type(entry).__name__}"
                raise bad_parameter("Comparison", "entries", "ComparisonEntry objects", got)
        names = [entry.name for entry in entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"Comparison: two entries have the same name {twice[0]!r}. Rename one.")
        tolerances = sorted({entry.audit.eps for entry in entries})
        if len(tolerances) > 1:
            shown = ", ".join(f"{eps:g}" for eps in tolerances)
            raise InputError(
                f"Comparison: the audits have different tolerances (eps = {shown}), so their gaps cannot be "
                "compared. Audit all models at the same eps."
            )

    @classmethod
    def of(cls, models: Mapping[str, tuple[Evaluation | None, AuditResult]]) -> Comparison:
        """Make a comparison of a mapping: name to (evaluation, audit).

        Parameters
        ----------
        models : mapping
        """
        return cls(tuple(ComparisonEntry(name, *pair) for name, pair in models.items()))

    @property
    def eps(self) -> float:
        """The tolerance ε of all audits."""
        return self.entries[0].audit.eps

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what is compared, in the order shown."""
        names: dict[str, None] = {}
        for entry in self.entries:
            names |= dict.fromkeys(m.name for m in (entry.evaluation.measures if entry.evaluation else ()))
        last = self.entries[0]
        return (*names, *dict.fromkeys([last.pure_gap.name, last.gap.name]))

    @property
    def frame(self) -> pd.DataFrame:
        """One row per model, one column per measure."""
        return self._frame("value").droplevel(1, axis="columns")

    @property
    def intervals(self) -> pd.DataFrame:
        """Ends of the confidence intervals: columns (measure, "low") and (measure, "high")."""
        return self._frame("low", "high")

    def _frame(self, *parts: str) -> pd.DataFrame:
        found = {entry.name: entry.measures() for entry in self.entries}
        rows = {
            name: [getattr(measures.get(m), part, float("nan")) for m in self.measures for part in parts]
            for name, measures in found.items()
        }
        columns = pd.MultiIndex.from_product([self.measures, parts])
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def frontier(self, *, pure: bool = False) -> tuple[str, ...]:
        """Names of the models that no other beats in both accuracy and gap, the fairest first.

        Parameters
        ----------
        pure : bool, default=False
            The gap at ε = 0 instead of the one at ε.

        Returns
        -------
        tuple of str
            Models without an evaluation have no accuracy, and are left out.
        """
        points = [
            ((entry.pure_gap if pure else entry.gap).value, entry.measures()[ACCURACY].value, entry.name)
            for entry in self.entries
            if ACCURACY in entry.measures()
        ]
        return unbeaten(points)

    def sentence(self) -> str:
        """Say in one sentence how the fairest model compares with the first."""
        first = self.entries[0]
        best = min(self.entries, key=lambda entry: (entry.audit.gap, entry.audit.pure_gap))
        level, eps = best.audit.interval.confidence, self.eps
        if best is first:
            which = Message("compared.smallest", n=len(self.entries))
            at = {"name": first.name, "which": which, "gap": _said(first.gap), "eps": eps, "level": level}
            if eps > 0:
                text = Message("compared.first_and_pure", pure=_said(first.pure_gap), **at)
            else:
                text = Message("compared.first", **at)
            return self._searched(text)
        gaps = _against(best.gap, first.gap, first.name)
        text = Message("compared.best", name=best.name, gaps=gaps, eps=eps)
        if eps > 0:
            text = Message("compared.and_pure", text=text, gaps=_against(best.pure_gap, first.pure_gap))
        before, after = first.measures().get(ACCURACY), best.measures().get(ACCURACY)
        if before is not None and after is not None:
            text = Message("compared.and_accuracy", text=text, after=after.value, before=before.value)
        return self._searched(Message("compared.end", text=text, level=level))

    def _searched(self, text: Message) -> Message:
        """Say so if the models were searched by different means, whose gaps are not alike."""
        means = {entry.audit.search: entry.name for entry in self.entries}
        if len(means) < 2:
            return text
        said = (Message("compared.by", name=name, search=search) for search, name in means.items())
        listed = reduce(lambda one, two: Message("verdict.reasons", one=one, two=two), said)
        return Message("compared.searched", text=text, listed=listed)

    def __str__(self) -> str:
        return self.frame.to_string(float_format=lambda value: f"{value:.3f}")

    def _repr_html_(self) -> str:
        measures, rows = self.measures, {}
        for entry in self.entries:
            found = entry.measures()
            rows[entry.name] = [*(_shown(found.get(m)) for m in measures), entry.audit.headline.title]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=[*measures, "verdict"])
        with pd.option_context("display.max_colwidth", None):
            return f'<div style="overflow-x:auto"><p>{escape(self.sentence())}</p>{table.to_html(border=0)}</div>'


def comparison_document(
    comparison: Comparison,
    *,
    diagnoses: Sequence[Any] = (),
    max_people: int = MAX_LISTED,
    labels: Mapping[Any, str] | None = None,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Return a comparison as plain values that follow the published JSON Schema.

    Parameters
    ----------
    comparison : Comparison
    diagnoses, max_people, labels, provenance
        As in `audit_document`.

    Returns
    -------
    dict
        Of kind ``"likewise.report.comparison"``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> entry = ComparisonEntry("score", None, result)
    >>> document = comparison_document(Comparison((entry,)))
    >>> document["kind"], [one["name"] for one in document["entries"]]
    ('likewise.report.comparison', ['score'])
    """
    best = {True: comparison.frontier(pure=True), False: comparison.frontier()}
    document = {
        "kind": "likewise.report.comparison",
        "schema_version": SCHEMA_VERSION,
        "summary": comparison_summary(comparison, labels),
        "provenance": None if provenance is None else provenance.document(),
        "sentence": comparison.sentence(),
        "eps": comparison.eps,
        "entries": [
            {
                "name": entry.name,
                "on_frontier": {"free": entry.name in best[True], "budget": entry.name in best[False]},
                "audit": audit_document(
                    entry.audit,
                    name=entry.name,
                    evaluation=entry.evaluation,
                    max_people=max_people,
                    labels=labels,
                ),
            }
            for entry in comparison.entries
        ],
        "diagnoses": [diagnosis_document(diagnosis) for diagnosis in diagnoses],
    }
    own = {name: value for name, value in document.items() if name != "entries"}
    return document | {"said": collect_messages(own)}


def comparison_summary(comparison: Comparison, labels: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """Say how many decisions change under every model, then whose and one by name under the one with most."""
    worst = max(comparison.entries, key=_changed)
    sentences: list[str] = [
        Message("first.of_model", name=entry.name, sentence=sentence)
        for entry in comparison.entries
        for sentence in first_words(entry.audit, labels)[: len(entry.audit.findings) + 1]
    ]
    more = first_words(worst.audit, labels)[len(worst.audit.findings) + 1 :]
    sentences += [Message("first.of_model", name=worst.name, sentence=sentence) for sentence in more]
    return {"text": " ".join(sentences), "sentences": sentences}


def _changed(entry: ComparisonEntry) -> float:
    only = entry.audit.sensitive
    share = entry.audit.flipped if only is None else only.changed
    return entry.audit.pure_gap if share is None else share


def _said(measure: Measure) -> Message:
    return Message("compared.value", value=measure.value, low=measure.low, high=measure.high)


def _against(part: Measure, whole: Measure, name: str | None = None) -> Message:
    two = {"one": _said(part), "two": _said(whole)}
    whose = {} if name is None else {"name": name}
    said = Message("compared.against_name" if whose else "compared.against", **whose, **two)
    if whole.value <= 0:
        return said
    return Message("compared.share", text=said, share=round(part.value / whole.value, 2))


def _shown(measure: Measure | None) -> str:
    if measure is None:
        return "not measured"
    return f"{short_number(measure.value)} ({interval_ends(measure.low, measure.high)})"


# What the page of a comparison shows side by side.


def without_groups(evaluation: Mapping[str, Any] | None) -> bool:
    """Whether groups were to be compared, and fewer than two of them could be."""
    return evaluation is not None and any(_gap_of(gaps) is None for gaps in evaluation["gaps"])


def _gap_of(gaps: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The largest gap between groups; None if in no class two groups have people to compare."""
    known = [
        sum(group["rates"][k] is not None for group in gaps["groups"]) for k in range(len(gaps["classes"]))
    ]
    return gaps["max"] if max(known, default=0) >= 2 else None


def compared_measures(texts: Texts, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the measures of a comparison's document as columns, the best value of each marked."""
    found: dict[str, list[Any]] = {}
    audits = [entry["audit"] for entry in document["entries"]]
    for i, audit in enumerate(audits):
        for name, form, small, measure in _measures(texts, audit):
            column = found.setdefault(name, [form, small, [None] * len(audits)])
            column[2][i] = measure
    return [
        {"name": name, "cells": _with_best(texts, cells, form, small=small)}
        for name, (form, small, cells) in found.items()
    ]


def _measures(
    texts: Texts, audit: Mapping[str, Any]
) -> Iterable[tuple[str, str, bool, Mapping[str, Any] | None]]:
    """What is compared of one model: name, form, whether small is better, value with interval."""
    summary, evaluation = audit["summary"], audit["evaluation"]
    changed = summary["changed"]
    if changed is not None:
        yield texts("page.compared.changed"), "percent", True, changed | {"value": changed["share"]}
    rows = [row for row in summary["effects"] or () if row["single"] and row.get("lose") is not None]
    for name in ("lose", "gain") if rows else ():
        most = max(row[name] for row in rows)
        yield texts(f"page.compared.{name}"), "whole", True, {"value": most, "low": None, "high": None}
    for measure in evaluation["measures"] if evaluation else ():
        if not measure["name"].startswith("Gap"):
            yield known_words(texts, measure["name"], "measure") or measure["name"], "number", False, measure
    gaps = [] if not evaluation else [_gap_of(one) for one in evaluation["gaps"]]
    if gaps:
        largest = max(filter(None, gaps), key=lambda one: one["value"], default=None)
        yield texts("page.compared.group_gap"), "number", True, largest
    if audit["asked"]["metric"]:
        numbers = audit["numbers"]
        yield texts("page.compared.gap_at", eps=numbers["eps"]), "number", True, numbers["gap"]


def _with_best(texts: Texts, cells: Sequence[Any], form: str, *, small: bool) -> list[dict[str, Any] | None]:
    values = [cell["value"] for cell in cells if cell is not None and cell["value"] is not None]
    best, worst = (f(values, default=None) for f in ((min, max) if small else (max, min)))
    found: list[dict[str, Any] | None] = []
    for cell in cells:
        if cell is None or cell["value"] is None:
            found.append(None)
            continue
        ends = " – ".join(texts.number(cell[end], form) for end in ("low", "high") if cell[end] is not None)
        best_of = cell["value"] == best and best != worst
        found.append({"words": texts.number(cell["value"], form), "ends": ends, "best": best_of})
    return found
