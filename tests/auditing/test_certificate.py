"""Estimates refute, bounds certify, and nothing else is a certificate."""

import dataclasses

import numpy as np
import pytest

from likewise.auditing.inference.certificate import (
    Bound,
    Certificate,
    Estimate,
    delta_n,
    finite_sample_bound,
    mean_upper_bound,
)
from likewise.auditing.inference.intervals import halves
from likewise.core.errors import InputError

LOW = Estimate(value=0.6, gap=0.1, eps=0.1, n=50, method="search")
HIGH = Bound(value=0.7, gap=0.2, eps=0.1, n=50, method="exact dual")


def test_an_estimate_can_refute_but_never_certify():
    assert {LOW.verdict(delta) for delta in (0.0, 0.09, 0.1, 1.0, 1e9)} == {"unfair (shown)", "not refuted"}
    assert LOW.verdict(0.09) == "unfair (shown)"
    assert LOW.verdict(0.1) == "not refuted"
    assert Certificate(LOW).verdict(1e9) == "undecided"


def test_a_bound_can_certify_but_never_refute():
    assert {HIGH.verdict(delta) for delta in (0.0, 0.19, 0.2, 1.0)} == {"fair (proved)", "not certified"}
    assert HIGH.verdict(0.2) == "fair (proved)"
    assert HIGH.verdict(0.19) == "not certified"


def test_verdicts_are_by_gap_unless_asked_otherwise():
    """A δ is a gap everywhere, so that `result.verdict(δ)` and `result.certificate.verdict(δ)` agree."""
    both = Certificate(LOW, HIGH)
    for delta in (0.05, 0.15, 0.25, 0.5, 0.65, 0.75):
        for claim in (LOW, HIGH, both):
            assert claim.verdict(delta) == claim.verdict(delta, of="gap")
    assert (LOW.verdict(0.5), LOW.verdict(0.5, of="value")) == ("not refuted", "unfair (shown)")
    assert (HIGH.verdict(0.25), HIGH.verdict(0.25, of="value")) == ("fair (proved)", "not certified")


@pytest.mark.parametrize(
    ("delta", "of", "expected"),
    [
        (0.5, "value", "unfair (shown)"),
        (0.65, "value", "undecided"),
        (0.7, "value", "fair (proved)"),
        (0.15, "gap", "undecided"),
    ],
)
def test_both_together_decide_outside_of_what_lies_between(delta, of, expected):
    certificate = Certificate(LOW, HIGH)
    assert certificate.verdict(delta, of=of) == expected


def test_what_diverged_claims_nothing():
    for make in (Estimate, Bound):
        with pytest.raises(InputError, match="diverged claims nothing"):
            make(value=np.nan, gap=0.1, eps=0.1, n=5, method="search")
    with pytest.raises(InputError, match="'delta'"):
        LOW.verdict(np.nan)


def test_contradictions_are_refused():
    with pytest.raises(InputError, match="same ε"):
        Certificate(LOW, dataclasses.replace(HIGH, eps=0.2))
    with pytest.raises(InputError, match="above the bound"):
        Certificate(LOW, dataclasses.replace(HIGH, value=0.5))
    with pytest.raises(InputError, match="no claim about the gap"):
        dataclasses.replace(HIGH, gap=None).verdict(1.0, of="gap")


def test_types_are_frozen_and_apart():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LOW.value = 0.0
    assert not isinstance(LOW, Bound)
    assert not isinstance(HIGH, Estimate)


class TestFiniteSample:
    def test_formulas(self):
        values = np.array([0.0, 0.5, 1.0, 2.0])
        t, n, upper = 0.05, 4, 2.0
        mean, variance = values.mean(), values.var(ddof=1)
        bernstein = (
            mean + np.sqrt(2 * variance * np.log(2 / t) / n) + 7 * upper * np.log(2 / t) / (3 * (n - 1))
        )
        assert mean_upper_bound(values, upper) == pytest.approx(bernstein)

    def test_never_above_the_largest_loss(self):
        shown = finite_sample_bound([0.9, 0.8, 0.7], lambda_=1.0, eps=1.0, upper=1.0, losses=[0.1, 0.1, 0.1])
        assert shown.value == 1.0
        assert shown.gap == 1.0

    def test_says_what_it_assumes(self):
        shown = finite_sample_bound(
            np.full(9, 0.1), lambda_=1.0, eps=0.1, upper=1.0, assumptions=("made up",)
        )
        assert any("λ was chosen on other rows" in text for text in shown.assumptions)
        assert "made up" in shown.assumptions
        assert (shown.about, shown.confidence, shown.n) == ("population", 0.95, 9)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"transformed": [0.1, 2.0]}, "outside"),
            ({"transformed": [0.1, np.inf]}, "bounded domain"),
            ({"transformed": []}, "one number per row"),
            ({"losses": [0.5, 0.1]}, "staying put costs nothing"),
            ({"losses": [0.1]}, "lengths differ"),
            ({"confidence": 1.0}, "'confidence'"),
            ({"lambda_": np.inf}, "'lambda_'"),
            ({"upper": 0}, "'upper'"),
        ],
    )
    def test_bad_input_is_named(self, change, message):
        good = {"transformed": [0.1, 0.2], "lambda_": 1.0, "eps": 0.1, "upper": 1.0}
        with pytest.raises(InputError, match=message):
            finite_sample_bound(**{**good, **change})

    def test_halves_are_reproducible(self):
        first, again = halves(20, random_state=1), halves(20, random_state=1)
        np.testing.assert_array_equal(first[0], again[0])
        assert not np.array_equal(first[0], halves(20, random_state=2)[0])
        with pytest.raises(InputError, match="'n'"):
            halves(3)


class TestDeltaN:
    def test_terms_with_the_symbols_of_proposition_3_1(self):
        C_L, L, D, delta_c, M, n, eps, t = 0.7, 1.3, 2.1, 0.02, 3.0, 5000, 0.09, 0.1
        found = delta_n(C_L=C_L, L=L, D=D, delta_c=delta_c, M=M, n=n, eps=eps, t=t)
        terms = {
            "complexity": 48 * C_L / np.sqrt(n),
            "transport": 48 * L * D**2 / np.sqrt(n * eps),
            "metric": L * delta_c * D**2 / np.sqrt(eps),
            "deviation": M * np.sqrt(np.log(2 / t) / (2 * n)),
        }
        assert found == pytest.approx(terms | {"total": sum(terms.values())})

    def test_only_the_error_of_the_metric_does_not_vanish(self):
        found = delta_n(C_L=1.0, L=1.0, D=1.0, delta_c=0.5, M=1.0, n=10**14, eps=0.25, t=0.05)
        assert found["metric"] == pytest.approx(1.0)
        assert found["total"] == pytest.approx(1.0, abs=1e-4)

    def test_bad_input_is_named(self):
        good = {"C_L": 1.0, "L": 1.0, "D": 1.0, "delta_c": 0.0, "M": 1.0, "n": 10, "eps": 0.1, "t": 0.05}
        for name, value in {"eps": 0, "t": 1.0, "n": 0, "L": -1.0}.items():
            with pytest.raises(InputError, match=f"'{name}'"):
                delta_n(**{**good, name: value})
