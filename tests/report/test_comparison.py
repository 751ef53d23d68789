"""Comparisons: what may be compared, which models are on the frontier, the sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import likewise as lw
from likewise.core.intervals import Measure
from likewise.report import Comparison, ComparisonEntry


def test_the_table_holds_every_measure_with_its_interval(samples):
    compared = samples.comparison()
    frame, intervals = compared.frame, compared.intervals
    assert list(frame.index) == ["baseline", "blind <b>"]
    assert {"balanced accuracy", "S-Con", "GR-Con", "gap at ε = 0", "gap at ε = 0.1"} <= set(frame.columns)
    _, audit = samples.adult_result()
    assert frame.loc["baseline", "gap at ε = 0.1"] == audit.gap
    assert intervals.loc["baseline", ("gap at ε = 0", "low")] == audit.test.interval[0]
    values = frame.loc["baseline", "S-Con"]
    assert (
        intervals.loc["baseline", ("S-Con", "low")] <= values <= intervals.loc["baseline", ("S-Con", "high")]
    )


def entry(samples, name, gap, accuracy):
    evaluation, audit = samples.adult_result()
    evaluation = dataclasses.replace(
        evaluation, measures=(Measure("balanced accuracy", accuracy, accuracy - 0.01, accuracy + 0.01),)
    )
    audit = samples.with_worst_case(audit, value=audit.base_loss + gap, pure_gap=gap / 2)
    return ComparisonEntry(name, evaluation, audit)


def test_the_frontier_is_what_no_other_beats(samples):
    points = {"a": (0.3, 0.8), "b": (0.1, 0.7), "beaten": (0.3, 0.75), "c": (0.2, 0.75), "worse": (0.5, 0.8)}
    compared = Comparison(tuple(entry(samples, name, *point) for name, point in points.items()))
    assert compared.frontier() == ("b", "c", "a")
    assert compared.frontier(pure=True) == ("b", "c", "a")
    again = Comparison((entry(samples, "one", 0.1, 0.7), entry(samples, "same", 0.1, 0.7)))
    assert again.frontier() == ("one", "same")


def test_the_sentence_compares_the_fairest_with_the_first(samples):
    compared = Comparison((entry(samples, "first", 0.4, 0.8), entry(samples, "best", 0.1, 0.7)))
    said = compared.sentence()
    assert said.startswith("“best” has a gap of 0.100")
    assert "(25%)" in said
    assert "0.700 against 0.800" in said
    assert "95% intervals" in said
    alone = Comparison((entry(samples, "first", 0.1, 0.8), entry(samples, "other", 0.4, 0.7)))
    assert alone.sentence().startswith("“first” has the smallest gap of 2 models")


def test_a_fair_first_model_divides_by_nothing(samples):
    compared = Comparison((entry(samples, "first", 0.0, 0.8), entry(samples, "other", -0.1, 0.7)))
    assert "nan" not in compared.sentence()
    assert "inf" not in compared.sentence()


def test_bad_comparisons_say_what_to_do(samples):
    evaluation, audit = samples.adult_result()
    with pytest.raises(lw.InputError, match="one ComparisonEntry or more"):
        Comparison(())
    with pytest.raises(lw.InputError, match="same name 'a'"):
        Comparison((ComparisonEntry("a", evaluation, audit), ComparisonEntry("a", None, audit)))
    with pytest.raises(lw.InputError, match="different tolerances"):
        Comparison.of({"a": (None, audit), "b": (None, samples.with_worst_case(audit, eps=0.2))})
    with pytest.raises(lw.InputError, match="a name of one letter"):
        ComparisonEntry(" ", None, audit)
    with pytest.raises(lw.InputError, match="'audit' must be an AuditResult"):
        ComparisonEntry("a", evaluation, evaluation)
    with pytest.raises(lw.InputError, match="'evaluation' must be an Evaluation"):
        ComparisonEntry("a", audit, audit)
    with pytest.raises(lw.InputError, match="ComparisonEntry objects"):
        Comparison((audit,))


def test_entries_without_an_evaluation_are_shown_but_have_no_frontier(samples):
    evaluation, audit = samples.adult_result()
    compared = Comparison.of({"a": (evaluation, audit), "b": (None, audit)})
    assert compared.frontier() == ("a",)
    assert np.isnan(compared.frame.loc["b", "S-Con"])
    assert "not measured" in compared._repr_html_()
