"""Which rows can exist: tables of people, boxes, the range of the data, or anything at all."""

from likewise.domains.boxes import BoxDomain, DataRangeDomain, Unbounded
from likewise.domains.column import Column
from likewise.domains.domain import Domain
from likewise.domains.tabular import TabularDomain
from likewise.domains.validation import Violation

__all__ = ["BoxDomain", "Column", "DataRangeDomain", "Domain", "TabularDomain", "Unbounded", "Violation"]
