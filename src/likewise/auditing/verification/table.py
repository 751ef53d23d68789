"""`verify` of a model and a table, prepared as an audit's; missing cells are counted among the people, not proved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.auditing.case import (
    MatchedPeople,
    build_metric,
    match_people,
    table_request,
)
from likewise.auditing.inference.sanity import Finding, check_before_verdict
from likewise.auditing.problem import AuditProblem
from likewise.auditing.python_case import loaded_model, named_table
from likewise.auditing.verification.verify import Verification, shares_of_people, verify
from likewise.core.frames import check_columns
from likewise.data.case import take_people
from likewise.data.opening import TableChoices


def verify_table(
    model: Any, X: Any, sensitive_features: Sequence[str], *, missing: str = "auto", **choices: Any
) -> Verification:
    """Prepare a model and a table and verify them; `choices` are those of `verify_people`."""
    frame = named_table(X, "verify")
    check_columns(frame, sensitive_features, owner="verify", name="X")
    loaded = loaded_model(model, frame)
    reading = TableChoices(missing=missing)
    asked = table_request(loaded, None, sensitive_features, choices=reading, keeps_missing=True)
    people = take_people(frame, None, asked, name="X")
    found = match_people(loaded, people, needed=sensitive_features, missing=missing)
    return verify_people(found, sensitive_features, **choices)


def verify_people(
    found: MatchedPeople,
    sensitive_features: Sequence[str],
    *,
    seconds: float = 60.0,
    max_regions: int = 1_000_000,
    random_state: int = 0,
    progress: Callable[[Verification], None] | None = None,
) -> Verification:
    """Verify a model over everybody who could exist, and count the people of its table."""
    plain, marked = found.plain, found.matched
    names = [name for name in sensitive_features if name in plain.columns]
    if not names:
        # The model has a list of columns, and these are not among them.
        return Verification(1.0, 0.0, 0.0, (1.0, 0.0, 0.0), (), (), 0, 0.0, trivial=True)
    people: Any = found.frame[list(marked.columns)]
    kept = found.gaps is not None and found.matched is not found.plain
    if kept:
        # What is proved is about people without missing cells; examples are made of them.
        whole = found.people.frame[list(plain.columns)].notna().all(axis=1).to_numpy()
        people = found.people.filled.loc[whole, list(plain.columns)] if whole.any() else None
    own_encoder = getattr(plain.model, "encoder", None) is not None
    proved = verify(
        plain.model,
        plain.domain,
        names,
        people=people,
        encoded=None if own_encoder else not plain.model.takes_frame,
        seconds=seconds,
        max_regions=max_regions,
        random_state=random_state,
        progress=progress,
    )
    if not kept:
        return proved
    everybody = found.frame[list(marked.columns)]
    return replace(proved, people=shares_of_people(marked.model, marked.domain, names, everybody))


def findings_of(found: MatchedPeople, sensitive_features: Sequence[str]) -> tuple[Finding, ...]:
    """What has to be known before any number; by the labels too, if the model knows them."""
    matched = found.matched
    names = [name for name in sensitive_features if name in matched.columns]
    if not names:
        return ()
    frame = found.frame[list(matched.columns)]
    decided = matched.decide(frame)
    labels = decided if found.people.labels is None else np.asarray(found.people.labels)
    known = matched.model.classes_
    if not set(labels.tolist()) <= set(() if known is None else known.tolist()):
        labels = decided  # labels of other names say nothing about the decisions
    metric = build_metric("columns", frame, names, matched.domain)
    return check_before_verdict(
        AuditProblem.build(matched.model, frame, labels, metric=metric, domain=matched.domain)
    )
