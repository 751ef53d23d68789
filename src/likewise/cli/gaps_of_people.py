"""People with missing cells meet a model: gaps stay where it takes them, are filled where it does not, or stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likewise.core.text import folded

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing import AuditResult
    from likewise.auditing.people.unfair_map import UnfairMap
    from likewise.cli.sources import Source
    from likewise.models.matching import Matched
    from likewise.tables import MissingCells

__all__ = ["Settled", "settle_gaps", "with_gaps"]


@dataclass(frozen=True, eq=False)
class Settled:
    """An audit's model and people once it is clear what becomes of missing cells.

    Parameters
    ----------
    matched : Matched
    people : DataFrame or Path
        Whom the audit is about.
    frame : DataFrame
        Those in memory, for the measures beside the audit.
    gaps : MissingCells or None
        How gaps were filled and marked, where they are kept.
    note : str
        What the user should know; empty for nothing.
    """

    matched: Matched
    people: Any
    frame: pd.DataFrame
    gaps: MissingCells | None = None
    note: str = ""


def settle_gaps(matched: Matched, source: Source, policy: str, immutable: Sequence[str]) -> Settled:
    """Keep missing cells where the model takes them, else fill them or say what to do.

    Parameters
    ----------
    matched : Matched
        Made for people without gaps.
    source : Source
    policy : str
        "keep" refuses to fill.
    immutable : sequence of str
        Columns that no twin may differ in.
    """
    gaps = None if source.missing is None else source.missing.of(matched.columns)
    if gaps is None or not gaps.fills:
        return Settled(matched, source.people, source.frame)
    from likewise.cli.people_of_table import planned_domain
    from likewise.models.missing_cells_model import MissingCellsModel, refuse_missing, why_not_missing

    own = source.frame[list(matched.columns)]
    why = why_not_missing(matched.model, own)
    named = folded([repr(name) for name in gaps.columns], most=5)
    if why is not None:
        if policy == "keep":
            raise refuse_missing(own, why)
        note = (
            f"missing values in {named} were filled with the median or the most frequent value, since the model does "
            "not take them (--missing chooses)."
        )
        return Settled(matched, source.filled, source.filled, note=note)
    marked = gaps.marked(source.frame)
    columns = (*matched.columns, *gaps.marks)
    fixed = [*(name for name in immutable if name in matched.columns), *gaps.marks]
    domain = planned_domain(marked, source.plans, columns, fixed)
    wrapped = replace(matched, model=MissingCellsModel(matched.model, gaps), domain=domain, columns=columns)
    note = f"missing values in {named} went to the model as they are; twins lack what their person lacks."
    return Settled(wrapped, marked, marked, gaps, note)


def with_gaps(result: AuditResult, gaps: MissingCells | None, tolerance: float = 0.0) -> AuditResult:
    """Return a result whose people and twins have their gaps again, and whose close predictions are one decision.

    Parameters
    ----------
    result : AuditResult
        Of people whose gaps were filled and marked.
    gaps : MissingCells or None
    tolerance : float, default=0.0
        Predicted numbers that differ by no more are the same decision.
    """
    if gaps is None and not tolerance:
        return result
    return replace(
        result,
        unfair_map=_map_with_gaps(result.unfair_map, gaps, tolerance),
        pure_map=_map_with_gaps(result.pure_map, gaps, tolerance),
    )


def _map_with_gaps(unfair: UnfairMap, gaps: MissingCells | None, tolerance: float) -> UnfairMap:
    from likewise.auditing.people.unfair_map import make_unfair_map

    told = unfair.outcomes
    people, twins = unfair.people, unfair.twins
    if gaps is not None:
        people, twins = gaps.restored(people), gaps.restored(twins)
    keys = ("label", "loss", "twin_loss", "decision", "twin_decision", "squared_distance", "person")
    known: dict[str, Any] = {key: told[key].to_numpy() for key in keys}
    return make_unfair_map(people, twins, **known, total=unfair.total, tolerance=tolerance)
