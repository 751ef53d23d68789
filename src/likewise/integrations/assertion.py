"""An audit as one line of a test: it passes, or fails with who would lose and who would gain, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likewise.auditing import AuditResult, audit
from likewise.auditing.inference.verdict import gap_words
from likewise.core.errors import LikewiseError, NotConvergedError, UnfairError, bad_parameter


def assert_fair(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Sequence[str],
    limit: float | None = None,
    delta: float | None = None,
    **choices: Any,
) -> AuditResult:
    """Audit a model, and fail as an assertion does unless at most a share `limit` of the decisions changes.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
    X : table of shape (n, p)
        The people, in original units.
    y : array of shape (n,), optional
        Their labels.
    sensitive_features : sequence of str
        Columns that decisions should not depend on.
    limit : float, optional
        The share of decisions that may change when only these columns do: 0.01 is one in a hundred.
    delta : float, optional
        How much the worst comparable counterparts may add to the mean loss (the gap of the paper); needs `y`.
    **choices
        Anything else that `likewise.audit` takes, such as ``favourable``, ``metric``, ``eps`` or ``random_state``.

    Returns
    -------
    AuditResult
        Of a model that passed.

    Raises
    ------
    AssertionError
        A limit is exceeded, the search did not converge, or model and table do not belong together; the message is the
        audit in short.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> blind = lambda frame: 1 / (1 + np.exp(-frame["skill"]))
    >>> assert_fair(blind, people, sensitive_features=["sex"], limit=0.0)
    <AuditResult: Proved independent of sex for these people, 4 people>
    """
    __tracebackhide__ = True
    if limit is None and delta is None:
        raise bad_parameter("assert_fair", "limit", "a share of decisions such as 0.01", None)
    result = audit(model, X, y, sensitive_features=sensitive_features, limit=limit, delta=delta, **choices)
    try:
        result.raise_if_unfair()
    except (UnfairError, NotConvergedError) as error:
        failed: LikewiseError = error
    else:
        return result
    gap = gap_words(result) if isinstance(failed, UnfairError) and delta is not None else None
    raise AssertionError("\n".join(filter(None, [str(failed), gap, "", str(result)]))) from None
