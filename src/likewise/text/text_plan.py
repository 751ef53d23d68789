"""Which texts an audit scores: baseline, edits and placebos of every text, and what changed nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from likewise.core.errors import InputError, bad_parameter
from likewise.text.edited import Edited, TextEdit
from likewise.text.name_swap import NameSwap
from likewise.text.placebos import default_placebos
from likewise.text.term_swap import FunctionEdit

__all__ = ["BASELINE", "TextPlan", "default_edits", "plan_texts"]

BASELINE = "baseline"


@dataclass(frozen=True, eq=False)
class TextPlan:
    """What will be scored.

    Parameters
    ----------
    cells : tuple of (int, str, str)
        Number of the text, variant and the text to score.
    edited : DataFrame
        For every text and edit: how many places changed, and why none where none did.
    edits, placebos : tuple of str
    repeats : int

    Examples
    --------
    >>> from likewise.text import NameSwap
    >>> plan = plan_texts(["Emily wrote it."], edits=[NameSwap(names=("Lakisha",))], placebos=[], repeats=3)
    >>> [text for _, _, text in plan.cells], plan.n_calls
    (['Emily wrote it.', 'Lakisha wrote it.'], 6)
    """

    cells: tuple[tuple[int, str, str], ...]
    edited: pd.DataFrame
    edits: tuple[str, ...]
    placebos: tuple[str, ...]
    repeats: int

    @property
    def n_calls(self) -> int:
        """Calls that an empty cache would take; equal texts are asked once per repeat."""
        return len({text for _, _, text in self.cells}) * self.repeats


def default_edits() -> tuple[NameSwap, ...]:
    """Return name swaps to the four groups of race and gender.

    Examples
    --------
    >>> [edit.name for edit in default_edits()]
    ['name_black-female', 'name_black-male', 'name_white-female', 'name_white-male']
    """
    return tuple(
        NameSwap(race=race, gender=gender) for race in ("black", "white") for gender in ("female", "male")
    )


def plan_texts(
    texts: Sequence[str],
    *,
    edits: Iterable[Any] | None = None,
    placebos: Iterable[Any] | None = None,
    repeats: int = 1,
) -> TextPlan:
    """Edit every text and list what is to be scored; nothing is called.

    Parameters
    ----------
    texts : sequence of str
    edits, placebos : iterables of edits or functions, optional
        The name swaps of `default_edits` and the placebos of `default_placebos` by default. A placebo's name
        gets ``placebo_`` in front where it lacks it.
    repeats : int, default=1
        How often each is scored.

    Examples
    --------
    >>> plan = plan_texts(["Emily wrote it.", "No name here."])
    >>> plan.n_calls, plan.edited.query("changes == 0")["why"].value_counts().to_dict()["no first name found"]
    (11, 4)
    """
    owner = "plan_texts"
    texts = list(texts) if not isinstance(texts, str) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise bad_parameter(owner, "texts", allowed="a list of texts with at least one", got=texts[:3])
    if repeats < 1:
        raise bad_parameter(owner, "repeats", allowed="an int >= 1", got=repeats)
    wanted = [_as_edit(edit) for edit in (default_edits() if edits is None else edits)]
    neutral = [_as_edit(edit) for edit in (default_placebos() if placebos is None else placebos)]
    named = [(edit.name, edit) for edit in wanted]
    named += [
        (one.name if one.name.startswith("placebo_") else f"placebo_{one.name}", one) for one in neutral
    ]
    names = [name for name, _ in named]
    if len({*names, BASELINE}) <= len(names):
        raise bad_parameter(
            owner, "edits", allowed="edits with different names, none called baseline", got=names
        )
    if not wanted:
        raise InputError(f"{owner}: 'edits' is empty. Pass at least one edit.")
    cells, log = [], []
    for number, text in enumerate(texts):
        cells.append((number, BASELINE, text))
        for name, edit in named:
            edited = edit(text)
            if edited.changed:
                cells.append((number, name, edited.text))
            log.append((number, name, len(edited.changes), edited.skipped))
    if all(name.startswith("placebo_") or name == BASELINE for _, name, _ in cells):
        raise InputError(
            f"{owner}: no edit changes any text ({log[0][3]}). Name what to replace: NameSwap(source=…) or TermSwap."
        )
    frame = pd.DataFrame(log, columns=["text", "variant", "changes", "why"])
    return TextPlan(tuple(cells), frame, tuple(names[: len(wanted)]), tuple(names[len(wanted) :]), repeats)


def _as_edit(edit: Any) -> TextEdit:
    if isinstance(edit, TextEdit):
        return edit
    if callable(edit):
        function: Callable[[str], str] = edit
        return FunctionEdit(getattr(edit, "__name__", type(edit).__name__).replace("_", "-"), function)
    raise bad_parameter("plan_texts", "edits", allowed="edits or functions from text to text", got=edit)


def changes_of(edited: Edited) -> str:
    """Write down in words what an edit changed.

    Examples
    --------
    >>> changes_of(NameSwap(names=("Lakisha",))("Emily wrote it."))
    'Emily → Lakisha'
    """
    return ", ".join(f"{change.before} → {change.after}" for change in edited.changes) or edited.skipped
