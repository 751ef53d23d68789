"""Other solvers on the questions that the branch and bound answers: dtai-veritas at λ = 0, SCIP at λ > 0.

    pip install dtai-veritas pyscipopt
    python benchmarks/tree_oracles.py values tests/reference/tree_oracles.json   # 20 random ensembles, kept for the tests
    python benchmarks/tree_oracles.py adult --people 500                          # CPU per person, free: sex and race

One thread: run with OMP_NUM_THREADS=1.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

# ---- random ensembles as nested lists: a leaf is a number, a split [feature, threshold, left, right] ------


def random_tree(rng, depth, width):
    if depth == 0 or rng.random() < 0.1:
        return round(float(rng.normal()), 3)
    feature, threshold = int(rng.integers(width)), round(float(rng.uniform(-2, 2)), 4)
    return [feature, threshold, random_tree(rng, depth - 1, width), random_tree(rng, depth - 1, width)]


def random_case(seed, n_trees, depth):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(3, 7))
    low, high = np.sort(rng.uniform(-2.2, 2.2, (2, width)), axis=0).round(4)
    held = rng.random(width) < 0.2
    person = rng.uniform(low, high).round(4)
    low, high = np.where(held, person, low), np.where(held, person, high)
    return {
        "trees": [random_tree(rng, depth, width) for _ in range(n_trees)],
        "low": low.tolist(),
        "high": high.tolist(),
        "person": person.tolist(),
    }


# ---- veritas: the largest and the smallest sum over a box ---------------------------------------------------


def veritas_ensemble(trees, sign):
    """The same trees; ≤ becomes < of the next number."""
    from veritas import AddTree, AddTreeType

    made = AddTree(1, AddTreeType.REGR)
    for tree in trees:
        target = made.add_tree()
        stack = [(target.root(), tree)]
        while stack:
            node, part = stack.pop()
            if isinstance(part, list):
                target.split(node, part[0], float(np.nextafter(part[1], np.inf)))
                stack += [(target.left(node), part[2]), (target.right(node), part[3])]
            else:
                target.set_leaf_value(node, 0, sign * part)
    return made


def veritas_maximum(ensemble, low, high):
    from veritas import Config, HeuristicType, Interval, StopReason

    box = [Interval(a, float(np.nextafter(b, np.inf))) for a, b in zip(low, high, strict=True)]
    search = Config(HeuristicType.MAX_OUTPUT).get_search(ensemble, box)
    reason = StopReason.NONE
    while reason == StopReason.NONE:
        reason = search.steps(1000)
    assert search.is_optimal()
    return float(search.get_solution(0).output)


# ---- SCIP: the largest 1 + f(x) − λ ‖x − x₀‖² as a mixed-integer program -------------------------------------


def scip_maximum(case, lam):
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    model.setParam("limits/gap", 1e-9)
    model.setParam("numerics/feastol", 1e-9)
    low, high = np.array(case["low"]), np.array(case["high"])
    x = [model.addVar(lb=a, ub=b) for a, b in zip(low, high, strict=True)]
    terms = []
    for tree in case["trees"]:
        chosen, stack = [], [(tree, [])]
        while stack:
            part, path = stack.pop()
            if isinstance(part, list):
                feature, threshold, left, right = part
                stack += [
                    (left, [*path, (feature, threshold, 1)]),
                    (right, [*path, (feature, threshold, -1)]),
                ]
                continue
            z = model.addVar(vtype="B")
            chosen.append(z)
            terms.append(part * z)
            for feature, threshold, side in path:
                # Both sides closed: thresholds differ, so the supremum is the same.
                if side > 0:
                    model.addCons(x[feature] <= threshold + max(0.0, high[feature] - threshold) * (1 - z))
                    if low[feature] > threshold:
                        model.addCons(z == 0)
                else:
                    model.addCons(x[feature] >= threshold - max(0.0, threshold - low[feature]) * (1 - z))
                    if high[feature] <= threshold:
                        model.addCons(z == 0)
        model.addCons(quicksum(chosen) == 1)
    distance = model.addVar(lb=0.0)
    model.addCons(quicksum((v - p) * (v - p) for v, p in zip(x, case["person"], strict=True)) <= distance)
    model.setObjective(quicksum(terms) + 1.0 - lam * distance, "maximize")
    model.optimize()
    assert model.getStatus() in ("optimal", "gaplimit"), model.getStatus()
    return float(model.getObjVal())


def write_values(path):
    cases = []
    for seed in range(20):
        case = random_case(seed, n_trees=8, depth=3)
        for name, sign in (("largest", 1.0), ("smallest", -1.0)):
            found = sign * veritas_maximum(veritas_ensemble(case["trees"], sign), case["low"], case["high"])
            case[name] = round(found, 9)
        cases.append(case)
    priced = []
    for seed in range(100, 108):
        case = random_case(seed, n_trees=5, depth=3)
        case["values"] = [[lam, round(scip_maximum(case, lam), 7)] for lam in (0.1, 0.5, 2.0)]
        priced.append(case)
    text = json.dumps({"veritas": cases, "scip": priced}, separators=(",", ":"))
    Path(path).write_text(text.replace('{"trees"', '\n{"trees"') + "\n", encoding="utf-8")
    print(f"{len(cases)} ensembles by veritas, {len(priced)} by SCIP: {len(text):,} bytes")


# ---- Adult: the worst loss when only sex and race may change -------------------------------------------------


def adult_codes(data):
    """Adult with its categories as codes, and the domain of whole numbers."""
    frame = data.frame.copy()
    for column in data.domain.columns_:
        if column.categories:
            frame[column.name] = (
                frame[column.name].map({v: i for i, v in enumerate(column.categories)}).astype(int)
            )
    return frame


def compare_adult(people):
    from xgboost import XGBClassifier

    import likewise as lw
    from likewise.auditing.bounds.branch_and_bound import maximise
    from likewise.auditing.bounds.families import family_of
    from likewise.datasets import load_adult

    data = load_adult()
    frame = adult_codes(data)
    train, y = data.train_index, data.y
    model = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0)
    model.fit(frame.iloc[train].astype(float), y[train])
    domain = lw.TabularDomain.from_frame(frame)
    metric = lw.ExpertSubspace(["sex", "race"]).fit(frame).metric_.without_feature_map()
    chosen = np.random.default_rng(0).choice(data.test_index, people, replace=False)
    rows, targets = frame.iloc[chosen].astype(float), y[chosen]
    adapter = lw.as_model(model)
    family = family_of(adapter, domain, encoded=False)
    X = domain.encode_array(frame.iloc[chosen])

    def ask(values, t):
        shown = domain.decode(family.layout.encode(values))[list(frame.columns)].astype(float)
        return adapter.losses(shown, t), values

    maximise(family, metric, X[:2], targets[:2], np.inf, ask=ask)  # compile
    clock = time.process_time()
    found = maximise(family, metric, X, targets, np.inf, ask=ask)
    mine = 1e3 * (time.process_time() - clock) / people
    from veritas import get_addtree

    ensemble = get_addtree(model)
    worst = np.empty(people)
    values, free = rows.to_numpy(), [name in ("sex", "race") for name in frame.columns]
    low = np.where(free, frame.min().to_numpy(dtype=float), values)
    high = np.where(free, frame.max().to_numpy(dtype=float), values)
    both = {0: ensemble, 1: ensemble.negate_leaf_values()}
    clock = time.process_time()
    for i in range(people):
        worst[i] = np.logaddexp(0.0, veritas_maximum(both[int(targets[i])], low[i], high[i]))
    other = 1e3 * (time.process_time() - clock) / people
    print(f"{people} people, free: sex and race. CPU ms a person: here {mine:.2f}, veritas {other:.2f}")
    print(
        f"widest bracket {np.max(found.upper - found.lower):.1e}; largest difference of the worst losses "
        f"{np.abs(found.lower - worst).max():.1e}; mean worst loss {found.lower.mean():.6f}, {worst.mean():.6f}"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("values").add_argument("path")
    what.add_parser("adult").add_argument("--people", type=int, default=500)
    asked = parser.parse_args()
    if asked.what == "values":
        write_values(asked.path)
    else:
        compare_adult(asked.people)


if __name__ == "__main__":
    main()
