"""Do the intervals that are printed cover? Rare large gains, equal groups, small groups; fixed seeds.

The tables, with 400 simulations of each line, are made by benchmarks/interval_coverage.py.
"""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import likewise as lw
from likewise.auditing import audit
from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.inference.intervals import gap_interval, gap_test, prices_around
from likewise.core.exact_sum import Moments
from likewise.core.intervals import Interval, bounded_mean_interval, mean_share_interval
from likewise.evaluation import evaluate
from likewise.evaluation.groups import gap_intervals
from likewise.evaluation.impact import impact_ratio_limits, selection_measures
from likewise.models import as_model
from likewise.models.losses import CrossEntropy
from likewise.report import audit_document, render_html

UPPER = CrossEntropy().upper_bound


def fewest(simulations, level=0.95):
    """With probability 0.999 an interval of that level covers at least as often."""
    return int(stats.binom.ppf(0.001, simulations, level))


@pytest.mark.parametrize("share", [0.001, 0.003, 0.01, 0.03])
@pytest.mark.parametrize(("ceiling", "gain"), [(UPPER, 8.0), (1.0, 1.0)])
def test_gains_that_are_rare_and_large(share, ceiling, gain):
    rng, simulations, n = np.random.default_rng(int(1e4 * share)), 400, 300
    covered = {"gap": 0, "test": 0}
    of_sample = 0
    # Samples with as many gains have the same interval.
    for many, times in zip(*np.unique(rng.binomial(n, share, simulations), return_counts=True), strict=True):
        found = Moments.of(np.repeat([gain, 0.0], [many, n - many]))
        gap = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=ceiling)
        test = gap_test(found, found, threshold=0.0, ceiling=ceiling, confidence=0.95)
        covered["gap"] += times * (gap.low <= share * gain <= gap.high)
        covered["test"] += times * (test.interval[0] <= share * gain <= test.interval[1])
        mistaken = gap_interval({np.inf: found}, lambda_=np.inf, eps=0.0, ceiling=found.largest)
        of_sample += times * (mistaken.high >= share * gain)
    assert min(covered.values()) >= fewest(simulations)
    # What this is about: the largest gain of the sample is no ceiling of anybody else's.
    assert share > 0.003 or of_sample < 0.75 * simulations


def test_the_gap_within_a_budget_where_free_gains_are_rare():
    """People on a line may move to five places; 1% have a twin at no distance whose loss is 8."""
    rng, simulations, n, eps = np.random.default_rng(0), 40, 150, 0.1
    places = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])

    def people(size):
        return rng.normal(size=size), rng.random(size) < 0.01

    def loss(place):
        return np.logaddexp(0.0, 1.5 * place)

    z, harmed = people(50_000)
    staying = np.where(harmed, 8.0, loss(z))
    truth = min(
        price * eps
        + np.maximum((loss(places) - price * (z[:, None] - places) ** 2).max(axis=1), staying).mean()
        - loss(z).mean()
        for price in np.geomspace(0.1, 30.0, 60)
    )
    covered = 0
    for _ in range(simulations):
        z, harmed = people(n)
        twins = np.flatnonzero(harmed)
        row = np.concatenate([np.repeat(np.arange(n), 5), twins])
        frontier = Frontier.from_points(
            base_loss=loss(z),
            row=row,
            squared_distance=np.concatenate([((z[:, None] - places) ** 2).ravel(), np.zeros(len(twins))]),
            loss=np.concatenate([np.tile(loss(places), n), np.full(len(twins), 8.0)]),
            candidate=np.arange(len(row)),
        )
        curve = dual_curve(frontier)
        gains = {price: Moments.of(frontier.gains(price)) for price in prices_around(curve, eps)}
        found = gap_interval(gains, lambda_=float(curve.lambda_(eps)), eps=eps, ceiling=UPPER)
        covered += found.low <= truth <= found.high
    assert covered >= fewest(simulations)


def score(frame):
    """Sex counts for the one person in 300 whose skill is above 2.7, and counts for everything there."""
    chance = 1 / (1 + np.exp(-frame["skill"].clip(-2, 2)))
    return np.where(frame["skill"] > 2.7, np.where(frame["sex"] == "M", 0.999, 0.001), chance)


def test_an_audit_that_saw_no_gain_leaves_room_for_those_it_did_not_see():
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"skill": rng.uniform(-2.0, 2.0, 200), "sex": rng.choice(["F", "M"], 200)})
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    y = rng.integers(2, size=200)
    result = audit(as_model(score, takes_frame=True), people, y, metric=metric, eps=0.0)
    assert result.gap == 0.0
    room = UPPER * (1 - 0.025 ** (1 / 200))  # Clopper and Pearson's limit of 0 of 200, times the largest loss
    assert result.interval.high == pytest.approx(room)
    assert result.test.interval == pytest.approx((0.0, room))
    assert result.sensitive.gap_interval == pytest.approx((0.0, room))


def test_a_loss_without_a_bound_has_no_upper_end():
    rng = np.random.default_rng(2)
    people = pd.DataFrame({"skill": rng.normal(size=60), "sex": rng.choice(["F", "M"], 60)})
    metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    model = as_model(
        lambda frame: frame["skill"] + (frame["sex"] == "M"),
        takes_frame=True,
        loss="squared",
    )
    result = audit(model, people, people["skill"].to_numpy(), metric=metric, eps=0.1)
    assert result.interval.open
    assert result.test.interval[1] == result.sensitive.gap_interval[1] == np.inf
    assert result.interval.low > 0
    shown = re.sub(r"(?s)<script.*?</script>|<[^>]*>", " ", render_html(audit_document(result)))
    assert not re.search(r"\b(inf|Infinity|nan)\b", shown + result._repr_html_())


RATES = {
    "equal": [[0.8, 0.7]] * 3,
    "nearly equal": [[0.8, 0.7], [0.81, 0.7], [0.8, 0.72]],
    "different": [[0.8, 0.7], [0.6, 0.7], [0.8, 0.5]],
    "two, equal": [[0.9, 0.95]] * 2,
    "two, different": [[0.9, 0.95], [0.7, 0.9]],
}


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("sizes", [(100, 100, 100), (5, 40, 400)], ids=["alike", "one small"])
def test_gaps_between_groups_and_balanced_accuracy(rates, sizes):
    rates = np.array(rates)
    people = np.repeat(np.array(sizes[: len(rates)])[:, None], 2, axis=1)
    pairs = [rates[a] - rates[b] for a in range(len(rates)) for b in range(a)]
    truth = [max(np.sqrt(np.mean(gap**2)) for gap in pairs), max(np.abs(gap).max() for gap in pairs)]
    signed = rates[0] - rates[1]
    truth += list(signed) if len(rates) == 2 else list(np.max(np.abs(pairs), axis=0))
    rng, simulations = np.random.default_rng(len(rates)), 120
    covered, recall = np.zeros(len(truth)), 0
    for _ in range(simulations):
        right = rng.binomial(people, rates)
        found = gap_intervals(right, people)
        covered += [
            one.low <= number + 1e-12 and number <= one.high for one, number in zip(found, truth, strict=True)
        ]
        recall += rates[0].mean() in mean_share_interval(right[0], people[0])
    assert covered.min() >= fewest(simulations)
    assert recall >= fewest(simulations)


def test_intervals_of_gaps_narrow_with_more_people_and_show_what_is_there():
    few, many = (gap_intervals([[8 * k, 7 * k], [6 * k, 7 * k]], [[10 * k] * 2] * 2) for k in (2, 200))
    assert few[1].low == 0.0
    assert 0.15 < many[1].low < 0.2 < many[1].high < 0.25
    assert 0.1 < many[0].low < 0.2 / np.sqrt(2) < many[0].high < 0.19
    assert 0.0 in many[3]


@pytest.mark.parametrize(("up", "down"), [(0.003, 0.0), (0.02, 0.005)])
def test_mean_changes_of_score_that_are_rare(up, down):
    rng, simulations, n = np.random.default_rng(3), 200, 250
    covered = student = 0
    for _ in range(simulations):
        values = rng.choice([1.0, -1.0, 0.0], p=[up, down, 1 - up - down], size=n)
        covered += up - down in bounded_mean_interval(values, -1.0, 1.0)
        half = stats.t.ppf(0.975, n - 1) * stats.sem(values)
        student += abs(values.mean() - up + down) <= half
    assert covered >= fewest(simulations)
    assert down or student < 0.7 * simulations  # what it replaces


def test_one_empty_cell_stops_nothing():
    people = pd.DataFrame({"race": ["a"] * 50 + ["b"] * 50 + ["c"] * 3})
    y = np.array([0, 1] * 50 + [0, 0, 0])
    found = evaluate(y, people, y, sensitive_features=["race"])
    assert found["Gap_max race"].value == 0.0
    assert found["Gap_max race"].high > 0.1
    assert found.gaps["race"].left_out == (("c", 1),)
    assert found.notes[0].startswith("race: nobody of class 1 in group c, so the gaps leave them out")


def test_a_group_without_a_class_may_have_any_rate_there():
    """The intervals once left such cells out, and covered a gap of 0.8 in 48% of the samples."""
    rng, simulations, n = np.random.default_rng(0), 150, 50
    covered, left_out = np.zeros(2), 0
    truth = np.array([np.sqrt(0.8**2 / 2), 0.8])
    for _ in range(simulations):
        group = (rng.random(n) < 0.4).astype(int)
        y = (rng.random(n) < np.where(group, 0.03, 0.4)).astype(int)
        right = rng.random(n) < np.where((group == 1) & (y == 1), 0.1, 0.9)
        cells = 2 * group + y
        people = np.bincount(cells, minlength=4).reshape(2, 2)
        found = gap_intervals(np.bincount(cells[right], minlength=4).reshape(2, 2), people)[:2]
        covered += [number in one for number, one in zip(truth, found, strict=True)]
        left_out += bool((people == 0).any())
    assert left_out > simulations / 3
    assert covered.min() >= fewest(simulations)


def rare(frame, low=0, high=1, share=0.01):
    return np.where((frame["u"] < share) & (frame["sex"] == "M"), high, low)


@pytest.mark.parametrize("codes", [(0, 1), (-1, 1), (0, 5), ("no", "yes")])
def test_effects_on_decisions_that_are_rare(codes):
    """Decisions without probabilities: the interval had no width, and covered in 39% of the samples."""
    rng, simulations, n = np.random.default_rng(4), 40, 50
    covered = 0
    for _ in range(simulations):
        people = pd.DataFrame({"sex": rng.choice(["F", "M"], n), "u": rng.random(n)})
        answer = lw.twin_study(lambda t: rare(t, *codes), people, "sex", questions=["attribute"])["attribute"]
        effect, women = answer.effects[0], answer.groups[0].change
        assert effect.low < effect.high
        # If "yes" or 5 was never seen, the score is whether the decision is another label.
        seen = codes[1] in (1, *rare(people, *codes))
        truth = 0.01 if seen else -0.01 if codes[1] == "yes" else 0.0
        covered += truth in Interval(effect.low, effect.high) and truth in Interval(women.low, women.high)
    assert covered >= fewest(simulations)


def simulated(ask, draw, simulations):
    """How often each printed interval covers the mean over the samples, and the means."""
    told = [ask(draw()) for _ in range(simulations)]
    told = [
        [a.changed, *a.effects, *(m for group in a.groups for m in (group.changed, group.change))]
        for a in told
    ]
    truth = np.mean([[m.value for m in one] for one in told], axis=0)
    inside = [[m.low <= t <= m.high for m, t in zip(one, truth, strict=True)] for one in told]
    return np.sum(inside, axis=0), truth


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("chance", [0.02, 0.3])
def test_matched_people_who_are_decided_by_chance(replace, chance):
    """Pairs were counted twice and reciprocal pairs as independent: coverage .63 to .90."""
    rng, simulations, n = np.random.default_rng([1, int(100 * chance)]), 60, 120
    metric = lw.ExpertSubspace(["sex", "u"]).fit(matched_people(rng, n)).metric_

    def ask(people):
        how = lw.counterfactuals.MatchedTwins("sex", metric=metric, replace=replace)
        decide = lambda t: (t["u"] < chance).astype(int)  # noqa: E731
        return lw.twin_study(decide, people, "sex", questions=["matched"], matched=how)["matched"]

    covered, truth = simulated(ask, lambda: matched_people(rng, n), simulations)
    assert covered.min() >= fewest(simulations)
    assert truth[0] == pytest.approx(2 * chance * (1 - chance), rel=0.3)


def matched_people(rng, n):
    return pd.DataFrame({"sex": rng.choice(["F", "M"], n), "x": rng.normal(size=n), "u": rng.random(n)})


RATE_CASES = {
    "equal": ([200, 200, 200], [0.1, 0.1, 0.1]),
    "equal and rare": ([60, 300], [0.02, 0.02]),
    "different": ([30, 100, 400, 50], [0.5, 0.3, 0.2, 0.4]),
}


@pytest.mark.parametrize(("people", "rates"), RATE_CASES.values(), ids=RATE_CASES)
def test_differences_and_ratios_of_selection_rates(people, rates):
    people, rates = np.array(people), np.array(rates)
    rng, simulations = np.random.default_rng(7), 120
    group = np.repeat(np.arange(len(people)), people)
    covered, ratios = np.zeros(2), np.zeros(len(people))
    for _ in range(simulations):
        taken = rng.binomial(people, rates)
        chosen = np.concatenate([np.arange(n) < k for n, k in zip(people, taken, strict=True)])
        found = selection_measures(chosen, group, attribute="g")
        truth = np.ptp(rates), rates.min() / rates.max()
        covered += [m.low <= t + 1e-12 and t <= m.high + 1e-12 for m, t in zip(found, truth, strict=True)]
        low, high = impact_ratio_limits(taken, people)
        ratios += (low <= rates / rates.max() + 1e-12) & (rates / rates.max() <= high + 1e-12)
    assert min(covered.min(), ratios.min()) >= fewest(simulations)


def test_a_score_that_nothing_bounds_has_no_interval():
    rng = np.random.default_rng(5)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 60), "u": rng.random(60), "v": rng.random(60)})
    study = lw.twin_study(lambda t: t["u"] + rare(t), people, "sex", tolerance=0.01)
    for answer in study.answers:
        for measure in (*answer.effects, *(group.change for group in answer.groups)):
            assert np.isnan([measure.low, measure.high]).all()
        assert answer.changed.low < answer.changed.high
        assert "nothing bounds the scores" in answer.interval


def test_people_who_share_comparators_and_all_agree():
    rng = np.random.default_rng(6)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 60), "u": rng.random(60), "v": rng.random(60)})
    answer = lw.twin_study(lambda t: np.zeros(len(t), int), people, "sex", questions=["matched"])["matched"]
    assert answer.effects[0].low < 0 < answer.effects[0].high
