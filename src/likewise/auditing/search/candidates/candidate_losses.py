"""What the model, the metric and the domain say about every candidate, each asked once and in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.problem.coordinates import Coordinates
from likewise.auditing.search.candidates.candidate_rows import Candidates
from likewise.auditing.support.frontier import Floats, Ints

__all__ = ["CandidateLosses", "ask_about"]

# Candidates closer to each other than about this, relative to their distance from the origin, are at one place.
_SAME_PLACE = 2.0**-33


@dataclass(frozen=True, eq=False)
class CandidateLosses:
    """Candidates that may serve, with all that is needed to compare rows with them.

    Parameters
    ----------
    number : int array of shape (k,)
        Candidate numbers, rising.
    scores : float array of shape (k, C)
        Loss under every class; for a regression the (k, 1) predictions.
    features : float array of shape (k, d)
        φ of the candidates.
    places : float array of shape (k, r)
        Where they are in the space in which the fair distance is Euclidean, near the origin.
    place : int array of shape (k,)
        Candidates with the same number are at no distance from each other.
    group : int array of shape (k,)
        Candidates with the same number agree in every column that may not change.
    resolution : float
        Of the numbers that φ is made of.
    """

    number: Ints
    scores: Floats
    features: Floats
    places: Floats
    place: Ints
    group: Ints
    resolution: float


def ask_about(
    coordinates: Coordinates, candidates: Candidates, wanted: Ints, n_rows: int, batch_size: int
) -> tuple[CandidateLosses, Ints]:
    """Ask about candidates, in batches.

    Parameters
    ----------
    coordinates : Coordinates
        Of the table the candidates are made from.
    candidates : Candidates
    wanted : int array
        Candidate numbers, rising; the first `n_rows` of them are the audited rows themselves.
    n_rows : int
        How many rows are audited.
    batch_size : int
        Candidates made at once.

    Returns
    -------
    evaluated : CandidateLosses
        The audited rows first, whether the domain knows them or not, then every possible candidate.
    outside : int array
        Candidate numbers that the domain rules out, audited rows included.
    """
    plain = coordinates.metric.without_feature_map()
    fixed = coordinates.fixed_positions()
    parts: list[tuple[Any, ...]] = []
    centre, resolution, outside = None, 0.0, [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(wanted), batch_size):
        number = wanted[start : start + batch_size]
        table = candidates.take(number)
        scores = _scores(coordinates.model, coordinates.for_model(table))
        rows = coordinates.encoded(table)
        features, eps = coordinates.features(table, rows)
        embedded = plain.embed(features)
        # Distances do not see the centre; rounding is relative to what is left without it.
        centre = embedded.mean(axis=0) if centre is None else centre
        possible = coordinates.possible(rows)
        outside.append(number[~possible])
        keep = possible | (number < n_rows)
        key = _fingerprint(_rounded(embedded[keep]))
        kept = rows[keep][:, fixed]
        parts.append(
            (
                number[keep],
                scores[keep],
                features[keep],
                embedded[keep] - centre,
                key,
                kept,
            )
        )
        resolution = max(resolution, eps)
    number, scores, features, places, key, kept = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    group = _numbered(_fingerprint(kept)) if len(fixed) else np.zeros(len(number), dtype=np.int64)
    evaluated = CandidateLosses(number, scores, features, places, _numbered(key), group, resolution)
    return evaluated, np.concatenate(outside)


def _scores(model: Any, rows: Any) -> Floats:
    if model.loss.regression:
        return np.asarray(model.outputs(rows), dtype=np.float64)
    return np.asarray(model.loss_table(rows), dtype=np.float64)


def _rounded(embedded: Floats) -> Floats:
    """Places rounded by what two computations of one place may differ, row by row.

    The unit is a power of two that depends on the row alone. Where rounding parts two candidates at one place
    both are kept, which costs time and changes nothing.
    """
    norm = np.sqrt((embedded**2).sum(axis=1, keepdims=True))
    unit = np.exp2(np.floor(np.log2(np.where(norm > 0, norm, 1.0)))) * _SAME_PLACE
    return np.asarray(np.rint(embedded / unit) * unit)


def _fingerprint(values: Floats) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Two 64-bit hashes of each row of numbers."""
    # Adding 0 makes −0 and 0 one number.
    mixed = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    keys = (
        np.random.default_rng(0).integers(2**63, size=(values.shape[1], 2), dtype=np.int64).astype(np.uint64)
    )
    return np.asarray(mixed @ (2 * keys + np.uint64(1)))


def _numbered(key: np.ndarray[Any, np.dtype[np.uint64]]) -> Ints:
    """Number equal rows of fingerprints alike, from 0."""
    order = np.lexsort((key[:, 1], key[:, 0]))
    first = np.concatenate([[False], (key[order][1:] != key[order][:-1]).any(axis=1)])
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.cumsum(first)
    return number
