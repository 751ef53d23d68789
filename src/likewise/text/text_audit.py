"""The paired audit of a scorer of texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pandas as pd

from likewise.core.errors import InputError, bad_parameter
from likewise.core.randomness import RandomState
from likewise.text.edited import TextEdit
from likewise.text.name_swap import NameSwap
from likewise.text.replies import (
    BudgetError,
    CallLimits,
    LimitedCaller,
    ReplyCache,
    plain_reply,
    score_of_reply,
)
from likewise.text.score_audit import ScoreAudits, audit_scores
from likewise.text.term_swap import FunctionEdit, default_placebos

# Which texts an audit scores: baseline, edits and placebos of every text, and what changed nothing.


BASELINE = "baseline"


@dataclass(frozen=True, eq=False)
class TextPlan:
    """What will be scored.

    Parameters
    ----------
    cells : tuple of (int, str, str)
        Number of the text, variant and the text to score.
    edited : DataFrame
        For every text and edit: how many places changed, and why none if none did.
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
        gets ``placebo_`` in front if it lacks it.
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
        raise bad_parameter(owner, "texts", "a list of texts with at least one", texts[:3])
    if repeats < 1:
        raise bad_parameter(owner, "repeats", "an int >= 1", repeats)
    wanted = [_as_edit(edit) for edit in (default_edits() if edits is None else edits)]
    neutral = [_as_edit(edit) for edit in (default_placebos() if placebos is None else placebos)]
    named = [(edit.name, edit) for edit in wanted]
    named += [
        (one.name if one.name.startswith("placebo_") else f"placebo_{one.name}", one) for one in neutral
    ]
    names = [name for name, _ in named]
    if len({*names, BASELINE}) <= len(names):
        raise bad_parameter(owner, "edits", "edits with different names, none called baseline", names)
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
    raise bad_parameter("plan_texts", "edits", "edits or functions from text to text", edit)


# Texts that a model with predict or predict_proba gets at once.
_BATCH = 256


@dataclass(frozen=True, eq=False)
class TextAudit:
    """A scorer's audit.

    Parameters
    ----------
    audits : ScoreAudits
        Effects above the floor; one part per group of texts.
    scores : DataFrame
        Every score: text, variant, repeat, score, decision (and group, cluster).
    edited : DataFrame
        What each edit changed in each text, and why nothing if it did not.
    calls, replayed : int
        Replies that the scorer was asked for now (retries included), and those that came from the cache.

    Examples
    --------
    >>> from likewise.text import NameSwap
    >>> texts = [f"Emily has {n} years of practice." for n in range(2, 10)]
    >>> result = audit_texts(len, texts, edits=[NameSwap(names=("Lakisha",))])
    >>> result.calls, result.replayed, result.edited["changes"].max().item()
    (40, 0, 1)
    """

    audits: ScoreAudits
    scores: pd.DataFrame
    edited: pd.DataFrame
    calls: int
    replayed: int

    def raise_if_unfair(self) -> None:
        """Raise `UnfairError` if an effect is shown."""
        self.audits.raise_if_unfair()


def audit_texts(
    scorer: Any,
    texts: Sequence[str],
    *,
    edits: Iterable[Any] | None = None,
    placebos: Iterable[Any] | None = None,
    repeats: int = 1,
    clusters: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    favourable: Any = None,
    threshold: float | None = None,
    margin: float | None = None,
    level: float = 0.05,
    cache: str | os.PathLike[str] | ReplyCache | None = None,
    name: str | None = None,
    version: str = "",
    limits: CallLimits | None = None,
    offline: bool = False,
    random_state: RandomState = 0,
) -> TextAudit:
    """Audit a scorer of texts: what edits do to its scores, above what placebos do.

    Parameters
    ----------
    scorer : callable or model
        A function from one text to a number, probabilities, a label or labelled scores; or a model with
        ``predict_proba`` or ``predict`` on lists of texts, such as a scikit-learn pipeline. Nothing of a text
        goes anywhere but to it.
    texts : sequence of str
    edits, placebos, repeats
        As in `plan_texts`: name swaps and neutral edits by default. Texts that an edit does not change have no
        score for it; `TextAudit.edited` lists them.
    clusters : sequence, optional
        What texts share (a job, an author), one per text; each text its own by default.
    groups : sequence, optional
        Audit each group of texts on its own, one per text.
    favourable, threshold
        How replies become scores and decisions, see `score_of_reply`.
    margin, level
        As in `audit_scores`.
    cache : path, ReplyCache or None, default=None
        Where replies are kept, so that a stopped run goes on without paying twice and a finished one replays.
    name, version : str
        Of the scorer, keys of the cache, for which the name must be given. Change the version when the scorer changes.
    limits : CallLimits, optional
        Cap, rate and retries.
    offline : bool, default=False
        Answer from the cache alone and raise if a reply is absent.
    random_state : int, Generator or None, default=0

    Returns
    -------
    TextAudit

    Examples
    --------
    >>> from likewise.text.name_swap import NameSwap
    >>> texts = [f"{name} has {n} years of practice." for name in ("Emily", "Greg") for n in range(2, 10)]
    >>> def judge(text):
    ...     return len(text) % 3 / 50 - (text.split()[0] in ("Lakisha", "Lashelle", "Aiesha"))
    >>> result = audit_texts(judge, texts, edits=[NameSwap(race="black", gender="female")])
    >>> result.audits.parts[0].families[0].verdict, result.calls
    ('shifted', 72)
    """
    plan = plan_texts(texts, edits=edits, placebos=placebos, repeats=repeats)
    for label, values in (("clusters", clusters), ("groups", groups)):
        if values is not None and len(values) != len(texts):
            raise bad_parameter("audit_texts", label, f"one per text ({len(texts)})", len(values))
    if cache is not None and not name:
        raise bad_parameter(
            "audit_texts",
            "name",
            "given with a cache, so that no other scorer's replies are taken for this one's",
            name,
        )
    caller = LimitedCaller(_refuse if offline else _one_by_one(scorer), limits or CallLimits())
    opened = nullcontext(cache) if isinstance(cache, ReplyCache) else ReplyCache(cache)
    with opened as replies:
        key = (name or "", version)
        asked = _Asked(replies, key, caller, None if offline else _many(scorer))
        known = asked.all(plan)
    rows = []
    for number, variant, text in plan.cells:
        for repeat in range(repeats):
            score, decision = score_of_reply(known[text, repeat], favourable=favourable, threshold=threshold)
            rows.append((number, variant, repeat, score, decision))
    scores = pd.DataFrame(rows, columns=["text", "variant", "repeat", "score", "decision"])
    for label, values in (("cluster", clusters), ("group", groups)):
        if values is not None:
            scores[label] = [values[number] for number in scores["text"]]
    audits = audit_scores(
        scores,
        unit="text",
        baseline=BASELINE,
        by=None if groups is None else "group",
        cluster=None if clusters is None else "cluster",
        decision="decision" if scores["decision"].notna().all() else None,
        margin=margin,
        level=level,
        random_state=random_state,
    )
    return TextAudit(audits, scores, plan.edited, asked.calls, asked.replayed)


class _Asked:
    """Replies of one run, each from the cache or from the scorer, kept at once."""

    def __init__(
        self,
        cache: ReplyCache,
        key: tuple[str, str],
        caller: LimitedCaller,
        many: Callable[[list[str]], list[Any]] | None,
    ) -> None:
        self.cache, self.key, self.caller, self.many = cache, key, caller, many
        self.batched = self.replayed = 0

    @property
    def calls(self) -> int:
        return self.caller.calls + self.batched

    def all(self, plan: TextPlan) -> dict[tuple[str, int], Any]:
        wanted = [
            (text, n) for n in range(plan.repeats) for text in dict.fromkeys(cell[2] for cell in plan.cells)
        ]
        known = {}
        missing = []
        for text, repeat in wanted:
            found = self.cache.get(*self.key, text, repeat)
            if found is None:
                missing.append((text, repeat))
            else:
                known[text, repeat] = found[0]
        self.replayed = len(known)
        if self.many is None:
            for text, repeat in missing:
                known[text, repeat] = self._keep(text, repeat, self.caller(text))
            return known
        cap = self.caller.limits.max_calls
        if cap is not None and len(missing) > cap:
            raise BudgetError(f"{len(missing)} texts are to be scored and the cap is {cap}. Raise the cap.")
        for start in range(0, len(missing), _BATCH):
            part = missing[start : start + _BATCH]
            answers = self.many([text for text, _ in part])
            if len(answers) != len(part):
                raise InputError(f"The model gave {len(answers)} replies to {len(part)} texts.")
            self.batched += len(part)
            for (text, repeat), answer in zip(part, answers, strict=True):
                known[text, repeat] = self._keep(text, repeat, answer)
        return known

    def _keep(self, text: str, repeat: int, reply: Any) -> Any:
        value = plain_reply(reply)
        self.cache.put(*self.key, text, repeat, value)
        return value


def _many(scorer: Any) -> Callable[[list[str]], list[Any]] | None:
    for method in ("predict_proba", "predict"):
        function = getattr(scorer, method, None)
        if callable(function):
            return lambda texts: list(function(texts))
    return None


def _one_by_one(scorer: Any) -> Callable[[str], Any]:
    if callable(scorer):
        function: Callable[[str], Any] = scorer
        return function
    if _many(scorer) is None:
        raise bad_parameter(
            "audit_texts", "scorer", "a function of a text, or a model with predict_proba or predict", scorer
        )
    return _refuse


def _refuse(text: str) -> Any:
    raise InputError(
        "A reply is not in the cache and offline=True forbids to ask. Run once without offline, with the same texts, "
        "edits, name and version."
    )
