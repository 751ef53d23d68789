"""An audit as one line of a test: it passes, or fails with who is treated worse, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from likewise.auditing import AuditResult, audit
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace
from likewise.models import as_model
from likewise.report.document import audit_document
from likewise.report.evidence.cards import person_in_words

# One audit from a model, a table and the names of its sensitive columns: what tests and scorers ask for.


def audit_sensitive(
    model: Any,
    X: Any,
    y: Any,
    sensitive: Sequence[str],
    *,
    owner: str,
    metric: Any = "columns",
    eps: float = 0.0,
    **choices: Any,
) -> AuditResult:
    """Audit a model with a metric made from the names of sensitive columns."""
    if isinstance(sensitive, str) or not sensitive:
        raise bad_parameter(owner, "sensitive", allowed="a list of columns, such as ['sex']", got=sensitive)
    if not hasattr(X, "columns"):
        raise bad_parameter(
            owner,
            "X",
            allowed="a table with named columns",
            got=f"a {type(X).__name__}",
            remedy="Pass a DataFrame, so that the sensitive columns can be found by name.",
        )
    frame = to_pandas(X, owner=owner, name="X")
    check_columns(frame, sensitive, owner=owner, name="X")
    if isinstance(metric, str):
        if metric not in ("columns", "learned"):
            raise bad_parameter(
                owner, "metric", allowed="'columns', 'learned' or a FairMetric", got=repr(metric)
            )
        domain = choices.get("domain")
        kind = ExpertSubspace if metric == "columns" else AttributeSubspace
        metric = kind(list(sensitive), domain=domain)
    if _fitted_on(model, frame):
        model = as_model(model, loss=choices.pop("loss", "cross_entropy"), takes_frame=True)
    choices.setdefault("search", "candidates" if eps == 0 else "auto")
    choices.setdefault("edits", list(sensitive))
    return audit(model, X, y, metric=metric, eps=eps, **choices)


def _fitted_on(model: Any, frame: pd.DataFrame) -> bool:
    """Whether an estimator was fitted on these columns, words among them, so that it takes the table itself."""
    names = getattr(model, "feature_names_in_", None)
    words = any(not pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns)
    return names is not None and words and list(names) == list(frame.columns)


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
    result = audit_sensitive(
        model, X, y, sensitive, owner="assert_fair", metric=metric, eps=eps, delta=level, **choices
    )
    if result.gap <= level and result.verdict() not in ("not converged", "unanswered"):
        return result
    raise AssertionError(_message(result))


def _message(result: AuditResult) -> str:
    """What a person reads who did not write the test: the verdict, the decisions that change, the worst twin."""
    document = audit_document(result)
    verdict = document["verdict"]
    lines = [
        f"{verdict['title']}: {verdict['sentence']}",
        *document["summary"]["sentences"][: len(result.findings) + 2],
    ]
    people = document["maps"][-1]["people"]
    # A twin who is decided otherwise says more than one whose loss grows.
    rows = sorted(people["rows"], key=lambda row: row["decision"] == row["twin_decision"])
    if rows:
        lines.append(f"Harmed most: {person_in_words(rows[0], people['columns'])}")
    return "\n".join(lines)
