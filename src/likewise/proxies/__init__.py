"""Attributes that are not in the table: groups by probability, honest bounds, columns that stand in for them.

Examples
--------
>>> import pandas as pd
>>> from likewise.proxies import group_probabilities
>>> people = pd.DataFrame({"surname": ["García"], "zip": ["27310-1234"]})
>>> group_probabilities(people, "bisg:surname,zip").table["hispanic"].round(3).tolist()
[0.711]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.proxies.columns import (
        ProxyColumn as ProxyColumn,
        ProxyTest as ProxyTest,
        proxy_test as proxy_test,
    )
    from likewise.proxies.disparity import (
        Disparity as Disparity,
        GroupFigure as GroupFigure,
        disparity_bounds as disparity_bounds,
    )
    from likewise.proxies.probabilities import (
        GroupProbabilities as GroupProbabilities,
        group_probabilities as group_probabilities,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
