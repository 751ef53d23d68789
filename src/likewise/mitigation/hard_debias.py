"""Hard debiasing of word vectors (Bolukbasi et al. 2016): neutralise and equalise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from likewise.core.checks import FloatArray, check_integer, is_tensor, is_whole, to_numpy
from likewise.core.errors import InputError, bad_parameter, did_you_mean
from likewise.core.frames import is_frame, to_pandas, to_same_library
from likewise.core.parameters import parameters_from_fields
from likewise.core.subspace import Subspace


@parameters_from_fields
class HardDebias(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Neutralise word vectors against a bias subspace, and equalise sets of words that differ by it alone.

    Parameters
    ----------
    definitional : sequence of sets of words
        Sets whose words differ by the bias, such as ``[("she", "he"), ("woman", "man")]``. An item is a word, the
        number of a row of the X given to `fit`, or a vector itself.
    equality : sequence of sets of words, default=()
        Sets to be made equally far from everything neutral, such as ``[("grandmother", "grandfather")]``.
    specific : sequence of words, default=()
        Words that carry the bias by right and are left as they are, such as ``["king"]``.
    vectors : mapping of word to vector, optional
        Where words are looked up: a `WordVectors`, a dict, anything with ``in`` and ``[]``. Default: the index of
        the frame given to `fit`.
    n_components : int, default=1
        Dimension of the bias subspace.
    normalize : bool, default=True
        Whether vectors are brought to unit length, before and after, as the paper does.

    Attributes
    ----------
    subspace_ : Subspace
        The bias subspace.
    explained_ : ndarray of shape (min(d, m),)
        Share of the spread inside the definitional sets that each direction explains, largest first.
    equalized_ : dict of word to ndarray
        The vectors of the equality sets, by word.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Rows are known by the index of a frame: a row called by a word of an equality set gets that word's equalised
    vector, a row called by a specific word stays. All other rows, and all rows of arrays, are neutralised.

    Examples
    --------
    >>> words = pd.DataFrame(
    ...     [[0.6, 0.8, 0.0], [-0.6, 0.8, 0.0], [0.8, 0.0, 0.6]], index=["she", "he", "nurse"]
    ... )
    >>> words.columns = ["a", "b", "c"]
    >>> HardDebias([("she", "he")], equality=[("she", "he")]).fit_transform(words).round(2)
             a    b    c
    she    0.6  0.8  0.0
    he    -0.6  0.8  0.0
    nurse  0.0  0.0  1.0
    """

    definitional: Sequence[Sequence[Any]] = field(kw_only=False)
    equality: Sequence[Sequence[Any]] = ()
    specific: Sequence[str] = ()
    vectors: Any = None
    n_components: int = 1
    normalize: bool = True

    def fit(self, X: Any, y: Any = None) -> HardDebias:
        """Learn the bias subspace, and equalise the equality sets.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, d)
            Vectors, one row each; with words as the index if words are to be looked up in it.
        y : ignored

        Returns
        -------
        HardDebias
            itself
        """
        rows, index = self._read(X, reset=True)
        # 1/|D_i| makes every set count the same, however many words it has (their section 5).
        sets = [self._set(group, rows, index, "definitional") for group in self.definitional]
        if not sets:
            raise bad_parameter("HardDebias", "definitional", "at least one set of words", "none")
        self.subspace_, self.explained_ = bias_subspace(sets, self.n_components)
        self.equalized_: dict[Any, FloatArray] = {}
        for group in self.equality:
            moved = equalize(self._set(group, rows, index, "equality"), self.subspace_, unit=self.normalize)
            named = ((item, row) for item, row in zip(group, moved, strict=True) if isinstance(item, str))
            self.equalized_.update(named)
        return self

    def transform(self, X: Any) -> Any:
        """Debias vectors.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, d)

        Returns
        -------
        ndarray or frame of shape (n, d)
            A frame gives a frame of its own library, with its columns and index.
        """
        check_is_fitted(self)
        rows, index = self._read(X, reset=False)
        moved = neutralize(rows, self.subspace_, unit=self.normalize)
        if index is None:
            return moved
        specific = set(self.specific)
        for i, word in enumerate(index):
            if word in self.equalized_:
                moved[i] = self.equalized_[word]
            elif word in specific:
                moved[i] = rows[i]
        frame = pd.DataFrame(moved, columns=to_pandas(X, owner="HardDebias").columns, index=index)
        return to_same_library(frame, X)

    def _read(self, X: Any, *, reset: bool) -> tuple[FloatArray, pd.Index[Any] | None]:
        if is_tensor(X):
            X = to_numpy(X)
        frame = to_pandas(X, owner="HardDebias", name="X") if is_frame(X) else None
        rows = validate_data(
            self,
            X if frame is None else frame,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset and self.vectors is None else 1,
            ensure_min_features=2 if reset else 1,
            reset=reset,
        )
        return _unit(rows) if self.normalize else np.array(rows), None if frame is None else frame.index

    def _set(
        self, group: Iterable[Any], rows: FloatArray, index: pd.Index[Any] | None, name: str
    ) -> FloatArray:
        if isinstance(group, str):
            raise bad_parameter("HardDebias", name, "a list of sets of words", f"the word {group!r} as a set")
        items = list(group)
        if len(items) < 2:
            raise bad_parameter("HardDebias", name, "sets of two words or more", items)
        found = np.stack([self._vector(item, rows, index, name) for item in items])
        return _unit(found) if self.normalize else found

    def _vector(self, item: Any, rows: FloatArray, index: pd.Index[Any] | None, name: str) -> FloatArray:
        if is_whole(item):
            if not -len(rows) <= item < len(rows):
                raise InputError(
                    f"HardDebias: {name!r} names row {item}, but X has {len(rows)} rows. Pass row numbers below "
                    f"{len(rows)}, or words."
                )
            return np.asarray(rows[item])
        if isinstance(item, str):
            return self._look_up(item, rows, index, name)
        vector = np.asarray(to_numpy(item), dtype=float)
        if vector.shape != (rows.shape[1],):
            raise bad_parameter(
                "HardDebias",
                name,
                f"made of words, row numbers, or vectors of length {rows.shape[1]}",
                f"an item of shape {vector.shape}",
            )
        return vector

    def _look_up(self, word: str, rows: FloatArray, index: pd.Index[Any] | None, name: str) -> FloatArray:
        if self.vectors is not None:
            if word in self.vectors:
                vector = np.asarray(to_numpy(self.vectors[word]), dtype=float)
                return self._vector(vector, rows, index, name)
            known: list[str] = []
        elif index is not None and word in index:
            at = np.atleast_1d(np.flatnonzero(index == word))
            return np.asarray(rows[int(at[0])])
        else:
            known = [] if index is None else [str(label) for label in index]
        raise InputError(
            f"HardDebias: there is no vector for the word {word!r} of {name!r}{did_you_mean(word, known)}. Leave the word out, pass a frame "
            "whose index are words, or vectors= with it."
        )


def bias_subspace(sets: Sequence[FloatArray], n_components: int = 1) -> tuple[Subspace, FloatArray]:
    """Return the top directions of Σ_i Σ_{w ∈ D_i} (w − μ_i)(w − μ_i)ᵀ / |D_i|, and the share each explains."""
    centred = np.concatenate([(group - group.mean(axis=0)) / np.sqrt(len(group)) for group in sets])
    most = min(centred.shape)
    check_integer(n_components, owner="HardDebias", name="n_components", low=1)
    _, singular, directions = np.linalg.svd(centred.astype(float), full_matrices=False)
    rank = int((singular > 1e-7 * max(float(singular[0]), np.finfo(float).tiny)).sum())
    if singular[0] <= 1e-12 or n_components > rank or n_components >= centred.shape[1]:
        raise InputError(
            f"HardDebias: the definitional sets span {rank if singular[0] > 1e-12 else 0} direction(s) of "
            f"{centred.shape[1]} features, n_components={n_components} cannot be removed. Give more sets, or fewer "
            f"components (at most {most})."
        )
    power = singular**2
    return Subspace.from_directions(directions[:n_components]), power / power.sum()


def neutralize(rows: FloatArray, subspace: Subspace, *, unit: bool = True) -> FloatArray:
    """Return rows without their part in the bias subspace, of unit length again if asked."""
    rest = np.asarray(subspace.remove(rows))
    return _unit(rest) if unit else rest


def equalize(rows: FloatArray, subspace: Subspace, *, unit: bool = True) -> FloatArray:
    """Return the words of one set, moved so that they differ by the bias alone, equally far from the middle.

    With μ the mean and ν its part outside the subspace, w becomes ν + r (w_B − μ_B) / ‖w_B − μ_B‖, where
    r = √(1 − ‖ν‖²) makes unit vectors; for vectors of other lengths r is the mean of ‖w_B − μ_B‖.
    """
    inside = np.asarray(subspace.project(rows))
    centred = inside - inside.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1)
    if (lengths <= 1e-9 * max(1.0, float(np.abs(rows).max()))).any():
        raise InputError(
            "HardDebias: a word of an equality set does not differ from the others along the bias, so it cannot be "
            "told where to go. Leave the set out."
        )
    middle = np.asarray(subspace.remove(rows)).mean(axis=0)
    radius = np.sqrt(max(1.0 - float(middle @ middle), 0.0)) if unit else lengths.mean()
    return np.asarray(middle + radius * centred / lengths[:, None])


def _unit(rows: FloatArray) -> FloatArray:
    """Rows of length 1; a zero row, which has no direction, stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=rows.dtype)
