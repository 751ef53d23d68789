"""The features behind scikit-learn's encoders and scalers, each as a function of one column of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.checks import python_scalar
from likewise.core.errors import InputError
from likewise.data.one_hot import OneHotColumns
from likewise.models.model import OneHotModel, has_other_methods
from likewise.models.tree_ensemble import TreeEnsemble, read_trees


class _Refused:
    """What becomes of a cell that a step of a pipeline does not take."""

    def __repr__(self) -> str:
        return "REFUSED"


REFUSED = _Refused()


@dataclass(frozen=True, eq=False)
class TableFeature:
    """One feature as a function of one column of the table."""

    column: str
    mean: float = 0.0
    scale: float = 1.0
    answers: Sequence[Any] | None = None
    missing: Any = np.nan
    unseen: Any = None
    sparse: bool = False


def is_table_pipeline(estimator: Any) -> bool:
    """Whether a model reads a table's columns by steps that can be read.

    That is scikit-learn's own pipeline, not a subclass, fitted on a table with named columns; or a model of one-hot columns.
    """
    if isinstance(estimator, OneHotModel):
        return True
    kind = type(estimator)
    own = (kind.__module__, kind.__name__) == ("sklearn.pipeline", "Pipeline")
    return own and hasattr(estimator, "feature_names_in_") and not has_other_methods(estimator)


def read_table_features(
    pipeline: Any, categories: Mapping[str, Sequence[Any]]
) -> tuple[Any, tuple[TableFeature, ...]]:
    """Return the model at the end of a pipeline, and its features in terms of the table's columns."""
    one_hot = isinstance(pipeline, OneHotModel)
    names = pipeline.encoding.columns if one_hot else [str(name) for name in pipeline.feature_names_in_]
    features = [
        TableFeature(name, answers=tuple(categories[name]) if name in categories else None) for name in names
    ]
    if one_hot:
        steps = [getattr(pipeline.inner, "estimator", pipeline.inner)]
        features = _one_hot_columns(pipeline.encoding, {feature.column: feature for feature in features})
    else:
        steps = [step for _, step in pipeline.steps]
    for step in steps[:-1]:
        features = _through(step, features)
    for feature in features:
        if feature.answers is not None and not all(_is_number(answer) for answer in feature.answers):
            raise InputError(f"bounds: the pipeline does not encode the categories of {feature.column!r}.")
    return steps[-1], tuple(features)


def _one_hot_columns(encoding: OneHotColumns, raw: Mapping[str, TableFeature]) -> list[TableFeature]:
    found = []
    for place, name in enumerate(encoding.owners()):
        feature = raw[name]
        if encoding.copied.get(name) != place:
            if feature.answers is None:
                raise InputError(f"bounds: {name!r} is one-hot in the model, and a number in the domain.")
            found.append(
                replace(
                    feature,
                    answers=encoding.answers(name, place, feature.answers),
                    missing=float(encoding.missing.get(name) == place),
                    unseen=REFUSED,
                )
            )
        else:
            found.append(feature)
    return found


def read_trees_behind(model: Any, features: Sequence[TableFeature]) -> TreeEnsemble:
    """Read the trees at the end of a pipeline, as they answer to the matrix that its steps make."""
    trees = read_trees(model)
    sparse = any(feature.sparse for feature in features)
    # XGBoost takes a cell that is not in a sparse matrix for a missing one; the other libraries take it for 0.
    if sparse and type(model).__module__.split(".")[0] == "xgboost":
        return trees.with_missing(0.0, single=False)
    return trees


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _through(step: Any, features: list[TableFeature]) -> list[TableFeature]:
    """Features after one step."""
    if step is None or step == "passthrough":
        return features
    kind = type(step).__name__
    if not type(step).__module__.startswith("sklearn.") or has_other_methods(step):
        raise _unread(kind)
    # What passes through a fitted ColumnTransformer does so in a function of nothing.
    if kind == "FunctionTransformer" and step.func is None:
        return features
    if kind == "Pipeline":
        for _, part in step.steps:
            features = _through(part, features)
        return features
    if kind == "ColumnTransformer":
        if step.transformer_weights:
            raise InputError("bounds: a ColumnTransformer with transformer_weights is not read.")
        names = [feature.column for feature in features]
        found: list[TableFeature] = []
        for _, part, chosen in step.transformers_:
            if isinstance(part, str) and part == "drop":
                continue
            # A step that was given no column was not fitted, and adds none.
            if mine := [features[i] for i in column_positions(chosen, names)]:
                found += _through(part, mine)
        return [replace(feature, sparse=bool(step.sparse_output_)) for feature in found]
    readers = {
        "OneHotEncoder": _one_hot,
        "OrdinalEncoder": _ordinal,
        "StandardScaler": _standard,
        "RobustScaler": _standard,
        "SimpleImputer": _imputed,
    }
    if kind not in readers:
        raise _unread(kind)
    return readers[kind](step, features)


def column_positions(chosen: Any, names: list[str]) -> list[int]:
    if isinstance(chosen, slice) and (isinstance(chosen.start, str) or isinstance(chosen.stop, str)):
        chosen = pd.Index(names).slice_indexer(chosen.start, chosen.stop, chosen.step)
    if isinstance(chosen, slice) or (isinstance(chosen, np.ndarray) and chosen.dtype == bool):
        return [int(i) for i in np.arange(len(names))[chosen]]
    single = [chosen] if isinstance(chosen, (str, int, np.integer)) else list(chosen)
    if single and all(isinstance(one, (bool, np.bool_)) for one in single):
        return [i for i, one in enumerate(single) if one]
    return [names.index(one) if isinstance(one, str) else int(one) % len(names) for one in single]


def _encoded(
    step: Any, features: list[TableFeature], unknown: float
) -> Iterator[tuple[int, TableFeature, list[Any], Any, int | None]]:
    """Each feature of an encoder with its categories there, what an unknown one becomes, and where a gap stands."""
    if any(group is not None for group in getattr(step, "infrequent_categories_", None) or []):
        raise InputError("bounds: an encoder that joins infrequent categories is not read.")
    for i, feature in enumerate(features):
        if feature.answers is None:
            raise InputError(
                f"bounds: the pipeline's {type(step).__name__} reads {feature.column!r}, which is a number in the "
                "domain. Call it categorical there."
            )
        known = list(step.categories_[i])
        strange: Any = unknown
        if step.handle_unknown == "error":
            strange = REFUSED
            new = [answer for answer in feature.answers if answer not in known]
            if new:
                raise InputError(
                    f"bounds: the pipeline does not know the category {new[0]!r} of {feature.column!r} that the domain "
                    "has. Make the domain of the table the pipeline was fitted on."
                )
        # Where the value of a missing cell stands among the categories, NaN among them.
        gap = (
            k
            for k, one in enumerate(known)
            if one == feature.missing or (_is_nan(one) and _is_nan(feature.missing))
        )
        yield i, feature, known, strange, next(gap, None)


def _one_hot(step: Any, features: list[TableFeature]) -> list[TableFeature]:
    found = []
    for i, feature, known, strange, gap in _encoded(step, features, 0.0):
        dropped = None if step.drop_idx_ is None else step.drop_idx_[i]
        for k, category in enumerate(known):
            if k != dropped:
                missing = strange if gap is None else float(gap == k)
                found.append(
                    replace(
                        feature,
                        answers=tuple(float(a == category) for a in feature.answers or ()),
                        missing=_kept(feature.missing, missing),
                        unseen=strange,
                        sparse=bool(step.sparse_output),
                    )
                )
    return found


def _ordinal(step: Any, features: list[TableFeature]) -> list[TableFeature]:
    found = []
    unknown = float("nan") if step.unknown_value is None else float(step.unknown_value)
    for _, feature, known, strange, gap in _encoded(step, features, unknown):
        codes = tuple(float(known.index(a)) if a in known else unknown for a in feature.answers or ())
        missing = strange if gap is None else float(gap)
        if gap is not None and _is_nan(feature.missing):
            missing = float(step.encoded_missing_value)
        missing = _kept(feature.missing, missing)
        found.append(replace(feature, answers=codes, missing=missing, unseen=strange, sparse=False))
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _kept(before: Any, after: Any) -> Any:
    """What a step makes of a value, or that an earlier one refused it."""
    return REFUSED if before is REFUSED else after


def scaler_terms(step: Any) -> tuple[Any, Any]:
    """What a StandardScaler or RobustScaler subtracts from each feature, and what it divides by; None for neither."""
    if hasattr(step, "with_mean"):
        return (step.mean_ if step.with_mean else None), step.scale_
    return (step.center_ if step.with_centering else None), step.scale_


def changes_columns(imputer: Any) -> bool:
    """Whether a SimpleImputer adds columns, or leaves out those that it saw no value of."""
    statistics = np.asarray(imputer.statistics_, dtype=object)
    return bool(imputer.add_indicator) or any(value is None or value != value for value in statistics)


def _standard(step: Any, features: list[TableFeature]) -> list[TableFeature]:
    centre, width = scaler_terms(step)
    found = []
    for i, feature in enumerate(features):
        mean = 0.0 if centre is None else float(centre[i])
        scale = 1.0 if width is None else float(width[i])
        if feature.answers is not None:
            if not all(_is_number(answer) for answer in feature.answers):
                raise InputError(f"bounds: a scaler gets {feature.column!r} before it is encoded.")
            numbers = (np.asarray(feature.answers, dtype=np.float64) - mean) / scale
            found.append(replace(_scaled(feature, mean, scale), answers=tuple(numbers.tolist())))
        elif (feature.mean, feature.scale) != (0.0, 1.0):
            raise InputError(f"bounds: the pipeline scales {feature.column!r} twice; scale it once.")
        else:
            found.append(replace(_scaled(feature, mean, scale), mean=mean, scale=scale))
    return found


def _scaled(feature: TableFeature, mean: float, scale: float) -> TableFeature:
    """The feature whose missing and unseen cells went through a scaler."""
    missing, unseen = (
        (float(value) - mean) / scale if _is_number(value) else value
        for value in (feature.missing, feature.unseen)
    )
    return replace(feature, missing=missing, unseen=unseen)


def _imputed(step: Any, features: list[TableFeature]) -> list[TableFeature]:
    if changes_columns(step):
        raise InputError("bounds: an imputer that adds or drops columns is not read.")
    if step.missing_values is not None and not _is_nan(step.missing_values):
        raise InputError(
            f"bounds: an imputer that takes {step.missing_values!r} for a missing value is not read."
        )
    return [
        replace(feature, missing=python_scalar(value)) if _is_nan(feature.missing) else feature
        for feature, value in zip(features, step.statistics_, strict=True)
    ]


def _unread(kind: str) -> InputError:
    return InputError(
        f"bounds: the pipeline's step {kind} is not read. Read are ColumnTransformer, OneHotEncoder, OrdinalEncoder, "
        "StandardScaler, RobustScaler and SimpleImputer."
    )
