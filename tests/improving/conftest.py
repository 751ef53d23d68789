from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def hiring():
    """People of whom a model of all columns would prefer men, and their true labels."""
    random = np.random.default_rng(0)
    n = 600
    sex = random.choice(["F", "M"], n)
    race = random.choice(["a", "b", "c"], n, p=[0.5, 0.45, 0.05])
    skill = random.normal(size=n)
    score = skill + 0.8 * (sex == "M") + 0.3 * random.normal(size=n)
    frame = pd.DataFrame(
        {"sex": sex, "race": race, "skill": skill, "job": random.choice(["x", "y", "z"], n)}
        | {name: random.normal(size=n) for name in ("test", "essay")}
        | {"years": random.integers(0, 30, n)}
    )
    return frame, np.where(score > 0.4, "yes", "no")
