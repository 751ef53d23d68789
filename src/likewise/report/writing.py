"""Results as documents, and documents as files, as lines in the terminal and as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from likewise.auditing.results.audit_result import AuditResult
from likewise.auditing.verification.verify import Verification
from likewise.core.errors import InputError, bad_parameter
from likewise.core.files import atomic_path, check_target
from likewise.core.messages import Texts
from likewise.core.plain import to_json
from likewise.core.progress import open_console
from likewise.core.text import printable
from likewise.explaining.burden import Recourse
from likewise.explaining.person import Explanation
from likewise.proxies import Disparity, ProxyTest
from likewise.report.comparison import Comparison, comparison_document
from likewise.report.document import audit_document
from likewise.report.first_words import MAX_LISTED
from likewise.report.html import RENDERED, render_html
from likewise.report.page import wrapped
from likewise.report.person import person_document
from likewise.report.provenance import Provenance
from likewise.report.proxies import ProxyFindings, proxies_document
from likewise.report.recourse import recourse_document
from likewise.report.score_report import print_scores, score_document
from likewise.report.verification import verification_document
from likewise.text.score_audit import ScoreAudits

# Kinds besides audits and comparisons: what is known of them.
_VALUES: dict[type, tuple[str, Callable[..., dict[str, Any]]]] = {
    Verification: ("verification", verification_document),
    Explanation: ("person", person_document),
    Recourse: ("recourse", recourse_document),
    ProxyFindings: ("proxies", proxies_document),
    ProxyTest: ("proxies", lambda found: proxies_document(ProxyFindings(found))),
    Disparity: ("proxies", lambda found: proxies_document(ProxyFindings(disparity=found))),
    ScoreAudits: ("scores", score_document),
}

# A page above this loads slowly; fewer people are listed then, and the page says how many.
MAX_BYTES = 1_900_000


def document_of(result: Any, **parts: Any) -> dict[str, Any]:
    """Return any result as its document.

    Parameters
    ----------
    result : AuditResult, Comparison, Verification, Explanation, Recourse, ProxyFindings, ProxyTest, Disparity or ScoreAudits
    **parts
        Of audits and comparisons as in `audit_document`; of the others ``name`` (of the model), ``source`` (what the table
        is called) and ``provenance``.

    Examples
    --------
    >>> from likewise.text.score_audit import ScoreAudits
    >>> document_of(ScoreAudits(()))["kind"]
    'likewise.report.scores'
    """
    if isinstance(result, AuditResult):
        return audit_document(result, **parts)
    if isinstance(result, Comparison):
        if parts.pop("evaluation", None) is not None:
            raise InputError(
                "report: 'evaluation' goes with one audit. A Comparison has one in each of its entries."
            )
        parts.pop("twins", None)
        return comparison_document(result, **parts)
    for one, (kind, values) in _VALUES.items():
        if isinstance(result, one):
            return {"kind": f"likewise.report.{kind}", **_made(**parts), **values(result)}
    kinds = (AuditResult, Comparison, *_VALUES)
    names = ", ".join(f"{'an' if one.__name__[0] in 'AE' else 'a'} {one.__name__}" for one in kinds)
    raise bad_parameter("report", "result", f"one of {names}", f"a {type(result).__name__}")


def _made(*, name: str = "", source: str = "X", provenance: Provenance | None = None) -> dict[str, Any]:
    made = None if provenance is None else provenance.document()
    return {"model": name, "source": source, "provenance": made}


def print_document(
    document: Mapping[str, Any], console: Console | None = None, *, language: str = "en"
) -> None:
    """Print the document of a verification, a person, the burden of those refused or scores: what matters most comes last.

    Parameters
    ----------
    document : dict
        Of `document_of`. Audits and comparisons are printed by `print_audit` and `print_comparison`.
    console : rich.console.Console, optional
        Where to print; standard output by default.
    language : {"en", "de"}, default="en"

    Examples
    --------
    >>> from likewise.text.score_audit import ScoreAudits
    >>> print_document(document_of(ScoreAudits(())))
    No effect beyond the noise was shown in 0 families of edits; that alone does not make it fair.
    """
    out = console or open_console()
    if document["kind"].endswith(".scores"):
        print_scores(document, out)
        return
    lines, verdict = _lines(document, Texts(language))
    for line in lines:
        out.print(Text(line), soft_wrap=True)
    for line in verdict:
        out.print(Text(line, style="bold"), soft_wrap=True)


def _lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    kind = document["kind"].rpartition(".")[2]
    render = RENDERED[kind][1]
    assert render is not None  # scores are printed as a table
    lines, verdict = render(document, texts)
    # A verification has room for two of them, and chooses.
    told = [] if kind == "verification" else [texts.said(one["sentence"]) for one in document["findings"]]
    lines = [line for one in told for line in wrapped(one)] + lines
    return [*lines, *([""] if lines and verdict else [])], verdict


def text_of(result: Any) -> str:
    """Return a verification, a person or the burden of those refused as text."""
    lines, verdict = _lines(document_of(result), Texts())
    return "\n".join([*lines, *verdict])


def save(result: Any, path: str | Path, *, language: str = "en", overwrite: bool = False) -> Path:
    """Write a result by the suffix of the path, .html or .json, whole or not at all."""
    target = check_target(path, owner="save", overwrite=overwrite)
    kind = target.suffix.lower()
    if kind not in (".html", ".htm", ".json"):
        raise bad_parameter("save", "path", "a file that ends in .html or .json", str(target))
    document = document_of(result)
    write_text(target, to_json(document) if kind == ".json" else render_html(document, language=language))
    return target


def write_html(
    result: Any,
    path: str | Path,
    *,
    title: str | None = None,
    explore: Mapping[str, Any] | None = None,
    max_people: int = MAX_LISTED,
    language: str = "en",
    overwrite: bool = False,
    **parts: Any,
) -> None:
    """Write a result as one self-contained page, whole or not at all.

    Parameters
    ----------
    result : AuditResult or Comparison, or another that `document_of` takes
    path : path-like
        The file; its folder must exist.
    title : str, optional
        Heading of the page.
    explore : dict, optional
        From `likewise.report.explore.explore_document`: the page gets a panel in which its reader edits a person and
        sees what the model decides. Rows of people and the model itself are in the page then.
    max_people : int, default=500
        How many of the people whose decision would change to list. Fewer if the page would grow beyond 2 MB.
    language : {"en", "de"}, default="en"
        Of the page; columns and values stay as they are.
    overwrite : bool, default=False
        Replace a file that exists.
    **parts
        ``evaluation``, ``diagnoses``, ``labels``, ``provenance`` and ``twins``, as in `audit_document`. Without a
        provenance the page says when it was made and by which versions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> from likewise.auditing.auditor import audit
    >>> from likewise.models import as_model
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = audit(as_model(score, takes_frame=True), people, [0, 1, 1, 1], metric=metric, delta=0.1)
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "audit.html"
    >>> write_html(result, target, labels={0: "refused", 1: "granted"})
    >>> target.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = check_target(path, owner="write_html", overwrite=overwrite)
    parts.setdefault("provenance", Provenance.now())
    listed = isinstance(result, (AuditResult, Comparison))
    while True:
        document = document_of(result, **parts, **({"max_people": max_people} if listed else {}))
        page = render_html(document, title=title, language=language, explore=explore)
        if len(page.encode()) <= MAX_BYTES or max_people <= 10 or not listed:
            break
        max_people = max(max_people // 2, 10)
    write_text(target, page)


def write_json(result: Any, path: str | Path, *, overwrite: bool = False, **parts: Any) -> None:
    """Write a result as a JSON file, whole or not at all.

    Parameters
    ----------
    result : AuditResult or Comparison, or another that `document_of` takes
    path : path-like
        The file; its folder must exist.
    overwrite : bool, default=False
        Replace a file that exists.
    **parts
        ``evaluation``, ``diagnoses``, ``max_people``, ``labels``, ``provenance``, ``twins`` and ``complete``, as in
        `audit_document`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> import json, pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "audit.json"
    >>> write_json(result, target)
    >>> json.loads(target.read_text(encoding="utf-8"))["kind"]
    'likewise.report.audit'
    """
    target = check_target(path, owner="write_json", overwrite=overwrite)
    write_text(target, to_json(document_of(result, **parts)))


def write_text(path: Path, text: str) -> None:
    """Write a text file of printable lines, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(printable(text, keep="\n\t"), encoding="utf-8", newline="\n")


def check_own_folder(
    folder: Path, own: str, kind: str, *, others: Sequence[str], by: str, option: str
) -> None:
    """Raise if files cannot be written into a folder, or would replace files that `by` did not write.

    The file `own`, of that kind, says that the others are ours to replace.
    """
    for parent in (folder, *folder.parents):
        if parent.exists() and not parent.is_dir():
            raise InputError(f"{parent} is a file, not a folder. Choose another {option}.")
    taken = [folder / name for name in others if (folder / name).exists()]
    if (folder / own).exists():
        try:
            known = json.loads((folder / own).read_text(encoding="utf-8"))["kind"] == kind
        except (ValueError, LookupError, TypeError):
            known = False
        taken = [] if known else [folder / own]
    if taken:
        raise InputError(f"{taken[0]} was not written by {by}. Choose another {option}.")
