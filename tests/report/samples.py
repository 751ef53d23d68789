"""Results that the tests of the report and of the page in a browser share."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pandas as pd

import likewise as lw
from likewise.auditing.auditor import audit
from likewise.auditing.results.audit_result import AuditResult
from likewise.evaluation import Evaluation, evaluate
from likewise.models import as_model
from likewise.report import Comparison

SCRIPT = "<script>window.harmed = 1</script>"
QUOTES = 'it\'s "quoted" & <b>bold</b>'
CLOSER = "</script><img src=x onerror='window.harmed = 1'>"
SNOW = "名前 ☃ \u2028 é" + " and so on" * 20


def nasty_frame(n: int = 80) -> pd.DataFrame:
    """People whose column names and cells try to become markup."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            SCRIPT: rng.normal(size=n),
            QUOTES: rng.choice([CLOSER, "M"], size=n),
            SNOW: rng.choice(["`${alert(1)}`", "]]>", "{{ 7 * 7 }}"], size=n),
        }
    )


@cache
def nasty_result() -> AuditResult:
    people = nasty_frame()

    def score(frame: pd.DataFrame) -> np.ndarray:
        logit = 2 * frame[SCRIPT] + 1.5 * (frame[QUOTES] == "M") - 0.5 * (frame[SNOW] == "]]>")
        return (1 / (1 + np.exp(-logit))).to_numpy()

    labels = (score(people) > 0.5).astype(int)
    metric = lw.ExpertSubspace([QUOTES]).fit(people).metric_
    model = as_model(score, takes_frame=True, classes=["<i>no</i>", "yes & more"])
    names = np.array(["<i>no</i>", "yes & more"])[labels]
    return audit(model, people, names, metric=metric, eps=0.05, delta=0.01, search="candidates")


@cache
def adult() -> tuple[object, pd.DataFrame, np.ndarray, object]:
    data = lw.datasets.load_adult()
    metric = lw.AttributeSubspace(attributes=["sex", "race"]).fit(data.frame_train).metric_
    return data, data.frame_test.iloc[:1200].reset_index(drop=True), data.y_test[:1200], metric


@cache
def adult_result(kind: str = "plain") -> tuple[Evaluation, AuditResult]:
    """An audit of 1,200 people of Adult: of a logistic regression, plain or blind to sex and race."""
    from sklearn.linear_model import LogisticRegression

    data, people, y, metric = adult()
    keep = np.ones(data.X_train.shape[1])
    if kind == "blind":
        keep = np.array(
            [not name.startswith(("sex", "race", "relationship")) for name in data.X_train], float
        )
    fitted = LogisticRegression(max_iter=300).fit(data.X_train.to_numpy() * keep, data.y_train)

    def score(X: object) -> np.ndarray:
        return fitted.predict_proba(np.asarray(X) * keep)

    result = audit(
        as_model(score),
        people,
        y,
        metric=metric,
        domain=data.domain,
        eps=0.1,
        delta=0.05,
        search="candidates",
    )
    evaluation = evaluate(lambda frame: score(data.domain.encode(frame)).argmax(axis=1), people, y)
    return evaluation, result


@cache
def comparison() -> Comparison:
    return Comparison.of({"baseline": adult_result(), "blind <b>": adult_result("blind")})


@cache
def still_result() -> AuditResult:
    """A model that treats everyone alike, audited at ε = 0: nothing moves, nobody is harmed."""
    people = pd.DataFrame({"skill": [0.0, 1.0, 2.0], "sex": ["F", "M", "F"]})
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    model = as_model(lambda frame: np.full(len(frame), 0.5), takes_frame=True)
    return audit(model, people, [0, 1, 1], metric=metric, eps=0.0, search="candidates")


def with_worst_case(result: AuditResult, **changes: object) -> AuditResult:
    """The result with other values of its worst case."""
    return dataclasses.replace(result, worst_case=dataclasses.replace(result.worst_case, **changes))
