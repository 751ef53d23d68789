"""How far the searches fall short of the truth: 200 linear models in boxes, 30 small networks against dense grids.

    OMP_NUM_THREADS=1 python benchmarks/search_quality.py [--linear 200] [--networks 30] [--adult] [--trees] [--within]

Linear models: d = 2 to 8, 30 people, the box of their data, metrics in turn Euclidean, an oblique free subspace, free
coordinates, an oblique cheap subspace. The truth is `exact_dual`; beside it the value of the support made of its own
attaining rows. Networks: one or two hidden layers of 8, 16 or 32 ReLUs, 2 to 4 inputs, 10 people; the truth is the
best of a grid over the box and of a finer one along the free directions, so it is a little low and a shortfall may be
negative. The search is `audit(search="gradient")` with default choices. Losses are not clipped (floor 0).
Trees (`--linear 0 --networks 0 --trees`): boosted models on Adult's raw columns and a bare function around each, 150 random
test people, `audit(search="auto")` against `audit(search="exact")`. `--within`: the same people among all 9,045.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter

import numpy as np
import torch

import likewise as lw
from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_dual
from likewise.auditing.dual.finite_dual import Frontier, solve_dual
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain
from likewise.fair_metrics import FairMetric, euclidean
from likewise.models.losses import CrossEntropy

ALL_EPS = (0.0, 0.01, 0.1, 1.0)
LOSS = CrossEntropy(floor=0.0)
GRID = {2: 301, 3: 55, 4: 23}


def oblique(rng, d, most, weight=0.0):
    directions = rng.normal(size=(int(rng.integers(1, most + 1)), d))
    return FairMetric.from_subspace(Subspace.from_directions(directions), weight=weight)


def linear_problem(seed, n=30):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    if seed % 4 == 0:
        metric = euclidean(d)
    elif seed % 4 == 2:
        axes = np.eye(d)[rng.permutation(d)[: rng.integers(1, d)]]
        metric = FairMetric.from_subspace(Subspace.from_directions(axes))
    else:
        metric = oblique(rng, d, max(1, d - 2), 0.0 if seed % 4 == 1 else float(rng.choice([0.01, 0.3])))
    w, b = rng.normal(size=d) * 10 ** rng.uniform(-0.5, 0.7), rng.normal()
    X = rng.normal(size=(n, d))
    return (
        LinearModel(w, b),
        X,
        (X @ w + b + rng.normal(size=n) > 0).astype(int),
        metric,
        BoxDomain.from_data(X),
    )


def network_problem(seed, n=10):
    rng = np.random.default_rng(1000 + seed)
    d = 2 + seed % 3
    axis = FairMetric.from_subspace(Subspace.from_directions(np.eye(d)[:1]))
    metric = (euclidean(d), oblique(rng, d, 1 if d < 4 else 2), axis)[seed // 3 % 3]
    sizes = [d, *[int(rng.choice([8, 16, 32]))] * int(rng.integers(1, 3)), 2]
    layers = []
    for a, b in itertools.pairwise(sizes):
        layer = torch.nn.Linear(a, b).double()
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(rng.normal(size=(b, a)) * 1.5 * np.sqrt(2 / a)))
            layer.bias.copy_(torch.as_tensor(rng.normal(size=b)))
        layers += [layer, torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1])
    X = rng.normal(size=(n, d))
    with torch.no_grad():
        decided = net(torch.as_tensor(X)).argmax(1).numpy()
    y = np.where(rng.uniform(size=n) < 0.8, decided, rng.integers(0, 2, size=n))
    return net, X, y, metric, BoxDomain.from_data(X)


def network_of(model):
    net = torch.nn.Linear(model.n_features, 2).double()
    with torch.no_grad():
        net.weight.copy_(torch.as_tensor(model.coef))
        net.bias.copy_(torch.as_tensor(model.intercept))
    return net


def losses(net, x, label):
    with torch.no_grad():
        scores = net(torch.as_tensor(x))
    target = torch.as_tensor(np.broadcast_to(label, len(x)).copy())
    return torch.nn.functional.cross_entropy(scores, target, reduction="none").numpy()


def grid_frontier(net, X, y, metric, box):
    """Every person's frontier over the grid of the box and the grid of the free directions."""
    d = X.shape[1]
    axes = [np.linspace(low, high, GRID[d]) for low, high in zip(box.lower, box.upper, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, d)
    table = {label: losses(net, grid, label) for label in (0, 1)}
    Q = np.asarray(metric.null_space.basis) if metric.n_features else np.zeros((d, 0))
    size, k = float(np.linalg.norm(box.upper - box.lower)), Q.shape[1]
    ways = np.zeros((1, 0))
    if k:
        ways = np.stack(np.meshgrid(*[np.linspace(-size, size, 20001 if k == 1 else 601)] * k), -1).reshape(
            -1, k
        )
    base, parts = losses(net, X, y), []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        free = x + ways @ Q.T
        free = free[((free >= box.lower) & (free <= box.upper)).all(1)]
        free = free if len(free) else x[None]
        squared = np.concatenate([np.maximum(metric.squared_norm(grid - x), 0.0), np.zeros(len(free))])
        loss = np.concatenate([table[label], losses(net, free, label)])
        best = np.argsort(squared, kind="stable")
        best = best[np.maximum.accumulate(loss[best]) == loss[best]]
        parts.append(
            Frontier.from_points(
                base_loss=base[i : i + 1],
                row=np.zeros(len(best), dtype=int),
                squared_distance=squared[best],
                loss=loss[best],
                candidate=best,
            )
        )
    return Frontier.stack(parts)


def support_value(model, X, y, dual):
    """V(ε) of the rows that the exact solver lists."""
    parts = dual.mixture
    row, x, loss, squared = (np.concatenate(part) for part in zip(*parts, strict=True))
    frontier = Frontier.from_points(
        base_loss=model.losses(X, y),
        row=row,
        squared_distance=squared,
        loss=loss,
        candidate=np.arange(len(x)),
    )
    return solve_dual(frontier, dual.eps).value


def searched(net, X, y, metric, box, eps):
    began = time.process_time()
    result = lw.audit(
        net, X, y, metric=metric, domain=box, eps=eps, search="gradient", loss=LOSS, random_state=0
    )
    return result.certificate.estimate.value, result.status, time.process_time() - began


def show(title, short, statuses, seconds):
    print(f"\n{title}: {dict(statuses)}, {seconds:.1f} CPU s")
    print("| ε | median | p90 | largest | smallest |\n|---|---|---|---|---|")
    for eps, values in short.items():
        shares = (
            f"{100 * v:.3f}%" for v in (np.median(values), np.quantile(values, 0.9), max(values), min(values))
        )
        print(f"| {eps:g} | {' | '.join(shares)} |")


def linear_models(count):
    exact, own = Counter(), 0.0
    short, statuses, seconds, exact_seconds = {eps: [] for eps in ALL_EPS}, Counter(), 0.0, 0.0
    for seed in range(count):
        model, X, y, metric, box = linear_problem(seed)
        for eps in ALL_EPS:
            began = time.process_time()
            dual = exact_dual(model, X, y, metric=metric, domain=box, eps=eps, tol=1e-6)
            exact_seconds += time.process_time() - began
            exact["solved" if dual.exact else "over-estimated"] += 1
            own = max(own, abs(1 - support_value(model, X, y, dual) / dual.value))
            value, status, spent = searched(network_of(model), X, y, metric, box, eps)
            short[eps].append(1 - value / dual.value)
            statuses[status] += 1
            seconds += spent
    print(
        f"exact solver: {dict(exact)}, {exact_seconds:.1f} CPU s; its rows as a support differ by {own:.1e} at most"
    )
    show(f"{count} linear models in boxes, gradient search", short, statuses, seconds)


def networks(count):
    short, statuses, seconds = {eps: [] for eps in ALL_EPS}, Counter(), 0.0
    for seed in range(count):
        net, X, y, metric, box = network_problem(seed)
        truth = grid_frontier(net, X, y, metric, box)
        for eps in ALL_EPS:
            value, status, spent = searched(net, X, y, metric, box, eps)
            short[eps].append(1 - value / solve_dual(truth, eps).value)
            statuses[status] += 1
            seconds += spent
    show(f"{count} networks against grids, gradient search", short, statuses, seconds)


def adult():
    from sklearn.linear_model import LogisticRegression

    from likewise.datasets import load_adult
    from likewise.fair_metrics import AttributeSubspace

    data = load_adult(split=0)
    names = list(data.X.columns)
    axes = np.eye(len(names))[[names.index("sex_Male"), names.index("race_White")]]
    learned = AttributeSubspace("sex").fit(data.X_train).directions_.values()
    X, y = np.asarray(data.X_test, dtype=float), np.asarray(data.y_test)
    fitted = LogisticRegression(max_iter=500).fit(
        np.asarray(data.X_train, dtype=float), np.asarray(data.y_train)
    )
    box = BoxDomain.from_data(np.asarray(data.X_train, dtype=float))
    subspace = Subspace.from_directions(np.vstack([*learned, axes]))
    random = Subspace.from_directions(np.random.default_rng(0).normal(size=(5, len(names))))
    metrics = {
        "sex, race and the direction of sex free": FairMetric.from_subspace(subspace),
        "the same at a weight of 0.01": FairMetric.from_subspace(subspace, weight=0.01),
        "five random directions free": FairMetric.from_subspace(random),
    }
    print(f"\nexact dual of a logistic model, {len(X)} people, {X.shape[1]} columns, box, tol 1e-6\n")
    print("| metric | ε | CPU s | exact | V(ε) | λ* |\n|---|---|---|---|---|---|")
    for name, metric in metrics.items():
        for eps in ALL_EPS:
            began = time.process_time()
            found = exact_dual(
                LinearModel(fitted.coef_, fitted.intercept_, fitted.classes_),
                X,
                y,
                metric=metric,
                domain=box,
                eps=eps,
                tol=1e-6,
            )
            spent = time.process_time() - began
            print(f"| {name} | {eps:g} | {spent:.1f} | {found.exact} | {found.value:.4f} | {found.lam:.3g} |")


TREES = ("xgboost", "lightgbm", "hist")
PRICES = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def adult_trees():
    """Adult's table with words as categories, its domain, two metrics, and 150 random test people."""
    from bounds import categorical

    from likewise.datasets import load_adult
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace

    data = load_adult()
    metrics = {
        "expert": ExpertSubspace(["sex", "race"], domain=data.domain).fit(data.frame).metric_,
        "attribute": AttributeSubspace(["sex", "race"]).fit(data.X_train).metric_,
    }
    chosen = np.random.default_rng(0).choice(data.test_index, 150, replace=False)
    return data, categorical(data), metrics, chosen


def function_around(model):
    """What is left of a model when only its answers are known."""
    return lambda frame: model.predict_proba(frame)[:, 1]


def trees():
    from bounds import tree_model

    data, frame, metrics, chosen = adult_trees()
    print("\n150 Adult people, gap found by auto and by exact search\n")
    print("| model | metric | ε | exact | its bound | adapter | CPU s | function | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in TREES:
        model = tree_model(name, data)[0].estimator
        for metric_name, metric in metrics.items():
            for eps in (0.01, 0.1):
                found = []
                for asked, search in ((model, "exact"), (model, "auto"), (function_around(model), "auto")):
                    began = time.process_time()
                    choices = {"metric": metric, "domain": data.domain, "eps": eps, "search": search}
                    result = lw.audit(asked, frame.iloc[chosen], data.y[chosen], **choices)
                    found.append((result, time.process_time() - began))
                exact, bound = found[0][0].gap, found[0][0].certificate.bound.gap
                cells = [f"{100 * r.gap / exact:.2f}% | {spent:.1f}" for r, spent in found[1:]]
                print(
                    f"| {name} | {metric_name} | {eps:g} | {exact:.4f} | {bound:.4f} | {' | '.join(cells)} |",
                    flush=True,
                )


def within():
    """What is found for 150 people alone and among all of the test split; what all of them cost."""
    from bounds import tree_model

    from likewise.auditing.first_answer import AuditRequest
    from likewise.auditing.search.contract import read_searches
    from likewise.auditing.worst_case import prepare_people, search_people

    data, frame, metrics, chosen = adult_trees()
    place = {int(row): i for i, row in enumerate(data.test_index)}
    mine = np.array([place[int(row)] for row in chosen])

    def frontier(model, people, metric, eps, search="auto"):
        began = time.process_time()
        searches, required = read_searches(search)
        asked = AuditRequest(model, metric, searches, data.domain, eps=eps, required=required)
        prepared = prepare_people(asked, frame.iloc[people], data.y[people])
        found = search_people(prepared, prepared.problem).found.support.frontier
        return found, solve_dual(found, eps).gap, time.process_time() - began

    print(
        f"\n150 people alone and among {len(place):,}: largest difference of max loss − λ d² over λ = {PRICES}\n"
    )
    print("| model | asked as | metric | ε | difference | gap of all | CPU s | candidates find | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in TREES:
        model = tree_model(name, data)[0].estimator
        for eps, metric_name, kind in ((0.01, "expert", "adapter"), (0.1, "attribute", "function")):
            asked = model if kind == "adapter" else function_around(model)
            alone, _, _ = frontier(asked, chosen, metrics[metric_name], eps)
            among, gap, spent = frontier(asked, data.test_index, metrics[metric_name], eps)
            _, other, less = frontier(asked, data.test_index, metrics[metric_name], eps, "candidates")
            part = among.take(mine)
            apart = max(np.abs(alone.conjugate(lam) - part.conjugate(lam)).max() for lam in PRICES)
            cells = f"{apart:.1e} | {gap:.4f} | {spent:.0f} | {other:.4f} | {less:.0f}"
            print(f"| {name} | {kind} | {metric_name} | {eps:g} | {cells} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--linear", type=int, default=200)
    parser.add_argument("--networks", type=int, default=30)
    parser.add_argument("--adult", action="store_true")
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--within", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.linear:
        linear_models(options.linear)
    if options.networks:
        networks(options.networks)
    if options.adult:
        adult()
    if options.trees:
        trees()
    if options.within:
        within()


if __name__ == "__main__":
    main()
