"""A network of a table's own numbers as a network of encoded rows: the encoding goes into the first layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from likewise.auditing.bounds.table_layout import TableLayout, not_linear
from likewise.core.errors import InputError
from likewise.domains.encoding import AffineMap
from likewise.models.relu_network import ReluNetwork

__all__ = ["behind", "of_encoded_rows"]


def of_encoded_rows(net: ReluNetwork, layout: TableLayout, names: Sequence[str] | None) -> ReluNetwork:
    """Put the way from encoded rows to the table's numbers in front of a network: W(Ax + c) + b = (WA)x + (Wc + b).

    Parameters
    ----------
    net : ReluNetwork
        Takes the table's numbers.
    layout : TableLayout
    names : sequence of str, optional
        Its columns, in its order; those of the layout by default.

    Examples
    --------
    >>> from likewise.domains.column import Column
    >>> from likewise.domains.dtypes import Dtype
    >>> age = Column("age", "integer", Dtype("int64"), lower=17, upper=90, mean=40.0, scale=10.0, start=0, stop=1)
    >>> net = ReluNetwork((np.array([[2.0]]),), (np.array([1.0]),))
    >>> moved = of_encoded_rows(net, TableLayout((age,)), ["age"])
    >>> moved.weights[0].item(), moved.biases[0].item()
    (20.0, 81.0)
    """
    known = {column.name: i for i, column in enumerate(layout.columns)}
    wanted = list(known) if names is None else list(names)
    missing = [name for name in wanted if name not in known]
    if missing or len(wanted) != net.n_inputs:
        raise InputError(
            f"bounds: the network takes {net.n_inputs} columns of the table, and the domain has "
            f"{'no ' + repr(missing[0]) if missing else f'{len(wanted)} of them'}. Pass the domain of its table."
        )
    spread, centre = np.zeros((len(wanted), layout.width)), np.zeros(len(wanted))
    for row, name in enumerate(wanted):
        column = layout.columns[known[name]]
        if not column.categories:
            if column.curve is not None:
                raise InputError(not_linear(column))
            spread[row, column.start], centre[row] = column.scale, column.mean
            continue
        try:
            values = np.array([float(category) for category in column.categories])
        except (TypeError, ValueError):
            raise InputError(
                f"bounds: the network takes numbers, and column {name!r} is text. Pass a network of encoded rows."
            ) from None
        if column.is_binary:
            spread[row, column.start], centre[row] = values[1] - values[0], values[0]
        else:
            spread[row, column.slice] = values
    return behind(net, AffineMap(spread, centre))


def behind(net: ReluNetwork, numbers: AffineMap) -> ReluNetwork:
    """Put an affine map in front of a network.

    Parameters
    ----------
    net : ReluNetwork
    numbers : AffineMap
        From encoded rows to what the network takes.
    """
    weight, bias = net.weights[0], net.biases[0]
    sizes = (np.abs(weight), np.abs(bias)) if net.first_sizes is None else net.first_sizes
    per_unit = sizes[0] @ np.abs(numbers.matrix)
    without = sizes[0] @ np.abs(numbers.offset) + sizes[1]
    return replace(
        net,
        weights=(weight @ numbers.matrix, *net.weights[1:]),
        biases=(bias + weight @ numbers.offset, *net.biases[1:]),
        # What is taken off and added again on the way through the encoding.
        first_sizes=(per_unit, without),
    )
