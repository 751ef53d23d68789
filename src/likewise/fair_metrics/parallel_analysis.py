"""How many directions stand out from the spread of single columns: parallel analysis of what is left, one by one."""

from __future__ import annotations

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.fair_metrics.scatter import top_of_gram

__all__ = ["count_factors", "largest_noise_eigenvalue"]

# The 99% quantile of the Tracy–Widom law of real matrices.
_TRACY_WIDOM = 2.0234
# No column is taken for less noise than this share of its variance: a column explained in full would be divided by 0.
_LEAST_NOISE = 1e-4
_ROUNDS = 20
_SETTLED = 1e-2


def largest_noise_eigenvalue(n_columns: int, freedom: int) -> float:
    """Return what the largest eigenvalue of a scatter of independent columns of variance 1 hardly ever exceeds.

    It is the 99% quantile of the largest eigenvalue of a white Wishart matrix by Johnstone (2001): the
    Marchenko–Pastur edge (√n + √p)², and its spread.

    Parameters
    ----------
    n_columns, freedom : int
        p and n.

    Examples
    --------
    >>> round(largest_noise_eigenvalue(20, 300) / 300, 2)  # against 1.58 at the edge
    1.68
    """
    a, b = np.sqrt(max(freedom, 1)), np.sqrt(max(n_columns, 1))
    return float((a + b) ** 2 + _TRACY_WIDOM * (a + b) * (1 / a + 1 / b) ** (1 / 3))


def count_factors(gram: FloatArray, freedom: int) -> int:
    """Return how many factors the columns share: as many as stand out from columns without correlation.

    Parallel analysis (Horn 1965) asks of each eigenvalue whether columns without correlation would have it too.
    With many factors the columns' own variances are mostly these factors, and the later ones are missed. So each
    question is asked of what the factors before leave: every column is divided by the noise that is left in it, and
    the next eigenvalue is compared with the largest of white noise in the remaining dimensions.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
        Scatter of the centred rows.
    freedom : int
        Its degrees of freedom.

    Returns
    -------
    int
        0 for noise; at most as many as a factor model of d columns can tell apart (Ledermann 1937).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = 3 * rng.normal(size=(400, 5)) @ np.eye(5, 12) @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    >>> rows += rng.normal(size=(400, 12))
    >>> count_factors(rows.T @ rows, 400)
    5
    """
    variances = np.diag(gram) / freedom
    spread = variances > 1e-12 * max(float(variances.max(initial=0.0)), 1e-300)
    covariance, variances = gram[np.ix_(spread, spread)] / freedom, variances[spread]
    d = len(variances)
    noise: FloatArray = variances.copy()
    for count in range(int(d + 0.5 - np.sqrt(2 * d + 0.25))):
        noise, following = _noise_beside(covariance, noise, variances, count)
        if following * freedom <= largest_noise_eigenvalue(d - count, freedom - count):
            return count
    return max(0, int(d + 0.5 - np.sqrt(2 * d + 0.25)))


def _noise_beside(
    covariance: FloatArray, noise: FloatArray, variances: FloatArray, count: int
) -> tuple[FloatArray, float]:
    """The variance of each column beside `count` factors, and the next eigenvalue relative to it.

    With P = I − UUᵀ, U the leading directions of the columns so scaled, the residual of noise ψ has the diagonal
    (P∘P) ψ: solved for ψ until it agrees with itself.
    """
    for _ in range(_ROUNDS):
        scale = np.sqrt(noise)
        scaled = covariance / np.outer(scale, scale)
        values, vectors = top_of_gram(scaled, count + 1)
        if count == 0:
            break
        leading = vectors[:, :count]
        outside = np.eye(len(noise)) - leading @ leading.T
        left = np.diag(scaled) - (leading**2) @ values[:count]
        # The small ridge is for columns that the leading directions span alone.
        change = np.linalg.solve(outside**2 + 1e-6 * np.eye(len(noise)), left).clip(0.1, 10.0)
        before, noise = noise, np.clip(noise * change, _LEAST_NOISE * variances, variances)
        if np.abs(noise / before - 1).max() < _SETTLED:
            break
    return noise, float(values[count])
