"""A column that was written down after the target is found; honest ones are not."""

import numpy as np
import pandas as pd

from likewise.core.text import command_line
from likewise.data.target import leakage_notes, leaking_columns


def people(n=600):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.1).astype(int)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n) + 2 * y,
            "name": [f"person {i}" for i in range(n)],
            "constant": 1,
            "days to default": np.where(y == 1, rng.integers(1, 900, n), np.nan),
            "closed": np.where(rng.random(n) < 0.02, 1 - y, y),
        }
    )
    return frame, y


def test_a_column_known_only_afterwards_is_found_whatever_it_is_made_of():
    frame, y = people()
    assert set(leaking_columns(frame, y)) == {"days to default", "closed"}
    with command_line():
        note = leakage_notes(frame, y, "default")[0]
    assert note.startswith("each of 'days to default' and 'closed' alone tells 'default' of nearly everybody")
    assert note.endswith("--read ignore='days to default' --read ignore=closed")


def test_the_rarer_class_counts_as_much_and_chance_is_not_told():
    frame, y = people()
    # Nine of ten are told right by saying no to everybody.
    assert leaking_columns(frame[["age", "name", "constant"]], y) == {}
    assert leaking_columns(frame.head(50), y[:50]) == {}
    assert leakage_notes(frame[["age"]], y, "default") == ()
