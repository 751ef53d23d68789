"""What a branch and bound has open: a heap of regions per person, and the brackets that follow from it at any time."""

from __future__ import annotations

import heapq

import numpy as np

from likewise.auditing.bounds.brackets import Brackets
from likewise.auditing.bounds.contenders import Ask, Contender, Contenders
from likewise.auditing.bounds.node_pool import NodePool
from likewise.auditing.bounds.region_evaluation import Evaluated, RegionEvaluation
from likewise.auditing.bounds.regions import divide
from likewise.auditing.bounds.table_layout import IntArray
from likewise.core.arrays import FloatArray

__all__ = ["OpenRegions"]

# Open regions of a person that are cut at once.
_AT_ONCE = 4


class OpenRegions:
    """Open regions of everybody, the most promising first.

    A region in work is noted before it is taken out of its heap and forgotten after its parts are filed, so that an
    interrupt anywhere leaves nothing out of the brackets.

    Parameters
    ----------
    work : RegionEvaluation
    """

    def __init__(self, work: RegionEvaluation) -> None:
        self.work, self._regions = work, work.domains()
        self.settled = np.full(work.n, -np.inf)  # the highest bound among regions that are done
        self.begun = np.zeros(work.n, dtype=np.bool_)
        self.nodes = np.zeros(work.n, dtype=np.int64)
        # By how far a region exceeds what may stay open, which region, and how high it is.
        self.heaps: list[list[tuple[float, int, int, float]]] = [[] for _ in range(work.n)]
        self.pool, self.contenders = NodePool(), Contenders()
        self._in_work: list[tuple[int, float]] = []
        self._counter = 0

    def begin(self, people: IntArray) -> None:
        """Look at the whole domains of people."""
        work = self.work
        endless = np.full(len(people), np.inf)
        found = work.evaluate(
            people,
            work.shrink(people, self._regions.take(people)),
            work.family.state(len(people)),
            work.origin[people],
            endless,
            endless.copy(),
        )
        self._keep(found)
        self.begun[people] = True

    def _keep(self, found: Evaluated) -> None:
        """File evaluated regions: closed ones by their bound, open ones in their person's heap."""
        np.add.at(self.nodes, found.done, 1)
        np.add.at(self.nodes, found.people, 1)
        np.maximum.at(self.settled, found.done, found.done_upper)
        excess = found.upper - found.tol
        is_open = (excess > self.work.lower[found.people]) & (found.split.column >= 0)
        asked = found.one_answer & ~is_open
        self.contenders.add(
            Contender(
                found.people[asked],
                found.regions.take(asked),
                found.values[asked],
                found.upper[asked],
                found.price[asked],
            )
        )
        shut = ~is_open & ~asked
        np.maximum.at(self.settled, found.people[shut], found.upper[shut])
        at = np.flatnonzero(is_open)
        slots = self.pool.add(
            found.regions.take(at), found.state[at], found.point[at], found.split.take(at), found.reach[at]
        )
        for i, slot in zip(at, slots, strict=True):
            self._counter += 1
            item = (-float(excess[i]), self._counter, slot, float(found.upper[i]))
            heapq.heappush(self.heaps[found.people[i]], item)

    def advance(self, active: list[int], max_nodes: int, *, last: bool) -> list[int]:
        """Cut the most promising regions of active people; return those with work left."""
        people, slots, uppers, going = [], [], [], []
        for person in active:
            heap = self.heaps[person]
            taken = 0
            while heap and taken < _AT_ONCE and self._goes_on(person, max_nodes):
                _, _, slot, bound = heap[0]
                self._in_work.append((person, bound))
                heapq.heappop(heap)
                people.append(person)
                slots.append(slot)
                uppers.append(bound)
                taken += 1
            if taken:
                going.append(person)
            elif last:
                self._finish(person)
        if not people:
            return []
        regions, state, warm, split, reach = self.pool.take(slots)
        who, upper = np.array(people), np.array(uppers)
        found = self.work.evaluate(
            np.concatenate([who, who]),
            divide(self.work.layout, regions, split),
            np.concatenate([state, state]),
            np.concatenate([warm, warm]),
            np.concatenate([upper, upper]),
            np.concatenate([reach, reach]),
        )
        self._keep(found)
        self._in_work.clear()
        return going

    def _goes_on(self, person: int, max_nodes: int) -> bool:
        promising = -self.heaps[person][0][0] > self.work.lower[person]
        return bool(promising and self.nodes[person] < max_nodes)

    def _finish(self, person: int) -> None:
        """Settle what a person has left, and free it."""
        heap = self.heaps[person]
        if heap:
            self.settled[person] = max(self.settled[person], *(item[3] for item in heap))
            self.pool.free([item[2] for item in heap])
            heap.clear()

    def brackets(self, ask: Ask | None, *, interrupted: bool = False) -> Brackets:
        """What is known now.

        Parameters
        ----------
        ask : callable, optional
            The model itself, as in `maximise`.
        interrupted : bool, default=False
            Whether the work was broken off at any point.
        """
        work = self.work
        for person, bound in self._in_work:
            self.settled[person] = max(self.settled[person], bound)
        for person in range(work.n):
            self._finish(person)
        if not self.begun.all():
            self.settled = np.where(self.begun, self.settled, np.maximum(self.settled, work.ceilings()))
        # Parts of regions were cut off because they could not exceed what a row attains by the reading. The model may not
        # confirm that row, but they still cannot exceed the value.
        self.settled = np.maximum(self.settled, work.lower)
        if interrupted:
            # An incumbent may have been half written: its row says what it attains.
            work.read_incumbents()
        if ask is None:
            slack = work.family.slack
            upper = np.maximum(self.settled, work.lower) + slack
        else:
            slack = 0.0 if work.ends else 2.0 * work.family.slack
            upper, interrupted = self._asked(ask, interrupted)
        rows = work.layout.encode(work.values)
        return Brackets(
            work.lower, upper, rows, work.loss, work.cost, self.nodes, work.tol, slack, interrupted
        )

    def _asked(self, ask: Ask, interrupted: bool) -> tuple[FloatArray, bool]:
        """Ask the model about the rows that attain most, and about regions in which it gives one answer.

        What the reading says of a row counts for nothing from here on: the rows that attained most are asked first, and
        only what the model itself confirms spares a region its own question. A region whose row was shown to the model
        as another one, outside of it, keeps its bound.
        """
        work = self.work
        everyone, values = np.arange(work.n), work.values.copy()
        upper = self.settled
        try:
            losses, seen = ask(values, work.targets)
            work.lower[:] = -np.inf
            work.offer(everyone, seen, losses)
            kept = self.contenders.above(work.lower)
            if kept is not None:
                losses, seen = ask(kept.values, work.targets[kept.people])
                work.offer(kept.people, seen, losses)
                same = kept.regions.hold(work.layout, seen)
                np.maximum.at(upper, kept.people, np.where(same, losses - kept.price, kept.upper))
        except KeyboardInterrupt:
            kept = self.contenders.above(np.full(work.n, -np.inf))
            if kept is not None:
                np.maximum.at(upper, kept.people, kept.upper)
            return np.maximum(upper, work.lower), True
        return np.maximum(upper, work.lower), interrupted
