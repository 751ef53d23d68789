"""MLflow's own stores hold the metrics, the page and the evidence of an audit."""

import json

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.core.errors import InputError
from likewise.evaluation import evaluate, impact_tables
from likewise.integrations import impact_ratio_metric, log_audit


@pytest.fixture
def mlflow():
    """Loaded when it is used, not by every process that collects tests."""
    return pytest.importorskip("mlflow")


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=60), "sex": rng.choice(["F", "M"], size=60)})
    score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - 2 * (frame["sex"] == "M")))  # noqa: E731
    y = (people["skill"] > 0).astype(int).to_numpy()
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    result = lw.audit(score, people, y, metric=metric, eps=0.0, delta=0.01, search="candidates")
    decided = (score(people) > 0.5).astype(int).to_numpy()
    return people, y, decided, result


@pytest.fixture
def store(mlflow, tmp_path, monkeypatch):
    """A real store of files: the one that mlflow-skinny brings without a database."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    experiment = mlflow.create_experiment("audits", artifact_location=(tmp_path / "artifacts").as_uri())
    yield experiment
    mlflow.set_tracking_uri(before)


def test_a_run_holds_the_metrics_the_page_and_the_evidence(mlflow, audited, store, tmp_path):
    people, y, decided, result = audited
    impact = impact_tables(decided, people, ["sex"])
    evaluation = evaluate(decided, None, y)
    with mlflow.start_run(experiment_id=store) as run:
        assert log_audit(result, name="score", evaluation=evaluation, impact=impact) == run.info.run_id
    found = mlflow.MlflowClient().get_run(run.info.run_id)
    assert found.data.metrics["fairness.pure_gap"] == result.pure_gap
    assert found.data.metrics["fairness.gap"] == result.gap
    assert found.data.metrics["fairness.changed_decisions"] == result.flipped
    assert found.data.metrics["fairness.accuracy"] == np.mean(decided == y)
    assert found.data.metrics["fairness.impact_ratio.sex"] == min(row.impact_ratio for row in impact[0].rows)
    assert found.data.tags["fairness.verdict"] == "depends"
    folder = tmp_path / "artifacts" / run.info.run_id / "artifacts" / "fairness"
    assert (folder / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads((folder / "audit.json").read_text(encoding="utf-8"))["kind"] == "likewise.report.audit"
    assert {"evidence.json", "junit.xml", "audit.sarif", "model_card.md"} <= {
        path.name for path in folder.iterdir()
    }


def test_a_run_by_its_id_and_no_run_at_all(mlflow, audited, store):
    result = audited[-1]
    with pytest.raises(InputError, match="no MLflow run is active"):
        log_audit(result)
    client = mlflow.MlflowClient()
    run = client.create_run(store)
    log_audit(result, run_id=run.info.run_id, prefix="audit", page=False)
    assert mlflow.active_run() is None
    assert client.get_run(run.info.run_id).data.metrics["audit.pure_gap"] == result.pure_gap
    assert "audit/audit.html" not in {file.path for file in client.list_artifacts(run.info.run_id, "audit")}


@pytest.mark.usefixtures("mlflow")
def test_the_extra_metric_is_one_that_mlflow_takes(audited):
    people, _, decided, _ = audited
    metric = impact_ratio_metric(people, ["sex"])
    value = metric.eval_fn(pd.Series(decided), None)
    (table,) = impact_tables(decided, people, ["sex"])
    assert value.aggregate_results == {"sex": min(row.impact_ratio for row in table.rows)}
    assert (metric.name, metric.greater_is_better) == ("impact_ratio", True)
