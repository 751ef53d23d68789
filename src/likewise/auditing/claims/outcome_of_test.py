"""What a test of "at most τ" found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from likewise.auditing.claims.confidence_interval import IntervalAbout

__all__ = ["TestResult"]


@dataclass(frozen=True)
class TestResult:
    """A test of "at most `threshold`" with a two-sided interval.

    Parameters
    ----------
    statistic : float
        What the p-value is computed from: a distance from the threshold, studentised for Student's t, or a count.
    estimate : float
        The estimated ratio, gap or share.
    threshold : float
        τ of the null hypothesis.
    p_value : float
        Probability of so large a statistic where the truth is exactly τ.
    interval : (float, float)
        Two-sided, at `confidence`. The upper end is inf where no ceiling of a gain is known.
    confidence : float
        1 − α; the test rejects at level α.
    n : int
        Number of people (for `direction_test`: of flips).
    method : str
        In words.
    quantity : str
        What `estimate` is, in words.
    about : {"given candidates", "population"}, default="population"
        What the interval is about: see `ConfidenceInterval`.

    Examples
    --------
    >>> from likewise.auditing.claims.flip_tests import flip_share_test
    >>> print(flip_share_test(9, 100, threshold=0.02))
    share of flips 0.09 (95% interval 0.0420 to 0.1640), more than 0.02: p = 0.00019
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever pytest makes of the name

    statistic: float
    estimate: float
    threshold: float
    p_value: float
    interval: tuple[float, float]
    confidence: float
    n: int
    method: str
    quantity: str = "value"
    about: IntervalAbout = "population"

    @property
    def rejected(self) -> bool:
        """Whether "at most τ" is rejected at level 1 − confidence."""
        return self.p_value <= 1.0 - self.confidence

    def __str__(self) -> str:
        low, high = self.interval
        p = "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.2g}"
        end = "infinity" if np.isinf(high) else f"{high:.4f}"
        return (
            f"{self.quantity} {self.estimate:.4g} ({self.confidence:.0%} interval {low:.4f} to {end}), "
            f"more than {self.threshold:g}: {p}"
        )
