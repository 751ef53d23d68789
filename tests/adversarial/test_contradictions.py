"""A bound below what the model was seen to attain is withdrawn, loudly, and is not called an error of the user's."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.inference.certificate import Bound


@dataclass(frozen=True)
class Wrong(lw.auditing.Search):
    """A search that claims to have proved too much."""

    name: ClassVar[str] = "wrong"
    measure: str = "loss"
    eps: float = 0.0

    def extend(self, problem, support, eps, budget):
        bound = Bound(
            value=1e-3, gap=0.0, eps=self.eps, n=problem.n, method="a mistake", measure=self.measure
        )
        return lw.auditing.Found(support, bounds=(bound,))


@pytest.mark.parametrize("measure", ["loss", "decisions"])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_everything_proved_is_withdrawn(measure, eps):
    people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, -0.5], "sex": ["F", "M", "M", "F"]})
    score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - 2 * (frame["sex"] == "M")))  # noqa: E731
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    given = {"metric": metric, "eps": eps}
    with pytest.warns(RuntimeWarning, match="contradicts itself"):
        result = lw.audit(score, people, [0, 1, 1, 1], search=["domain", Wrong(measure, eps)], **given)
    assert result.certificate.bound is None
    assert all(bracket.upper is None for bracket in result.brackets)
    assert "an error of likewise, not of your input" in result.reasons[-1]
    assert result.verdict() != "fair (proved)"
    right = lw.audit(score, people, [0, 1, 1, 1], search="domain", **given)
    assert result.value == right.value
