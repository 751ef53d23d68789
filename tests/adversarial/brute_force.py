"""A reference that knows nothing of how the package audits: rows that exist, the model's own answers, a knapsack.

Every row listed here lies in the domain, so V(ε) on them is at most the truth, and a bound below it is refuted. For models
that are piecewise constant every place where an answer changes is found by asking, down to neighbouring floats.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np
import pandas as pd

FLOOR = 1e-12


@dataclass(frozen=True)
class Table:
    """People to learn from and people to audit, what can exist, and who is comparable.

    `weight` is what is left of the cost of sensitive columns; `contrast` names a column and two categories that cost
    nothing between them; `sigma`, where given, replaces all this by a matrix for encoded rows.
    """

    X: pd.DataFrame
    y: np.ndarray
    people: pd.DataFrame
    labels: np.ndarray
    categories: tuple[str, ...]
    sensitive: tuple[str, ...]
    ranges: dict = field(default_factory=dict)
    immutable: tuple[str, ...] = ()
    weight: float = 0.0
    contrast: tuple[str, object, object] | None = None
    sigma: np.ndarray | None = None

    def kind(self, name):
        if name in self.categories:
            return "category"
        return "integer" if self.X[name].dtype.kind in "iu" else "float"

    def levels(self, name):
        return sorted(set(self.X[name].tolist()))

    def span(self, name):
        return self.ranges.get(name) or (self.X[name].min(), self.X[name].max())

    def as_typed(self, rows):
        """The rows with the columns and dtypes of the table."""
        return rows[list(self.X)].astype({name: self.X[name].dtype for name in self.X})


@dataclass(frozen=True)
class Answers:
    """What a model says of rows: probabilities (or None) in the order of `classes`, and decisions."""

    probabilities: np.ndarray | None
    decisions: np.ndarray
    classes: tuple

    def losses(self, labels, loss):
        """(n, m): the loss of each of m rows under each of n labels."""
        if loss == "zero_one":
            return (self.decisions[None, :] != np.asarray(labels)[:, None]).astype(float)
        place = {label: i for i, label in enumerate(self.classes)}
        columns = [place[label] for label in np.asarray(labels).tolist()]
        p = np.asarray(self.probabilities, dtype=np.float64)[:, columns].T
        return -np.log(np.clip(p, FLOOR, None))

    def changed(self, decisions):
        return (self.decisions[None, :] != np.asarray(decisions)[:, None]).astype(float)

    def signature(self):
        """What must be equal for two rows to be answered alike."""
        codes = np.array([self.classes.index(d) for d in self.decisions.tolist()], dtype=float)[:, None]
        return codes if self.probabilities is None else np.hstack([self.probabilities, codes])


Ask = Callable[[pd.DataFrame], Answers]


def scales(table):
    return {
        name: float(np.std(table.X[name].to_numpy(np.float64)))
        for name in table.X
        if table.kind(name) != "category"
    }


def encode(table, rows):
    """Standardised numbers, then one column for two categories and one each for more."""
    parts = []
    for name, scale in scales(table).items():
        parts.append((rows[name].to_numpy(np.float64) - table.X[name].to_numpy(np.float64).mean()) / scale)
    for name in (name for name in table.X if table.kind(name) == "category"):
        levels = table.levels(name)
        values = np.array(rows[name].tolist(), dtype=object)
        parts += [(values == level).astype(float) for level in (levels[1:] if len(levels) == 2 else levels)]
    return np.column_stack(parts)


def _category_costs(table, name):
    """Squared distance of each pair of categories: one-hot columns, minus the part along a free contrast."""
    levels = table.levels(name)
    costs = (1.0 - np.eye(len(levels))) * (1.0 if len(levels) == 2 else 2.0)
    if name in table.sensitive:
        costs *= table.weight
    if table.contrast and table.contrast[0] == name:
        q = np.array([(level == table.contrast[1]) - float(level == table.contrast[2]) for level in levels])
        along = (q[:, None] - q[None, :]) ** 2 / 2
        costs -= (1 - table.weight) * along
    return costs


def squared_distances(table, people, rows):
    """(n, m): by default Euclidean in standardised numbers and one-hot categories, sensitive columns left out."""
    total = np.zeros((len(people), len(rows)))
    scale = scales(table)
    if table.sigma is not None:
        targets = encode(table, rows)
        for i, start in enumerate(encode(table, people)):
            moved = targets - start
            total[i] = np.maximum(((moved @ table.sigma) * moved).sum(axis=1), 0)
    for name in table.X:
        if name in scale:
            one, other = (frame[name].to_numpy(np.float64) for frame in (people, rows))
            moved = one[:, None] - other[None, :]
        else:
            place = {level: i for i, level in enumerate(table.levels(name))}
            one, other = (
                np.array([place[value] for value in frame[name].tolist()]) for frame in (people, rows)
            )
            moved = one[:, None] != other[None, :]
        if table.sigma is None and name in scale:
            total += (moved / scale[name]) ** 2
        elif table.sigma is None:
            total += _category_costs(table, name)[one[:, None], other[None, :]]
        if name in table.immutable:
            total[moved != 0] = np.inf
    return total


def frame_of(table, columns):
    """A frame with the dtypes of the table."""
    return pd.DataFrame({name: pd.Series(columns[name]).astype(table.X[name].dtype) for name in table.X})


def worst_mean(losses, distances, eps):
    """sup of the mean loss over all ways to spread every person over the rows at a mean squared distance ≤ ε.

    Each person's gain is the concave frontier of (distance, loss); the steepest pieces are bought first.
    """
    n = len(losses)
    value, pieces = 0.0, []
    for loss, distance in zip(losses, distances, strict=True):
        loss, distance = loss[np.isfinite(distance)], distance[np.isfinite(distance)]
        order = np.lexsort((-loss, distance))
        d, v = distance[order], loss[order]
        better = v > np.concatenate([[-np.inf], np.maximum.accumulate(v)[:-1]])
        hull = []
        for point in zip(d[better].tolist(), v[better].tolist(), strict=True):
            while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-1][0]) <= (
                point[1] - hull[-1][1]
            ) * (hull[-1][0] - hull[-2][0]):
                hull.pop()
            hull.append(point)
        if hull[0][0] != 0:
            raise AssertionError("a person is not among the rows")
        value += hull[0][1]
        pieces += [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(hull)]
    money = n * eps
    for cost, gain in sorted(pieces, key=lambda piece: -piece[1] / piece[0]):
        share = min(1.0, money / cost)
        value += share * gain
        money -= share * cost
        if share < 1:
            break
    return value / n


def _between(low, high, count, whole):
    """Values from low to high, at most `count` of them, in the dtype of the ends; both ends are there."""
    if whole:
        return np.unique(np.linspace(low, high, min(count, int(high - low) + 1)).round().astype(type(low)))
    points = np.linspace(np.float64(low), np.float64(high), count).astype(type(low))
    points[0], points[-1] = low, high
    near = np.nextafter(low, high), np.nextafter(high, low)
    return np.unique(np.concatenate([points, np.array(near, dtype=points.dtype)]))


def change_places(ask: Ask, table, name, bases, *, keep, grid=33, ways=96, per_place=2, rng):
    """Neighbouring values of a column between which some base row is answered differently; None if it is smooth."""
    whole = table.kind(name) == "integer"
    kind = table.X[name].dtype.type
    low, high = (kind(end) for end in table.span(name))
    values = table.X[name].unique()
    values = rng.choice(values, min(len(values), grid), replace=False)
    values = np.unique(np.concatenate([values, _between(low, high, grid, whole)]))

    def answers(at, base):
        rows = bases.iloc[base].reset_index(drop=True)
        rows[name] = pd.Series(at, dtype=table.X[name].dtype)
        return ask(rows).signature()

    at = np.tile(values, len(bases))
    base = np.repeat(np.arange(len(bases)), len(values))
    said = answers(at, base).reshape(len(bases), len(values), -1)
    differs = (said[:, 1:] != said[:, :-1]).any(axis=2)
    if differs.mean(axis=1).max() > 0.6 and len(values) > 12:
        return None, False
    # A few base rows, drawn at random, for each interval in which something changes.
    changing = np.flatnonzero(differs.any(axis=0))
    complete = len(changing) <= keep
    if not complete:
        changing = np.sort(rng.choice(changing, keep, replace=False))
    open_ = []
    for j in changing:
        seen = rng.permutation(np.flatnonzero(differs[:, j]))[:per_place]
        open_ += [(values[j], values[j + 1], base) for base in seen]
    found = set()
    for _ in range(60):
        if not open_:
            break
        inside = [_between(a, b, ways, whole) for a, b, _ in open_]
        sizes = [len(points) for points in inside]
        said = answers(np.concatenate(inside), np.repeat([c for *_, c in open_], sizes))
        rest, start = [], 0
        for points, (_, _, c) in zip(inside, open_, strict=True):
            here = said[start : start + len(points)]
            start += len(points)
            changes = np.flatnonzero((here[1:] != here[:-1]).any(axis=1))
            if len(changes) > 3:
                complete = False
                changes = changes[:3]
            for j in changes:
                a, b = points[j], points[j + 1]
                if (b - a <= 1) if whole else (np.nextafter(a, b) >= b):
                    found.add((a, b))
                else:
                    rest.append((a, b, c))
        # Two base rows that agree on a place go on as one.
        open_ = list({(a, b): (a, b, c) for a, b, c in rest}.values())[: 4 * keep]
    return sorted(found), complete


@dataclass(frozen=True)
class Reference:
    """All rows that were asked about, and what the model said."""

    table: Table
    rows: pd.DataFrame
    answers: Answers
    own: Answers
    complete: bool
    ask: Ask

    def distances(self):
        return squared_distances(self.table, self.table.people, self.rows)

    def base(self, loss):
        return np.diag(self.own.losses(self.table.labels, loss))

    def value(self, loss, eps):
        return worst_mean(self.answers.losses(self.table.labels, loss), self.distances(), eps)

    def changed(self, eps):
        return worst_mean(self.answers.changed(self.own.decisions), self.distances(), eps)

    def with_rows(self, *frames):
        """The same with more rows, which must lie in the domain."""
        more = pd.concat(frames, ignore_index=True)
        rows = pd.concat([self.rows, more], ignore_index=True)
        said = self.ask(more)
        p = None
        if said.probabilities is not None:
            p = np.vstack([self.answers.probabilities, said.probabilities])
        answers = Answers(p, np.concatenate([self.answers.decisions, said.decisions]), said.classes)
        return replace(self, rows=rows, answers=answers)

    def combinations(self):
        return [
            dict(zip(self.table.sensitive, values, strict=True))
            for values in product(*map(self.table.levels, self.table.sensitive))
        ]

    def flips(self, rows):
        """Whether the decision about each row depends on the sensitive columns."""
        combinations = self.combinations()
        asked = pd.concat([rows.assign(**values) for values in combinations], ignore_index=True)
        said = self.ask(self.table.as_typed(asked)).decisions.reshape(len(combinations), len(rows))
        return (said != said[:1]).any(axis=0)

    def domain_rows(self, limit=4000, samples=1500, rng=None):
        """Every row of the domain, sensitive columns aside (exact), or rows drawn evenly from it (not exact)."""
        free = [name for name in self.table.X if name not in self.table.sensitive]
        fixed = {name: self.table.levels(name)[0] for name in self.table.sensitive}
        options = {}
        for name in free:
            if self.table.kind(name) == "category":
                options[name] = self.table.levels(name)
            elif self.table.kind(name) == "integer":
                low, high = self.table.span(name)
                options[name] = range(int(low), int(high) + 1)
        exact = len(options) == len(free) and np.prod([len(o) for o in options.values()]) <= limit
        if exact:
            grid = list(product(*(options[name] for name in free)))
            columns = {name: [row[j] for row in grid] for j, name in enumerate(free)}
            samples = len(grid)
        else:
            columns = {}
            for name in free:
                if name in options:
                    columns[name] = [options[name][j] for j in rng.integers(0, len(options[name]), samples)]
                else:
                    columns[name] = rng.uniform(*map(float, self.table.span(name)), samples)
        columns |= {name: [value] * samples for name, value in fixed.items()}
        return frame_of(self.table, columns), exact


def make_reference(ask: Ask, table: Table, *, seed, max_rows=6000, also=None, thorough=False):
    """Ask the model about a product of values of every column, those of the rows `also` among them.

    It is complete if no answer changes between two of the values of a column that are not neighbours.
    """
    rng = np.random.default_rng(seed)
    bases = [table.people, table.X.sample(60 if thorough else 10, random_state=seed)]
    bases = pd.concat(bases if also is None else [*bases, also], ignore_index=True)
    own = table.people if also is None else pd.concat([table.people, also])
    for _ in range(3 if thorough else 1):
        options, complete = _options(ask, table, bases, own, max_rows, thorough, rng)
        mesh = np.meshgrid(*(np.arange(len(values)) for values in options.values()), indexing="ij")
        rows = frame_of(
            table,
            {name: values[i.ravel()] for (name, values), i in zip(options.items(), mesh, strict=True)},
        )
        said = ask(rows)
        open_ = _unlisted(table, options, said.signature())
        if not complete or not len(open_):
            break
        bases = pd.concat([bases, rows.iloc[rng.permutation(open_)[:200]]], ignore_index=True)
    return Reference(table, rows, said, ask(table.people), complete and not len(open_), ask)


def _unlisted(table, options, signature):
    """Rows after which an answer changes before the next value of a column, which is not the next that can exist."""
    shape = [len(values) for values in options.values()]
    said, number = signature.reshape(*shape, -1), np.arange(len(signature)).reshape(shape)
    found = []
    for axis, (name, values) in enumerate(options.items()):
        if table.kind(name) == "category":
            continue
        whole = table.kind(name) == "integer"
        apart = values[1:] - values[:-1] > 1 if whole else np.nextafter(values[:-1], values[1:]) < values[1:]
        said_, number_ = np.moveaxis(said, axis, 0), np.moveaxis(number, axis, 0)
        changes = (said_[1:] != said_[:-1]).any(axis=-1)[apart]
        found.append(number_[:-1][apart][changes])
    return np.unique(np.concatenate([np.zeros(0, int), *found]))


def _options(ask, table, bases, own_rows, max_rows, thorough, rng):
    """Values of each column, as many as the rows allow, and whether all at which answers change were found and kept."""
    how = {"grid": 150, "per_place": 20, "keep": 100} if thorough else {"keep": 12}
    # Where columns cost together, the best row of a cell need not lie at the ends of its intervals.
    options, loose, complete = {}, {}, table.sigma is None
    for name in table.X:
        if table.kind(name) == "category":
            options[name] = np.array(table.levels(name), dtype=object)
            continue
        low, high = table.span(name)
        own = own_rows[name].unique()
        if low <= 0 <= high:
            # A lone value where an answer may differ: sparse tables and some models take it for missing.
            own = np.append(own, own.dtype.type(0))
        if table.kind(name) == "integer" and high - low <= 12:
            options[name] = np.arange(low, high + 1)
        else:
            places, all_found = change_places(ask, table, name, bases, rng=rng, **how)
            complete &= all_found
            kind = table.X[name].dtype.type
            if places is None:
                scale = scales(table)[name]
                steps = np.array([s * k for k in (0.02, 0.1, 0.3, 1.0) for s in (-1, 1)]) * scale
                around = (table.people[name].to_numpy(np.float64)[:, None] + steps).ravel()
                around = rng.permutation(np.clip(around, low, high))
                around = around.round() if table.kind(name) == "integer" else around
                loose[name] = np.concatenate(
                    [np.linspace(float(low), float(high), 9).astype(kind), around.astype(kind)]
                )
            else:
                loose[name] = np.array([end for pair in places for end in pair], dtype=kind)
            options[name] = np.unique(np.concatenate([own, np.array([low, high], dtype=kind)]))
    # As many of the other values as the rows allow.
    size = {name: len(values) for name, values in options.items()}
    room = max_rows / np.prod([size[name] for name in size if name not in loose])
    if loose:
        per_column = max(2, int(room ** (1 / len(loose))))
        for name, values in loose.items():
            extra = np.array(values)
            if len(extra) + size[name] > per_column:
                complete = False
                take = max(2, per_column - size[name])
                if len(extra) > take:
                    pairs = rng.permutation(len(extra) // 2)[: max(1, take // 2)]
                    extra = np.concatenate([extra[2 * pairs], extra[2 * pairs + 1]])
            options[name] = np.unique(np.concatenate([options[name], extra]))
    return options, complete
