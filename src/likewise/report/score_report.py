"""A paired audit of scores as a plain document, a JSON file, a page and a table in the terminal."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._version import __version__
from likewise.core.files import atomic_path
from likewise.core.intervals import Measure
from likewise.core.text import join_words, short_number
from likewise.report.document import check_target
from likewise.report.plain import rounded
from likewise.text.score_audit import EditEffect, ScoreAudit, ScoreAudits

if TYPE_CHECKING:
    from rich.console import Console

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_CSS = """
.wrap { width: min(92rem, 100%); }
.scroll { overflow-x: auto; }
.results { width: 100%; font-size: .9rem; }
.results th, .results td { padding: .4rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
.results th:first-child, .results td:nth-child(2) { text-align: left; }
.results .is-shifted { color: var(--harm); font-weight: 600; } .results .is-equivalent { color: var(--ok); }
"""
_HEAD = (
    "family",
    "value",
    "from baseline",
    "above placebos",
    "size",
    "floor",
    "excess",
    "adjusted p",
    "verdict",
)
_NO_FLOOR = "effects are measured from the baseline alone, and how far noise moves these scores is unknown"


def score_document(result: ScoreAudits) -> dict[str, Any]:
    """Return everything about a paired audit as plain values.

    Parameters
    ----------
    result : ScoreAudits

    Returns
    -------
    dict
        ``kind``, ``version``, ``shifted`` (how many families in all) and ``parts``.

    Examples
    --------
    >>> score_document(ScoreAudits(()))["shifted"]
    0
    """
    return {
        "kind": "likewise.report.scores",
        "version": 1,
        "shifted": sum(len(part.shifted) for part in result),
        "notes": notes_of(result),
        "parts": [_part(part) for part in result],
    }


def notes_of(result: ScoreAudits) -> list[str]:
    """Return what a reader must know about the numbers, in sentences."""
    notes = []
    bare = [part.name or "the table" for part in result if not part.placebos]
    if bare:
        notes.append(f"No placebos in {join_words(bare)}: {_NO_FLOOR}.")
    few = [part.name or "the table" for part in result if part.least_p_value > part.level]
    if few:
        notes.append(f"{join_words(few)}: too few clusters for a test to show anything at this level.")
    dropped = sum(part.dropped for part in result)
    if dropped:
        notes.append(f"{dropped} units without a baseline were left out.")
    return notes


def write_scores_json(result: ScoreAudits, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a paired audit as a JSON file, whole or not at all.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.text import audit_scores
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> import json, tempfile
    >>> target = Path(tempfile.mkdtemp()) / "scores.json"
    >>> write_scores_json(result, target)
    >>> sorted(json.loads(target.read_text(encoding="utf-8")))[:2]
    ['kind', 'notes']
    """
    target = check_target(path, owner="write_scores_json", overwrite=overwrite)
    with atomic_path(target) as temporary:
        temporary.write_text(scores_text(result) + "\n", encoding="utf-8")


def scores_text(result: ScoreAudits) -> str:
    """Return the document as JSON; the same result gives the same bytes."""
    return json.dumps(score_document(result), indent=1, ensure_ascii=False, allow_nan=False)


def write_scores_html(
    result: ScoreAudits, path: str | Path, *, title: str = "Scores of edited texts", overwrite: bool = False
) -> None:
    """Write a paired audit as one page that stands on its own: no network, no script.

    Parameters
    ----------
    result : ScoreAudits
    path : path-like
    title : str
    overwrite : bool, default=False
        Replace a file that exists.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.text import audit_scores
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "scores.html"
    >>> write_scores_html(result, target)
    >>> target.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = check_target(path, owner="write_scores_html", overwrite=overwrite)
    css = (resources.files("likewise.report") / "assets" / "page.css").read_text(encoding="utf-8") + _CSS
    notes = "".join(f'<p class="warning">{escape(note)}</p>' for note in notes_of(result))
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{escape(title)}</title>
<style>{css}</style>
</head>
<body>
<header class="top"><div class="wrap"><p class="mark">likewise<span>paired audit</span></p>
<h1>{escape(title)}</h1></div></header>
<main class="wrap">
<section class="card"><p class="sentence">{escape(_sentence(result))}</p>
<p class="lede">{escape(_LEGEND)}</p>{notes}</section>
{"".join(_section(part) for part in result)}</main>
<footer class="wrap foot"><span>likewise {escape(__version__)}</span></footer>
</body>
</html>
"""
    with atomic_path(target) as temporary:
        temporary.write_text(page, encoding="utf-8")


_LEGEND = (
    "From baseline: mean score of the value that shifts most, minus the baseline's. Above placebos: the same minus "
    "what edits that should change nothing did, with its interval. Size and floor: mean absolute change by the "
    "family's edits and by the placebos. Shifted: differs from the baseline and from the placebos, in one direction, "
    "after Holm's adjustment. Equivalent: shown to be smaller than the margin. Undecided: neither."
)


def print_scores(result: ScoreAudits, console: Console | None = None) -> None:
    """Print one row per part and family, then what it means.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise.text import audit_scores
    >>> rows = [(text, variant, text % 2 + shift) for text in range(8)
    ...         for variant, shift in [("baseline", 0), ("name_a", 0), ("name_b", -1), ("placebo_1", 0)]]
    >>> result = audit_scores(pd.DataFrame(rows, columns=["text", "variant", "score"]), unit="text")
    >>> import io
    >>> from rich.console import Console
    >>> page = io.StringIO()
    >>> print_scores(result, Console(file=page, width=140))
    >>> "shifted" in page.getvalue()
    True
    """
    from rich.text import Text

    from likewise.report.terminal import _console, _table

    out = _console(console)
    # A narrow terminal has no room for what can be read in the page and the JSON.
    shown = (
        range(len(_HEAD)) if out.width >= 130 else (0, 1, 3, 5, 7, 8) if out.width >= 100 else (0, 3, 5, 7, 8)
    )
    for part in result:
        table = _table(part.name or None, [_HEAD[place] for place in shown])
        for effect in part.families:
            style = {"shifted": "red", "equivalent": "green"}.get(effect.verdict, "")
            *cells, verdict = (_cells(effect)[place] for place in shown)
            table.add_row(*map(Text, cells), Text(verdict, style=style))
        out.print(table)
    for note in notes_of(result):
        out.print(Text(f"Note: {note}"))
    out.print(Text(_sentence(result)))


def _sentence(result: ScoreAudits) -> str:
    shown = [f"{part.name} {effect.name}".strip() for part in result for effect in part.shifted]
    total = sum(len(part.families) for part in result)
    if not shown:
        return f"No effect beyond the noise was shown in {total} families of edits; that alone does not make it fair."
    return f"Beyond the noise in {len(shown)} of {total} families of edits: {join_words(shown)}."


def _section(part: ScoreAudit) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in _HEAD)
    rows = []
    for effect in part.families:
        first, *middle, verdict = (escape(cell) for cell in _cells(effect))
        cells = "".join(f"<td>{cell}</td>" for cell in middle)
        rows.append(f'<tr><th scope="row">{first}</th>{cells}<td class="is-{verdict}">{verdict}</td></tr>')
    told = f"{part.n_units} units in {part.n_clusters} clusters, {len(part.placebos)} placebos."
    return (
        f'<section class="card"><h2>{escape(part.name or "All scores")}</h2><p class="lede">{told}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="results"><thead><tr>{heads}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>\n"
    )


def _cells(effect: EditEffect) -> list[str]:
    return [
        effect.name,
        effect.worst.partition("_")[2] or effect.worst,
        short_number(effect.change.value),
        _with_ends(effect.shift),
        short_number(effect.size),
        short_number(effect.floor),
        _with_ends(effect.excess),
        short_number(effect.adjusted),
        effect.verdict,
    ]


def _with_ends(measure: Measure) -> str:
    if measure.value != measure.value:  # NaN
        return "unknown"
    return f"{short_number(measure.value)} [{short_number(measure.low)}, {short_number(measure.high)}]"


def _part(part: ScoreAudit) -> dict[str, Any]:
    return {
        "name": part.name,
        "units": part.n_units,
        "clusters": part.n_clusters,
        "dropped": part.dropped,
        "placebos": list(part.placebos),
        "level": part.level,
        "margin": part.margin,
        "families": [_effect(effect) for effect in part.families],
        "edits": [_effect(effect) for effect in part.edits],
        "pairs": [_measure(measure) for measure in part.pairs],
    }


def _effect(effect: EditEffect) -> dict[str, Any]:
    return {
        "name": effect.name,
        "worst": effect.worst,
        "units": effect.n_units,
        "change": _measure(effect.change),
        "shift": _measure(effect.shift),
        "size": rounded(effect.size),
        "floor": rounded(effect.floor),
        "excess": _measure(effect.excess),
        "changed_decisions": None if effect.changed is None else _measure(effect.changed),
        "p_value": rounded(effect.p_value),
        "adjusted_p_value": rounded(effect.adjusted),
        "equivalence_p_value": rounded(effect.equivalence),
        "verdict": effect.verdict,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "value": rounded(measure.value),
        "low": rounded(measure.low),
        "high": rounded(measure.high),
    }
