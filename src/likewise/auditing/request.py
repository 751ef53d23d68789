"""What was asked of an audit, checked: one object from the call to the result."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from likewise._version import __version__
from likewise.auditing.people import AuditedPeople, TableCoordinates, check_tolerance, rows_of
from likewise.auditing.search.contract import Budget, Search, read_searches
from likewise.core.checks import IntArray, check_number
from likewise.core.errors import installed_versions
from likewise.core.randomness import numpy_generator
from likewise.counterfactuals.edits import edited_columns, read_edits

# Seconds that are kept to put people and numbers together after the search: a share of the time given, and at most so many.
_KEPT, _MOST_KEPT = 0.2, 0.5
_NO_LIMIT = Budget()


@dataclass(frozen=True, eq=False)
class AuditRequest:
    """What was asked of an audit, checked; `AuditRequest.of` reads searches and seconds as a user writes them.

    `worst_case`: whether more is asked than what changes with the sensitive columns alone. `eps` may be given in the
    table's own units, {column: change}, until the metric is known.
    """

    model: Any = None
    metric: Any = None
    searches: tuple[Search, ...] = ()
    domain: Any = None
    loss: Any = None
    edits: Any = None
    encoded: bool | None = None
    eps: float | Mapping[str, float] = 0.0
    delta: float | None = None
    limit: float | None = None
    tau: float = 0.01
    confidence: float = 0.95
    required: bool = False
    budget: Budget = _NO_LIMIT
    random_state: int = 0
    tolerance: float | None = None
    worst_case: bool = True
    absent: Any = None
    labelled: bool = True

    def __post_init__(self) -> None:
        eps = {} if isinstance(self.eps, Mapping) else {"eps": self.eps}
        for name, number in (eps | {"delta": self.delta or 0.0, "tau": self.tau}).items():
            check_number(number, owner="audit", name=name, low=0.0)
        if self.limit is not None:
            check_number(self.limit, owner="audit", name="limit", low=0.0, high=1.0)
        ends: dict[str, Any] = {"low": 0.0, "high": 1.0, "open_low": True, "open_high": True}
        check_number(self.confidence, owner="audit", name="confidence", **ends)

    @classmethod
    def of(cls, *, search: Any = None, budget_seconds: float | None = None, **asked: Any) -> AuditRequest:
        """Return a request whose search is a word, a search or a list of them; an empty list asks about no distance alone."""
        found = cls(**asked)
        searches: tuple[Search, ...] = ()
        required = False
        if found.worst_case:
            timed = budget_seconds is not None
            searches, required = read_searches(
                "auto" if search is None else search, timed=timed, confidence=found.confidence
            )
        budget = _NO_LIMIT
        if budget_seconds is not None:
            kept = min(_KEPT * budget_seconds, _MOST_KEPT)
            budget = replace(Budget(budget_seconds), seconds=budget_seconds - kept)
        return replace(found, searches=searches, required=required, budget=budget)

    @property
    def tolerated(self) -> float:
        """The budget ε as a number."""
        assert not isinstance(self.eps, Mapping)  # the metric has turned units of the table into one
        return float(self.eps)

    def people(self, X: Any, y: Any) -> AuditedPeople:
        """Return the people of a raw table, with the model and the columns that are exchanged."""
        place = TableCoordinates.of_table(X, model=self.model, domain=self.domain)
        labels = None if y is None else np.asarray(y)
        made = AuditedPeople(
            place,
            rows_of(X, place),
            labels,
            tolerance=self.tolerance,
            absent=self.absent,
            labelled=self.labelled,
        )
        check_tolerance(made)
        return made.exchanging(read_edits(self.edits or (), owner="audit"))

    def draw(self, size: int, n: int) -> IntArray:
        """Draw `size` of n people without replacement; their numbers, rising."""
        chosen = numpy_generator(self.random_state).choice(n, size=min(size, n), replace=False)
        return np.sort(chosen).astype(np.int64)

    def pool(self, searches: Sequence[Search], n: int) -> IntArray:
        """Numbers of the people who are everybody's candidates, rising; none if no search wants some."""
        size = max((search.pool_size for search in searches), default=0)
        return self.draw(size, n) if size else np.zeros(0, dtype=np.int64)


@cache
def _versions() -> dict[str, str]:
    libraries = ("numpy", "scikit-learn", "torch", "pandas")
    return {"python": platform.python_version()} | installed_versions(libraries)


def settings_of(asked: AuditRequest, people: AuditedPeople) -> dict[str, Any]:
    """Plain values that say how an audit was made."""
    model = people.coordinates.model
    return {
        "version": __version__,
        "versions": dict(_versions()),
        "loss": model.loss.name,
        "model": model.adapter,
        "sensitive": [str(name) for name in edited_columns(people.sensitive_edits)],
        "seed": asked.random_state,
        "confidence": asked.confidence,
    }
