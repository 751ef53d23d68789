"""The paired analysis: it does not cry wolf, its intervals cover, and it agrees with what can be known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from likewise.core.errors import InputError, UnfairError
from likewise.text.cluster_inference import AuditDesign, equivalence_p_value, holm, mean_interval, sign_flips
from likewise.text.score_audit import PairedScores, audit_paired, audit_scores, pair_scores

RUNS = 400
JOBS, TEXTS, REPEATS = 20, 3, 3
EDITS = ("name_a", "name_b", "name_c", "place_d", "place_e")
PLACEBOS = ("placebo_1", "placebo_2", "placebo_3")
EFFECT = 0.4


def simulate(rng, effect=0.0):
    """Scores of 20 jobs × 3 texts; noise of a job and a variant is shared, and any edit at all costs 0.25."""
    n_variants = 1 + len(EDITS) + len(PLACEBOS)
    shape = (JOBS, TEXTS, n_variants, REPEATS)
    scores = rng.normal(0, 1.0, (JOBS, 1, 1, 1)) + rng.normal(0, 0.5, (JOBS, TEXTS, 1, 1))
    scores = scores + rng.normal(0, 0.3, (JOBS, 1, n_variants, 1)) + rng.normal(0, 0.4, shape)
    scores[:, :, 1:] -= 0.25
    scores[:, :, 1] += effect
    return scores.reshape(JOBS * TEXTS, n_variants, REPEATS)


def paired(scores):
    means = scores.mean(axis=2)
    clusters = np.repeat(np.arange(JOBS), TEXTS)
    changes = means[:, 1:] - means[:, :1]
    return PairedScores(tuple(range(len(means))), clusters, EDITS, PLACEBOS, changes, None, 0)


def naive_p_values(scores):
    """What most tools do: every score on its own, edit against baseline."""
    flat = scores.transpose(0, 2, 1).reshape(-1, scores.shape[1])
    return stats.ttest_ind(flat[:, 1 : 1 + len(EDITS)], flat[:, :1]).pvalue


def test_no_false_alarms_and_honest_intervals_where_the_naive_analysis_fails():
    rng = np.random.default_rng(0)
    alarms = family_alarms = naive = covered = naive_covered = found = 0
    for _ in range(RUNS):
        scores = simulate(rng)
        audit = audit_paired(paired(scores), n_flips=299, rng=rng)
        alarms += any(effect.adjusted <= 0.05 for effect in audit.edits)
        family_alarms += bool(audit.shifted)
        naive += naive_p_values(scores).min() <= 0.05
        scores = simulate(rng, EFFECT)
        audit = audit_paired(paired(scores), n_flips=299, rng=rng)
        shift = audit.edits[0].shift
        covered += shift.low <= EFFECT <= shift.high
        found += audit.edits[0].shift.low > 0
        first, base = scores[:, 1].ravel(), scores[:, 0].ravel()
        low, high = stats.ttest_ind(first, base).confidence_interval(0.95)
        naive_covered += low <= EFFECT <= high
    slack = 2.5 * np.sqrt(0.05 * 0.95 / RUNS)
    assert alarms / RUNS <= 0.05 + slack
    assert family_alarms / RUNS <= 0.05 + slack
    assert covered / RUNS >= 0.93
    assert found / RUNS >= 0.8
    assert naive / RUNS > 0.3
    assert naive_covered / RUNS < 0.93


def test_an_edit_that_is_a_placebo_or_nothing_is_not_called_an_effect():
    # Placebos lower the score surely; one edit does the same, one does nothing, one does much more.
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.05, (30, 5))
    changes = noise + np.array([-0.4, 0.0, -1.0, -0.4, -0.4])
    scores = PairedScores(
        tuple(range(30)),
        np.arange(30),
        ("like", "none", "more"),
        ("placebo_1", "placebo_2"),
        changes,
        None,
        0,
    )
    audit = audit_paired(scores, rng=rng, margin=0.2)
    assert [effect.verdict for effect in audit.families] == ["equivalent", "equivalent", "shifted"]
    assert audit.families[1].shift.low > 0.3  # surely above the placebos, yet no change
    assert audit.families[2].excess.value == pytest.approx(0.6, abs=0.05)


def test_sign_flips_are_the_brute_force():
    rng = np.random.default_rng(2)
    values, clusters = rng.normal(0.3, 1, (14, 2)), np.repeat(np.arange(7), 2)
    sums = np.array([values[clusters == c].sum(axis=0) for c in range(7)])
    patterns = np.array(list(itertools.product([-1, 1], repeat=7)))
    null = np.abs(patterns @ sums)
    expected = (null >= np.abs(sums.sum(axis=0)) - 1e-9).mean(axis=0)
    flips = sign_flips(values, clusters, rng=rng)
    np.testing.assert_allclose(flips.p_values, expected)
    assert (flips.adjusted >= flips.p_values).all()


def test_interval_and_equivalence_are_those_of_students_t_without_clusters():
    values = np.random.default_rng(3).normal(0.1, 1, 25)
    low, high = mean_interval(values, np.arange(25), 0.9)
    assert (low, high) == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval(0.9))
    upper = stats.ttest_1samp(values, 0.8, alternative="less").pvalue
    lower = stats.ttest_1samp(values, -0.8, alternative="greater").pvalue
    assert equivalence_p_value(values, np.arange(25), 0.8) == pytest.approx(max(upper, lower))


def test_copies_of_a_unit_do_not_narrow_the_interval():
    values = np.random.default_rng(4).normal(0, 1, 12)
    alone = mean_interval(values, np.arange(12))
    copied = mean_interval(np.repeat(values, 50), np.repeat(np.arange(12), 50))
    assert tuple(copied) == pytest.approx(tuple(alone))


def test_holm_known():
    np.testing.assert_allclose(
        holm(np.array([0.005, 0.011, 0.02, 0.04, 0.13])), [0.025, 0.044, 0.06, 0.08, 0.13]
    )


def test_flips_are_counted_above_those_of_placebos():
    rows = []
    for text in range(8):
        rows += [(text, "baseline", 5, "yes"), (text, "baseline", 5, "no")]
        rows += [(text, "name_a", 5, "no")] * 2 + [(text, "placebo_b", 5, "yes")] * 2
    frame = pd.DataFrame(rows, columns=["text", "variant", "score", "decision"])
    scores = pair_scores(
        frame, unit="text", variant="variant", score="score", baseline="baseline", decision="decision"
    )
    np.testing.assert_allclose(scores.flips, 0.5)
    effect = audit_scores(frame, unit="text", decision="decision").parts[0].families[0]
    assert effect.changed.value == pytest.approx(0.0)


def test_power_is_what_a_simulation_finds():
    design = AuditDesign(text_sd=0.3, repeat_sd=0.6, repeats=2, n_placebos=2, texts_per_cluster=1)
    n = design.texts_needed(0.25, power=0.8)
    assert design.power(n, 0.25) >= 0.8 > design.power(n - 1, 0.25)
    rng = np.random.default_rng(5)
    one = np.sqrt(0.3**2 + 0.6**2 / 2)
    cells = rng.normal(0, one, (4000, n, 3))
    differences = cells[:, :, 0] + 0.25 - cells[:, :, 1:].mean(axis=2)
    found = (stats.ttest_1samp(differences, 0.0, axis=1).pvalue <= 0.05).mean()
    assert found == pytest.approx(design.power(n, 0.25), abs=0.025)
    assert design.calls(10) == 10 * 4 * 2


def test_missing_cells_and_units_without_baseline_are_left_out_and_counted():
    absent = {("a", "baseline"), ("b", "name_x")}
    cells = itertools.product("abcdef", ("baseline", "name_x", "placebo_y"))
    rows = [(text, variant, 1.0) for text, variant in cells if (text, variant) not in absent]
    frame = pd.DataFrame(rows, columns=["text", "variant", "score"])
    part = audit_scores(frame, unit="text").parts[0]
    assert (part.dropped, part.n_units, part.families[0].n_units) == (1, 5, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": "nobody"}, "'baseline' must be one of"),
        ({"unit": "nothing"}, "nothing"),
        ({"placebo": ["*"]}, "every variant is the baseline or a placebo"),
        ({"level": 2.0}, "'level'"),
        ({"margin": -1.0}, "'margin'"),
        ({"score": "variant"}, "finite numbers"),
        ({"cluster": "score"}, "two clusters"),
    ],
)
def test_bad_input(change, message):
    frame = pd.DataFrame({"text": [1, 1, 2, 2], "variant": ["baseline", "e_x"] * 2, "score": [1.0, 2, 3, 4]})
    with pytest.raises(InputError, match=message):
        audit_scores(frame, **({"unit": "text"} | change))


def test_a_shown_effect_stops_a_build():
    rows = [(t, v, s) for t in range(10) for v, s in (("baseline", 0.0), ("name_x", 1.0))]
    result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    with pytest.raises(UnfairError, match="depends on name"):
        result.raise_if_unfair()
    few = audit_scores(pd.DataFrame(rows[:8], columns=["text", "variant", "score"]), unit="text")
    few.raise_if_unfair()  # four texts cannot show anything at 5%
    assert few.parts[0].least_p_value == 0.125
