"""A model as twins ask it: one decision and one score per row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import ModelError, bad_parameter
from likewise.evaluation.decisions import decide
from likewise.texts import Said

__all__ = ["AskedModel"]

_OWNER = "twin_study"


@dataclass(frozen=True)
class AskedModel:
    """Decisions and scores of a model.

    Parameters
    ----------
    model : object with `predict`, or callable
    favourable : object, optional
        The class whose probability is the score; the last one by default.
    tolerance : float, optional
        For models that predict numbers: what counts as the same decision.

    Examples
    --------
    >>> import pandas as pd
    >>> decision, score = AskedModel(lambda table: table["pay"] > 2).about(pd.DataFrame({"pay": [1, 3]}))
    >>> decision.tolist(), score.tolist()
    ([False, True], [0.0, 1.0])
    """

    model: Any
    favourable: Any = None
    tolerance: float | None = None

    def about(self, table: Any) -> tuple[Any, FloatArray]:
        """Return the decision and the score of each row, (n,) each."""
        decision = decide(self.model, table, len(table), owner=_OWNER, scores=self.tolerance is not None)
        if not hasattr(self.model, "predict_proba") or self.tolerance is not None:
            return decision, self._as_score(decision)
        shares = np.asarray(to_numpy(self.model.predict_proba(table)), dtype=float)
        if shares.ndim != 2 or len(shares) != len(table):
            raise ModelError(f"{_OWNER}: predict_proba gave shape {shares.shape} for {len(table)} rows.")
        return decision, shares[:, self._column()]

    @property
    def score(self) -> Said:
        """What the score is, in words."""
        classes = getattr(self.model, "classes_", None)
        if hasattr(self.model, "predict_proba") and self.tolerance is None:
            if classes is None:
                return Said("twins.score.last")
            return Said("twins.score.probability", label=str(classes[self._column()]))
        if self.favourable is not None:
            return Said("twins.score.whether", label=str(self.favourable))
        return Said("twins.score.decision")

    @property
    def span(self) -> float | None:
        """How far two scores can be apart, whoever is asked about: 1 for shares and yes or no; None if not known."""
        classes = getattr(self.model, "classes_", None)
        if self.tolerance is not None:
            return None
        if hasattr(self.model, "predict_proba") or self.favourable is not None:
            return 1.0
        return 1.0 if classes is not None and set(np.asarray(classes).tolist()) <= {0, 1} else None

    def differ(self, one: Any, other: Any) -> Any:
        """Whether two decisions about each row are different."""
        if self.tolerance is not None:
            return np.abs(one.astype(float) - other.astype(float)) > self.tolerance
        return np.asarray(one != other)

    def _column(self) -> int:
        classes = getattr(self.model, "classes_", None)
        if self.favourable is None or classes is None:
            return -1
        found = np.flatnonzero(np.asarray(classes) == self.favourable)
        if not len(found):
            raise bad_parameter(
                _OWNER, "favourable", allowed=f"one of the classes {list(classes)}", got=self.favourable
            )
        return int(found[0])

    def _as_score(self, decision: Any) -> FloatArray:
        if self.favourable is not None:
            return np.asarray(decision == self.favourable, dtype=float)
        if decision.dtype.kind in "biuf":
            return np.asarray(decision, dtype=float)
        values = sorted({str(value) for value in decision})
        # Words have no size: the score is whether the decision is the last of them.
        return np.asarray([str(value) == values[-1] for value in decision], dtype=float)
