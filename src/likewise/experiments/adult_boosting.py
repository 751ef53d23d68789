"""Boosted trees on Adult, for the table's rows that the paper does not have: plain, mended, fair."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.experiments.settings import plain_settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BoostingRow", "PenaltyChoice", "audited_gaps"]

SENSITIVE = ("sex", "race")
SPOUSES = ("Husband", "Wife")
GAP_EPS = 0.1


@dataclass(frozen=True)
class PenaltyChoice:
    """How strong the group penalty is to be, settled by cross-validation on training people.

    Parameters
    ----------
    penalties : tuple of float
        Tried from the least on.
    limits : mapping of str to float
        The first penalty is taken whose Gap_RMS of each attribute, on people held out, is within these; the last one
        where none is.
    folds : int
    """

    penalties: tuple[float, ...] = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
    limits: Mapping[str, float] = field(default_factory=lambda: {"sex": 0.056, "race": 0.046})
    folds: int = 3

    def choose(self, estimator: Any, frame: pd.DataFrame, y: Any) -> tuple[float, list[dict[str, float]]]:
        """Return the penalty, and what was seen of those tried.

        Parameters
        ----------
        estimator : FairBoostingClassifier
            Not fitted.
        frame : DataFrame
            Training people.
        y : array
            Their labels.
        """
        from sklearn.model_selection import StratifiedKFold

        from likewise.evaluation import balanced_accuracy, group_gaps

        cuts = list(StratifiedKFold(self.folds, shuffle=True, random_state=0).split(frame, y))
        seen = []
        for penalty in self.penalties:
            decided = np.empty(len(y), dtype=np.asarray(y).dtype)
            for kept, held in cuts:
                model = estimator.set_params(group_penalty=penalty).fit(frame.iloc[kept], y[kept])
                decided[held] = model.predict(frame.iloc[held])
            gaps = {name: group_gaps(y, decided, frame[name]).rms for name in self.limits}
            seen.append({"penalty": penalty, "balanced accuracy": balanced_accuracy(y, decided), **gaps})
            if all(gaps[name] <= limit for name, limit in self.limits.items()):
                break
        return float(seen[-1]["penalty"]), seen


@dataclass(frozen=True)
class BoostingRow:
    """A row of the table.

    Parameters
    ----------
    blind : bool
        Whether no tree sees gender and race, or whether a spouse is a husband or a wife.
    consensus : bool
        Whether the answer is the consensus over the same twins.
    choice : PenaltyChoice, optional
        Settles the group penalty.
    choices : mapping
        Further parameters of `FairBoostingClassifier`.
    """

    blind: bool = True
    consensus: bool = False
    choice: PenaltyChoice | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)

    def estimator(self) -> Any:
        """Return the trees, not grown."""
        from likewise.estimators import FairBoostingClassifier
        from likewise.evaluation import Edit

        told: dict[str, Any] = {
            "sensitive_features": list(SENSITIVE),
            "edits": [Edit("relationship", SPOUSES)],
        }
        return FairBoostingClassifier(**(told if self.blind else {}), **self.choices)

    def settings(self) -> dict[str, Any]:
        """All parameters, and how one is settled, as JSON values."""
        return {
            "estimator": plain_settings(self.estimator()),
            "consensus": self.consensus,
            "choice": plain_settings(self.choice),
        }

    def fitted(self, frame: pd.DataFrame, y: Any, seed: int) -> tuple[Any, dict[str, Any]]:
        """Return the model trained on some people, and what to say of its training."""
        from likewise.evaluation import Edit
        from likewise.postprocessing import TwinConsensus

        estimator = self.estimator().set_params(random_state=seed)
        said: dict[str, Any] = {}
        if self.choice is not None:
            penalty, seen = self.choice.choose(estimator, frame, y)
            said = {"group_penalty": penalty, "tried": seen}
            estimator.set_params(group_penalty=penalty)
        begin = time.process_time()
        model = estimator.fit(frame, y)
        said |= {"fit_cpu_seconds": round(time.process_time() - begin, 2), "rounds": int(model.n_iter_)}
        if self.consensus:
            model = TwinConsensus(
                model, sensitive_features=list(SENSITIVE), edits=[Edit("relationship", SPOUSES)]
            ).fit(frame)
        return model, said


def audited_gaps(
    model: Any, train: pd.DataFrame, test: pd.DataFrame, y: Any, domain: Any
) -> dict[str, float]:
    """Return the gaps of a candidate audit of test people, under the metric that training people teach."""
    from likewise.auditing.search.candidates.candidate_search import CandidateSearch
    from likewise.auditing.support.finite_dual import dual_curve
    from likewise.fair_metrics import AttributeSubspace
    from likewise.models import as_model

    metric = AttributeSubspace(list(SENSITIVE), domain=domain).fit(train).metric_
    found = CandidateSearch(edits=SENSITIVE).run(
        as_model(model), test.reset_index(drop=True), y, metric=metric
    )
    curve = dual_curve(found.frontier)
    return {"gap at ε = 0": float(curve.gap(0.0)), f"gap at ε = {GAP_EPS:g}": float(curve.gap(GAP_EPS))}
