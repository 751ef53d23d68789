"""Model, domain and people of a verification in one coordinate system: the same preparation as an audit's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.auditing.bounds.asking import Asker
from likewise.auditing.bounds.families import family_at
from likewise.auditing.bounds.networks.network_family import NetworkFamily
from likewise.auditing.bounds.reading_check import check_rows
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.trees.tree_family import TreeFamily
from likewise.auditing.bounds.verifying.sensitive_values import SensitiveValues
from likewise.auditing.problem.audit_problem import AuditProblem
from likewise.auditing.problem.coordinates import Coordinates, tabular
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import declared_encoded, is_frame, to_pandas
from likewise.fair_metrics import euclidean
from likewise.models import CallableModel, Model, as_model
from likewise.models.losses import ZeroOne

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model that can be asked about every row of a domain.

    Parameters
    ----------
    problem : AuditProblem
        Of the people, whose sensitive columns are edited; of one made-up row if nobody was given.
    layout : TableLayout
    asker : Asker
    values : SensitiveValues
    has_people : bool
    """

    problem: AuditProblem
    layout: TableLayout
    asker: Asker
    values: SensitiveValues
    has_people: bool

    def family(self) -> TreeFamily | NetworkFamily:
        """Read the model; raises `InputError` if it cannot be read or answers differently than was read."""
        found = family_at(self.problem.coordinates, self.problem.X)
        check_rows(found, self.asker, self.people(), decides=True)
        return found

    def people(self) -> FloatArray:
        """The people as rows of values, (n, P); without rows if nobody was given."""
        found = self.layout.values(self.problem.X)
        return found if self.has_people else found[:0]


def prepare(
    model: Any, domain: Any, names: Sequence[str], *, people: Any = None, encoded: bool | None = None
) -> Prepared:
    """Bring a model, a domain and people together.

    Parameters
    ----------
    model, domain, people, encoded
        As in `verify`.
    names : sequence of str
        The sensitive columns.
    """
    layout = TableLayout.of(domain)
    values = SensitiveValues.of(layout, names)
    known = tabular(domain)
    raw = known is not None and encoded is not True
    adapter = _adapter(model, takes_frame=raw)
    # Sensitive columns are changed here, whatever else may not change in an audit.
    free = domain if known is None else _without_immutable(known)
    rows = _rows(people, free, layout, raw=raw)
    metric = euclidean(layout.width)
    problem = AuditProblem.build(
        adapter,
        rows,
        np.zeros(len(rows), dtype=np.int64),
        metric=metric if known is None else replace(metric, feature_map=free),
        domain=free,
        edits=[int(i) for i in values.columns] if known is None else list(names),
        encoded=not raw,
    )
    _check_kind(problem.coordinates, layout, encoded)
    classes = adapter.known_classes
    if classes is not None:
        problem = replace(problem, y=np.full(problem.n, classes[0]))
    return Prepared(problem, layout, Asker(problem.coordinates, layout), values, people is not None)


def _adapter(model: Any, *, takes_frame: bool) -> Model:
    """The model under the 0–1 loss: only decisions count."""
    if isinstance(model, Model):
        return model.with_loss(ZeroOne())
    try:
        adapter = as_model(model)
    except InputError:
        return as_model(model, loss=ZeroOne())
    if isinstance(adapter, CallableModel) and takes_frame:
        adapter = as_model(model, takes_frame=True)
    return adapter.with_loss(ZeroOne())


def _without_immutable(domain: Any) -> Any:
    if not any(column.immutable for column in domain.columns_):
        return domain
    described = domain.to_dict()
    described["parameters"]["immutable"] = []
    for column in described["columns"]:
        column["immutable"] = False
    return type(domain).from_dict(described)


def _rows(people: Any, domain: Any, layout: TableLayout, *, raw: bool) -> Any:
    """The people as a raw table or as encoded rows; without people one row from the middle of the domain."""
    if people is None:
        people = layout.encode(_middle(layout))
    is_table = is_frame(people) and not declared_encoded(people)
    if not raw:
        return domain.encode_array(people) if is_table else _encoded(people, domain)
    if not is_table:
        return to_pandas(domain.decode(_encoded(people, domain)), owner="verify").reset_index(drop=True)
    names = {column.name for column in layout.columns}
    table = to_pandas(people, owner="verify", name="people")
    return table[[name for name in table.columns if name in names]]


def _encoded(people: Any, domain: Any) -> FloatArray:
    known = tabular(domain)
    if known is not None and is_frame(people):
        return np.asarray(known.encoding_.read_encoded(people, owner="verify"), dtype=np.float64)
    return np.asarray(to_numpy(people), dtype=np.float64)


def _middle(layout: TableLayout) -> FloatArray:
    row = []
    for column in layout.columns:
        low, high = np.nan_to_num([column.lower, column.upper], neginf=-1e6, posinf=1e6)
        row.append(0.0 if column.categories else float(np.clip(np.floor((low + high) / 2), low, high)))
    return np.array([row])


def _check_kind(place: Coordinates, layout: TableLayout, encoded: bool | None) -> None:
    """Raise if it cannot be told, or is told wrongly, whether the model takes the table or encoded rows."""
    if encoded is False and place.takes == "encoded":
        raise InputError(
            "verify: encoded=False says that the model takes the table, but its columns are those of encoded rows. "
            "Pass encoded=True."
        )
    plain = all(
        column.mean == 0.0 and column.scale == 1.0 and column.curve is None and column.width == 1
        for column in layout.columns
    )
    if encoded is None and place.takes == "numbers" and place.model.n_features == layout.width and not plain:
        raise InputError(
            "verify: the model's columns fit both the table and its encoding. Pass encoded=True or False."
        )
