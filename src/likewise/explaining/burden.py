"""Recourse for everybody refused: the cost of the favourable decision, for them and for their counterparts."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from likewise._version import __version__
from likewise.auditing.worst_case import OnProgress
from likewise.core.checks import BoolArray, FloatArray, check_number, check_parameters
from likewise.core.errors import FormatError, InputError, UnfairError, bad_parameter
from likewise.core.files import LARGEST_RESULT, atomic_path, read_file
from likewise.core.intervals import Measure, proportion_interval
from likewise.core.messages import Texts
from likewise.core.plain import Written, beside, plain_cell
from likewise.core.progress import progress_bar
from likewise.data.case import Counted
from likewise.explaining.engine import Effort, Least, Status
from likewise.explaining.moves import CostUnit
from likewise.explaining.situation import LEARNED, ExplanationRequest, Situation, situate
from likewise.explaining.trees import TreeEngine

_COLUMNS = ("row", "status", "cost", "lower", "counterpart", "counterpart_cost", "difference", "exact", "unequal",
            "dearer", "cheaper", "changes")  # fmt: skip
_STATUSES: tuple[Status, ...] = get_args(Status)
# A counterpart whose least change is known to be the person's own.
_SAME = len(_STATUSES)
# People of one part: what a run that is stopped loses at most.
PART = 500
# A counterpart's cost counts as different from this share on.
MATERIAL = 0.05


@dataclass(frozen=True)
class Burden:
    """What the favourable decision costs the refused people of one group.

    Parameters
    ----------
    attribute, group : object
    refused : int
        People who are refused.
    cost : Measure
        Median of their least costs, with an exact interval; infinite if half of them have no way.
    without : Measure
        Share for whom no change gives the favourable decision, or none was found.
    dearer, cheaper : Measure
        Shares whose own change costs over 5% more, or less, than that of some counterpart.
    """

    attribute: str
    group: Any
    refused: int
    cost: Measure
    without: Measure
    dearer: Measure
    cheaper: Measure


@dataclass(frozen=True, eq=False, repr=False)
class Recourse(Written):
    """Least changes of everybody who is refused.

    Parameters
    ----------
    people : DataFrame
        A row for every refused person: ``row``, the sensitive columns, ``status``, ``cost``, ``lower``, ``counterpart`` (the
        counterpart whose cost differs most), ``counterpart_cost``, ``difference`` (its cost less the person's own), ``exact``,
        ``changes``; the largest differences first.
    burden : tuple of Burden
        By group, for every sensitive column.
    decided : int
        All people.
    refused : int
        Those who are refused.
    """

    people: pd.DataFrame
    burden: tuple[Burden, ...]
    decided: int
    refused: int
    favourable: Any
    sensitive_features: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    confidence: float = 0.95
    settings: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Any, ...] = ()
    stopped: bool = False
    counted: Counted = "index"

    @property
    def looked(self) -> int:
        """Those whose changes were computed: fewer if a part was asked for, or Ctrl-C ended it."""
        return len(self.people)

    @property
    def proved(self) -> float:
        """Share of these whose own least change is proved, or that there is none."""
        return float(self.people["status"].isin(["proved", "none"]).mean()) if self.looked else 1.0

    @property
    def unequal(self) -> Measure:
        """Share of the refused whose counterpart pays over 5% more or less."""
        return _share("unequal", self.people["unequal"], self.confidence)

    @property
    def dearer(self) -> Measure:
        """Share of the refused whose own change costs over 5% more than a counterpart's."""
        return _share("dearer", self.people["dearer"], self.confidence)

    @property
    def cheaper(self) -> Measure:
        """Share of the refused whose own change costs over 5% less than a counterpart's."""
        return _share("cheaper", self.people["cheaper"], self.confidence)

    def raise_if_unfair(self, limit: float) -> None:
        """Raise if more than a share `limit` of the refused have a counterpart whose least change costs over 5% more or less.

        Parameters
        ----------
        limit : float

        Raises
        ------
        UnfairError
        """
        if not self.sensitive_features:
            remedy = "A limit compares people with their counterparts."
            raise bad_parameter("recourse", "sensitive_features", "names of columns", None, remedy)
        share = check_number(limit, owner="raise_if_unfair", name="limit", low=0, high=1)
        if self.looked and self.unequal.value > share:
            raise UnfairError(Texts()("recourse.limit", share=self.unequal.value, limit=share))

    def __repr__(self) -> str:
        return f"<Recourse: {self.looked:,} of {self.refused:,} refused people, {self.proved:.1%} proved, {self.unequal}>"


def recourse(
    model: Any,
    X: Any,
    *,
    sensitive_features: Sequence[str] = (),
    favourable: Any = None,
    actions: Mapping[str, Any] | None = None,
    rules: Any = LEARNED,
    cost: CostUnit = "range",
    columns: Any = None,
    missing: str = "auto",
    sample: int | None = None,
    budget_seconds: float = 2.0,
    confidence: float = 0.95,
    folder: str | Path | None = None,
    part: tuple[int, int] | None = None,
    random_state: int = 0,
    progress: bool | OnProgress = False,
) -> Recourse:
    """Find the least change of everybody who is refused, and of their counterparts under other sensitive values.

    Parameters
    ----------
    model, X, sensitive_features, favourable, actions, rules, cost, columns, missing
        As in `explain`.
    sample : int, optional
        So many refused people, drawn at random; all by default.
    budget_seconds : float, default=2
        CPU time of each least change.
    confidence : float, default=0.95
        Of the intervals: of the people as a sample of others like them.
    folder : path, optional
        Where finished parts are kept, so that a run that was stopped goes on. Of another model, table or setting it is
        refused.
    part : pair of int, optional
        ``(2, 8)``: the second eighth of the people only, for another process with the same folder.
    random_state : int, default=0
    progress : bool or callable, default=False

    Returns
    -------
    Recourse

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> people = pd.DataFrame({"hours": [10, 20, 30, 40] * 2, "sex": ["F", "M"] * 4})
    >>> tree = DecisionTreeClassifier(random_state=0).fit(people[["hours"]], [0, 0, 1, 1] * 2)
    >>> recourse(tree, people, sensitive_features=["sex"], favourable=1)
    <Recourse: 4 of 4 refused people, 100.0% proved, unequal 0.000 [0.000, 0.602]>
    """
    owner = "recourse"
    check_parameters(recourse, locals())
    asked = ExplanationRequest(
        favourable, actions, rules, cost, Effort(2_000_000, float(budget_seconds)), random_state
    )
    situation = situate(model, X, sensitive_features, asked, missing=missing, columns=columns, owner=owner)
    return recourse_of(
        situation, sample=sample, confidence=confidence, folder=folder, part=part, progress=progress
    )


def recourse_of(
    situation: Situation,
    *,
    sample: int | None = None,
    confidence: float = 0.95,
    folder: str | Path | None = None,
    part: tuple[int, int] | None = None,
    progress: bool | OnProgress = False,
) -> Recourse:
    """Find the least changes of the refused people of a situation."""
    owner = situation.owner
    check_parameters(recourse_of, locals(), owner=owner)
    # Findings against model and table are raised before anything is computed.
    _, numbers = situation.findings, situation.refused
    if sample is not None:
        rng = np.random.default_rng(situation.request.random_state)
        numbers = np.sort(rng.choice(numbers, size=min(sample, len(numbers)), replace=False))
    parts = [numbers[first : first + PART] for first in range(0, len(numbers), PART)]
    if part is not None and (len(part) != 2 or not 1 <= part[0] <= part[1]):
        raise bad_parameter(owner, "part", "(k, n) with 1 ≤ k ≤ n", part)
    first, step = (1, 1) if part is None else part
    mine = range(first - 1, len(parts), step)
    store = None if folder is None else _Store(Path(folder), situation, numbers)
    found: dict[int, _Solved] = {}
    stopped = False
    with progress_bar(show=progress is True) as bar:
        bar.start("Least changes", total=sum(len(parts[k]) for k in mine))
        try:
            while len(found) < len(mine):
                if store is not None:
                    store.agree()
                read, found = situation.reader is not None, {}
                for k in mine:
                    known = None if store is None else store.read(k, parts[k])
                    solved = known or _solve(situation, parts[k])
                    if store is not None:
                        store.agree()
                    if read and situation.reader is None:
                        # The reading was withdrawn, so what it gave before is computed again.
                        found = {}
                        break
                    if store is not None and known is None:
                        store.write(k, solved)
                    found[k] = solved
                    bar.update(sum(len(parts[k]) for k in found))
        except KeyboardInterrupt:
            stopped = True
    return _result(situation, [*found.values()], confidence, stopped)


@dataclass(frozen=True, eq=False)
class _Solved:
    """Least changes of some people: own first, then every counterpart's; NaN if there is no such counterpart."""

    numbers: Any
    costs: FloatArray
    lowers: FloatArray
    statuses: Any
    rows: FloatArray
    twins: FloatArray


def _solve(situation: Situation, numbers: Any) -> _Solved:
    """Solve a part: all rows at once if only the model is asked, one by one if changes are sought."""
    own = situation.people[numbers]
    listed = [[(row, True), *situation.counterparts(row)] for row in own]
    width = max(map(len, listed), default=1)
    n, columns = len(own), own.shape[1]
    twins = np.full((n, width, columns), np.nan)
    alike, there = np.zeros((n, width), dtype=bool), np.zeros((n, width), dtype=bool)
    for i, rows in enumerate(listed):
        for k, (row, plausible) in enumerate(rows):
            if plausible:
                twins[i, k] = row
                alike[i, k] = k > 0 and situation.alike(own[i], row)
                there[i, k] = not alike[i, k]
    flat = twins[there]
    gaps = np.repeat(situation.gaps[numbers][:, None, :], width, axis=1)[there]
    good = np.concatenate([situation.ask(part) for part in np.array_split(flat, max(1, len(flat) // 20_000))])
    answers = _least_of_rows(situation, flat, gaps, good)
    costs, lowers = np.full((n, width), np.nan), np.full((n, width), np.nan)
    statuses, ends = np.full((n, width), -1, dtype=np.int64), np.full((n, width, columns), np.nan)
    for (i, k), answer in zip(np.argwhere(there), answers, strict=True):
        costs[i, k], lowers[i, k] = answer.cost, answer.lower
        statuses[i, k] = _STATUSES.index(answer.status)
        if answer.values is not None:
            ends[i, k] = answer.values
    for i, k in np.argwhere(alike):
        # The same question has the same answer, whatever is known of it.
        costs[i, k], lowers[i, k], statuses[i, k] = costs[i, 0], lowers[i, 0], _SAME
    return _Solved(np.asarray(numbers), costs, lowers, statuses, ends, twins)


def _least_of_rows(situation: Situation, rows: FloatArray, gaps: BoolArray, good: BoolArray) -> list[Least]:
    """The least change of each row, none of those that are good; the model confirms what trees say all at once."""
    engine, found = situation.reader, dict[int, Least]()
    for i in np.flatnonzero(good).tolist():
        found[i] = Least("proved", 0.0, 0.0, rows[i])
    whole = np.flatnonzero(~good & ~gaps.any(axis=1))
    if isinstance(engine, TreeEngine) and len(whole):
        options = zip(*engine.options(rows[whole, : engine.layout.n_columns]), strict=True)
        read = {
            i: situation.proved(rows[i], gaps[i], situation.request.effort, options=own)
            for i, own in zip(whole.tolist(), options, strict=True)
        }
        ends = {
            i: one.values for i, one in read.items() if one.status != "bracket" and one.values is not None
        }
        at = [*ends]
        if ends and not situation.confirms(rows[at], np.array([*ends.values()]), gaps[at]).all():
            situation.withdraw()
        else:
            found |= {i: one for i, one in read.items() if one.status != "bracket"}
    return [
        found[i] if i in found else situation.least(rows[i], gaps[i], whole=not gaps[i].any())
        for i in range(len(rows))
    ]


class _Store:
    """Finished parts in a folder, each in a file of arrays, with what they belong to."""

    def __init__(self, folder: Path, situation: Situation, numbers: Any) -> None:
        self.folder, self.owner, self.columns = folder, situation.owner, situation.people.shape[1]
        self.situation = situation
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{situation.owner}: {str(folder)!r} is not a folder. Name another.")
        folder.mkdir(parents=True, exist_ok=True)
        request = folder / "request.json"
        said = {
            "version": __version__,
            "model": situation.digest,
            "people": hashlib.sha256(np.asarray(numbers).tobytes()).hexdigest(),
            "favourable": situation.favourable,
            "effort": vars(situation.request.effort),
            **situation.settings,
        }
        text = json.dumps(said, sort_keys=True, default=str)
        if request.exists():
            if read_file(request) != text.encode():
                raise InputError(
                    f"{situation.owner}: {str(folder)!r} holds parts of another model, table or setting. Name another folder."
                )
            return
        with atomic_path(request) as draft:
            draft.write_text(text, encoding="utf-8")

    def agree(self) -> None:
        """Have a withdrawal of the reading hold for all who work in the folder, and for whoever resumes."""
        mark = self.folder / "withdrawn"
        if self.situation.reader is None:
            mark.touch()
        elif mark.exists():
            self.situation.withdraw()

    def _path(self, k: int) -> Path:
        # What was read off is kept apart from what was asked: it is believed no more once the reading is withdrawn.
        kind = "asked" if self.situation.reader is None else "read"
        return self.folder / f"{kind}-{k:05d}.npz"

    def read(self, k: int, numbers: Any) -> _Solved | None:
        path = self._path(k)
        if not path.exists():
            return None
        data = io.BytesIO(read_file(path, owner=self.owner, largest=LARGEST_RESULT))
        try:
            with np.load(data, allow_pickle=False) as arrays:
                found = _Solved(*(arrays[name] for name in _Solved.__dataclass_fields__))
        except Exception as error:  # a damaged archive may raise anything
            raise self._damaged(path, str(error)) from error
        cells = found.twins.shape[:2]
        shapes = {found.costs.shape, found.lowers.shape, found.statuses.shape, cells}
        right = found.twins.shape == found.rows.shape == (*cells, self.columns) and shapes == {cells}
        right &= bool(np.isin(found.statuses, range(-1, len(_STATUSES) + 1)).all())
        if not right or not np.array_equal(found.numbers, numbers) or cells[0] != len(numbers):
            raise self._damaged(path, "it is about other people")
        return found

    def _damaged(self, path: Path, why: str) -> FormatError:
        return FormatError(
            f"{self.owner}: {path.name} is damaged: {why}. Delete it to have it computed again."
        )

    def write(self, k: int, solved: _Solved) -> None:
        with atomic_path(self._path(k)) as draft, draft.open("wb") as file:
            np.savez_compressed(
                file, **{name: getattr(solved, name) for name in _Solved.__dataclass_fields__}
            )


def _result(situation: Situation, found: list[_Solved], confidence: float, stopped: bool) -> Recourse:
    records = [record for part in found for record in _records(situation, part)]
    own = {name: beside(name, _COLUMNS) for name in situation.sensitive}
    columns = [_COLUMNS[0], *own.values(), *_COLUMNS[1:]]
    people = pd.DataFrame(records, columns=columns)
    size = people["difference"].abs().fillna(-1.0) if len(people) else people["difference"]
    people = people.iloc[np.argsort(-size.to_numpy(dtype=float), kind="stable")].reset_index(drop=True)
    burden = [
        _burden(name, plain_cell(group), people[people[column] == group], confidence)
        for name, column in own.items()
        for group in sorted(people[column].dropna().unique(), key=str)
    ]
    return Recourse(
        people=people,
        burden=tuple(burden),
        decided=len(situation.people),
        refused=len(situation.refused),
        favourable=situation.all.decision(situation.favourable),
        sensitive_features=situation.sensitive,
        not_read=situation.not_read,
        confidence=confidence,
        settings=situation.settings,
        findings=situation.findings,
        stopped=stopped,
        counted=situation.found.people.counted,
    )


def _records(situation: Situation, part: _Solved) -> list[dict[str, Any]]:
    """A record for every person of a part."""
    table, places = situation.found.people.frame, situation.found.people.places
    names = [column.name for column in situation.layout.columns]
    sensitive = {name: table[name].to_numpy()[part.numbers] for name in situation.sensitive}
    before = situation.cells(part.twins[:, 0])
    found_rows = np.asarray(~np.isnan(part.rows[:, 0]).any(axis=1))
    after = situation.cells(np.where(found_rows[:, None], part.rows[:, 0], part.twins[:, 0]))
    compared = [_compared(part, i) for i in range(len(part.numbers))]
    most = np.array([one[0] for one in compared], dtype=np.int64)
    other_rows = situation.cells(part.twins[np.arange(len(most)), most])
    found = []
    for i, number in enumerate(part.numbers):
        k, difference, exact, dearer, cheaper = compared[i]
        status = _STATUSES[part.statuses[i, 0]]
        record: dict[str, Any] = {"row": plain_cell(number if places is None else places[number])}
        record |= {beside(name, _COLUMNS): values[i] for name, values in sensitive.items()}
        record |= {"status": status, "cost": part.costs[i, 0], "lower": part.lowers[i, 0], "counterpart": None,
                   "counterpart_cost": np.nan, "difference": difference, "exact": exact}  # fmt: skip
        if k:
            moved = np.flatnonzero(part.twins[i, k] != part.twins[i, 0])
            record["counterpart"] = ", ".join(f"{names[p]} = {other_rows[i][names[p]]}" for p in moved)
            record["counterpart_cost"] = part.costs[i, k]
        moved = np.flatnonzero(found_rows[i] & (part.rows[i, 0] != part.twins[i, 0]))
        record |= {"unequal": dearer or cheaper, "dearer": dearer, "cheaper": cheaper}
        record["changes"] = ", ".join(
            f"{names[p]}: {before[i][names[p]]} → {after[i][names[p]]}" for p in moved
        )
        found.append(record)
    return found


def _compared(part: _Solved, i: int) -> tuple[int, float, bool, bool, bool]:
    """The counterpart whose cost differs most (0 for none), the difference, if it is exact; if own is dearer, cheaper."""
    own, status = part.costs[i, 0], _STATUSES[part.statuses[i, 0]]
    most, largest, exact = 0, np.nan, status in ("proved", "none")
    dearer = cheaper = False
    for k in range(1, part.costs.shape[1]):
        if part.statuses[i, k] < 0:
            continue
        if part.statuses[i, k] == _SAME:
            if np.isnan(largest):
                most, largest, exact = k, 0.0, True
            continue
        other, its = part.costs[i, k], _STATUSES[part.statuses[i, k]]
        if "bracket" in (status, its) or "not found" in (status, its):
            # Only what surely differs counts: the one's lower end above the other's upper.
            dearer |= bool(part.lowers[i, 0] > (1 + MATERIAL) * other)
            cheaper |= bool(part.lowers[i, k] > (1 + MATERIAL) * own)
            continue
        difference = 0.0 if np.isinf(own) and np.isinf(other) else float(other - own)
        dearer |= bool(own > (1 + MATERIAL) * other) and difference != 0.0
        cheaper |= bool(other > (1 + MATERIAL) * own) and difference != 0.0
        if np.isnan(largest) or abs(difference) > abs(largest):
            most, largest, exact = k, difference, {status, its} <= {"proved", "none"}
    return most, largest, exact, dearer, cheaper


def _burden(attribute: str, group: Any, some: pd.DataFrame, confidence: float) -> Burden:
    costs = np.sort(some["cost"].to_numpy(dtype=float))
    return Burden(
        attribute,
        group,
        len(some),
        median_interval(costs, confidence),
        _share("without", np.isinf(costs), confidence),
        _share("dearer", some["dearer"], confidence),
        _share("cheaper", some["cheaper"], confidence),
    )


def median_interval(costs: FloatArray, confidence: float) -> Measure:
    """The median of sorted costs, with the exact interval between two of them (binomial, free of any distribution)."""
    from scipy.stats import binom

    n = len(costs)
    if not n:
        return Measure("cost", np.nan, np.nan, np.nan, "order statistics")
    middle = (costs[(n - 1) // 2], costs[n // 2])
    value = float(middle[0] if middle[0] == middle[1] else (middle[0] + middle[1]) / 2.0)
    k = int(binom.ppf((1 - confidence) / 2, n, 0.5))
    while k > 0 and binom.cdf(k - 1, n, 0.5) > (1 - confidence) / 2:
        k -= 1
    if k == 0:
        return Measure("cost", value, np.nan, np.nan, "order statistics")
    return Measure("cost", value, float(costs[k - 1]), float(costs[n - k]), "order statistics")


def _share(name: str, some: Any, confidence: float) -> Measure:
    if not len(some):
        return Measure(name, np.nan, np.nan, np.nan, "exact")
    count = int(np.sum(some))
    interval = proportion_interval(count, len(some), confidence=confidence)
    return Measure.of(name, count / len(some), interval)
