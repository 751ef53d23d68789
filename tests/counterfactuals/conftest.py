"""A structural model with known counterfactuals: numbers and a category that follow from sex."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

GRAPH = {"sex": ["school", "job", "pay"], "age": ["school", "pay"], "school": ["pay"], "job": ["pay"]}


def _planted(n: int, seed: int, *, linear: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People, and the same people had they been of the other sex."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, n), rng.normal(40, 10, n)
    u_school, u_job, u_pay = rng.normal(size=n), rng.uniform(size=n), rng.normal(size=n)

    def world(s):
        if linear:
            school = 12 + 0.05 * age + 1.0 * s + u_school
            pay = 0.8 * school + 0.02 * age + 1.0 * s
        else:
            school = 12 + 2 * np.tanh((age - 40) / 10) + 1.0 * s + (0.6 + 0.3 * s) * u_school
            pay = 2 * np.sin(school / 2) + (1 + 0.1 * s) * school
        job = np.where(u_job < np.where(s == 1, 0.3, 0.5), "office", "field")
        return pd.DataFrame(
            {"sex": np.where(s == 1, "M", "F"), "age": age, "school": school, "job": job, "pay": pay + u_pay}
        )

    return world(sex), world(1 - sex)


@pytest.fixture(scope="session")
def planted():
    return _planted


@pytest.fixture(scope="session")
def planted_graph():
    return GRAPH
