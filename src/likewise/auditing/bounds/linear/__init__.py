"""Linear models, where the worst case is known exactly: the ground truth of every search, and a `Bound`."""

from likewise.auditing.bounds.linear.closed_form import logistic_supremum
from likewise.auditing.bounds.linear.linear_claims import exact_bound, exact_certificate, loss_ceiling
from likewise.auditing.bounds.linear.linear_dual import AttainedRows, ExactDual, attaining_rows, exact_dual
from likewise.auditing.bounds.linear.linear_model import LinearModel
from likewise.auditing.bounds.linear.linear_supremum import ExactResult, ExactStatus, exact_supremum

__all__ = [
    "AttainedRows",
    "ExactDual",
    "ExactResult",
    "ExactStatus",
    "LinearModel",
    "attaining_rows",
    "exact_bound",
    "exact_certificate",
    "exact_dual",
    "exact_supremum",
    "logistic_supremum",
    "loss_ceiling",
]
