"""The one reduction of an audit: rounds over the parts of a table, and how their answers become its numbers.

People in memory are one part. For larger tables the rounds are:

1. *search*: everybody's frontier, which stays where it was made; its steps listed, or added up in bins of λ;
2. *narrow*: the bin in which λ* lies, more finely, until λ* is exact (not needed where steps are listed);
3. *settle*: what λ* means for everybody: spread, histogram, the most harmed, the unfair map as files.

What comes back to this process is small and independent of the number of people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.auditing.audit_result import SensitiveAnswer
from likewise.auditing.claims.conclusion import Answer, Clock, Questions
from likewise.auditing.claims.intervals import gap_interval, prices_around, share_interval
from likewise.auditing.claims.most_affected import most_affected
from likewise.auditing.claims.significance import gap_test_of_moments
from likewise.auditing.parts.engine import Engine
from likewise.auditing.parts.map_folder import MapFolder
from likewise.auditing.parts.one_part import (
    Job,
    clipped_corners,
    narrow_part,
    pick_part,
    search_part,
    settle_part,
    support_of,
)
from likewise.auditing.parts.parquet_table import Part, parts_of
from likewise.auditing.parts.part_sums import HARM_EDGES, FoundSums, SensitiveSums, SettledSums, Worst
from likewise.auditing.people.unfair_map import UnfairMap
from likewise.auditing.problem.audit_problem import AuditProblem
from likewise.auditing.support.binned_steps import ALL_BITS, BinnedSteps

__all__ = ["Reduction"]

# So many steps of one bin come as they are; more of them in bins that are finer by so many bits.
_FEW_STEPS = 250_000
_FINER = 16


@dataclass(frozen=True, eq=False)
class Reduction:
    """One audit, part by part.

    Parameters
    ----------
    engine : Engine
        Where the parts are worked on.
    job : Job
        What they share.
    parts : sequence of Part
    progress : bool
        Show a bar, on standard error.
    """

    engine: Engine
    job: Job
    parts: Sequence[Part]
    progress: bool = False

    @property
    def n(self) -> int:
        """Number of people."""
        return sum(part.rows for part in self.parts)

    def answer(self, questions: Questions, folder: MapFolder | None, clock: Clock) -> Answer:
        """Search, find λ*, settle, and put the numbers together."""
        eps, confidence = float(questions.eps), questions.confidence
        found: FoundSums = self._added(search_part, "auditing people", top=self.job.top)
        for name, seconds in found.cpu.items():
            clock.book(name, seconds)
        steps = self._narrowed(found.steps, eps)
        curve = steps.curve(n=self.n, base=found.losses.mean, free=found.free.mean)
        lam = float(curve.lambda_(eps))
        target = None if folder is None else str(folder.open())
        prices = prices_around(curve, eps)
        settle = partial(settle_part, lam=lam, prices=prices, folder=target)
        settled: SettledSums = self._added(settle, "writing the map" if target else "", top=self.job.top)
        if folder is not None:
            folder.finish(self.parts)
        clock.book("settle", settled.cpu)
        maps = self._maps([found.worst] if eps == 0 else [found.worst, settled.worst])
        decides = self.job.problem.decides
        # Nothing that was seen bounds the losses of people who were not: only the loss itself may.
        ceiling = self.job.problem.coordinates.model.loss.upper_bound
        return Answer(
            n=self.n,
            curve=curve,
            value=float(curve.value(eps)),
            lambda_=lam,
            transport=min(eps, float(curve.eps[-1])),
            pure_gap=found.free.mean,
            flipped=found.changed / self.n if decides else None,
            changed_at_eps=self._changed(found, eps) if decides else None,
            sensitive=_sensitive(found.sensitive, self.job.problem, ceiling, confidence),
            interval=gap_interval(
                settled.gains,
                lambda_=lam if eps > 0 else float("inf"),
                eps=eps,
                ceiling=ceiling,
                confidence=confidence,
            ),
            test=gap_test_of_moments(
                found.losses,
                found.free,
                threshold=questions.tau,
                ceiling=ceiling,
                confidence=confidence,
                about="given candidates",
            ),
            unfair_map=maps[-1],
            pure_map=maps[0],
            ending=found.ending,
            histogram={"edges": list(HARM_EDGES[:-1]), "people": settled.histogram.tolist()},
        )

    def _narrowed(self, steps: BinnedSteps, eps: float) -> BinnedSteps:
        """Ask for the bin in which the budget ends until it holds steps of one slope: λ*."""
        bits = steps.bits
        at = None if bits == ALL_BITS else steps.bin_at(eps, self.n)
        while at is not None and steps.low[at] < steps.high[at]:
            bits = ALL_BITS if steps.count[at] <= _FEW_STEPS else min(ALL_BITS, bits + _FINER)
            low, high = float(steps.low[at]), float(steps.high[at])
            steps = steps.refined(at, self._added(partial(narrow_part, low=low, high=high, bits=bits)))
            at = steps.bin_at(eps, self.n)
        return steps

    def _changed(self, found: FoundSums, eps: float) -> float:
        """Share of people whose decision changes within the budget, at rows that were seen."""
        curve = found.changes.curve(n=self.n, base=0.0, free=found.changed / self.n)
        return min(1.0, float(curve.value(eps)))

    def _maps(self, several: Sequence[Worst]) -> list[UnfairMap]:
        """Show the most harmed people beside their twins, of the budget 0 and of ε."""
        numbers = np.unique(np.concatenate([worst.person for worst in several]))
        items = parts_of(numbers, self.parts)
        picked = list(self.engine.map(pick_part, self.job, items))
        maps = []
        for worst in several:
            order = np.argsort(worst.person)
            person = worst.person[order]
            support = support_of(self.job, picked, np.searchsorted(numbers, person), person)
            corner = clipped_corners(support.frontier, worst.corner[order])
            maps.append(support.unfair_map(corner, person=person, total=self.n))
        return maps

    def _added(self, function: Callable[[Any, Any], Any], title: str = "", **choices: Any) -> Any:
        """Apply a function to every part, and put the answers together in the order of the parts."""
        total = None
        for found in self._tracked(self.engine.map(function, self.job, self.parts), title):
            total = found if total is None else total.merge(found, **choices)
        return total

    def _tracked(self, answers: Iterator[Any], title: str) -> Iterator[Any]:
        if not (self.progress and title):
            yield from answers
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(title, total=self.n)
            for part, found in zip(self.parts, answers, strict=True):
                yield found
                bar.advance(task, part.rows)


def _sensitive(
    sums: SensitiveSums | None, problem: AuditProblem, ceiling: float, confidence: float
) -> SensitiveAnswer | None:
    if sums is None:
        return None
    n, free = sums.harm.n, float("inf")
    gap = gap_interval({free: sums.harm}, lambda_=free, eps=0.0, ceiling=ceiling, confidence=confidence)
    counted = problem.counts_changes
    share = share_interval(sums.changed, n, confidence=confidence) if counted else None
    high = None if share is None else share.high if sums.exact else 1.0
    # In an order that does not depend on which part was first to hold a value or a decision.
    groups = tuple(
        sorted(sums.groups, key=lambda g: (sums.columns.index(g.column), str(g.value), str(g.decision)))
    )
    affected = most_affected(groups, most=1)
    example = sums.examples.get((affected[0].column, affected[0].value)) if affected else None
    return SensitiveAnswer(
        columns=sums.columns,
        gap=sums.harm.mean,
        gap_interval=(gap.low, gap.high),
        changed=sums.changed / n if counted else None,
        changed_interval=None if share is None or high is None else (share.low, high),
        groups=groups,
        example=example,
        exact=sums.exact,
        tolerance=problem.tolerance,
    )
