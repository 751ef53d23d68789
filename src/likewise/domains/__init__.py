"""Which rows can exist: tables of people, boxes, the range of the data, or anything at all.

Examples
--------
>>> from likewise.domains import BoxDomain
>>> BoxDomain(lower=[0.0], upper=1.0).project([[3.0]])
array([[1.]])
"""

from likewise.domains.boxes import BoxDomain, DataRangeDomain, Unbounded
from likewise.domains.column import Column
from likewise.domains.domain import Domain
from likewise.domains.tabular import TabularDomain
from likewise.domains.validation import Violation

__all__ = ["BoxDomain", "Column", "DataRangeDomain", "Domain", "TabularDomain", "Unbounded", "Violation"]
