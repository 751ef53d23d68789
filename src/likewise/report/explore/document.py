"""Everything that the panel of a page needs, as one plain document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from likewise.auditing.audit_result import AuditResult
from likewise.auditing.problem.coordinates import Coordinates
from likewise.core.errors import InputError, bad_parameter
from likewise.domains import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.models import Model, as_model
from likewise.models.missing_cells_model import MissingCellsModel
from likewise.report.explore.cells import exact_cell
from likewise.report.explore.columns import column_documents
from likewise.report.explore.fair_distance import metric_document
from likewise.report.explore.page_model import page_model
from likewise.report.explore.people import choose_people, people_documents
from likewise.report.plain import named, plain_number

__all__ = ["MAX_PEOPLE", "explore_document"]

MAX_PEOPLE = 300
# Of wide tables fewer people are carried.
_MAX_CELLS = 20_000


def explore_document(
    domain: TabularDomain,
    people: pd.DataFrame,
    y: Any = None,
    *,
    models: Mapping[str, Any],
    metric: FairMetric | None = None,
    sensitive: Sequence[str] = (),
    results: Mapping[str, AuditResult] | None = None,
    labels: Mapping[Any, str] | None = None,
    endpoint: Mapping[str, str] | None = None,
    max_people: int = MAX_PEOPLE,
    seed: int = 0,
) -> dict[str, Any]:
    """Return what a page needs so that its reader can edit a person and see what the models decide.

    The document holds rows of people and, without an `endpoint`, the models themselves: whoever gets the page gets
    both.

    Parameters
    ----------
    domain : TabularDomain
        Which rows can exist; every edit is held against it.
    people : DataFrame
        The audited people in original units, in the order of the audit.
    y : array-like, optional
        Their labels.
    models : mapping of str to Model, or to anything that `as_model` takes
        By name; in a comparison in the order of its entries.
    metric : FairMetric, optional
        For distances between rows; left out of the page where it reads the table by a map of its own.
    sensitive : sequence of str
        Columns that should not decide.
    results : mapping of str to AuditResult, optional
        Audits of the models, by the same names: their most harmed people are carried, and what was found or proved.
    labels : mapping, optional
        Names of the classes, such as ``{0: "refused", 1: "granted"}``.
    endpoint : mapping, optional
        ``{"url": …, "token": …}`` where the page asks a server about rows instead of carrying the models.
    max_people : int, default=300
        How many people the page carries; fewer of a wide table.
    seed : int, default=0
        Of the sample of people.

    Returns
    -------
    dict
        For `likewise.report.write_html`'s ``explore``.

    Raises
    ------
    InputError
        A model cannot travel inside a page; it says what to do.

    Examples
    --------
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit(domain.encode_array(people), [0, 0, 1, 1])
    >>> document = explore_document(domain, people, [0, 0, 1, 1], models={"ours": fitted}, sensitive=["sex"])
    >>> [column["name"] for column in document["columns"]], document["models"][0]["classes"]
    (['skill', 'sex'], [0, 1])
    """
    unknown = [name for name in sensitive if name not in domain.encoding_.names]
    if not models:
        raise bad_parameter("explore_document", "models", allowed="at least one model", got="none")
    adapters = {name: as_model(model) for name, model in models.items()}
    first = next(iter(adapters.values()))
    gaps = first.missing if isinstance(first, MissingCellsModel) else None
    shown = people if gaps is None else gaps.restored(people)
    found = dict(results or {})
    names = list(domain.encoding_.names)
    most = max(min(max_people, _MAX_CELLS // len(names)), 10)
    numbers = choose_people(len(people), list(found.values()), max_people=most, seed=seed)
    used = people[[name for name in names if name in people]]
    result = next(iter(found.values()), None)
    return {
        "kind": "likewise.report.explore",
        "version": 1,
        "columns": column_documents(domain, [n for n in sensitive if n not in unknown], gaps),
        "people": people_documents(
            shown,
            y,
            numbers,
            columns=names,
            labels=labels or {},
            found=[_changed(found.get(n)) for n in adapters],
        ),
        "total": len(people),
        "metric": _metric(domain, used, first, metric),
        "eps": None if result is None else plain_number(result.eps),
        "models": [
            {
                "name": name,
                "audit": f"a{i}" if name in found else None,
                "classes": _classes(model, labels or {}),
                "settled": _settled(found.get(name)),
                "model": None if endpoint is not None else page_model(model, domain, used),
            }
            for i, (name, model) in enumerate(adapters.items())
        ],
        "endpoint": None if endpoint is None else dict(endpoint),
    }


def _classes(model: Model, labels: Mapping[Any, str]) -> list[Any]:
    if model.loss.regression:
        raise InputError("explore: a model that predicts numbers has no decisions to explore.")
    known = model.known_classes
    classes = [0, 1] if known is None else [exact_cell(label) for label in known.tolist()]
    return [named(label, labels) for label in classes]


def _changed(result: AuditResult | None) -> frozenset[int]:
    """People whose worst twin at no fair distance is decided otherwise."""
    if result is None:
        return frozenset()
    numbers = result.pure_map.outcomes["person"].to_numpy()[result.pure_map.flipped]
    return frozenset(int(number) for number in numbers)


def _settled(result: AuditResult | None) -> bool:
    """Whether the audit proved that nobody but those of its map has a free twin of another decision."""
    if result is None or result.flipped is None:
        return False
    unfair = result.pure_map
    changed = [one for one in result.brackets if one.quantity == "changed" and one.eps == 0.0]
    exact = any(one.upper is not None and one.upper <= one.lower + 1e-12 for one in changed)
    # The map has everybody's worst twin; somebody may have another one of another decision besides.
    everybody = len(unfair.people) == unfair.total == result.n
    return exact and everybody and int(unfair.flipped.sum()) == round(result.flipped * result.n)


def _metric(
    domain: TabularDomain, people: pd.DataFrame, model: Model, metric: FairMetric | None
) -> dict[str, Any] | None:
    if metric is None:
        return None
    place = Coordinates.build(people, model=model, metric=metric, domain=domain)
    return metric_document(place.metric, int(domain.n_features or 0))
