"""Whatever CSV pandas can write, `inspect` reads it or says in one sentence why not."""

import io
from contextlib import redirect_stderr, redirect_stdout

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from likewise.cli.app import main

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Nd"]), min_size=1, max_size=8).filter(str.strip)
CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 3),
    st.floats(),
    st.dates(),
    st.datetimes(),
    WORDS,
    st.lists(st.integers(), max_size=2),
)
ONE_KIND = st.sampled_from(
    [st.integers(0, 1), st.integers(-(2**63), 2**63 - 1), st.floats(), WORDS, st.datetimes(), CELL]
)


@st.composite
def frames(draw):
    rows = draw(st.sampled_from([6, 5, 3, 2, 1, 0]))
    plain = st.lists(NAMES, min_size=1, max_size=5, unique=True)
    odd = st.lists(st.one_of(WORDS, st.integers(0, 9), st.none()), max_size=5)
    names = draw(st.sampled_from([plain, plain, plain, odd]).flatmap(lambda chosen: chosen))
    columns = [draw(st.lists(draw(ONE_KIND), min_size=rows, max_size=rows)) for _ in names]
    frame = pd.DataFrame(
        {at: pd.Series(cells, dtype=object) for at, cells in enumerate(columns)}, index=range(rows)
    )
    return frame.set_axis(names, axis=1)


@given(
    frame=frames(),
    how=st.fixed_dictionaries(
        {
            "sep": st.sampled_from([",", ";", "\t", "|"]),
            "index": st.booleans(),
            "header": st.sampled_from([True, True, True, False]),
            "decimal": st.sampled_from([".", ","]),
            "lineterminator": st.sampled_from(["\n", "\r\n", "\r"]),
            "na_rep": st.sampled_from(["", "NA", "?"]),
        }
    ),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_inspect_never_ends_in_a_traceback(tmp_path_factory, frame, how):
    path = tmp_path_factory.mktemp("any") / "people.csv"
    try:
        frame.to_csv(path, encoding="utf-8", **how)
    except (ValueError, TypeError, OverflowError):
        return  # pandas cannot write it
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(["inspect", str(path), "-o", str(path.with_suffix(".toml"))])
    said = err.getvalue()
    assert "unforeseen" not in said, said
    assert "Traceback" not in said
    if ended.value.code:
        assert ended.value.code == 2
        assert sum(line.startswith("Error: ") for line in said.splitlines()) == 1, said
    else:
        # What was written can be read back.
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as again:
            main(["inspect", str(path), "--no-file", "--columns", str(path.with_suffix(".toml"))])
        assert again.value.code == 0, err.getvalue()
