"""A study as one page that stands on its own: no network, no script, everything that comes from data escaped."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from likewise._version import __version__
from likewise.core.text import once_each
from likewise.experiments.study_tables import Entry, Row, StudyTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_svg", "render_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CSS = """
.wrap { width: min(92rem, 100%); }
.scroll { overflow-x: auto; }
.results { width: 100%; font-size: .92rem; }
.results th, .results td { padding: .5rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; vertical-align: top; }
.results th:first-child { text-align: left; }
.results .paper { display: block; color: var(--muted); font-size: .82rem; }
.results .better { color: var(--ok); } .results .worse { color: var(--harm); }
figure { margin: 1rem 0; background: #fff; border-radius: .6rem; padding: .5rem; } figure img { width: 100%; height: auto; display: block; }
"""


def draw_svg(figure: Figure) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    import matplotlib as mpl

    stream = io.BytesIO()
    # Identifiers in the file are otherwise drawn at random, and the date is written into it.
    with mpl.rc_context({"svg.hashsalt": "likewise"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, dpi=100)
    return stream.getvalue()


def render_page(table: StudyTable, drawings: Mapping[str, bytes]) -> str:
    """Return a study's page.

    Parameters
    ----------
    table : StudyTable
    drawings : mapping of str to bytes
        Name to SVG.

    Returns
    -------
    str
        HTML.
    """
    css = (resources.files("likewise.report") / "assets" / "page.css").read_text(encoding="utf-8") + _CSS
    study = table.study
    remarks = "".join(f"<p>{escape(line)}</p>" for line in study.remarks)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{escape(study.title)}</title>
<style>{css}</style>
</head>
<body>
<header class="top"><div class="wrap"><p class="mark">likewise<span>reproduction</span></p>
<h1>{escape(study.title)}</h1></div></header>
<main class="wrap">
<section class="card" aria-labelledby="table"><h2 id="table">Ours and the paper's</h2>
<p class="lede">{escape(table.legend)}</p>
{_missing(table)}{_results(table)}
{remarks}</section>
{_figures(drawings)}<section class="card" aria-labelledby="methods"><h2 id="methods">What each method used</h2>
{_methods(table)}</section>
</main>
<footer class="wrap foot"><span>{_made(table)}</span><span>likewise {escape(__version__)}</span></footer>
</body>
</html>
"""


def _missing(table: StudyTable) -> str:
    if not table.missing:
        return ""
    words = ", ".join(f"{method} ({count} of {table.seeds})" for method, count in table.missing.items())
    return f"<p><strong>Not finished: {escape(words)}.</strong></p>\n"


def _results(table: StudyTable) -> str:
    heads = "".join(
        f'<th scope="col">{escape(m.title)} <span aria-label="{m.better} is better">'
        f"{'↑' if m.better == 'higher' else '↓'}</span></th>"
        for m in table.study.measures
    )
    rows = "\n".join(_row(row) for row in table.rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="results">'
        f'<thead><tr><th scope="col">Method</th>{heads}<th scope="col">CPU s</th></tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(row: Row) -> str:
    cells = "".join(_entry(entry) for entry in row.entries)
    seeds = f'<span class="paper">{len(row.seeds)} seed{"s" * (len(row.seeds) != 1)}</span>'
    return f'<tr><th scope="row">{escape(row.method)}{seeds}</th>{cells}<td>{row.cpu_seconds:,.0f}</td></tr>'


def _entry(entry: Entry) -> str:
    words = {"▲": "better", "▼": "worse"}.get(entry.mark, "")
    mark = f' <span class="{words}" title="{words} than the paper">{entry.mark}</span>' if words else ""
    paper = f'<span class="paper">paper {escape(entry.theirs)}</span>' if entry.theirs else ""
    return f"<td>{escape(entry.ours)}{mark}{paper}</td>"


def _figures(drawings: Mapping[str, bytes]) -> str:
    if not drawings:
        return ""
    shown = "\n".join(
        f'<figure><img alt="{escape(name.replace("-", " ").capitalize())}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"></figure>'
        for name, svg in drawings.items()
    )
    return (
        f'<section class="card" aria-labelledby="figures"><h2 id="figures">Figures</h2>\n{shown}</section>\n'
    )


def _methods(table: StudyTable) -> str:
    parts = []
    for row in table.rows:
        told = "".join(
            f'<p class="muted small">Warned: {escape(line)}{f" ({count}×)" if count > 1 else ""}</p>'
            for line, count in once_each(row.warnings)
        )
        parts.append(f"<h3>{escape(row.method)}</h3><p>{escape(row.note)}</p>{told}")
    return "\n".join(parts)


def _made(table: StudyTable) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in table.versions.items())
    return escape(f"{table.cpu_seconds / 60:.1f} CPU minutes in all. {packages}.")
