"""What the description of a fitted domain must look like before it is read."""

from __future__ import annotations

from likewise.core.plain_forms import Fields, ListOf, Maybe, OneOf, Whole

__all__ = ["DESCRIPTION"]

# Of narwhals, which makes tables in these; lazy ones are none.
LIBRARIES = ("pandas", "polars", "pyarrow", "numpy", "modin", "cudf")
_DTYPE = Fields(
    {"name": str},
    {
        "levels": Maybe(ListOf(object)),
        "ordered": bool,
        "storage": Maybe(str),
        "nullable": bool,
        "inner": object,
    },
    more=True,
)
_CURVE = Fields(
    {
        "name": str,
        "middle": float,
        "unit": Maybe(float),
        "at": ListOf(float),
        "to": ListOf(float),
        "below": float,
        "above": float,
    }
)
_COLUMN = Fields(
    {
        "name": str,
        "kind": OneOf(("continuous", "integer", "categorical")),
        "dtype": _DTYPE,
        "immutable": bool,
        "start": Whole(0, 2**31),
        "stop": Whole(1, 2**31),
    },
    {
        "categories": ListOf(object),
        "lower": Maybe(float),
        "upper": Maybe(float),
        "mean": float,
        "scale": float,
        "decimals": Maybe(Whole(-400, 400)),
        "curve": Maybe(_CURVE),
    },
    more=True,
)
DESCRIPTION = Fields(
    {"parameters": dict, "library": OneOf(LIBRARIES), "names": ListOf(str), "columns": ListOf(_COLUMN)},
    more=True,
)
