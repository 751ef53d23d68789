"""The rounds of an audit in parts, and how the parts' answers become the numbers of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.auditing.claims.certificate import interval_of_moments
from likewise.auditing.claims.conclusion import Answer, Clock, Questions
from likewise.auditing.claims.significance import gap_test_of_moments
from likewise.auditing.parts.engine import Engine
from likewise.auditing.parts.map_folder import MapFolder
from likewise.auditing.parts.one_part import Job, narrow_part, pick_part, search_part, settle_part
from likewise.auditing.parts.parquet_table import Part, Rows, parts_of
from likewise.auditing.parts.part_sums import HARM_EDGES, Outcome, Tally, Worst
from likewise.auditing.people.unfair_map import UnfairMap
from likewise.auditing.search.candidates.candidate_shards import search_shards
from likewise.auditing.support.binned_steps import ALL_BITS, Spectrum
from likewise.auditing.support.supporting_rows import Support

__all__ = ["Rounds"]

# So many steps of one bin come as they are; more of them in bins that are finer by so many bits.
_FEW_STEPS = 250_000
_FINER = 16


@dataclass(frozen=True, eq=False)
class Rounds:
    """One audit in parts.

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

    def answer(
        self, questions: Questions, folder: MapFolder | None, clock: Clock
    ) -> tuple[Answer, dict[str, Any]]:
        """Search, find λ*, settle, and put the numbers together; the second are extra settings of the result."""
        eps, confidence = float(questions.eps), questions.confidence
        tally: Tally = self._added(search_part, "auditing people", top=self.job.top)
        clock.book("candidates", tally.cpu)
        spectrum = self._narrowed(tally.spectrum, eps)
        curve = spectrum.curve(n=self.n, base=tally.losses.mean, free=tally.free.mean)
        lam = float(curve.lambda_(eps))
        target = None if folder is None else str(folder.open())
        settle = partial(settle_part, lam=lam, folder=target)
        outcome: Outcome = self._added(settle, "writing the map" if target else "", top=self.job.top)
        if folder is not None:
            folder.finish(self.parts)
        clock.book("settle", outcome.cpu)
        maps = self._maps([tally.worst] if eps == 0 else [tally.worst, outcome.worst])
        answer = Answer(
            n=self.n,
            curve=curve,
            value=float(curve.value(eps)),
            lambda_=lam,
            transport=min(eps, float(curve.eps[-1])),
            pure_gap=tally.free.mean,
            flipped=tally.flips / self.n,
            interval=interval_of_moments(
                outcome.gains, spent=lam * eps, confidence=confidence, quantity="gap"
            ),
            test=gap_test_of_moments(
                tally.losses, tally.free, threshold=questions.tau, confidence=confidence
            ),
            unfair_map=maps[-1],
            pure_map=maps[0],
        )
        histogram = {"edges": list(HARM_EDGES[:-1]), "people": outcome.histogram.tolist()}
        return answer, {"harm_histogram": histogram}

    def _narrowed(self, spectrum: Spectrum, eps: float) -> Spectrum:
        """Ask for the bin in which the budget ends until it holds steps of one slope: λ*."""
        bits, at = spectrum.bits, spectrum.bin_at(eps, self.n)
        while at is not None and spectrum.low[at] < spectrum.high[at]:
            bits = ALL_BITS if spectrum.count[at] <= _FEW_STEPS else min(ALL_BITS, bits + _FINER)
            low, high = float(spectrum.low[at]), float(spectrum.high[at])
            spectrum = spectrum.refined(at, self._added(partial(narrow_part, low=low, high=high, bits=bits)))
            at = spectrum.bin_at(eps, self.n)
        return spectrum

    def _maps(self, several: Sequence[Worst]) -> list[UnfairMap]:
        """Show the most harmed people beside their twins, of the budget 0 and of ε."""
        numbers = np.unique(np.concatenate([worst.person for worst in several]))
        items = parts_of(numbers, self.parts)
        picked = list(self.engine.map(pick_part, self.job, items))
        maps = []
        for worst in several:
            order = np.argsort(worst.person)
            rows = self.job.table.joined(picked, np.searchsorted(numbers, worst.person[order]))
            maps.append(self._map(rows, worst.person[order], worst.corner[order]))
        return maps

    def _map(self, rows: Rows, person: Any, corner: Any) -> UnfairMap:
        job, (people, y) = self.job, rows
        found = search_shards(job.search, job.views, people, y, job.pool)
        support = Support(job.views, people, found.candidates, np.zeros((0, 0)), found.frontier)
        indptr = found.frontier.indptr
        # Rounding depends on the rows beside, so a frontier may end a corner earlier than it did.
        at = np.minimum(indptr[:-1] + corner, indptr[1:] - 1)
        return support.unfair_map(at, y, person=person, total=self.n)

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
