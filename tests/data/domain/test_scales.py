"""Numbers on a scale of choice: there and back, hand-computed distances, files, and what is refused."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal

from likewise.core.errors import FormatError, InputError
from likewise.data import TabularDomain
from likewise.data.column import read_plans
from likewise.data.curve import SCALES, learn_curve
from likewise.data.encoding import EncodingMismatchError
from likewise.fair_metrics import FairMetric

CURVED = SCALES[1:]
wholes = st.lists(st.integers(-(2**36), 2**36) | st.integers(-20, 20), min_size=2, max_size=40)
amounts = st.lists(st.floats(-1e9, 1e9).filter(lambda v: v == 0 or abs(v) > 1e-9), min_size=2, max_size=40)


@pytest.fixture(scope="module")
def gains():
    """Most have nothing, a few have much."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(400) < 0.9, 0, np.rint(np.exp(rng.normal(8, 1, 400)))).astype(int)
    values[:4] = [0, 114, 3000, 99999]
    return pd.DataFrame({"gain": values, "age": rng.integers(18, 80, 400)})


@pytest.mark.parametrize("scale", CURVED)
@given(values=wholes)
@settings(max_examples=25, deadline=None)
def test_whole_numbers_come_back(scale, values):
    frame = pd.DataFrame({"x": np.array(values, dtype=np.int64)})
    try:
        domain = TabularDomain.from_frame(frame, scales={"x": scale})
        refused = ""
    except InputError as error:
        refused = str(error)
    if refused:
        # Ranks are flat between far values: what would not come back is refused.
        assert scale == "rank"
        assert "would blur its whole numbers" in refused
        return
    assert_frame_equal(domain.decode(domain.encode(frame)), frame, check_exact=True)
    encoded = domain.encode_array(frame)
    assert not domain.validate(encoded)
    np.testing.assert_array_equal(domain.nearest_valid(encoded), encoded)
    between = np.linspace(frame["x"].min(), frame["x"].max(), 17).astype(np.int64)
    inside = pd.DataFrame({"x": between})
    assert_frame_equal(domain.decode(domain.encode(inside)), inside, check_exact=True)


@pytest.mark.parametrize("scale", CURVED)
@given(values=amounts)
@settings(max_examples=25, deadline=None)
def test_numbers_come_back_and_keep_their_order(scale, values):
    curve = learn_curve(scale, np.array(values), whole=False)
    if curve is None:
        assert len(set(values)) == 1
        return
    ends = min(values), max(values)
    width = ends[1] - ends[0]
    grid = np.unique(np.concatenate([values, np.linspace(ends[0] - width, ends[1] + width, 31)]))
    places = curve(grid)
    assert (np.diff(places) >= 0).all()
    # Straight pieces lose what lies below the resolution of their places.
    steps = np.diff(places).max(initial=0.0)
    np.testing.assert_allclose(curve(curve.inverse(places)), places, rtol=1e-12, atol=1e-12 * (1 + steps))


@pytest.mark.parametrize("scale", CURVED)
def test_short_decimals_come_back_exactly(scale):
    frame = pd.DataFrame({"x": [0.0, 0.0, 0.0, 0.05, 1.25, 19.99, 1200.5]})
    domain = TabularDomain.from_frame(frame, scales={"x": scale})
    assert_frame_equal(domain.decode(domain.encode(frame)), frame, check_exact=True)


def test_signed_log_by_hand(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "signed log"})
    logs = np.log1p(gains["gain"].to_numpy(dtype=float))
    np.testing.assert_allclose(
        domain.encode_array(gains)[:, 0], (logs - logs.mean()) / logs.std(), rtol=1e-12
    )
    # The distance between nothing and 114 dollars, in standard deviations of the logarithm.
    metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_map=domain)
    pair = gains.iloc[:2].assign(age=30)
    assert float(metric.squared_distance(pair.iloc[:1], pair.iloc[1:])[0]) == pytest.approx(
        (np.log(115.0) / logs.std()) ** 2
    )
    assert TabularDomain.from_frame(-gains, scales={"gain": "signed log"}).encode_array(-gains)[
        :, 0
    ] == pytest.approx(-domain.encode_array(gains)[:, 0])


def test_the_unit_of_a_logarithm_follows_small_amounts():
    shares = np.array([0.0, 0.002, 0.004, 0.01, 0.5])
    assert learn_curve("signed log", shares, whole=False).unit == 0.001
    assert learn_curve("signed log", shares * 1000, whole=True).unit == 1.0


def test_ranks_by_hand(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "rank"})
    values = gains["gain"].to_numpy()
    rank = np.array([((values < v).sum() + (values <= v).sum()) / 2 / len(values) for v in values])
    np.testing.assert_allclose(
        domain.encode_array(gains)[:, 0], (rank - rank.mean()) / rank.std(), rtol=1e-9, atol=1e-12
    )


def test_ranks_of_a_large_column_jump_beside_a_mass():
    rng = np.random.default_rng(1)
    values = np.concatenate([np.zeros(9000), np.rint(np.exp(rng.normal(8, 1, 1000)))])
    curve = learn_curve("rank", values, whole=True)
    rank = np.array([((values < v).mean() + (values <= v).mean()) / 2 for v in values])
    assert len(curve.at) <= 128
    assert curve(0.0) == pytest.approx(0.45)
    assert np.abs(curve(values) - rank).max() < 0.01


def test_value_or_not_by_hand(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "value or not"})
    x = domain.encode_array(gains)[:, 0]
    some = gains["gain"].to_numpy() > 0
    least = gains["gain"][some].min()
    amount = np.log1p(gains["gain"][some].to_numpy() / least)
    assert (x[~some] == 0).all()
    np.testing.assert_allclose(x[some], 1 + (amount - np.log(2)) / amount.std(), rtol=1e-12)


def test_single_precision_and_tensors(gains):
    for scale in CURVED:
        domain = TabularDomain.from_frame(gains, scales={"gain": scale})
        encoded = domain.encode_array(gains)
        single = torch.tensor(encoded, dtype=torch.float32)
        assert not domain.validate(domain.nearest_valid(single))
        assert domain.nearest_valid(single).dtype == torch.float32
        np.testing.assert_array_equal(domain.nearest_valid(torch.tensor(encoded)).numpy(), encoded)


def test_the_nearest_valid_row_is_nearest_in_the_encoding(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "signed log"})
    column = domain.column("gain")
    places = np.linspace(*domain.bounds(), 200)
    every = column.place(np.arange(0.0, 3000.0))
    near = places[places[:, 0] < every[-1]]
    wanted = every[np.abs(near[:, [0]] - every[None]).argmin(axis=1)]
    np.testing.assert_allclose(domain.nearest_valid(near)[:, 0], wanted, atol=1e-12)
    assert not domain.validate(domain.nearest_valid(places))
    assert domain.decode(near)["gain"].tolist() == np.rint(column.number(wanted)).tolist()


def test_a_number_between_two_whole_ones_is_named(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "signed log"})
    row = domain.encode_array(gains.iloc[:1])
    row[0, 0] = domain.column("gain").place(2.5)
    assert [v.reason for v in domain.validate(row)] == ["not a whole number"]
    row[0, 0] = domain.bounds()[1][0] + 0.1
    assert [v.reason for v in domain.validate(row)] == ["not a whole number"]
    row[0, 0] = domain.column("gain").place(200_000)
    assert [v.reason for v in domain.validate(row)] == ["above 99999"]


def test_wider_ranges_keep_the_scale(gains):
    for scale in CURVED:
        domain = TabularDomain.from_frame(gains, scales={"gain": scale})
        wider = domain.widened(gains.assign(gain=150_000))
        assert wider.column("gain").upper == 150_000
        np.testing.assert_array_equal(wider.encode_array(gains), domain.encode_array(gains))


# ---- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", CURVED)
def test_a_file_reads_back(gains, scale):
    domain = TabularDomain.from_frame(gains, scales={"gain": scale})
    written = json.loads(json.dumps(domain.to_dict(), allow_nan=False))
    again = TabularDomain.from_dict(written)
    assert again.columns_ == domain.columns_
    assert again.scales == {"gain": scale}
    np.testing.assert_array_equal(again.encode_array(gains), domain.encode_array(gains))


@pytest.mark.parametrize(
    "damage",
    [
        lambda curve: curve.update(unit=0.0),
        lambda curve: curve.update(at=[1.0, 0.0], to=[0.0, 1.0]),
        lambda curve: curve.update(at=[0.0, 1.0], to=[0.0]),
        lambda curve: curve.update(above=-1.0),
        lambda curve: curve.update(name="square"),
        lambda curve: curve.pop("middle"),
        lambda curve: curve.update(middle="0"),
        lambda curve: curve.update(unit=float("nan")),
    ],
)
def test_damage_is_noticed(gains, damage):
    values = copy.deepcopy(TabularDomain.from_frame(gains, scales={"gain": "signed log"}).to_dict())
    damage(values["columns"][0]["curve"])
    with pytest.raises(FormatError, match="damaged"):
        TabularDomain.from_dict(values)


def test_plans_say_the_scale(gains, tmp_path):
    file = tmp_path / "columns.toml"
    file.write_text('[gain]\nkind = "integer"\nscale = "signed log"\n\n[age]\nkind = "integer"\n')
    planned = TabularDomain.from_frame(gains, columns=file)
    assert planned.columns_ == TabularDomain.from_frame(gains, scales={"gain": "signed log"}).columns_
    # What is said besides the plan wins.
    assert (
        TabularDomain.from_frame(gains, columns=file, scales={"gain": "linear"}).column("gain").curve is None
    )


# ---- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"gain": "log"}, "Did you mean 'signed log'"),
        ({"gain": 3}, "must be one of 'linear'"),
        ({"gian": "rank"}, "gian"),
        (["gain"], "a dict from column names"),
        ({"sex": "rank"}, "is named in 'scales', but its dtype"),
    ],
)
def test_bad_scales(gains, scales, message):
    with pytest.raises(InputError, match=message):
        TabularDomain.from_frame(gains.assign(sex="F"), scales=scales)


def test_a_category_has_no_scale(gains):
    with pytest.raises(InputError, match="also in 'integers', 'ranges' or 'scales'"):
        TabularDomain.from_frame(gains, scales={"gain": "rank"}, categories={"gain": None})
    with pytest.raises(InputError, match="'scale' is for numbers and integers, and this is a category"):
        read_plans({"sex": {"kind": "category", "scale": "rank"}}, owner="audit")
    with pytest.raises(InputError, match="must be one of"):
        read_plans({"gain": {"kind": "integer", "scale": "cube"}}, owner="audit")


def test_two_scales_of_one_column_have_no_map(gains):
    linear, *others = (TabularDomain.from_frame(gains, scales={"gain": scale}).encoding_ for scale in SCALES)
    for other in others:
        assert not linear.agrees(other)
        for one, two in ((linear, other), (other, linear)):
            with pytest.raises(EncodingMismatchError, match="'gain' is on the scale"):
                one.map_from(two)
    # The same logarithm of two tables differs by mean and scale only.
    shifted = gains.assign(gain=gains["gain"] * 2)
    log, again = (
        TabularDomain.from_frame(table, scales={"gain": "signed log"}) for table in (gains, shifted)
    )
    moved = again.encoding_.map_from(log.encoding_)(log.encode_array(gains))
    np.testing.assert_allclose(moved, again.encode_array(gains), atol=1e-12)


def test_a_budget_in_units_of_a_curved_column_is_refused(gains):
    domain = TabularDomain.from_frame(gains, scales={"gain": "signed log"})
    metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_map=domain, feature_names=("gain", "age"))
    assert metric.budget(age=5) > 0
    with pytest.raises(InputError, match="'gain' is on the scale 'signed log'"):
        metric.budget(gain=100)
