"""One logistic regression on Adult, audited from five containers; boosted trees from their files."""

import json

import numpy as np
import pytest
import skops.io
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.auditing import audit
from likewise.datasets.tabular import CATEGORIES, NUMBERS
from likewise.training import MLPBaselineClassifier

N_AUDITED = 1000
OPTIONS = ["--target", "target", "--sensitive", "sex", "--sensitive", "race", "--set", "search=candidates"]


@pytest.fixture(scope="module")
def adult():
    return lw.datasets.load_adult()


@pytest.fixture(scope="module")
def folder(adult, tmp_path_factory):
    """A folder with the audited people."""
    path = tmp_path_factory.mktemp("adult")
    words = np.array(adult.target_names)[adult.y_test]
    adult.frame_test.assign(target=words).head(N_AUDITED).to_csv(path / "people.csv", index=False)
    return path


@pytest.fixture(scope="module")
def pipeline(adult):
    encode = ColumnTransformer(
        [("n", StandardScaler(), list(NUMBERS)), ("c", OneHotEncoder(drop="if_binary"), list(CATEGORIES))]
    )
    words = np.array(adult.target_names)[adult.y_train]
    return make_pipeline(encode, LogisticRegression(max_iter=200)).fit(adult.frame_train, words)


@pytest.fixture(scope="module")
def own(adult, pipeline, folder):
    """The same regression as a network of one layer, in a file of our own."""
    encode, regression = pipeline.named_steps["columntransformer"], pipeline.named_steps["logisticregression"]
    domain = lw.TabularDomain.from_frame(adult.frame_train)
    words = np.array(adult.target_names)[adult.y_train]
    net = MLPBaselineClassifier(domain=domain, hidden_layer_sizes=(), n_steps=1, random_state=0)
    net.fit(adult.frame_train, words)
    order = [name.split("__")[1] for name in encode.get_feature_names_out()]
    place = [order.index(name) for name in domain.get_feature_names_out()]
    weights = torch.tensor(regression.coef_[:, place])
    layer = next(part for part in net.network_.modules() if isinstance(part, torch.nn.Linear))
    with torch.no_grad():
        layer.weight.copy_(torch.cat([-weights / 2, weights / 2]))
        layer.bias.copy_(torch.tensor([-1.0, 1.0]) * float(regression.intercept_[0]) / 2)
    net.save(folder / "own.safetensors")
    return folder / "own.safetensors"


@pytest.fixture(scope="module")
def metric(adult, folder):
    """One metric for all of them."""
    fitted = lw.AttributeSubspace(["sex", "race"]).fit(adult.frame_train)
    fitted.metric_.save(folder / "metric.safetensors")
    return folder / "metric.safetensors"


def gaps(document):
    return [document["numbers"][name]["value"] for name in ("pure_gap", "gap")]


def test_five_containers_one_gap(adult, pipeline, folder, own, metric, run, monkeypatch):
    from skl2onnx import to_onnx

    skops.io.dump(pipeline, folder / "model.skops")
    onnx = to_onnx(pipeline, adult.frame_train.head(5), options={"zipmap": False})
    (folder / "model.onnx").write_bytes(onnx.SerializeToString())
    (folder / "adult_model.py").write_text(
        f"import skops.io\npipeline = skops.io.load({str(folder / 'model.skops')!r})\n"
    )
    found = {}
    monkeypatch.syspath_prepend(folder)
    for source in ["model.skops", "model.onnx", "own.safetensors", "adult_model:pipeline"]:
        model = source if ":" in source else folder / source
        done = run(
            "audit",
            model,
            folder / "people.csv",
            "--metric",
            metric,
            *OPTIONS,
            "--favourable",
            ">50K",
            "-o",
            "-",
        )
        assert done.code == 0, done.err
        found[source] = gaps(json.loads(done.out))
    frame = adult.frame_test.head(N_AUDITED)
    result = audit(
        lw.models.as_model(lambda table: pipeline.predict_proba(table), takes_frame=True),
        frame,
        adult.y_test[:N_AUDITED],
        metric=lw.FairMetric.load(metric),
        domain=lw.TabularDomain.from_frame(frame),
        edits=["sex", "race"],
        search="candidates",
    )
    wanted = [result.pure_gap, result.gap]
    assert wanted[0] > 1e-3
    for source, both in found.items():
        assert both == pytest.approx(wanted, abs=1e-4), source


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_trees_from_their_files(library, adult, folder, metric, run):
    rows = slice(4000)
    encoded = adult.X_train[rows].to_numpy()
    if library == "xgboost":
        import xgboost

        native = xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(
            encoded, adult.y_train[rows]
        )
        path = folder / "trees.ubj"
        native.save_model(path)
        predict = native.predict_proba
    else:
        import lightgbm

        categories = adult.frame_train[rows].astype(dict.fromkeys(CATEGORIES, "category"))
        native = lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(
            categories, adult.y_train[rows]
        )
        path = folder / "trees.txt"
        native.booster_.save_model(path)
    done = run(
        "audit",
        path,
        folder / "people.csv",
        "--metric",
        metric,
        *OPTIONS,
        "--favourable",
        ">50K",
        "-o",
        "-",
    )
    assert done.code == 0, done.err
    frame = adult.frame_test.head(N_AUDITED)
    domain = lw.TabularDomain.from_frame(frame)
    if library == "xgboost":
        # The file does not say how its inputs were encoded: the command says what it assumed.
        assert "does not say how its inputs were encoded" in done.err
        domain = lw.FairMetric.load(metric).feature_map
        model = lw.models.as_model(lambda table: predict(domain.encode_array(table)), takes_frame=True)
    else:
        model = native
    result = audit(
        model,
        frame if library == "xgboost" else frame.astype(dict.fromkeys(CATEGORIES, "category")),
        adult.y_test[:N_AUDITED],
        metric=lw.FairMetric.load(metric),
        domain=domain,
        edits=["sex", "race"],
        search="candidates",
    )
    assert gaps(json.loads(done.out)) == pytest.approx([result.pure_gap, result.gap], abs=1e-6)
