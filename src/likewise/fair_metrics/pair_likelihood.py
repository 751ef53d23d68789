"""Maximum likelihood of EXPLORE (Mukherjee et al. 2020, arXiv 2006.11439): a convex problem over PSD matrices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from likewise.core.checks import FloatArray

# Directions in which the pairs differ by less than this share of the others are not seen by them.
_UNSEEN = 1e-10


def comparable_probability(squared_distance: FloatArray) -> FloatArray:
    """Probability that a pair is judged comparable: 2σ(−d²) = 2 / (1 + exp(d²)), which is 1 at distance 0."""
    return np.asarray(2.0 * expit(-squared_distance))


def pair_losses(squared_distance: FloatArray, comparable: FloatArray) -> FloatArray:
    """Minus log-likelihood of every judgement, −y log p − (1 − y) log(1 − p); convex in the squared distance."""
    s, y = squared_distance, comparable
    # −log p = log((1 + eˢ) / 2) and −log(1 − p) = −log tanh(s / 2), each without overflow or cancellation.
    alike = np.logaddexp(0.0, s) - np.log(2.0)
    positive = np.where(s > 0, s, 1.0)
    apart = np.log1p(np.exp(-positive)) - np.log(-np.expm1(-positive))
    return np.where((s <= 0) & (y < 1), np.inf, y * alike + (1.0 - y) * apart)


def _slopes(s: FloatArray, y: FloatArray) -> FloatArray:
    """Derivative of `pair_losses` by the squared distance: y σ(s) − (1 − y) / sinh(s)."""
    # Only pairs that are wholly comparable may be at distance 0, and the second term is none of theirs.
    apart = 1.0 / np.sinh(np.clip(np.where(s > 0, s, 1.0), 1e-300, 700.0))
    return np.asarray(y * expit(s) - (1.0 - y) * apart)


@dataclass(frozen=True)
class Factor:
    """What was found: Σ = F Fᵀ on the directions that the pairs show."""

    root: FloatArray
    unseen: FloatArray
    n_iter: int
    gap: float


def maximise_likelihood(
    delta: FloatArray,
    comparable: FloatArray,
    shares: FloatArray,
    *,
    regularization: float,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Factor:
    """Minimise Σ_i share_i loss(δ_iᵀΣδ_i, y_i) + γ Σ_i share_i δ_iᵀΣδ_i over positive semi-definite Σ."""
    whitener, unseen = _whiten(delta, shares)
    r = whitener.shape[1]
    problem = _Problem(delta @ whitener, comparable, shares, regularization * np.eye(r))
    S, n_iter, gap, budget = np.eye(r) / r, 0, np.inf, 20
    while n_iter < max_iter and gap > tol:
        problem, S, turn = _rescale(problem, S)
        whitener = whitener @ turn
        S, steps, gap, stuck = _descend(problem, S, min(budget, max_iter - n_iter), tol)
        n_iter += steps
        if stuck:
            break
        budget *= 2
    if gap > max(100 * tol, 1e-4):
        warnings.warn(
            f"The metric of the pairs did not converge (the mean loss may be {gap:.2g} above the optimum after "
            f"{n_iter} steps). Raise 'max_iter' or 'regularization'.",
            ConvergenceWarning,
            stacklevel=3,
        )
    values, vectors = np.linalg.eigh(S)
    kept = values > values[-1] * 1e-12
    return Factor(whitener @ (vectors[:, kept] * np.sqrt(values[kept])), unseen, n_iter, gap)


def _whiten(delta: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return W (d, r) with Σ_i share_i Wᵀδ_i δ_iᵀW = I, and the directions in which nothing differs."""
    d = delta.shape[1]
    spread = np.sqrt(shares @ delta**2)
    # Units first, so that "unseen" does not depend on whether a column counts dollars or thousands of them.
    units = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    scaled = delta * units
    values, vectors = np.linalg.eigh(scaled.T @ (scaled * shares[:, None]))
    seen = values > _UNSEEN * values[-1]
    whitener = (units[:, None] * vectors[:, seen]) / np.sqrt(values[seen])
    if seen.all():
        return whitener, np.zeros((d, 0))
    # Null vectors of the scaled columns, back in the units of the rows; a column without spread is one itself.
    null = np.where(spread > 0, units, 1.0)[:, None] * vectors[:, ~seen]
    unseen = np.linalg.qr(null)[0]
    return whitener - unseen @ (unseen.T @ whitener), unseen


@dataclass(frozen=True)
class _Problem:
    """The penalised loss of S, where d² = zᵀSz of whitened differences z, and the penalty is ⟨P, S⟩."""

    z: FloatArray
    y: FloatArray
    shares: FloatArray
    penalty: FloatArray

    def value(self, S: FloatArray) -> float:
        return self._loss(S, self.distances(S))

    def value_and_gradient(self, S: FloatArray) -> tuple[float, FloatArray]:
        s = self.distances(S)
        value = self._loss(S, s)
        if not np.isfinite(value):
            return value, S
        slopes = self.shares * _slopes(s, self.y)
        gradient = self.z.T @ (self.z * slopes[:, None]) + self.penalty
        return value, (gradient + gradient.T) / 2

    def distances(self, S: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.z @ S, self.z))

    def _loss(self, S: FloatArray, s: FloatArray) -> float:
        return float(self.shares @ pair_losses(s, self.y)) + float(np.vdot(self.penalty, S))


def _rescale(problem: _Problem, S: FloatArray) -> tuple[_Problem, FloatArray, FloatArray]:
    """Change coordinates so that the loss curves alike in every direction at S; returns the change too.

    Along uuᵀ the curvature is Σ share κ (zᵀu)⁴ with κ = loss″, so the rows are whitened with weights √κ.
    """
    s = np.maximum(problem.distances(S), 1e-150)
    near = expit(-s)
    # κ = y σ(1 − σ) + (1 − y) cosh / sinh²; the latter is e⁻ˢ (1 + e⁻²ˢ) · 2 / (1 − e⁻²ˢ)² without overflow.
    apart = 2.0 * np.exp(-s) * (1.0 + np.exp(-2.0 * s)) / np.expm1(-2.0 * s) ** 2
    weights = np.sqrt(
        problem.y * near * (1.0 - near) + (1.0 - problem.y) * np.where(problem.y < 1, apart, 0.0)
    )
    gram = problem.z.T @ (problem.z * (problem.shares * weights)[:, None])
    values, vectors = np.linalg.eigh(gram)
    # Where all pairs are far apart the loss is flat; the floor keeps the coordinates finite.
    roots = np.sqrt(np.maximum(values, 1e-6 * values[-1]))
    turn = vectors / roots
    back = vectors * roots
    scaled = _Problem(problem.z @ turn, problem.y, problem.shares, turn.T @ problem.penalty @ turn)
    return scaled, back.T @ S @ back, turn


def _descend(
    problem: _Problem, start: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, int, float, bool]:
    """Run accelerated steps; returns the last S, their number, the gap, and whether no step goes down."""
    best = ahead = start
    best_value = problem.value(best)
    step, momentum, gap = 1.0, 1.0, np.inf
    for n_iter in range(1, max_iter + 1):
        value, gradient = problem.value_and_gradient(ahead)
        if not np.isfinite(value):
            # Extrapolation left the region where every pair that is apart has a distance.
            ahead, momentum = best, 1.0
            value, gradient = problem.value_and_gradient(ahead)
        found, found_value, step = _step(problem, ahead, value, gradient, step)
        if found_value >= best_value:
            if momentum == 1.0:
                return best, n_iter, _gap(best, gradient), True
            ahead, momentum = best, 1.0
            continue
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = found + (momentum - 1.0) / following * (found - best)
        best, best_value, momentum = found, found_value, following
        step *= 1.1
        if n_iter % 10 == 0 or n_iter == max_iter:
            gap = _gap(best, problem.value_and_gradient(best)[1])
            if gap <= tol:
                break
    return best, n_iter, gap, False


def _gap(S: FloatArray, gradient: FloatArray) -> float:
    """How much lower the loss can be, by convexity: at most ⟨G, S − S*⟩, with S* of about the size of S."""
    lowest = float(np.linalg.eigvalsh(gradient)[0])
    # A negative ⟨G, S⟩ says that S is too small, so it counts as well.
    return abs(float(np.vdot(gradient, S))) + max(0.0, -lowest) * float(np.trace(S))


def _step(
    problem: _Problem, start: FloatArray, value: float, gradient: FloatArray, step: float
) -> tuple[FloatArray, float, float]:
    """One projected gradient step, halved until the quadratic model is an upper bound."""
    while True:
        found = _project(start - step * gradient)
        found_value = problem.value(found)
        move = found - start
        model = value + float(np.vdot(gradient, move))
        model += float(np.vdot(move, move)) / (2.0 * step)
        if found_value <= model + 1e-14 * abs(value) or step < 1e-30:
            return found, found_value, step
        step /= 2.0


def _project(S: FloatArray) -> FloatArray:
    """Nearest positive semi-definite matrix: negative eigenvalues become zero."""
    values, vectors = np.linalg.eigh(S)
    vectors = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(vectors @ vectors.T)
