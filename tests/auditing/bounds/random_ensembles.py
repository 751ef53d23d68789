"""Random small tables, metrics and tree ensembles whose every row can be enumerated."""

from itertools import product

import numpy as np

from likewise.auditing.bounds.tree_tables import FeatureSource
from likewise.core.subspace import Subspace
from likewise.data.column import Column, Dtype
from likewise.fair_metrics import FairMetric
from likewise.models.tree_ensemble import TreeEnsemble


def random_columns(rng):
    """Two to four columns: whole numbers, two categories, more categories; at times one of them immutable."""
    columns, at = [], 0
    for i in range(rng.integers(2, 5)):
        kind = rng.choice(["integer", "binary", "categorical"])
        held = bool(rng.random() < 0.15)
        name = f"c{i}"
        if kind == "integer":
            low = int(rng.integers(-3, 3))
            column = Column(
                name,
                "integer",
                Dtype("int64"),
                lower=low,
                upper=low + int(rng.integers(2, 7)),
                mean=float(rng.normal()),
                scale=float(rng.uniform(0.5, 3.0)),
                immutable=held,
                start=at,
                stop=at + 1,
            )
        else:
            count = 2 if kind == "binary" else int(rng.integers(3, 5))
            width = 1 if count == 2 else count
            column = Column(
                name,
                "categorical",
                Dtype("str"),
                categories=tuple("abcde"[:count]),
                immutable=held,
                start=at,
                stop=at + width,
            )
        columns.append(column)
        at = column.stop
    return tuple(columns)


def every_row(columns):
    """All rows of values, (N, P)."""
    ranges = [
        range(len(c.categories)) if c.categories else range(int(c.lower), int(c.upper) + 1) for c in columns
    ]
    return np.array(list(product(*ranges)), dtype=float)


def random_metric(rng, width):
    """A subspace with or without weight, whole free coordinates, or a Mahalanobis metric of any rank."""
    kind = rng.integers(4)
    if kind == 0:
        directions = rng.normal(size=(rng.integers(1, width), width))
        return FairMetric.from_subspace(
            Subspace.from_directions(directions), weight=float(rng.choice([0.0, 0.3]))
        )
    if kind == 1:
        directions = np.eye(width)[rng.choice(width, rng.integers(1, width), replace=False)]
        return FairMetric.from_subspace(Subspace.from_directions(directions))
    rank = width if kind == 2 else int(rng.integers(1, width + 1))
    basis, _ = np.linalg.qr(rng.normal(size=(width, rank)))
    return FairMetric(0.0, basis, rng.uniform(0.2, 3.0, rank))


def raw_codes(rng, columns):
    """The table itself: numbers as they are, categories by codes of the model's own, one of them unknown at times."""
    sources = []
    for i, column in enumerate(columns):
        if not column.categories:
            sources.append(FeatureSource(i))
            continue
        codes = rng.permutation(len(column.categories)).astype(float)
        if rng.random() < 0.3:
            codes[0] = np.nan
        sources.append(FeatureSource(i, table=codes))
    return tuple(sources)


def random_trees(rng, columns, sources, n_outputs=1, kind="scores", roundoff=2.0**-53):
    """Trees of depth up to three over the given features; some splits by category codes, where a feature has them."""
    nodes = {name: [] for name in ("left", "right", "feature", "threshold", "values", "missing_left")}
    roots, sets = [], {}

    def grow(depth):
        at = len(nodes["left"])
        for part in nodes.values():
            part.append(None)
        j = int(rng.integers(len(sources)))
        source = sources[j]
        known = columns[source.column]
        grid = (
            np.arange(len(known.categories)) if known.categories else np.arange(known.lower, known.upper + 1)
        )
        seen = source(grid.astype(float))
        leaf = rng.normal(size=n_outputs) if kind == "scores" else rng.dirichlet(np.ones(n_outputs))
        is_leaf = depth == 0 or rng.random() < 0.15
        values = {
            "feature": j,
            "threshold": float(rng.choice(seen[np.isfinite(seen)]) + rng.choice([0.0, 0.25, -0.25])),
            "values": leaf,
            "missing_left": bool(rng.random() < 0.5),
            "left": -1,
            "right": -1,
        }
        if not is_leaf:
            if known.categories and len(known.categories) > 2 and rng.random() < 0.5:
                sets[at] = [int(c) for c in np.unique(seen[np.isfinite(seen)]) if rng.random() < 0.5]
            values["left"], values["right"] = grow(depth - 1), grow(depth - 1)
        for name, value in values.items():
            nodes[name][at] = value
        return at

    roots += [grow(int(rng.integers(1, 4))) for _ in range(int(rng.integers(1, 7)))]
    if kind == "probabilities":
        nodes["values"] = [value / len(roots) for value in nodes["values"]]
    return TreeEnsemble.from_nodes(
        roots=roots,
        base=np.zeros(n_outputs),
        kind=kind,
        n_features=len(sources),
        sets=sets,
        listed_left=bool(rng.random() < 0.5),
        strict=bool(rng.random() < 0.5),
        roundoff=roundoff,
        **nodes,
    )
