"""What a search is: it raises what is known from below, with rows that exist, or lowers it from above.

A search of one's own is one class with one method::

    class Retired(likewise.auditing.Search):
        name = "retired twins"
        in_parts = True

        def extend(self, problem, support, eps, budget):
            x = problem.X.copy()
            x[:, problem.coordinates.encoding.by_name["age"].start] = 2.0
            return Found(support.with_rows(x, np.arange(problem.n)))

It may leave rows wherever it likes: `Support.with_rows` asks the model and measures the distances itself, so nothing
a search says can break the budget or a bound.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter, require
from likewise.core.messages import Message, Texts
from likewise.counterfactuals.edits import Edit

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.inference.certificate import Bound
    from likewise.auditing.problem import AuditProblem

Status = Literal["converged", "not_converged", "failed"]


@dataclass(frozen=True)
class Budget:
    """How long an audit may search."""

    seconds: float | None = None
    _start: float = field(default_factory=time.time, repr=False)
    watch: Callable[[float], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seconds is not None:
            check_number(self.seconds, owner="audit", name="budget_seconds", low=0.0, open_low=True)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return float("inf") if self.seconds is None else self._start + self.seconds - time.time()

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0

    def part(self, share: float) -> Budget:
        """Return a share of the time that is left, at least a moment; without a limit there is none."""
        return self if self.seconds is None else Budget(max(share * self.left, 1e-3))

    def tell(self, share: float) -> None:
        """Say that so much of a search is done, for whoever looks on."""
        if self.watch is not None:
            self.watch(min(max(share, 0.0), 1.0))

    def tell_time(self) -> None:
        """Say how much of the time is gone: for work that ends when it is, and else cannot say how far it is."""
        self.tell(0.0 if self.seconds is None else 1.0 - self.left / self.seconds)


_WORSE: tuple[Status, ...] = ("converged", "not_converged", "failed")
_MOST_REASONS = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Ending:
    """How searches of some people ended: well or not, why not, and what they proved."""

    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def then(self, later: EndingT) -> EndingT:
        """Return a later search of the same people, with what was known before it; of bounds of a kind the tightest stays."""
        return replace(later, **self.ended(later), bounds=tightest((*self.bounds, *later.bounds)))

    def ended(self, other: Ending) -> dict[str, Any]:
        """The worse of two ways to end, and the reasons of both."""
        reasons = tuple(dict.fromkeys((*self.reasons, *other.reasons)))[:_MOST_REASONS]
        return {"status": max(self.status, other.status, key=_WORSE.index), "reasons": reasons}

    def bound(self, *, eps: float, about: str = "sample") -> Bound | None:
        """Return the bound of V(ε), of the people at hand or of those they were drawn from; None if there is none."""
        return next((one for one in self.bounds if bound_kind(one) == ("loss", eps, about)), None)


EndingT = TypeVar("EndingT", bound=Ending)


def bound_kind(bound: Bound) -> tuple[str, float, str]:
    return bound.measure, bound.eps, bound.about


def tightest(bounds: Iterable[Bound]) -> tuple[Bound, ...]:
    """Return the tightest bound of each kind."""
    found: dict[Any, Bound] = {}
    for bound in bounds:
        known = found.setdefault(bound_kind(bound), bound)
        if bound.value < known.value:
            found[bound_kind(bound)] = bound
    return tuple(found.values())


@dataclass(frozen=True, eq=False)
class Found(Ending):
    """What a search found.

    Parameters
    ----------
    support : Support
        With the rows it found.
    status : {"converged", "not_converged", "failed"}
        Whether it ended well.
    reasons : tuple of str
        Why not, in words that say what to do.
    bounds : tuple of Bound
        What it proved from above, about the people at hand or those they were drawn from: of V(ε), of V(0), or of the
        share of changed decisions.
    again : Search, optional
        The search with the prices λ that it chose by looking at these people together: it looks at other people one by
        one. A table in parts chooses them on a sample.

    Examples
    --------
    A search returns one; `Search` has a whole example.

    >>> found = Found(support=None, status="not_converged", reasons=("the time was up",))
    >>> found.status, found.bounds
    ('not_converged', ())
    """

    support: Support
    again: Search | None = field(default=None, kw_only=True)


def unfinished(support: Support, reason: str) -> Found:
    """What a search found that did not get to its end."""
    return Found(support, status="not_converged", reasons=(reason,))


class Search(ABC):
    """A way to look for the worst case; the base of every search and bound.

    Attributes
    ----------
    name : str
        What a result calls it.
    in_parts : bool
        Whether what is found for a person depends on that person alone (and on what `prepare` filled in), so that
        people can be searched part by part, anywhere, with the same result.
    chooses_prices : bool
        Whether that holds once the prices λ are chosen, which needs many people: `Found.again`.
    optional : bool
        Whether it is left out without an error if it cannot serve, even when searches were asked for by name.
    from_sample : bool
        Whether `prove_table` says something of a whole table, given people drawn at random from it, and time.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> @dataclass(frozen=True)
    ... class SwapSex(lw.auditing.Search):
    ...     name = "swap sex"
    ...     def extend(self, problem, support, eps, budget):
    ...         swapped = people.assign(sex=["M", "F", "F", "M"])
    ...         rows = problem.coordinates.domain.encode(swapped)
    ...         found = support.with_rows(rows, np.arange(problem.n))
    ...         return lw.auditing.Found(found, status="not_converged", reasons=("it looked at one twin only",))
    >>> found = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0, search=SwapSex())
    >>> round(found.pure_gap, 3), found.search, found.reasons
    (0.243, 'swap sex', ('it looked at one twin only',))
    """

    name: ClassVar[str]
    in_parts: ClassVar[bool] = False
    chooses_prices: ClassVar[bool] = False
    optional: ClassVar[bool] = False
    from_sample: ClassVar[bool] = False

    @property
    def pool_size(self) -> int:
        """How many people, drawn at random from the whole table, it wants as `AuditProblem.pool`."""
        return 0

    def for_parts(self) -> Search | None:
        """Return this search in a form that can work on parts, None if it has none."""
        return self if self.in_parts or self.chooses_prices else None

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why this search cannot serve a problem; None if it can."""
        return None

    def settles(self, eps: float) -> bool:
        """Whether its answer at ε is exact, so that "auto" needs no search after it."""
        return False

    def prepare(self, problem: AuditProblem) -> Search:
        """Return this search with everything filled in that is learned from people (of a sample, where in parts)."""
        return self

    def prove_table(self, sample: AuditProblem, n: int, eps: float, budget: Budget) -> tuple[Bound, ...]:
        """Say what people drawn at random prove about a table of n people that is read in parts."""
        return ()

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say in sentences what its findings rest on."""
        return ()

    @abstractmethod
    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Look for rows that treat people worse, or for a bound that rules them out.

        Parameters
        ----------
        problem : AuditProblem
            The people, with model, metric and domain in one coordinate system.
        support : Support
            What is known already.
        eps : float
            The budget ε the audit asks about.
        budget : Budget
            Of time.
        """


# Which searches an audit runs: by name, one's own, or "auto", and why some are left out.


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
    if isinstance(parts, (list, tuple)) and not parts:
        from likewise.auditing.bounds.enumeration import EnumerationSearch

        # Everybody at no distance is asked about, and nobody else.
        return (EnumerationSearch(),), True
    if not isinstance(parts, Sequence):
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
        late = False
        if not required and search.from_sample and budget is not None and budget.seconds is not None:
            from likewise.auditing.bounds.families import seconds_to_read

            # Time to read a model, and to prove something of it then.
            late = budget.left <= 1.5 * seconds_to_read(problem)
        if late:
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
    """Search gradients or the domain, not both; with the domain, only what follows from an edit is a candidate besides.

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
    if alone and any(isinstance(part, Edit) and part.consequences is not None for part in problem.edits):
        return [one.own_twins() if isinstance(one, CandidateSearch) else one for one in searches], said
    return [one for one in searches if not (alone and isinstance(one, CandidateSearch))], said


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
