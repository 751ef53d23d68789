"""Linear models, where the worst case is known exactly: the ground truth of every search, and a `Bound`."""

from likewise.auditing.exact.bound import exact_bound, exact_certificate, loss_ceiling
from likewise.auditing.exact.closed_form import logistic_supremum
from likewise.auditing.exact.dual import ExactDual, exact_dual
from likewise.auditing.exact.model import LinearModel
from likewise.auditing.exact.supremum import ExactResult, ExactStatus, exact_supremum

__all__ = [
    "ExactDual",
    "ExactResult",
    "ExactStatus",
    "LinearModel",
    "exact_bound",
    "exact_certificate",
    "exact_dual",
    "exact_supremum",
    "logistic_supremum",
    "loss_ceiling",
]
