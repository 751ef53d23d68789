"""One audit from a model, a table and the names of its sensitive columns: what tests and scorers ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from likewise.auditing import AuditResult, audit
from likewise.core.errors import bad_parameter
from likewise.core.frames import check_columns, to_pandas
from likewise.fair_metrics import AttributeSubspace, ExpertSubspace
from likewise.models import as_model

__all__ = ["audit_sensitive"]


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
    """Audit a model with a metric made from the names of sensitive columns.

    Parameters
    ----------
    model, X, y
        As in `likewise.audit`; X is a table.
    sensitive : sequence of str
        Columns of X that should not decide.
    owner : str
        Who asks, for messages.
    metric : {"columns", "learned"}, FairMetric or learner, default="columns"
        "columns": just the sensitive columns are free, so that at ε = 0 a twin differs in nothing else. "learned": what
        predicts them is free too. Anything else goes to `audit` as it is.
    eps : float, default=0.0
    **choices
        As in `likewise.audit`.
    """
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
