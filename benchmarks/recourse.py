"""Least changes: equal to enumeration on random small cases, and on Adult beside DiCE and NICE at one common cost.

    OMP_NUM_THREADS=1 python benchmarks/recourse.py enumeration --cases 300
    OMP_NUM_THREADS=1 python benchmarks/recourse.py adult --people 50 --models xgb100,logistic --save FOLDER
    OMP_NUM_THREADS=1 python benchmarks/recourse.py everybody --keep FOLDER
    python benchmarks/recourse.py peers FOLDER --people 50 --methods nice,random,kdtree     # needs dice-ml, NICEx, xgboost

The cost is `explain`'s: numbers by the span of the middle 80% of people, 1 per changed category; sex and race are fixed, age
only rises. `peers` runs in an environment of its own on the model and the people that `adult --save` wrote, and needs nothing
of this package. Of each peer the cheapest of its possible, favourable suggestions counts. CPU times.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
warnings.simplefilter("ignore")


def encoder(words, scale=False):
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    return make_column_transformer((one_hot, words), (StandardScaler() if scale else "passthrough", NUMBERS))


def models(words):
    """The models by name: a pipeline each, not fitted."""
    import lightgbm
    import xgboost
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    found = {
        "xgb100": (False, xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1)),
        "xgb500": (False, xgboost.XGBClassifier(n_estimators=500, max_depth=6, n_jobs=1)),
        "lightgbm": (False, lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1)),
        "forest": (False, RandomForestClassifier(100, max_depth=10, random_state=0, n_jobs=1)),
        "hist": (False, HistGradientBoostingClassifier(random_state=0)),
        "logistic": (True, LogisticRegression(max_iter=500)),
        "network": (True, MLPClassifier((100,), max_iter=25, random_state=0)),
    }
    return {name: make_pipeline(encoder(words, scale), model) for name, (scale, model) in found.items()}


def enumeration(cases):
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.explaining.enumeration import FAMILIES
    from tests.explaining.test_least_changes import check

    wrong = made = 0
    for k in range(cases):
        try:
            made += check(1000 + k, FAMILIES[k % len(FAMILIES)], people=3)
        except AssertionError as error:
            wrong += 1
            print(f"case {k} ({FAMILIES[k % len(FAMILIES)]}): {str(error)[:300]}")
    print(f"{cases} cases, {made} suggestions, {wrong} wrong; {time.process_time():.0f} CPU-s")


def spans(frame):
    found = {}
    for name in NUMBERS:
        values = frame[name].to_numpy(float)
        for part in (values, values[values != frame[name].mode()[0]]):
            low, high = np.quantile(part, [0.1, 0.9])
            if high > low:
                found[name] = high - low
                break
    return found


def cost(own, rows, span):
    total = np.zeros(len(rows))
    for name in rows.columns:
        if name in span:
            total += np.abs(rows[name].to_numpy(float) - float(own[name])) / span[name]
        else:
            total += (rows[name].to_numpy() != own[name]).astype(float)
    return total


def possible(own, rows, frame):
    good = (rows["sex"].to_numpy() == own["sex"]) & (rows["race"].to_numpy() == own["race"])
    good &= rows["age"].to_numpy(float) >= float(own["age"])
    for name in NUMBERS:
        values = rows[name].to_numpy(float)
        good &= (values == np.round(values)) & (values >= frame[name].min()) & (values <= frame[name].max())
    return good


def adult(people, names, folder):
    import likewise as lw
    from likewise.explaining.engine import Effort
    from likewise.explaining.situation import ExplanationRequest, situate

    data = lw.datasets.load_adult()
    train, test = data.frame_train, data.frame_test
    effort, span = Effort(10**8, 2.0), spans(test)
    for name in names:
        model = models([c for c in train if c not in NUMBERS])[name].fit(train, data.y_train)
        situation = situate(
            model, test, ["sex", "race"], ExplanationRequest(1, {"age": "up"}, None, "range", effort)
        )
        numbers = np.random.default_rng(0).choice(situation.refused, people, replace=False)
        fixed = np.zeros(situation.layout.n_columns, dtype=bool)
        situation.proved(situation.people[numbers[0]], fixed, effort)
        seconds, answers = [], []
        for i in numbers:
            clock = time.process_time()
            answers.append(situation.proved(situation.people[i], fixed, effort))
            seconds.append(time.process_time() - clock)
        found = [k for k, answer in enumerate(answers) if answer.values is not None]
        rows = np.array([answers[k].values for k in found])
        table = situation.all.table(rows)[list(test.columns)]
        own = [test.iloc[numbers[k]] for k in found]
        fine = [possible(o, table.iloc[[k]], test)[0] for k, o in enumerate(own)]
        same = [
            abs(cost(o, table.iloc[[k]], span)[0] - answers[found[k]].cost) < 1e-9 for k, o in enumerate(own)
        ]
        ms = 1e3 * np.array(seconds)
        statuses = pd.Series([answer.status for answer in answers]).value_counts().to_dict()
        print(
            f"{name}: {statuses}, confirmed {situation.ask(rows).sum()}, possible {sum(fine)}, cost as stated {sum(same)} of "
            f"{len(found)}; CPU ms median {np.median(ms):.2f}, mean {ms.mean():.2f}, 95% {np.quantile(ms, 0.95):.1f}, "
            f"most {ms.max():.1f}; median cost {np.median([answers[k].cost for k in found]):.3f}",
            flush=True,
        )
        if folder and name == "xgb100":
            folder.mkdir(exist_ok=True)
            model[-1].save_model(folder / "xgb100.json")
            train.assign(y=data.y_train).to_csv(folder / "train.csv", index=False)
            test.to_csv(folder / "test.csv", index=False)
            kept = {
                "ids": numbers.tolist(),
                "costs": [a.cost if np.isfinite(a.cost) else None for a in answers],
            }
            (folder / "ours.json").write_text(json.dumps(kept))


def everybody(keep, cases):
    import likewise as lw

    if cases == "german":
        from lightgbm import LGBMClassifier
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        data = lw.datasets.load_german()
        one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        words = make_column_selector(dtype_exclude=np.number)
        pipe = make_column_transformer((one_hot, words), remainder="passthrough")
        model = make_pipeline(pipe, LGBMClassifier(n_estimators=60, num_leaves=15, verbose=-1, n_jobs=1)).fit(
            data.frame, data.y
        )
        actions = {"age": "up"}
    else:
        data = lw.datasets.load_adult()
        model = models([c for c in data.frame if c not in NUMBERS])["xgb100"].fit(
            data.frame_train, data.y_train
        )
        actions = {"age": "up", "race": "fixed"}
    for rules in ("learned", None):
        clock = time.process_time()
        folder = None if keep is None else keep / f"{cases}-{rules}"
        found = lw.recourse(
            model,
            data.frame,
            sensitive_features=["sex"],
            favourable=1,
            actions=actions,
            rules=rules,
            folder=folder,
        )
        print(f"rules {rules}: {time.process_time() - clock:.0f} CPU-s; {found!r}; {found.settings['rules']}")
        print(found.people.status.value_counts().to_dict())
        for one in found.burden:
            print(
                " ",
                one.group,
                one.refused,
                one.cost,
                one.without,
                one.dearer,
                one.cheaper,
                sep="  ",
                flush=True,
            )


class CodedModel:
    """The saved model as peers ask it."""

    classes_ = np.array([0, 1])

    def __init__(self, folder, frame):
        import xgboost

        self.frame = frame
        self.encoder = encoder([c for c in frame if c not in NUMBERS]).fit(frame)
        self.model = xgboost.XGBClassifier()
        self.model.load_model(folder / "xgb100.json")

    def rows(self, X):
        X = (
            X[list(self.frame.columns)]
            if isinstance(X, pd.DataFrame)
            else pd.DataFrame(X, columns=self.frame.columns)
        )
        return self.encoder.transform(X.astype(dict.fromkeys(NUMBERS, float)))

    def predict(self, X):
        return self.model.predict(self.rows(X))

    def predict_proba(self, X):
        return self.model.predict_proba(self.rows(X))


def dice(method, frame, y, model, test):
    import dice_ml

    data = dice_ml.Data(
        dataframe=frame.assign(y=y).sample(8000, random_state=0),
        continuous_features=NUMBERS,
        outcome_name="y",
    )
    search = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
    free = [c for c in frame if c not in ("sex", "race")]

    def ask(i):
        age = {"age": [int(test.iloc[i].age), 90]}
        found = search.generate_counterfactuals(
            test.iloc[[i]],
            total_CFs=4,
            desired_class=1,
            features_to_vary=free,
            permitted_range=age,
            verbose=False,
        )
        return found.cf_examples_list[0].final_cfs_df[list(frame.columns)]

    return ask


def nice(frame, y, model, test):
    from nice import NICE

    words = [c for c in frame if c not in NUMBERS]
    codes = {c: {v: k for k, v in enumerate(sorted(frame[c].unique()))} for c in words}
    back = {c: {k: v for v, k in codes[c].items()} for c in words}

    def coded(X):
        return np.column_stack([(X[c].map(codes[c]) if c in words else X[c]).to_numpy(float) for c in frame])

    def table(rows):
        found = pd.DataFrame(np.asarray(rows), columns=list(frame.columns))
        for c in words:
            found[c] = found[c].round().astype(int).map(back[c])
        return found

    places = list(enumerate(frame.columns))
    search = NICE(
        X_train=coded(frame)[:8000],
        predict_fn=lambda rows: model.predict_proba(table(rows)),
        y_train=y.to_numpy()[:8000],
        cat_feat=[i for i, c in places if c in words],
        num_feat=[i for i, c in places if c not in words],
        optimization="proximity",
        justified_cf=True,
    )
    return lambda i: table(search.explain(coded(test.iloc[[i]])))


def peers(folder, methods):
    train, test = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "test.csv")
    frame, y = train.drop(columns="y"), train.y
    model, span = CodedModel(folder, frame), spans(test)
    kept = json.loads((folder / "ours.json").read_text())
    ours = np.array([np.inf if c is None else c for c in kept["costs"]])
    for method in methods:
        ask = nice(frame, y, model, test) if method == "nice" else dice(method, frame, y, model, test)
        costs, seconds = [], []
        for i in kept["ids"]:
            clock = time.process_time()
            try:
                rows = ask(i)
                good = (model.predict(rows) == 1) & possible(test.iloc[i], rows, test)
                costs.append(cost(test.iloc[i], rows[good], span).min() if good.any() else np.inf)
            except Exception:  # whatever a peer raises if it finds nothing
                costs.append(np.inf)
            seconds.append(time.process_time() - clock)
        found = np.array(costs)
        both = np.isfinite(found) & (ours > 0)
        print(
            f"{method}: {np.isfinite(found).sum()} of {len(found)} possible and favourable; cost / optimum median "
            f"{np.median(found[both] / ours[both]):.2f}; cheaper than ours {(found < ours - 1e-9).sum()}; CPU ms "
            f"{1e3 * np.median(seconds):.0f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["enumeration", "adult", "everybody", "german", "peers"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--models", default="xgb100,xgb500,lightgbm,forest,hist,logistic,network")
    parser.add_argument("--methods", default="nice,random,genetic,kdtree")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    if asked.what == "enumeration":
        enumeration(asked.cases)
    elif asked.what == "adult":
        adult(asked.people, asked.models.split(","), asked.save)
    elif asked.what == "peers":
        peers(asked.folder, asked.methods.split(","))
    else:
        everybody(asked.keep, "german" if asked.what == "german" else "adult")
