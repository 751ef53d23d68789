"""The worst valid rows for any model at all: moves of one and of two columns, from each person, over the whole domain.

Nothing is asked of the model but its loss; a tree model also says where it splits. Every row that is tried serves every
λ. What is found for a person depends on that person, the model, the metric and the domain alone, never on who else is
audited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likewise.auditing.bounds.families import family_in, seconds_to_read
from likewise.auditing.bounds.moves import MoveArrays
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.dual.finite_dual import solve_dual
from likewise.auditing.dual.frontier import Floats, Frontier
from likewise.auditing.search.change_points import furthest, loss_unit, prices_of, split_points
from likewise.auditing.search.contract import Budget, Found, Search
from likewise.auditing.search.moves import Effort, FoundForPeople, MoveSearch
from likewise.core.checks import IntArray, check_number
from likewise.core.compiled import is_compiled
from likewise.core.errors import InputError
from likewise.core.messages import Message
from likewise.core.randomness import numpy_generator

if TYPE_CHECKING:
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem

# Rows that are moved on from; a round of trees shows all cells of all columns.
_ROUNDS, _TREE_ROUNDS = 24, 12
# With fewer calls not even every single move of a small table is tried.
_FEWEST_CALLS = 64
# Where a time is set: people who are searched first, and the share of the time left that the next ones may take.
_FIRST, _SHARE = 24, 0.1


@dataclass(frozen=True)
class DomainSearch(Search):
    """Search the whole domain around each person, for any model.

    Parameters
    ----------
    calls : int, default=1000
        Rows that a black box is asked about for one person, about so many at most. What was read of a model (trees,
        networks, linear models) says what all moves do, and only the rows that are kept are asked about.
    rounds : int, optional
        Rows that are moved on from for one person, at most; a person whom no move improves is done. By default 12 for
        trees that were read, and else 24.
    probes : int, default=50000
        Rows of the domain that a black box is asked about, once for everybody, to find where its answers change.
    total_calls : int, default=40_000_000
        For everybody together: beyond so many people everyone gets fewer calls, and the result says so.
    share : float, default=1.0
        Of the time that is left it takes no more than this.
    cuts : mapping of str to sequence of float, optional
        Where answers change along each number, in original units; by default the splits of a tree model, or what the
        probes find.

    Examples
    --------
    >>> import pandas as pd, likewise as lw
    >>> people = pd.DataFrame({"age": [30, 44, 61], "sex": ["f", "m", "f"]})
    >>> grants = lambda frame: np.where((frame["age"] > 40) & (frame["sex"] == "m"), 0.9, 0.2)
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> found = lw.audit(grants, people, [0, 1, 1], metric=metric, eps=1.0, search=DomainSearch())
    >>> found.unfair_map.twins["age"].tolist()
    [41, 44, 61]
    """

    name: ClassVar[str] = "domain"
    in_parts: ClassVar[bool] = True

    calls: int = 1_000
    rounds: int | None = None
    probes: int = 50_000
    total_calls: int = 40_000_000
    share: float = 1.0
    cuts: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "rounds", "probes", "total_calls"):
            if name != "rounds" or self.rounds is not None:
                check_number(getattr(self, name), owner="DomainSearch", name=name, low=1)
        check_number(self.share, owner="DomainSearch", name="share", low=0.0, high=1.0, open_low=True)

    def why_not(self, problem: AuditProblem) -> str | None:
        """Say why the domain cannot be searched, where it cannot."""
        place = problem.coordinates
        if place.metric.feature_map is not None:
            return Message("why_not.feature_map")
        try:
            TableLayout.of(place.domain)
        except InputError:
            return Message("why_not.no_columns")
        return place.why_no_made_up_rows()

    def knows_moves(self, problem: AuditProblem) -> bool:
        """Whether what all moves do was read off a network, which makes its gradients superfluous."""
        found = _read(problem)
        return found is not None and not found.is_tree and len(found.layers[2]) > 0

    def prepare(self, problem: AuditProblem) -> DomainSearch:
        """Return these choices with as many calls as there are people for, and in parts with the cuts of the model."""
        learns = self.cuts is None and problem.total is not None
        cuts = split_points(problem, self.probes) if learns else self.cuts
        return replace(self, cuts=cuts, calls=self.calls_for(problem))

    def calls_for(self, problem: AuditProblem) -> int:
        """How many calls each person of the whole table gets."""
        people = problem.n if problem.total is None else problem.total
        return min(self.calls, max(self.total_calls // max(people, 1), _FEWEST_CALLS))

    def assumes(self, problem: AuditProblem) -> tuple[str, ...]:
        """Say who may be a twin."""
        return (Message("assumption.domain", calls=self.calls),)

    def extend(self, problem: AuditProblem, support: Support, eps: float, budget: Budget) -> Found:
        """Add the rows of everybody's frontier over all that was tried."""
        place, timed = problem.coordinates, budget.seconds is not None
        layout = TableLayout.of(place.domain)
        until = time.time() + self.share * max(budget.left, 0.0)
        # A model is read, or probed, only if that leaves time to use what is learned.
        hasty = timed and budget.left < 2.0 * seconds_to_read(problem)
        cuts = self.cuts
        if cuts is None:
            cuts = {} if hasty else split_points(problem, self.probes)
        read = None if hasty else _read(problem)
        rounds = self.rounds or (_TREE_ROUNDS if read is not None and read.is_tree else _ROUNDS)
        search = MoveSearch(
            layout,
            place.metric,
            prices_of(float(eps), loss_unit(place, layout)),
            place.model.loss,
            read,
            _asking(problem, layout),
            cuts,
            furthest(float(eps)),
            Effort(rounds, self.calls_for(problem)),
        )
        # The same person twice is searched once.
        whole = np.column_stack([problem.X, np.asarray(problem.target, dtype=np.float64)])
        _, one, same = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        same = same.ravel()
        if timed:
            # In an order of chance, so that whoever is reached stands for the others.
            order = numpy_generator(problem.random_state).permutation(len(one))
            one, same = one[order], np.argsort(order)[same]
        found: list[FoundForPeople] = []
        done, size = 0, _FIRST if timed else search.size
        while done < len(one):
            clock = time.time()
            if clock >= until:
                break
            budget.tell(done / len(one))
            at = one[done : done + size]
            found.append(search.run(problem.X[at], problem.target[at]))
            done += len(at)
            if timed:
                each = max(time.time() - clock, 1e-6) / len(at)
                size = int(np.clip(_SHARE * max(until - time.time(), 0.0) / each, 1, search.size))
            if timed and len(found) == 1 and 0 < eps < np.inf:
                # Others are searched around the λ that the first people lead to, with half the effort.
                near = _narrowed(found[0], float(eps)) or search.prices
                effort = Effort(rounds, max(search.effort.calls // 2, 1))
                search = replace(search, prices=near, effort=effort)
        if found:
            support = support.with_rows(*_for_everybody(found, same))
        if done < len(one):
            missed = int((same >= done).sum())
            reason = Message("reason.domain_time", missed=missed, people=problem.n)
            return Found(support, "not_converged", (reason,))
        return Found(support)


def _narrowed(found: FoundForPeople, eps: float) -> tuple[float, ...]:
    """The prices on both sides of the λ at which some people spend ε; none if they never do."""
    own = np.append(True, found.person[1:] != found.person[:-1])
    frontier = Frontier.from_points(
        base_loss=found.loss[own],
        row=found.person[~own],
        squared_distance=found.cost[~own],
        loss=found.loss[~own],
        candidate=np.arange(int((~own).sum())),
    )
    lam = float(solve_dual(frontier, eps).lambda_)
    return (1.5 * lam, 0.7 * lam) if 0 < lam < np.inf else ()


def _read(problem: AuditProblem) -> MoveArrays | None:
    """What was read of the model, if it gave the model's own answers; only compiled loops are faster than asking."""
    if not is_compiled():
        return None
    try:
        return family_in(problem).moves
    except InputError:
        return None


def _asking(problem: AuditProblem, layout: TableLayout) -> Callable[[Floats, Any], Floats]:
    """The model's own losses of rows of values."""
    place, classes = problem.coordinates, problem.coordinates.model.classes_

    def ask(values: Floats, targets: Any) -> Floats:
        labels = targets if classes is None else np.asarray(classes)[targets]
        return place.losses_encoded(np.asarray(layout.encode(values), dtype=np.float64), labels)

    return ask


def _for_everybody(found: Sequence[FoundForPeople], same: IntArray) -> tuple[Floats, IntArray]:
    """Rows that distinct people were moved to, for everybody who is the same."""
    rows = np.concatenate([part.rows for part in found])
    before = np.cumsum([0, *(int(part.person[-1]) + 1 for part in found)])
    person = np.concatenate([part.person + k for part, k in zip(found, before, strict=False)])
    # Everybody's own row, the first of theirs, is known.
    moved = np.append(False, person[1:] == person[:-1])
    rows, person = rows[moved], person[moved]
    count = np.bincount(person, minlength=int(same.max()) + 1)
    start, length = np.cumsum(count) - count, count[same]
    who = np.repeat(np.arange(len(same)), length)
    place = np.repeat(start[same] - (np.cumsum(length) - length), length) + np.arange(len(who))
    return rows[place], who
