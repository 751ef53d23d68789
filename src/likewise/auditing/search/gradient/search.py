"""The worst case of each row of a differentiable model, by the two-phase search of the paper's Appendix C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from likewise.auditing.search.contract import Budget, Found, Search
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter, is_installed
from likewise.core.messages import Message

if TYPE_CHECKING:
    import torch

    from likewise.auditing.search.column_generation import Prices
    from likewise.auditing.search.gradient.ascent import SearchResult
    from likewise.data.domain import Domain
    from likewise.fair_metrics.metric import FairMetric
    from likewise.models.oracle import Oracle

# Loaded when rows are searched: an audit asks first whether the model has gradients, and most have none.


@dataclass(frozen=True)
class GradientSearch(Search):
    """Choices of the gradient search for T_λ(x_i) = argmax ℓ(x, y_i) − λ d²(x, x_i) over the domain.

    Phase 1 moves inside the directions that cost nothing, with K coefficients per row folded into the model's
    first layer. Phase 2 moves all coordinates, with the penalty. Every row has its own steps: its result depends
    neither on the rows beside it nor on their order. The best point of a row is kept, so its objective is
    never below that of the row itself, and more `full_steps` or `restarts` never lower it.

    Parameters
    ----------
    subspace_steps : int, default=10
        Steps of phase 1. It is skipped where the metric has no free direction.
    subspace_step_size : float, default=1.0
        Length of the first step along free directions, in encoded units (it adapts from there);
        with ``method="adam"`` the learning rate of phase 1.
    full_steps : int, default=5
        Steps of phase 2; rows that have converged stop before. An audit searches again from where they stopped.
    full_step_size : float, default=0.01
        Learning rate of phase 2 with ``method="adam"``. The fixed point needs none.
    method : {"fixed_point", "adam"}, default="fixed_point"
        The damped fixed point x ← x_i + (1 − η)(x − x_i) + η Σ⁺∇ℓ(x)/(2λ), whose η each row adapts; or per-row
        Adam as in the paper.
    damping : float, default=0.5
        η of the first step.
    probes : int, default=2
        Displacements found once per label at one fixed row (the middle of the domain) and tried on every row,
        which finds far better maxima of a network than starting at the row alone. 0 for none. They need a scalar
        λ that is positive and finite, and class labels.
    restarts : int, default=0
        Further complete ascents of phase 2 from random displacements, the same for every row.
    tol : float, default=1e-3
        A row has converged when its steps raise the objective by no more than ``tol · max(1, |objective|)``.
    batch_size : int, default=16384
        Rows that are moved together; it changes memory and speed only.
    prices : Prices, optional
        λ of the rounds of an audit, as chosen on other people; by default the dual of the people at hand leads to them.

    Examples
    --------
    >>> import torch
    >>> from likewise.data import Unbounded
    >>> from likewise.fair_metrics import euclidean
    >>> from likewise.models import make_oracle
    >>> net = torch.nn.Linear(2, 2)
    >>> _ = torch.nn.init.constant_(net.bias, 0.0)
    >>> _ = net.weight.data.copy_(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    >>> x, y = torch.zeros(1, 2), torch.tensor([1])
    >>> found = GradientSearch().run(
    ...     make_oracle(net), x, y, metric=euclidean(2), domain=Unbounded(), lam=1.0
    ... )
    >>> round(float(found.x[0, 0]), 2), found.counts()
    (-0.84, {'CONVERGED': 1, 'MAX_STEPS': 0, 'NON_FINITE': 0})
    """

    name: ClassVar[str] = "gradient"
    chooses_prices: ClassVar[bool] = True

    subspace_steps: int = 10
    subspace_step_size: float = 1.0
    full_steps: int = 5
    full_step_size: float = 0.01
    method: Literal["fixed_point", "adam"] = "fixed_point"
    damping: float = 0.5
    probes: int = 2
    restarts: int = 0
    tol: float = 1e-3
    batch_size: int = 16384
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in ("subspace_steps", "full_steps", "probes", "restarts", "batch_size"):
            value, low = getattr(self, name), int(name == "batch_size")
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise bad_parameter("GradientSearch", name, allowed=f"an int >= {low}", got=value)
        for name in ("subspace_step_size", "full_step_size", "damping"):
            check_number(getattr(self, name), owner="GradientSearch", name=name, low=0, open_low=True)
        check_number(self.tol, owner="GradientSearch", name="tol", low=0)
        if self.method not in ("fixed_point", "adam"):
            raise bad_parameter(
                "GradientSearch", "method", allowed="'fixed_point' or 'adam'", got=self.method
            )

    def why_not(self, problem: Any) -> str | None:
        """Say why gradients cannot be followed, where they cannot."""
        place = problem.coordinates
        if not place.model.loss.differentiable:
            return Message("why_not.no_slope", loss=repr(place.model.loss.name))
        found: str | None = place.why_no_gradient()
        if found is None and not is_installed("torch"):
            return Message("why_not.no_torch")
        return found

    def extend(self, problem: Any, support: Any, eps: float, budget: Budget) -> Found:
        """Add rows found by following the model's gradient at chosen λ, until V(ε) settles."""
        from likewise.auditing.search.column_generation import improve_by_columns

        return improve_by_columns(self, problem, support, eps, budget)

    def run(
        self,
        oracle: Oracle,
        x: torch.Tensor,
        y: torch.Tensor,
        *,
        metric: FairMetric,
        domain: Domain,
        lam: Any,
        start: torch.Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> SearchResult:
        """Search the worst case of every row.

        Parameters
        ----------
        oracle : Oracle
            Loss and input gradient of the model.
        x : Tensor of shape (n, d)
            Encoded rows, float32 or float64 as the oracle wants.
        y : Tensor of shape (n,)
            Class indices, or numbers for regression.
        metric : FairMetric
            Of encoded rows.
        domain : Domain
            Which rows can exist.
        lam : float or Tensor of shape (n,)
            λ ≥ 0. With 0 nothing is paid for a move; with inf only moves that cost nothing are made.
        start : Tensor of shape (n, d), optional
            Rows to start from as well, for instance the worst cases at a neighbouring λ.
        generator : torch.Generator, optional
            For probes and restarts. Without it a fixed seed is used, so that equal calls give equal results.

        Returns
        -------
        SearchResult
            Of the dtype and device of `x`; nothing in it belongs to a graph.
        """
        from likewise.auditing.search.gradient.phases import search_each_row

        return search_each_row(
            self, oracle, x, y, metric=metric, domain=domain, lam=lam, start=start, generator=generator
        )
