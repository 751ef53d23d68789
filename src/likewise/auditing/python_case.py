"""A model and a table of Python, prepared as the command line does with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from likewise.auditing.case import Case, MatchedPeople, match_people, prepare_case, table_request
from likewise.auditing.first_answer import AuditRequest
from likewise.auditing.sources import open_people
from likewise.core.checks import check_labels, check_same_length
from likewise.core.errors import InputError, bad_parameter
from likewise.core.frames import check_columns, declared_encoded, is_frame, to_pandas
from likewise.counterfactuals.edits import Edit, edited_columns, read_edits
from likewise.data.case import People, take_people
from likewise.data.opening import TableChoices
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel

if TYPE_CHECKING:
    from likewise.auditing.partitions.engine import Engine


def loaded_model(model: Any, frame: pd.DataFrame | None = None, loss: Any = None) -> LoadedModel:
    """Return a model of Python as the preparation takes it; one that was fitted on a table with words takes the table."""
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, Model):
        return LoadedModel(model if loss is None else model.with_loss(loss), "import path")
    loaded = LoadedModel(model, "import path")
    names = None if isinstance(model, type) else getattr(model, "feature_names_in_", None)
    if names is not None and frame is not None and set(names) <= set(frame.columns):
        words = any(frame[name].dtype.kind not in "biuf" for name in names)
        if words and not (loaded.under(loss) if loss else loaded.model).takes_frame:
            return LoadedModel(loaded.under(loss or "auto", True), "import path")
    return loaded


def sensitive_names(names: Any, owner: str, *, some: bool = True) -> tuple[str, ...]:
    """Return the sensitive columns, each once, or raise if no list, or none of `some`, was passed."""
    if isinstance(names, str) or (some and not len(names)):
        allowed = "a list of columns, such as ['sex']"
        raise bad_parameter(owner, "sensitive_features", allowed=allowed, got=names)
    return tuple(dict.fromkeys(names))


def table_case(
    asked: AuditRequest,
    X: Any,
    y: Any,
    sensitive_features: Sequence[str],
    *,
    favourable: Any = None,
    missing: str = "auto",
    engine: Engine | None = None,
) -> Case:
    """Bring a model and a table of Python together, whose sensitive columns are named."""
    owner = "audit"
    names = sensitive_names(sensitive_features, owner)
    if y is None and asked.delta is not None:
        raise InputError(
            "audit: 'delta' limits what is added to the mean loss, which needs labels. Pass 'y'."
        )
    if asked.encoded or declared_encoded(X):
        raise InputError(
            "audit: 'sensitive_features' names columns of a table in original units, and 'X' is encoded. Pass the table."
        )
    # Sensitive columns are exchanged anyway.
    parts = tuple(
        part
        for part in (() if asked.edits is None else read_edits(asked.edits, owner=owner))
        if not (isinstance(part, Edit) and part == Edit(part.column) and part.column in names)
    )
    needed = (*names, *edited_columns(parts))
    choices = TableChoices(missing=missing)
    if isinstance(X, (str, Path)):
        if y is not None and not isinstance(y, str):
            allowed = "the name of the target column if 'X' is a path"
            remedy = "Pass the name, and as 'favourable' the value that counts as 1."
            raise bad_parameter(owner, "y", allowed=allowed, got=f"a {type(y).__name__}", remedy=remedy)
        loaded = loaded_model(asked.model, loss=asked.loss)
        request = table_request(loaded, asked.metric, needed, target=y, choices=choices, keeps_missing=True)
        people = open_people(Path(X), request, engine)
        if people.counted == "row":
            # As in a table that is read first: result.people["row"] is what `iloc` takes.
            people = replace(people, places=people.positions, counted="position")
    else:
        frame = named_table(X, owner)
        check_columns(frame, needed, owner=owner, name="X")
        if y is not None:
            _check_order(frame, y)
            y = check_labels(y, owner=owner, min_classes=1, gaps=True)
            check_same_length(owner, X=frame, y=y)
        loaded = loaded_model(asked.model, frame, asked.loss)
        people = take_table(loaded, frame, y, needed, choices, asked.metric)
    ready = replace(asked, edits=parts)
    return prepare_case(loaded, people, ready, sensitive=names, favourable=favourable, missing=missing)


def match_table(
    model: Any, X: Any, y: Any, names: Sequence[str], *, missing: str, columns: Any = None, owner: str
) -> MatchedPeople:
    """Bring a model and a table of Python together for a question about decisions alone."""
    frame = named_table(X, owner)
    check_columns(frame, names, owner=owner, name="X")
    loaded = loaded_model(model, frame)
    people = take_table(loaded, frame, y, names, TableChoices(missing=missing, columns=columns))
    return match_people(loaded, people, needed=names, missing=missing)


def _check_order(frame: pd.DataFrame, y: Any) -> None:
    """Refuse labels whose index has the labels of the table's in another order: by name and by position they differ."""
    if not isinstance(y, (pd.Series, pd.DataFrame)) or len(y) != len(frame) or y.index.equals(frame.index):
        return
    if y.index.is_unique and frame.index.is_unique and y.index.isin(frame.index).all():
        raise InputError(
            "audit: the index of 'y' has the labels of that of 'X' in another order. Pass y.loc[X.index] if they name the "
            "same people, or y.to_numpy() if the rows belong together by their position."
        )


def named_table(X: Any, owner: str) -> pd.DataFrame:
    """Return a table with named columns, or raise."""
    if not is_frame(X):
        raise bad_parameter(
            owner,
            "X",
            allowed="a table with named columns",
            got=f"a {type(X).__name__}",
            remedy="Pass a DataFrame, so that the sensitive columns can be found by name.",
        )
    return to_pandas(X, owner=owner, name="X")


def take_table(
    loaded: LoadedModel,
    frame: pd.DataFrame,
    y: Any,
    needed: Sequence[str],
    choices: TableChoices,
    metric: Any = None,
) -> People:
    """Take the people of a table in memory, with every column without which the model does not answer."""
    target = None if y is None else "y"
    request = table_request(loaded, metric, needed, target=target, choices=choices, keeps_missing=True)
    return take_people(frame, y, request, name="X")
