"""An audit as one line of a test: it passes, or fails with who is treated worse, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likewise.auditing import AuditResult, audit
from likewise.core.checks import check_number
from likewise.report.document import audit_document


def assert_fair(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive: Sequence[str],
    delta: float,
    eps: float = 0.0,
    metric: Any = "columns",
    **choices: Any,
) -> AuditResult:
    """Audit a model, and fail as an assertion does unless the gap found is at most `delta`.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
    X : table of shape (n, p)
        The people, in original units.
    y : array of shape (n,)
        Their labels.
    sensitive : sequence of str
        Columns that should not decide.
    delta : float
        How much the worst comparable twins may add to the mean loss.
    eps : float, default=0.0
        How far apart comparable people may be; 0 is pure unfairness.
    metric : {"columns", "learned"}, FairMetric or learner, default="columns"
        Who is comparable: people who differ in just the sensitive columns; also in what predicts them; or a metric.
    **choices
        Anything else that `likewise.audit` takes, such as ``domain`` or ``random_state``.

    Returns
    -------
    AuditResult
        Of a model that passed.

    Raises
    ------
    AssertionError
        The gap is larger, the search did not converge, or model and table do not belong together; the message names the person who is harmed most.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> blind = lambda frame: 1 / (1 + np.exp(-frame["skill"]))
    >>> round(assert_fair(blind, people, [0, 1, 1, 1], sensitive=["sex"], delta=0.01).gap, 3)
    0.0
    """
    __tracebackhide__ = True
    level = check_number(delta, owner="assert_fair", name="delta", low=0)
    result = audit(model, X, y, sensitive_features=sensitive, metric=metric, eps=eps, delta=level, **choices)
    if result.gap <= level and result.verdict() not in ("not converged", "unanswered"):
        return result
    raise AssertionError(_message(result))


def _message(result: AuditResult) -> str:
    """What a person reads who did not write the test: the decisions that change, the gap, one person."""
    document = audit_document(result)
    verdict, summary = document["verdict"], document["summary"]
    lines = [f"{verdict['title']}: {verdict['sentence']}", verdict["gap_sentence"], summary["example"]]
    return "\n".join(line for line in lines if line)
