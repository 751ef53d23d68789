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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from likewise.core.checks import check_number

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

    def tell(self, share: float) -> None:
        """Say that so much of a search is done, for whoever looks on."""
        if self.watch is not None:
            self.watch(min(max(share, 0.0), 1.0))

    def tell_time(self) -> None:
        """Say how much of the time is gone: for work that ends when it is, and else cannot say how far it is."""
        self.tell(0.0 if self.seconds is None else 1.0 - self.left / self.seconds)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Parameters
    ----------
    support : Support
        With the rows it found.
    status : {"converged", "not_converged", "failed"}
        Whether it ended well.
    reasons : tuple of str
        Why not, in words that say what to do.
    bound : Bound, optional
        From above, about the people at hand.
    population_bound : Bound, optional
        From above, about the people they were drawn from.
    more : tuple of Bound
        Further bounds: at ε = 0 where the audit asks about another ε, and of the share of changed decisions.
    again : Search, optional
        The search with the prices λ that it chose by looking at these people together: it looks at other people one by
        one. A table in parts chooses them on a sample.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> @dataclass(frozen=True)
    ... class SwapSex(lw.auditing.Search):
    ...     name = "swap sex"
    ...     def extend(self, problem, support, eps, budget):
    ...         swapped = people.assign(sex=["M", "F", "F", "M"])
    ...         rows = problem.coordinates.domain.encode(swapped)
    ...         found = support.with_rows(rows, np.arange(problem.n))
    ...         return lw.auditing.Found(found, status="not_converged", reasons=("it looked at one twin only",))
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0, search=SwapSex())
    >>> result.status, result.reasons
    ('not_converged', ('it looked at one twin only',))
    """

    support: Support
    status: Status = "converged"
    reasons: tuple[str, ...] = ()
    bound: Bound | None = None
    population_bound: Bound | None = None
    more: tuple[Bound, ...] = ()
    again: Search | None = None


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
        Whether it is left out without an error where it cannot serve, even when searches were asked for by name.
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
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> @dataclass(frozen=True)
    ... class SwapSex(lw.auditing.Search):
    ...     name = "swap sex"
    ...     def extend(self, problem, support, eps, budget):
    ...         swapped = people.assign(sex=["M", "F", "F", "M"])
    ...         rows = problem.coordinates.domain.encode(swapped)
    ...         return lw.auditing.Found(support.with_rows(rows, np.arange(problem.n)))
    >>> found = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0, search=SwapSex())
    >>> round(found.pure_gap, 3), found.search
    (0.243, 'swap sex')
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
        """Return this search in a form that can work on parts, None where it has none."""
        return self if self.in_parts or self.chooses_prices else None

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why this search cannot serve a problem; None where it can."""
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
