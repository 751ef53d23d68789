"""The contract of a candidate: a name, how it is trained, and what to say about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from likewise.improving.people import Ground

__all__ = ["Candidate"]


class Candidate(ABC):
    """One way to get a model.

    Subclasses are small frozen dataclasses: they can be sent to a worker process, and `fit` depends on nothing but
    their fields, the people and the seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from likewise.improving import improve
    >>> from dataclasses import dataclass
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> @dataclass(frozen=True)
    ... class SkillOnly(Candidate):
    ...     name = "skill only"
    ...     note = "Logistic regression of one column."
    ...     def settings(self, ground):
    ...         return {}
    ...     def fit(self, ground, rows, *, seed):
    ...         one = make_column_transformer(("passthrough", ["skill"]))
    ...         return make_pipeline(one, LogisticRegression()).fit(ground.frame.iloc[rows], ground.labels[rows])
    >>> result = improve(people, hired, sensitive=["sex"], candidates=[SkillOnly()], folds=2)
    >>> result.chosen, result.frame["changed decisions"].item()
    ('skill only', 0.0)
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """How tables and pages call it."""

    @property
    @abstractmethod
    def note(self) -> str:
        """One sentence about what it does."""

    @property
    def trained(self) -> bool:
        """Whether `fit` trains; else the model is ready and only asked."""
        return True

    @property
    def suffix(self) -> str:
        """Ending of the model's file."""
        return ".safetensors"

    @abstractmethod
    def settings(self, ground: Ground) -> dict[str, Any]:
        """Return everything that determines the model besides the people and the seed, as JSON values."""

    @abstractmethod
    def fit(self, ground: Ground, rows: Any, *, seed: int) -> Any:
        """Return a model trained on some rows of the table; its `predict` takes the raw table."""

    def cost(self, n_people: int) -> float:
        """Return about how many CPU seconds a training takes, for the order of work and the time left."""
        return 1.0 + n_people / 5000
