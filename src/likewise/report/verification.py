"""A verification as a plain document, as a JSON file and in the terminal."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.bounds.verifying.verification import Verification
from likewise.core.files import atomic_path
from likewise.core.frames import to_pandas
from likewise.core.text import join_words
from likewise.report.first_words import findings_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from likewise.auditing.claims.sanity import Finding

__all__ = ["flip_table", "print_verification", "verification_document", "write_verification"]

_SHARES = ("proved", "flips", "undecided")


def flip_table(found: Verification, domain: Any, classes: Any = None) -> pd.DataFrame:
    """Rows that flip, in original units: two for each pair, with what is decided for them.

    Parameters
    ----------
    found : Verification
    domain : TabularDomain
        That was verified over.
    classes : array-like, optional
        Names of the classes.

    Returns
    -------
    DataFrame
        The domain's columns, ``pair`` and ``decision``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import likewise as lw
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = lw.TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 1, 0, 1])
    >>> found = lw.verify(tree, domain, ["sex"], encoded=True)
    >>> flip_table(found, domain, ["refused", "granted"]).iloc[:2][["sex", "decision"]].values.tolist()
    [['f', 'refused'], ['m', 'granted']]
    """
    if not found.examples:
        return pd.DataFrame()
    rows = np.concatenate([np.stack([flip.first, flip.second]) for flip in found.examples])
    frame = to_pandas(domain.decode(rows), owner="verify").reset_index(drop=True)
    codes = [code for flip in found.examples for code in flip.decisions]
    decided = codes if classes is None else np.asarray(classes)[codes].tolist()
    return frame.assign(decision=decided, pair=np.repeat(np.arange(len(found.examples)), 2))


def verification_document(
    found: Verification,
    domain: Any,
    *,
    name: str,
    sensitive: Sequence[str],
    classes: Any = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Any]:
    """Everything about a verification as plain values.

    Parameters
    ----------
    found : Verification
    domain : TabularDomain
    name : str
        Of the model.
    sensitive : sequence of str
    classes : array-like, optional
        Names of the classes.
    findings : sequence of Finding, optional
        What has to be known before any number.

    Examples
    --------
    >>> from likewise.auditing.bounds.verifying.verification import Verification
    >>> found = Verification(0.9, 0.0, 0.1, (1.0, 0.0, 0.0), (), (), 5, 0.1)
    >>> verification_document(found, None, name="m", sensitive=["sex"])["domain"]
    {'proved': 0.9, 'flips': 0.0, 'undecided': 0.1}
    """
    flips = flip_table(found, domain, classes)
    return {
        "kind": "verification",
        "model": name,
        "sensitive": list(sensitive),
        "findings": findings_document(findings),
        "domain": {key: getattr(found, key) for key in _SHARES},
        "people": None if found.people is None else dict(zip(_SHARES, found.people, strict=True)),
        "rules": [{"share": rule.share, "within": rule.within, "rows": rule.rows} for rule in found.rules],
        "flips": json.loads(flips.to_json(orient="records")),
        "regions": found.regions,
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def write_verification(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document of `verification_document` as JSON, whole or not at all.

    Parameters
    ----------
    document : dict
    path : path-like

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import likewise as lw
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = lw.TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 1, 0, 1])
    >>> found = lw.verify(tree, domain, ["sex"], encoded=True)
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "verified.json"
    >>> write_verification(verification_document(found, domain, name="tree", sensitive=["sex"]), target)
    >>> json.loads(target.read_text(encoding="utf-8"))["domain"]["flips"]
    1.0
    """
    with atomic_path(path) as draft:
        draft.write_text(
            json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )


def print_verification(document: dict[str, Any], console: Console | None = None) -> None:
    """Print a document of `verification_document`.

    Parameters
    ----------
    document : dict
    console : rich.console.Console, optional
        Where to print; standard output by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import likewise as lw
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> domain = lw.TabularDomain.from_frame(people)
    >>> tree = DecisionTreeClassifier().fit(domain.encode(people), [0, 1, 0, 1])
    >>> found = lw.verify(tree, domain, ["sex"], encoded=True)
    >>> import io
    >>> from rich.console import Console
    >>> page = io.StringIO()
    >>> print_verification(verification_document(found, domain, name="tree", sensitive=["sex"]), Console(file=page, width=80))
    >>> "a different one, shown" in page.getvalue()
    True
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = console or Console(highlight=False)
    columns = join_words(document["sensitive"])
    for finding in document["findings"]:
        out.print(Text(finding["sentence"], style="bold yellow" if finding["blocks"] else "bold"))
    table = Table(title=Text(f"Does the decision depend on {columns}?"), title_justify="left")
    table.add_column("")
    table.add_column("all people who could exist", justify="right")
    if document["people"] is not None:
        table.add_column("people in the table", justify="right")
    # What is proved of a model and a table that do not belong together is proved of nobody.
    sure = not any(finding["blocks"] for finding in document["findings"])
    words = (
        "the same decision, proved" if sure else "the same decision",
        "a different one, shown",
        "undecided",
    )
    for key, word in zip(_SHARES, words, strict=True):
        cells = [f"{document['domain'][key]:.3%}"]
        cells += [] if document["people"] is None else [f"{document['people'][key]:.3%}"]
        table.add_row(word, *cells)
    out.print(table)
    if document["rules"]:
        out.print(Text("\nWhere decisions flip most:"))
    for rule in document["rules"][:5]:
        out.print(Text(f"  at least {rule['within']:.2%} of those with {rule['rows']}"))
    for first, second in _pairs(document["flips"])[:3]:
        out.print(Text(f"\n{_words(first, document['sensitive'])}"))
        out.print(Text(f"{_words(second, document['sensitive'])}"))
        rest = [name for name in first if name not in (*document["sensitive"], "decision", "pair")]
        out.print(
            Text("  both " + ", ".join(f"{name} = {_value(first[name])}" for name in rest), style="dim")
        )
    if document["stopped"]:
        out.print(Text("Stopped: what is proved so far stands; the rest is undecided.", style="yellow"))


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return list(zip(rows[::2], rows[1::2], strict=True))


def _words(row: dict[str, Any], sensitive: list[str]) -> str:
    own = ", ".join(f"{name} = {_value(row[name])}" for name in sensitive)
    return f"{own}: decided {_value(row['decision'])}"


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
