"""A verification as a plain document, a page and in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.auditing.verification.verify import PAIR_COLUMNS, Verification
from likewise.core.messages import Texts
from likewise.core.plain import beside, plain, plain_fields
from likewise.core.text import text_table
from likewise.report.page import Answer, Tone, cells_section, listed, section, wrapped
from likewise.report.templates import where_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHARES = ("proved", "flips", "undecided")
_TONES: dict[str, Tone] = {
    "unanswered": "open", "not_read": "plain", "depends": "bad", "independent": "plain", "not_found": "plain"
}  # fmt: skip
# Lines in the terminal.
_LINES = 20


def verification_document(found: Verification) -> dict[str, Any]:
    """Everything about a verification as plain values."""
    names = dict.fromkeys([*_SHARES, "examples"])
    return plain_fields(found, sensitive_features="sensitive", **names) | {
        "badge": found.badge,
        "domain": {key: getattr(found, key) for key in _SHARES},
        "people": None if found.people is None else dict(zip(_SHARES, found.people, strict=True)),
        "sampled": None if found.sampled is None else plain(found.sampled._asdict()),
        "flips": plain(found.examples.to_dict("records")),
    }


def verification_page(document: Mapping[str, Any], texts: Texts) -> dict[str, Any]:
    """The parts of a page."""
    columns = document["sensitive"]
    kind, tone = document["badge"], _TONES[document["badge"]]
    rows = _shares(document, texts)
    heads = [texts("verified.share_of"), texts("verified.everybody"), texts("verified.table")]
    question = texts("verified.question", columns=columns)
    sections = [cells_section(question, heads, rows, right=(1, 2), id="shares"), _pairs(document, texts)]
    rules = _rules(document, texts, 10)
    if rules:
        sections.append(section(texts("verified.most").rstrip(":"), listed(rules), id="rules"))
    facts = listed([texts("verified.regions", n=document["regions"], seconds=document["seconds"])])
    return {
        "title": texts("verified.title", name=document["model"]),
        "answer": Answer(
            texts(f"badge.{kind}", columns=columns),
            tone,
            [_sentence(document, texts)],
            warnings=[texts("verified.stopped")] if document["stopped"] else [],
            sure=[*_notes(document, texts), texts("verified.sure")],
            not_shown=[texts("verified.not_shown", columns=columns), texts("verified.not_shown_range")],
            next_steps=[
                texts("verified.next_depends" if tone == "bad" else "verified.next", columns=columns)
            ],
        ),
        "sections": sections,
        "annex": [section(texts("page.computed.title"), facts, id="computed", level=3)],
        "personal": bool(document["flips"]),
    }


def _rules(document: Mapping[str, Any], texts: Texts, most: int) -> list[str]:
    """In which part of the table decisions flip most."""
    return [
        texts("verified.rule", within=_share(rule["within"], texts), rows=rule["rows"]).strip()
        for rule in document["rules"][:most]
        if rule["rows"] != "everybody"
    ]


def _pairs(document: Mapping[str, Any], texts: Texts) -> str:
    """Pairs of rows that differ in the sensitive columns alone and are decided differently."""
    flips = document["flips"]
    sensitive, rest = _columns(document)
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
            if first["row"] is None
            else where_words(texts, document, first["row"])
        )
        rows.append((made, *cells, _cells(first, rest)))
    keys = ("pair", "one", "decision", "other", "decision", "both_have")
    heads = [texts(f"verified.head.{key}") for key in keys]
    return cells_section(texts("verified.pairs_title"), heads, rows, id="pairs")


def verification_lines(document: Mapping[str, Any], texts: Texts) -> tuple[list[str], list[str]]:
    """Findings, shares, where decisions flip most, one pair; the verdict apart. At most 20 lines together."""
    said = [texts.said(finding["sentence"]) for finding in document["findings"]]
    title = texts(f"badge.{document['badge']}", columns=document["sensitive"])
    sentence = _sentence(document, texts)
    if document["badge"] == "unanswered":
        return [], wrapped(f"{title}: {said[0]}", most=6)
    verdict = wrapped(f"{title}: {sentence}", most=5)
    top = [line for one in said[:2] if one != sentence for line in wrapped(one, most=2)]
    notes = [line for one in _notes(document, texts) for line in wrapped(one, most=2)]
    notes += wrapped(texts("verified.stopped"), most=1) if document["stopped"] else []
    rules = [f"  {line}" for one in _rules(document, texts, 2) for line in wrapped(one, width=78, most=1)]
    rules = [texts("verified.most"), *rules] if rules else []
    lines = [*top, *([""] if top else []), *_share_lines(document, texts), "", *notes]
    room = _LINES - len(lines) - len(verdict) - 1
    for part in (wrapped(_pair(document, texts), most=3), rules):
        if part and len(part) <= room:
            lines += part
            room -= len(part)
    return lines, verdict


def _sentence(document: Mapping[str, Any], texts: Texts) -> str:
    shares = {name: _share(document["domain"][name], texts) for name in _SHARES}
    same = [one["sentence"] for one in document["findings"] if one["kind"] == "same"]
    if same and document["badge"] == "not_found":
        return texts.said(same[0])
    key, columns = f"verified.sentence.{document['badge']}", document["sensitive"]
    if document["badge"] == "depends" and not document["domain"]["flips"]:
        key = "verified.sentence.depends_pairs"
    return texts(key, columns=columns, n=len(document["flips"]) // 2, **shares)


def _pair(document: Mapping[str, Any], texts: Texts) -> str:
    """The first pair in words: somebody of the table if there is one."""
    if not document["flips"]:
        return ""
    first, second = document["flips"][:2]
    sensitive, rest = _columns(document)
    where = (
        texts("verified.pair_made_up") if first["row"] is None else where_words(texts, document, first["row"])
    )
    both = [
        texts("verified.decided", cells=_cells(row, sensitive), decision=_value(row["decision"]))
        for row in (first, second)
    ]
    return f"{where}: {'; '.join(both)}; {texts('verified.both', cells=_cells(first, rest)).strip()}"


def _columns(document: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The columns of a pair: the sensitive ones, and those that both rows share."""
    sensitive = [beside(name, PAIR_COLUMNS) for name in document["sensitive"]]
    names = next(iter(document["flips"]), ())
    return sensitive, [name for name in names if name not in (*sensitive, *PAIR_COLUMNS)]


def _shares(document: Mapping[str, Any], texts: Texts) -> list[tuple[str, str, str]]:
    """Shares of everybody who could exist, and of the people of the table if there are any."""
    people = document["people"]
    same = "verified.same" if document["badge"] == "unanswered" else "verified.same_proved"
    return [
        (
            texts(word),
            _of_domain(document, key, texts),
            "–" if people is None else _share(people[key], texts),
        )
        for key, word in zip(_SHARES, (same, "verified.flips_shown", "verified.undecided"), strict=True)
    ]


def _share_lines(document: Mapping[str, Any], texts: Texts) -> list[str]:
    """The shares as a table in the terminal."""
    alone, sampled = document["people"] is None, document["sampled"]
    rows = [("", texts("verified.everybody"), texts("verified.table")), *_shares(document, texts)]
    if sampled is not None and not document["trivial"]:
        share, low, high = (_share(sampled[key], texts) for key in ("share", "low", "high"))
        rows.append(
            (texts("verified.sampled"), texts("verified.interval", share=share, low=low, high=high), "")
        )
    head, *rest = ((a, b, "" if alone else c) for a, b, c in rows)
    return text_table(head, rest).split("\n")


def _notes(document: Mapping[str, Any], texts: Texts) -> list[str]:
    said = []
    if document["sampled"] is not None and not document["trivial"]:
        said.append(texts("verified.sample_of", n=document["sampled"]["rows"]))
    if document["trivial"]:
        said.append(texts("verified.trivial", columns=document["sensitive"]))
    if document["people"] is not None and not document["labelled"]:
        said.append(texts("verified.unlabelled"))
    if document["reason"]:
        said.append(texts("verified.not_read", why=document["reason"]))
    return said


def _of_domain(document: Mapping[str, Any], name: str, texts: Texts) -> str:
    """A share of everybody who could exist; of pairs that are shown though no share is, how many there are."""
    share, pairs = document["domain"][name], len(document["flips"]) // 2
    return (
        texts("verified.pairs", n=pairs) if name == "flips" and not share and pairs else _share(share, texts)
    )


def _share(value: float, texts: Texts) -> str:
    r"""A share in percent; one that would be rounded to 0 or 1 without being it is not written as 0 or 1."""
    sign = ""
    if 0.0 < value < 0.000005:
        sign, value = "< ", 0.00001
    elif 0.999995 <= value < 1.0:
        sign, value = "> ", 0.99999
    words = f"{sign}{value:.3%}"
    return words if texts.language == "en" else words.replace(".", ",").replace("%", "\xa0%")


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {_value(row[name])}" for name in names)


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
