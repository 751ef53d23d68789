"""From a model to its family: which bounds apply, and how its features come from the domain's columns."""

from __future__ import annotations

from typing import Any

from likewise.auditing.bounds.networks.network_family import NetworkFamily
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.auditing.bounds.trees.feature_sources import encoded_sources, raw_sources
from likewise.auditing.bounds.trees.tree_family import TreeFamily
from likewise.core.errors import InputError
from likewise.models import Model, as_model
from likewise.models.losses import LossLike, as_loss
from likewise.models.relu_network import read_relu_network
from likewise.models.sklearn_model import SklearnModel
from likewise.models.tree_ensemble import read_trees

__all__ = ["family_of"]


def family_of(
    model: Any, domain: Any, *, loss: LossLike | None = None, encoded: bool | None = None
) -> TreeFamily | NetworkFamily:
    """Return the family that bounds a model over a domain.

    Parameters
    ----------
    model : Model, or anything that `as_model` takes
        A tree ensemble or a ReLU network.
    domain : TabularDomain or BoxDomain
        Whose encoding the network sees, or whose columns the trees see.
    loss : str or Loss, optional
        The model's own by default.
    encoded : bool, optional
        Whether a tree model was trained on encoded rows and not on the table; by default that is told from the number
        and the names of its columns, and where both fit it must be said.

    Returns
    -------
    TreeFamily or NetworkFamily

    Raises
    ------
    InputError
        Where no family fits; it says why.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from likewise.domains import TabularDomain
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 0, 1, 1])
    >>> type(family_of(tree, domain, encoded=True)).__name__
    'TreeFamily'
    """
    adapter = model if isinstance(model, Model) else as_model(model)
    objective = adapter.loss if loss is None else as_loss(loss, owner="family_of")
    layout = TableLayout.of(domain)
    reasons = []
    try:
        trees = read_trees(adapter)
    except InputError as error:
        reasons.append(str(error))
    else:
        raw = _sees_table(adapter, layout, encoded)
        sources = raw_sources(layout, trees, adapter.feature_names) if raw else encoded_sources(layout)
        return TreeFamily(trees, layout, sources, objective)
    try:
        # What a general adapter of scikit-learn wraps may be a network all the same.
        inner = adapter.estimator if isinstance(adapter, SklearnModel) else adapter
        return NetworkFamily(read_relu_network(inner), layout, objective)
    except InputError as error:
        reasons.append(str(error))
    raise InputError("family_of: no upper bound is known for this model. " + " ".join(reasons))


def _sees_table(adapter: Model, layout: TableLayout, encoded: bool | None) -> bool:
    """Whether the model's columns are the table's own."""
    if encoded is not None:
        return not encoded
    if adapter.takes_frame:
        return True
    names = {column.name for column in layout.columns}
    by_name = adapter.feature_names is not None and set(adapter.feature_names) <= names
    by_width = adapter.n_features == layout.width
    plain = all(column.mean == 0.0 and column.scale == 1.0 and column.width == 1 for column in layout.columns)
    if by_name and by_width and not plain:
        raise InputError(
            "family_of: the model's columns fit both the table and its encoding. Pass encoded=True or False."
        )
    return by_name and not by_width
