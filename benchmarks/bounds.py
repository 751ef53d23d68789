"""How far the exact search closes on Adult: brackets at λ, V(ε) between two numbers, CPU per person.

    python benchmarks/bounds.py --people 500 --model xgboost --lambda 20 --lambda 5 --eps 0 --eps 0.01

One thread: run with OMP_NUM_THREADS=1. The losses of all rows that are shown are checked with the model itself.
"""

import argparse
import time

import numpy as np
import pandas as pd

from likewise.auditing.bounds.branch_and_bound import bracket_value, maximise
from likewise.auditing.bounds.family import RegionBudget
from likewise.auditing.bounds.regions import TableLayout
from likewise.auditing.bounds.tree_tables import encoded_sources, raw_sources
from likewise.auditing.bounds.trees import TreeFamily
from likewise.auditing.search.domain import MoveSearch
from likewise.datasets import load_adult
from likewise.fair_metrics import AttributeSubspace
from likewise.models import as_model
from likewise.models.tree_ensemble import read_trees

TOL = 5e-4


def categorical(data):
    """The table with its words as categories, as the boosted libraries take them."""
    frame = data.frame.copy()
    for column in data.domain.columns_:
        if column.categories:
            frame[column.name] = pd.Categorical(frame[column.name], categories=list(column.categories))
    return frame


def tree_model(name, data):
    """Train a model; return it, its family and the rows as it takes them."""
    layout = TableLayout.of(data.domain)
    train, y = data.train_index, data.y[data.train_index]
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(100, max_depth=8, random_state=0).fit(data.X.to_numpy()[train], y)
        trees = read_trees(model)
        return (
            as_model(model),
            TreeFamily(trees, layout, encoded_sources(layout), as_model(model).loss),
            "encoded",
        )
    frame = categorical(data).iloc[train]
    if name == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(
            n_estimators=100, max_depth=6, enable_categorical=True, n_jobs=1, random_state=0
        )
    elif name == "lightgbm":
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    model.fit(frame, y)
    trees = read_trees(model)
    return (
        as_model(model),
        TreeFamily(
            trees, layout, raw_sources(layout, trees.feature_names, trees.categories), as_model(model).loss
        ),
        "raw",
    )


def network_model(name, data):
    """The paper's 41-100-2 network, plain or trained with SenSR."""
    from likewise.auditing.bounds.networks import NetworkFamily
    from likewise.models.layers import read_relu_network
    from likewise.training import MLPBaselineClassifier, SenSRClassifier

    metric = AttributeSubspace(["sex", "race"]).fit(data.X_train).metric_
    if name == "network":
        kind = MLPBaselineClassifier(random_state=0)
    else:
        kind = SenSRClassifier(metric=metric, random_state=0)
    kind.fit(data.X_train, data.y[data.train_index])
    model = as_model(kind)
    layout = TableLayout.of(data.domain)
    return model, NetworkFamily(read_relu_network(model), layout, model.loss), "encoded"


def own_losses(model, kind, data, rows, y):
    """Losses by the model itself of encoded rows."""
    if kind == "encoded":
        return model.losses(pd.DataFrame(rows, columns=data.X.columns), y)
    frame = data.domain.decode(rows)
    for column in data.domain.columns_:
        if column.categories:
            frame[column.name] = pd.Categorical(frame[column.name], categories=list(column.categories))
    return model.losses(frame[list(data.frame.columns)], y)


def pure_unfairness(model, kind, data, chosen):
    """V(0) with sex and race free: brackets and CPU of listing, of branch and bound, and of the search of candidates."""
    import likewise as lw
    from likewise.auditing.bounds.enumeration import EnumerationSearch
    from likewise.auditing.bounds.exact_search import BranchAndBoundSearch
    from likewise.auditing.dual.finite_dual import solve_dual
    from likewise.auditing.dual.supporting_rows import Support
    from likewise.auditing.problem import AuditProblem
    from likewise.auditing.search.candidates import CandidateSearch
    from likewise.auditing.search.contract import Budget

    table = data.X if kind == "encoded" else categorical(data)
    metric = lw.ExpertSubspace(["sex", "race"]).fit(data.frame).metric_
    people = table.iloc[chosen], data.y[chosen]
    problem = AuditProblem.build(
        model, *people, metric=metric, domain=data.domain, encoded=kind == "encoded", edits=["sex", "race"]
    )
    problem.base_loss  # noqa: B018 (asked once, for all of them)
    for search in (EnumerationSearch(), BranchAndBoundSearch(), CandidateSearch()):
        clock = time.process_time()
        found = search.extend(problem, Support.start(problem), 0.0, Budget())
        spent = 1e3 * (time.process_time() - clock) / len(chosen)
        value = solve_dual(found.support.frontier, 0.0).value
        above = (
            "no bound"
            if not found.bounds
            else f"bound {found.bounds[0].value:.6f}, width {found.bounds[0].value - value:.1e}"
        )
        print(f"V(0), free: sex and race, {search.name}: {value:.6f}, {above}, {spent:.2f} CPU ms a person")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument(
        "--model", default="xgboost", choices=["xgboost", "lightgbm", "hist", "forest", "network", "sensr"]
    )
    parser.add_argument("--lambda", dest="lambdas", type=float, action="append", default=[])
    parser.add_argument("--eps", type=float, action="append", default=[])
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--pure", action="store_true", help="V(0) with an ExpertSubspace of sex and race")
    asked = parser.parse_args()
    data = load_adult()
    metric = AttributeSubspace(["sex", "race"]).fit(data.X_train).metric_.without_feature_map()
    make = network_model if asked.model in ("network", "sensr") else tree_model
    model, family, kind = make(asked.model, data)
    chosen = np.random.default_rng(0).choice(data.test_index, asked.people, replace=False)
    X, y = data.X.to_numpy()[chosen], data.y[chosen]
    targets = model.targets(y)
    budget = RegionBudget(nodes=asked.nodes)
    maximise(family, metric, X[:2], targets[:2], 20.0, budget=RegionBudget(nodes=20))  # compile
    trees = getattr(family, "trees", None)
    cuts = None if trees is None else trees.thresholds(family.layout)
    if asked.pure:
        pure_unfairness(model, kind, data, chosen)

    def best_rows(found, lam):
        order = np.lexsort((lam * found.cost - found.loss, found.person))
        first = np.searchsorted(found.person[order], np.arange(int(found.person[-1]) + 1))
        return found.rows[order[first]]

    def search(lam):
        # At no distance the free moves are few: the branch and bound needs no rows to begin from.
        if np.isinf(lam):
            return None
        around = MoveSearch(family.layout, metric, [lam], model.loss, family.moves, cuts=cuts)
        found = [
            around.run(X[at], targets[at]) for at in np.array_split(np.arange(len(X)), len(X) // 100 + 1)
        ]
        return np.concatenate([best_rows(part, lam) for part in found])[:, None]

    def ask(values, t):
        rows = family.layout.encode(values)
        return own_losses(model, kind, data, rows, np.asarray(model.classes_)[t]), values

    print(
        f"{asked.model}: {asked.people} people, at most {asked.nodes} regions each, rounding slack {family.slack:.1e}"
    )
    for lam in asked.lambdas:
        clock = time.process_time()
        found = maximise(family, metric, X, targets, lam, starts=search(lam), budget=budget, tol=TOL, ask=ask)
        spent = 1e3 * (time.process_time() - clock) / asked.people
        wrong = np.abs(own_losses(model, kind, data, found.rows, y) - found.loss).max()
        width = found.upper - found.lower
        print(
            f"λ = {lam:g}: closed (< 1e-3 besides what rounding leaves) {np.mean(width - found.slack < 1e-3):.1%}, {spent:.1f} CPU ms a person, "
            f"regions {found.nodes.mean():.0f} in the mean, mean bracket [{found.lower.mean():.4f}, "
            f"{found.upper.mean():.4f}]; model's own loss differs by at most {wrong:.1e}"
        )
    for eps in asked.eps:
        clock = time.process_time()

        def solve(lam, starts, seconds):
            more = [part for part in (search(lam), starts) if part is not None]
            begin = np.concatenate(more, axis=1) if more else None
            return maximise(family, metric, X, targets, lam, starts=begin, budget=budget, tol=TOL, ask=ask)

        found = bracket_value(solve, ask(family.layout.values(X), targets)[0], eps, start=15.0)
        spent = 1e3 * (time.process_time() - clock) / asked.people
        low, high = found.lower - found.base_loss, found.upper - found.base_loss
        print(
            f"ε = {eps:g}: V(ε) in [{found.lower:.4f}, {found.upper:.4f}], width {(found.upper / found.lower - 1):.2%}, "
            f"gap in [{low:.4f}, {high:.4f}], λ = {found.lambda_:.3g}, {spent:.0f} CPU ms a person, {found.reasons or 'closed'}"
        )


if __name__ == "__main__":
    main()
