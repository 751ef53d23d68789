"""Which searches an audit runs: by name, one's own, or "auto", and why some are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from likewise.auditing.search.contract import Budget, Search
from likewise.core.errors import InputError, bad_parameter, require
from likewise.core.messages import Message, Texts

if TYPE_CHECKING:
    from likewise.auditing.problem import AuditProblem

_NO_PARTS = Message("why_not.no_parts")
NAMES = ("auto", "candidates", "gradient", "domain", "exact")


def read_searches(
    search: Any, *, timed: bool = False, confidence: float = 0.95
) -> tuple[tuple[Search, ...], bool]:
    """Return the searches that were asked for, and whether all of them must serve ("auto" takes what fits)."""
    if isinstance(search, str):
        if search not in NAMES:
            raise bad_parameter(
                "audit",
                "search",
                allowed=f"one of {', '.join(NAMES)}, a Search, or a list of them",
                got=search,
            )
        return tuple(_named(search, timed, confidence)), search != "auto"
    parts = [search] if isinstance(search, Search) else search
    if not isinstance(parts, Sequence) or not parts:
        raise bad_parameter(
            "audit", "search", allowed=f"one of {', '.join(NAMES)}, a Search, or a list of them", got=search
        )
    found: list[Search] = []
    for part in parts:
        if isinstance(part, Search):
            found.append(part)
        else:
            found += read_searches(part, timed=timed, confidence=confidence)[0]
    return tuple(found), True


def choose_searches(
    searches: Sequence[Search],
    problem: AuditProblem,
    *,
    required: bool,
    in_parts: bool,
    eps: float | None = None,
    budget: Budget | None = None,
) -> tuple[tuple[Search, ...], tuple[str, ...]]:
    """Return the searches that can serve a problem, and in words which were left out and why."""
    chosen: list[Search] = []
    left_out: list[str] = []
    if not required:
        searches, left_out = _settled(searches, problem)
    for search in searches:
        one = search.for_parts() if in_parts else search
        if not required and search.from_sample and budget is not None and not _in_time(problem, budget):
            why: Any = Message("reason.no_time", name=search_words(search.name))
        else:
            why = _NO_PARTS if one is None else one.why_not(problem)
        if not required and eps is not None and any(known.settles(eps) for known in chosen):
            why = Message("why_not.settled", eps=float(eps))
        if one is not None and why is None:
            chosen.append(one)
        elif required and not search.optional:
            raise InputError(
                f"audit: search={search.name!r} cannot be used: {why}. Use search='auto', which takes what the "
                "model and the table allow; search='candidates' always serves."
            )
        else:
            left_out.append(Message("search.left_out", name=search_words(search.name), why=why))
    return tuple(chosen), tuple(left_out)


def _in_time(problem: AuditProblem, budget: Budget) -> bool:
    """Whether there is time to read a model, and to prove something of it then."""
    from likewise.auditing.bounds.families import seconds_to_read

    return budget.seconds is None or budget.left > 1.5 * seconds_to_read(problem)


def search_words(name: str) -> str:
    """Return the name of a search as it can be said in other languages; one that is not ours stays."""
    key = f"search.{name.replace(' ', '_')}"
    return Message(key) if Texts().has(key) else name


def searches_words(names: Sequence[str]) -> str:
    """Return the names of searches that ran one after the other."""
    first, *more = (search_words(name) for name in names)
    for name in more:
        first = Message("search.both", one=first, two=name)
    return first


def _settled(searches: Sequence[Search], problem: AuditProblem) -> tuple[list[Search], list[str]]:
    """Let gradients or the domain be searched, not both; where the domain is, people of the table are no candidates.

    What is found for a person then does not depend on who else is in the table.
    """
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.auditing.search.domain import DomainSearch
    from likewise.auditing.search.gradient.search import GradientSearch

    gradients = [one for one in searches if isinstance(one, GradientSearch) and one.why_not(problem) is None]
    domain = [one for one in searches if isinstance(one, DomainSearch) and one.why_not(problem) is None]
    left_out: list[Any] = []
    if gradients and domain:
        moves = domain[0].knows_moves(problem)
        left_out, why = (gradients, "why_not.moves") if moves else (domain, "why_not.gradients")
        domain = domain if moves else []
        searches = [one for one in searches if one not in left_out]
    alone = any(one.calls_for(problem) == one.calls for one in domain)
    said: list[str] = [
        Message("search.left_out", name=search_words(one.name), why=Message(why)) for one in left_out
    ]
    return [one.own_twins() if alone and isinstance(one, CandidateSearch) else one for one in searches], said


def _named(name: str, timed: bool, confidence: float) -> list[Search]:
    from likewise.auditing.search.candidates import CandidateSearch

    start = CandidateSearch(use_rows=name not in ("gradient",))
    found: list[Search] = [start.own_twins() if name == "domain" else start]
    if name in ("auto", "domain", "exact"):
        from likewise.auditing.bounds.enumeration import EnumerationSearch

        found.append(EnumerationSearch())
    if name == "gradient":
        require("torch", extra="torch", why="search='gradient'")
    if name in ("auto", "gradient"):
        from likewise.auditing.search.gradient.search import GradientSearch

        found.append(GradientSearch())
    if name in ("auto", "domain"):
        from likewise.auditing.search.domain import DomainSearch

        found.append(DomainSearch())
    if name in ("auto", "exact"):
        from likewise.auditing.bounds.exact_search import ProofSearch

        found.append(ProofSearch.within(timed=timed or name == "exact", confidence=confidence))
    return found
