"""What an audit checked, as the tools of a pipeline count it: passed, failed, skipped, or no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from likewise.core.text import short_number

__all__ = ["CHECKS", "Check", "checks_of"]

State = Literal["passed", "open", "failed", "skipped", "error"]

# Identifier of each check, and what it asks.
CHECKS = {
    "belong-together": "Model, table and labels belong together.",
    "gap-within-delta": "Comparable twins within the budget add at most δ to the mean loss.",
    "search-converged": "The search for the worst case ended well.",
}

_STATES: dict[str, State] = {
    "fair": "passed",
    "trivial": "passed",
    "unfair": "failed",
    "undecided": "open",
    "unanswered": "error",
    "not converged": "error",
    "no limit": "skipped",
}


@dataclass(frozen=True)
class Check:
    """One thing that an audit checked.

    Parameters
    ----------
    id : str
        One of `CHECKS`.
    state : {"passed", "open", "failed", "skipped", "error"}
        "open" where nothing speaks against it and nothing proves it: a pipeline goes on, as the exit code says.
    title : str
        With the numbers asked for.
    message : str
        What was found.
    """

    id: str
    state: State
    title: str
    message: str


def checks_of(document: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return what an audit checked.

    Parameters
    ----------
    document : mapping
        Of `audit_document`.

    Returns
    -------
    tuple of Check
    """
    verdict, numbers, computed = document["verdict"], document["numbers"], document["computed"]
    delta = "no limit" if verdict["delta"] is None else f"δ = {verdict['delta']:g}"
    gap = Check(
        "gap-within-delta",
        _STATES[verdict["kind"]],
        f"gap at ε = {numbers['eps']:g} ({short_number(numbers['gap']['value'])}) against {delta}",
        f"{verdict['title']}: {verdict['sentence']}",
    )
    against = [finding["sentence"] for finding in document["findings"] if finding["blocks"]]
    belong = Check(
        "belong-together",
        "error" if against else "passed",
        "model, table and labels",
        " ".join(against) or "Nothing speaks against it.",
    )
    ended = computed["status"] == "converged"
    search = Check(
        "search-converged",
        "passed" if ended else "error",
        f"search by {computed['search']}",
        "The search converged." if ended else "; ".join(computed["reasons"]) or "No reason was given.",
    )
    return belong, gap, search
