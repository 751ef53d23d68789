"""A fair metric learned from twins: the directions in which people differ from their twins cost nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from likewise.core.errors import bad_parameter
from likewise.core.frames import to_pandas
from likewise.domains import TabularDomain
from likewise.evaluation.twin_makers import ready_maker
from likewise.fair_metrics import ComparableSubspace

__all__ = ["TwinSubspace"]


class TwinSubspace(BaseEstimator):
    """Learner of a fair metric: people and their twins are comparable groups (`ComparableSubspace`).

    What SenSR, SenSeI, FairBoosting or an audit take as ``metric=`` to treat twins with consequences alike. An
    ``Edit("sex", consequences=...)`` as ``metric=`` stands for it.

    Parameters
    ----------
    edits : Edit with consequences, or TwinMaker
    n_components : int, float in (0, 1) or "auto", default="auto"
        As in `ComparableSubspace`.
    feature_map : TabularDomain, optional
        Fitted; turns the table into numbers. Learned from the people and their twins by default.

    Attributes
    ----------
    metric_ : FairMetric
    maker_ : TwinMaker

    Examples
    --------
    >>> from likewise.twins import ConsequenceTwins
    >>> rng = np.random.default_rng(0)
    >>> sex = np.array(["F", "M"] * 100)
    >>> people = pd.DataFrame({"sex": sex, "pay": rng.normal(0, 1, 200) + 2 * (sex == "M"), "age": rng.normal(size=200)})
    >>> metric = TwinSubspace(ConsequenceTwins("sex", graph={"sex": ["pay"]})).fit(people).metric_
    >>> twins = ConsequenceTwins("sex", graph={"sex": ["pay"]}).fit(people).make(people).tables[1]
    >>> bool(metric.squared_distance(people, twins).mean() < 0.05 * metric.squared_distance(people, people[::-1]).mean())
    True
    """

    def __init__(self, edits: Any = None, *, n_components: Any = "auto", feature_map: Any = None) -> None:
        self.edits = edits
        self.n_components = n_components
        self.feature_map = feature_map

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the twins of people and learn in what they differ.

        Parameters
        ----------
        X : table of n people
            Raw, without missing values.
        y : ignored
        """
        owner = type(self).__name__
        frame = to_pandas(X, owner=owner, name="X").reset_index(drop=True)
        maker = ready_maker(self.edits, frame, owner=owner)
        if maker is None:
            raise bad_parameter(
                owner,
                "edits",
                allowed="an Edit with consequences, or a maker of twins",
                got=type(self.edits).__name__,
                remedy="For plain edits name the column: AttributeSubspace(['sex']).",
            )
        self.maker_ = maker
        made = maker.make(frame)
        rows, groups = [frame], [np.arange(len(frame))]
        for table, compared in zip(made.tables, made.compared, strict=True):
            rows.append(table[compared])
            groups.append(np.flatnonzero(compared))
        everybody = pd.concat(rows, ignore_index=True)
        encoder = TabularDomain.from_frame(everybody) if self.feature_map is None else self.feature_map
        learner = ComparableSubspace(n_components=self.n_components, feature_map=encoder)
        learned = learner.fit(everybody, groups=np.concatenate(groups)).metric_
        told = getattr(maker, "attribute", None)
        self.metric_ = learned if told is None else replace(learned, sensitive_features=(told,))
        return self
