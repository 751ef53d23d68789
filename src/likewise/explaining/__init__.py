"""Recourse: what would change a decision at the least cost, why it is as it is, and whether that is the same for everyone.

Examples
--------
>>> import pandas as pd
>>> from sklearn.tree import DecisionTreeClassifier
>>> import likewise as lw
>>> people = pd.DataFrame({"hours": [10, 20, 30, 40] * 2, "sex": ["F", "M"] * 4})
>>> tree = DecisionTreeClassifier(random_state=0).fit(people[["hours"]], [0, 0, 1, 1] * 2)
>>> lw.explain(tree, people, row=1, sensitive_features=["sex"], favourable=1)
<Explanation: row 1, 0, hours: 20 → 26 (proved)>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.explaining.burden import recourse as recourse
    from likewise.explaining.person import explain as explain

__getattr__, __dir__, __all__ = lazy_names(__name__)
