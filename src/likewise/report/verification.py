"""A verification as a plain document, a page and in the terminal."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from likewise.auditing.verification.verify import Verification
from likewise.core.frames import to_pandas
from likewise.core.messages import Texts
from likewise.report.first_words import findings_document
from likewise.report.page import Answer, Tone, render_page, results_table, section
from likewise.report.terminal import open_console, terminal_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from likewise.auditing.inference.sanity import Finding
    from likewise.report.provenance import Provenance

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
        The domain's columns, ``decision``, ``pair`` and ``person``: the number of the person in the table whose own row
        is the first of the pair, −1 if both rows are made up.

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
    person = [-1 if flip.person is None else flip.person for flip in found.examples for _ in range(2)]
    return frame.assign(decision=decided, pair=np.repeat(np.arange(len(found.examples)), 2), person=person)


def verification_document(
    found: Verification,
    domain: Any,
    *,
    name: str,
    sensitive: Sequence[str],
    classes: Any = None,
    findings: Sequence[Finding] = (),
    provenance: Provenance | None = None,
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
    provenance : Provenance, optional
        When, of which files, by which command.

    Examples
    --------
    >>> from likewise.auditing.verification.verify import Verification
    >>> found = Verification(0.9, 0.0, 0.1, (1.0, 0.0, 0.0), (), (), 5, 0.1)
    >>> verification_document(found, None, name="m", sensitive=["sex"])["domain"]
    {'proved': 0.9, 'flips': 0.0, 'undecided': 0.1}
    """
    flips = flip_table(found, domain, classes)
    return {
        "kind": "likewise.report.verification",
        "model": name,
        "sensitive": list(sensitive),
        "provenance": None if provenance is None else provenance.document(),
        "findings": findings_document(findings),
        "domain": {key: getattr(found, key) for key in _SHARES},
        "people": None if found.people is None else dict(zip(_SHARES, found.people, strict=True)),
        "sampled": None if found.sampled is None else found.sampled._asdict(),
        "trivial": found.trivial,
        "reason": found.reason,
        "rules": [{"share": rule.share, "within": rule.within, "rows": rule.rows} for rule in found.rules],
        "flips": json.loads(flips.to_json(orient="records")),
        "regions": found.regions,
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def render_verification(document: Mapping[str, Any], *, title: str | None = None, texts: Texts) -> str:
    """Return the page of a document of `verification_document`."""
    domain, flips, columns = document["domain"], document["flips"], document["sensitive"]
    blocked = any(finding["blocks"] for finding in document["findings"])
    kind: tuple[str, Tone]
    if blocked:
        kind = "unanswered", "open"
    elif document["trivial"]:
        kind = "not_read", "plain"
    elif flips or domain["flips"]:
        kind = "depends", "bad"
    elif domain["proved"] == 1.0:
        kind = "independent", "good"
    else:
        kind = "not_found", "plain"
    shares = {name: _share(domain[name], texts) for name in _SHARES}
    heads = [texts("verified.share_of"), texts("verified.everybody"), texts("verified.table")]
    people = document["people"]
    words = (
        "verified.same" if blocked else "verified.same_proved",
        "verified.flips_shown",
        "verified.undecided",
    )
    rows = [
        f'<tr><th scope="row">{escape(texts(word))}</th><td class="right">{escape(shares[name])}</td>'
        f'<td class="right">{"–" if people is None else escape(_share(people[name], texts))}</td></tr>'
        for name, word in zip(_SHARES, words, strict=True)
    ]
    question = texts("verified.question", columns=columns)
    sections = [section(question, results_table(question, heads, rows), id="shares")]
    if flips:
        sections.append(_pairs(document, texts))
    rules = "".join(
        f"<li>{escape(texts('verified.rule', within=_share(rule['within'], texts), rows=rule['rows']).strip())}</li>"
        for rule in document["rules"][:10]
    )
    if rules:
        sections.append(section(texts("verified.most").rstrip(":"), f"<ul>{rules}</ul>", id="rules"))
    stopped = [texts("verified.stopped")] if document["stopped"] else []
    answer = Answer(
        texts(f"badge.{kind[0]}", columns=columns),
        kind[1],
        [texts(f"verified.sentence.{kind[0]}", columns=columns, n=len(flips) // 2, **shares)],
        warnings=[*(texts.said(finding["sentence"]) for finding in document["findings"]), *stopped],
        sure=[*_notes(dict(document), texts), texts("verified.sure")],
        not_shown=[texts("verified.not_shown", columns=columns), texts("verified.not_shown_range")],
        next_steps=[texts("verified.next_depends" if kind[1] == "bad" else "verified.next", columns=columns)],
    )
    facts = f"<p>{escape(texts('verified.regions', n=document['regions'], seconds=document['seconds']))}</p>"
    return render_page(
        title or texts("verified.title", name=document["model"]),
        sections,
        texts=texts,
        answer=answer,
        scope=[(texts("page.scope.sensitive"), texts.number(columns, "list"))],
        annex=[section(texts("page.computed.title"), facts, id="computed", level=3)],
        provenance=document["provenance"],
    )


def _pairs(document: Mapping[str, Any], texts: Texts) -> str:
    """Pairs of rows that differ in the sensitive columns alone and are decided differently."""
    flips, sensitive = document["flips"], document["sensitive"]
    rest = [name for name in flips[0] if name not in (*sensitive, "decision", "pair", "person")]
    rows = []
    for first, second in list(zip(flips[::2], flips[1::2], strict=True))[:10]:
        cells = [
            _cells(first, sensitive),
            _value(first["decision"]),
            _cells(second, sensitive),
            _value(second["decision"]),
        ]
        made = (
            texts("verified.pair_made_up")
            if first["person"] < 0
            else texts("verified.pair_row", row=str(first["person"]))
        )
        shown = "".join(f"<td>{escape(cell)}</td>" for cell in (*cells, _cells(first, rest)))
        rows.append(f'<tr><th scope="row">{escape(made)}</th>{shown}</tr>')
    keys = ("pair", "one", "decision", "other", "decision", "both_have")
    title = texts("verified.pairs_title")
    heads = "".join(f'<th scope="col">{escape(texts(f"verified.head.{key}"))}</th>' for key in keys)
    table = f'<table class="grid"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return section(
        title,
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">{table}</div>',
        id="pairs",
    )


def print_verification(
    document: dict[str, Any], console: Console | None = None, *, language: str = "en"
) -> None:
    """Print a document of `verification_document`.

    Parameters
    ----------
    document : dict
    console : rich.console.Console, optional
        Where to print; standard output by default.
    language : {"en", "de"}, default="en"

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
    out, texts = open_console(console), Texts(language)
    for finding in document["findings"]:
        out.print(Text(finding["sentence"], style="bold yellow" if finding["blocks"] else "bold"))
    out.print(_shares(document, texts))
    for line in _notes(document, texts):
        out.print(Text(line))
    if document["rules"]:
        out.print(Text("\n" + texts("verified.most")))
    for rule in document["rules"][:5]:
        out.print(Text(texts("verified.rule", within=_share(rule["within"], texts), rows=rule["rows"])))
    sensitive = document["sensitive"]
    flips = document["flips"]
    for first, second in list(zip(flips[::2], flips[1::2], strict=True))[:3]:
        rest = [name for name in first if name not in (*sensitive, "decision", "pair", "person")]
        alike = texts("verified.both", cells=_cells(first, rest))
        if first["person"] < 0 and document["people"] is not None:
            alike = texts("verified.made_up", cells=_cells(first, rest))
        for start, row in (("\n", first), ("", second)):
            words = texts("verified.decided", cells=_cells(row, sensitive), decision=_value(row["decision"]))
            out.print(Text(start + words))
        out.print(Text(alike, style="dim"))
    if document["stopped"]:
        out.print(Text(texts("verified.stopped"), style="yellow"))


def _shares(document: dict[str, Any], texts: Texts) -> Table:
    """The table of shares: the domain's, and those of the people."""
    domain, people, sampled = document["domain"], document["people"], document["sampled"]
    head = ["", texts("verified.everybody"), *([] if people is None else [texts("verified.table")])]
    table = terminal_table(texts("verified.question", columns=document["sensitive"]), head)
    pairs = len(document["flips"]) // 2
    # What is proved of a model and a table that do not belong together is proved of nobody.
    sure = not any(finding["blocks"] for finding in document["findings"])
    same = "verified.same_proved" if sure else "verified.same"
    words = (same, "verified.flips_shown", "verified.undecided")
    for key, word in zip(_SHARES, words, strict=True):
        cell = _share(domain[key], texts)
        if key == "flips" and not domain[key] and pairs:
            # A pair is shown, though no share that could be written.
            cell = texts("verified.pairs", n=pairs)
        table.add_row(texts(word), cell, *([] if people is None else [_share(people[key], texts)]))
    if sampled is not None and not document["trivial"]:
        share, low, high = (_share(sampled[key], texts) for key in ("share", "low", "high"))
        cell = texts("verified.interval", share=share, low=low, high=high)
        table.add_row(texts("verified.sampled"), cell)
    return table


def _notes(document: dict[str, Any], texts: Texts) -> list[str]:
    said = []
    if document["sampled"] is not None and not document["trivial"]:
        said.append(texts("verified.sample_of", n=document["sampled"]["rows"]))
    if document["trivial"]:
        said.append(texts("verified.trivial", columns=document["sensitive"]))
    if document["reason"]:
        said.append(texts("verified.not_read", why=document["reason"]))
    return said


def _share(value: float, texts: Texts) -> str:
    r"""A share in percent; one that would be rounded to 0 or 1 without being it is not written as 0 or 1."""
    sign = ""
    if 0.0 < value < 0.000005:
        sign, value = "< ", 0.00001
    elif 0.999995 <= value < 1.0:
        sign, value = "> ", 0.99999
    words = f"{sign}{value:.3%}"
    return words if texts.language == "en" else words.replace(".", ",").replace("%", "\xa0%")


def _cells(row: dict[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {_value(row[name])}" for name in names)


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
