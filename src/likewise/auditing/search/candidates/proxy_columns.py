"""Columns that give a sensitive one away, and what to write there so that a twin stays a plausible person.

Changing *sex* of a husband alone makes a female husband, whom no model has ever seen. The rule here is simple and
the same for every table:

1. A value p of a categorical column is *ruled out* by a sensitive value t when p and t occur together less than a
   twentieth as often as they would if the columns were independent, and independence would give at least five such
   rows (Husband and Female).
2. Its counterpart, when somebody goes from s to t, is looked for among the values that s rules out (Wife, which
   Male rules out: the mirror image); where there are none, among all values that t does not rule out.
3. Of these the counterpart is the one most probable in the context that the people with s and p have in their other
   categorical columns (married), by naive Bayes on the people with t, with one added to every count.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from likewise.auditing.problem.editable_rows import Field
from likewise.auditing.support.frontier import Floats, Ints
from likewise.core.errors import InputError

__all__ = ["find_counterparts", "given_counterparts"]

RULED_OUT = 0.05  # observed over expected count
MIN_EXPECTED = 5.0


def find_counterparts(sensitive: Field, proxy: Field, context: Sequence[Field]) -> Ints | None:
    """Return what becomes of each proxy value when the sensitive one changes.

    Parameters
    ----------
    sensitive : Field
        With S values.
    proxy : Field
        With P values.
    context : sequence of Field
        The other categorical columns.

    Returns
    -------
    int array of shape (S, S, P), or None
        Entry [s, t, p] is the code of p's counterpart when s becomes t; p itself where nothing needs to
        change. None where no value is ruled out, so the column is no proxy.

    Examples
    --------
    >>> sex = Field("sex", ("F", "M"), np.repeat([0, 1], 50))
    >>> role = Field("role", ("Husband", "Single", "Wife"), np.repeat([2, 1, 0], [30, 40, 30]))
    >>> find_counterparts(sex, role, [])[1, 0].tolist()  # a man becomes a woman: Husband becomes Wife
    [2, 1, 2]
    """
    together = _counts(sensitive, proxy)
    total = together.sum()
    expected = together.sum(axis=1, keepdims=True) * together.sum(axis=0) / max(total, 1.0)
    ruled_out = (expected >= MIN_EXPECTED) & (together < RULED_OUT * expected)
    if not ruled_out.any():
        return None
    n_s, n_p = together.shape
    became = np.tile(np.arange(n_p), (n_s, n_s, 1))
    for s in range(n_s):
        for t in range(n_s):
            for p in np.flatnonzero(ruled_out[t] & ~ruled_out[s] & (together[s] > 0)):
                possible = (together[t] > 0) & ~ruled_out[t]
                mirror = possible & ruled_out[s]
                choice = np.flatnonzero(mirror if mirror.any() else possible)
                if s != t and len(choice):
                    score = _log_posterior(sensitive, proxy, context, s=s, p=int(p), t=t)
                    became[s, t, p] = choice[np.argmax(score[choice])]
    return became if (became != np.arange(n_p)).any() else None


def given_counterparts(
    sensitive: Field, proxy: Field, mapping: Mapping[Hashable, Any], *, owner: str
) -> Ints:
    """Return the same array for a mapping that the user wrote, whatever the change of the sensitive value is.

    Examples
    --------
    >>> sex, role = Field("sex", ("F", "M"), np.zeros(1, int)), Field("role", ("H", "W"), np.zeros(1, int))
    >>> given_counterparts(sex, role, {"H": "W", "W": "H"}, owner="audit")[0, 1].tolist()
    [1, 0]
    """
    if not isinstance(mapping, Mapping):
        raise InputError(
            f"{owner}: 'proxies' must give a dict of value to counterpart for {proxy.name!r}, got {mapping!r}."
        )
    n_s, n_p = len(sensitive.values), len(proxy.values)
    became = np.tile(np.arange(n_p), (n_s, n_s, 1))
    for old, new in mapping.items():
        became[:, :, proxy.code_of(old, owner=owner)] = proxy.code_of(new, owner=owner)
    became[np.arange(n_s), np.arange(n_s)] = np.arange(n_p)
    return became


def _counts(first: Field, second: Field) -> Floats:
    shape = len(first.values), len(second.values)
    known = (first.codes >= 0) & (second.codes >= 0)
    flat = first.codes[known] * shape[1] + second.codes[known]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _log_posterior(
    sensitive: Field, proxy: Field, context: Sequence[Field], *, s: int, p: int, t: int
) -> Floats:
    """Mean log probability of each proxy value among people with t, in the context of people with s and p."""
    here = (sensitive.codes == s) & (proxy.codes == p)
    there = Field(proxy.name, proxy.values, np.where(sensitive.codes == t, proxy.codes, -1))
    prior = np.bincount(there.codes[there.codes >= 0], minlength=len(proxy.values)) + 1.0
    score = np.log(prior / prior.sum())
    for column in context:
        share = np.bincount(column.codes[here & (column.codes >= 0)], minlength=len(column.values))
        likelihood = _counts(there, column) + 1.0
        likelihood /= likelihood.sum(axis=1, keepdims=True)
        score = score + np.log(likelihood) @ (share / max(share.sum(), 1))
    return np.asarray(score)
