"""What a domain knows about one column of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.domains.curve import Curve
from likewise.domains.dtypes import Dtype, Scalar

__all__ = ["Column", "Kind", "encoded_names"]

Kind = Literal["continuous", "integer", "categorical"]


@dataclass(frozen=True)
class Column:
    """One column of the original table and its place in the encoding.

    Parameters
    ----------
    name : str
        Name in the original table.
    kind : {"continuous", "integer", "categorical"}
        What its values are.
    dtype : Dtype
        How the table stored it.
    lower, upper : float
        Least and greatest value that can exist, in original units. Of a categorical column: 0 and 1, the
        bounds of its indicator columns.
    categories : tuple
        Its categories in sorted order; empty for a numeric column.
    mean, scale : float
        The encoding of a number v is (curve(v) − mean) / scale; 0 and 1 for a categorical column.
    immutable : bool
        Whether a search may not change it.
    start, stop : int
        Its columns in the encoding are ``start`` to ``stop − 1``.
    decimals : int, optional
        `decode` rounds a value to so many decimals where it is within the rounding of the encoding of them:
        it undoes that rounding and leaves every other value alone.
    curve : Curve, optional
        The scale of a number where that is not linear.

    Examples
    --------
    >>> age = Column("age", "integer", Dtype("int64"), lower=17, upper=90, mean=40.0, scale=10.0)
    >>> age.unit, age.width
    (0.1, 1)
    """

    name: str
    kind: Kind
    dtype: Dtype
    lower: float = 0.0
    upper: float = 1.0
    categories: tuple[Scalar, ...] = ()
    mean: float = 0.0
    scale: float = 1.0
    immutable: bool = False
    start: int = 0
    stop: int = 1
    decimals: int | None = None
    curve: Curve | None = None

    @property
    def width(self) -> int:
        """Number of encoded columns: one, or one per category where there are three or more."""
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        """Its columns in the encoding."""
        return slice(self.start, self.stop)

    @property
    def is_binary(self) -> bool:
        """Whether it is categorical with two categories, and so one 0/1 column."""
        return len(self.categories) == 2

    @property
    def unit(self) -> float | None:
        """Length of one whole unit in the encoding; None unless integer, and where it is not the same everywhere."""
        return 1.0 / self.scale if self.kind == "integer" and self.curve is None else None

    def place(self, values: Any) -> FloatArray:
        """Encode numbers in original units.

        Examples
        --------
        >>> gain = Column("gain", "integer", Dtype("int64"), scale=2.0, curve=Curve("signed log", unit=1.0))
        >>> gain.place([0.0, np.expm1(4.0)]).tolist()
        [0.0, 2.0]
        """
        found = np.asarray(values, dtype=np.float64) if self.curve is None else self.curve(values)
        return np.asarray((found - self.mean) / self.scale)

    def number(self, places: Any) -> FloatArray:
        """Return encoded numbers in original units, whole or not, within the range or not."""
        found = np.asarray(places, dtype=np.float64) * self.scale + self.mean
        return found if self.curve is None else self.curve.inverse(found)

    def whole_number(self, places: Any) -> FloatArray:
        """Return the whole numbers, in original units, that are encoded nearest to these places.

        Examples
        --------
        >>> gain = Column("gain", "integer", Dtype("int64"), curve=Curve("signed log", unit=1.0))
        >>> gain.whole_number(gain.place([0.45, 7.0])).tolist()
        [1.0, 7.0]
        """
        values = self.number(places)
        if self.curve is None:
            return np.rint(values)
        below, above = np.floor(values), np.floor(values) + 1.0
        places = np.asarray(places, dtype=np.float64)
        return np.where(places - self.place(below) <= self.place(above) - places, below, above)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain JSON; an infinite bound is written as null."""
        out: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype.to_dict(),
            "immutable": self.immutable,
            "start": self.start,
            "stop": self.stop,
        }
        if self.kind == "categorical":
            return out | {"categories": list(self.categories)}
        bounds = {side: value if np.isfinite(value) else None for side, value in self._bounds()}
        numbers = {"mean": self.mean, "scale": self.scale, "decimals": self.decimals}
        return out | bounds | numbers | ({} if self.curve is None else {"curve": self.curve.to_dict()})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Column:
        """Read what `to_dict` wrote."""
        fields = {**values, "dtype": Dtype.from_dict(values["dtype"])}
        if values["kind"] == "categorical":
            return cls(**fields | {"categories": tuple(values["categories"])})
        lower, upper = values["lower"], values["upper"]
        fields["lower"] = -np.inf if lower is None else lower
        fields["upper"] = np.inf if upper is None else upper
        if values.get("curve") is not None:
            fields["curve"] = Curve.from_dict(values["curve"])
        return cls(**fields)

    def _bounds(self) -> tuple[tuple[str, float], tuple[str, float]]:
        return ("lower", self.lower), ("upper", self.upper)


def encoded_names(columns: Sequence[Column], rename: Mapping[str, str] | None = None) -> list[str]:
    """Names of the encoded columns: ``age``; ``sex_Male`` for two categories; ``job_Sales``, … for more.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the encoding.
    rename : mapping of str to str, optional
        Other names for the original columns.

    Returns
    -------
    list of str
        Unique: a name that occurs a second time gets ``#2``.

    Examples
    --------
    >>> sex = Column("sex", "categorical", Dtype("str"), categories=("Female", "Male"))
    >>> encoded_names([sex])
    ['sex_Male']
    """
    names: list[str] = []
    for column in columns:
        name = (rename or {}).get(column.name, column.name)
        if column.kind != "categorical":
            names.append(name)
        else:
            shown = column.categories[1:] if column.is_binary else column.categories
            names += [f"{name}_{category}" for category in shown]
    if len(set(names)) == len(names):
        return names
    taken, seen = set(names), Counter[str]()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            number = seen[name]
            while f"{name}#{number}" in taken:
                number += 1
            names[i] = f"{name}#{number}"
            taken.add(names[i])
    return names
