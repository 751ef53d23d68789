"""The page of an audit or a comparison, and of every other document: everything is put into the one template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

from likewise.auditing.results.effects import ANY
from likewise.core.errors import bad_parameter
from likewise.core.messages import Texts, check_language
from likewise.core.text import join_words, option
from likewise.report.comparison import compared_measures, without_groups
from likewise.report.document import KINDS
from likewise.report.first_words import by_attribute, disadvantaged, recorded_as, value_name
from likewise.report.page import Answer, Tone, render_page, section
from likewise.report.person import person_lines, person_page
from likewise.report.proxies import proxies_lines, proxies_page
from likewise.report.recourse import recourse_lines, recourse_page
from likewise.report.score_report import score_page
from likewise.report.templates import asset, cell_words, templates
from likewise.report.unfair_map_values import MAX_COLUMNS
from likewise.report.verification import verification_lines, verification_page

_Page = Callable[[Mapping[str, Any], Texts], dict[str, Any]]
# Page and lines of the terminal (the verdict apart) of a kind. Audits and comparisons are written below, scores have a table.
RENDERED: dict[
    str, tuple[_Page, Callable[[Mapping[str, Any], Texts], tuple[list[str], list[str]]] | None]
] = {
    "scores": (score_page, None),
    "verification": (verification_page, verification_lines),
    "person": (person_page, person_lines),
    "recourse": (recourse_page, recourse_lines),
    "proxies": (proxies_page, proxies_lines),
}
_SCRIPTS = ("texts.js", "elements.js", "page.js")
# Besides, if a reader may edit people and see what the models decide.
_EXPLORE_SCRIPTS = ("evaluate.js", "remote.js", "rows.js", "explore.js")


def render_html(
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    language: str = "en",
    explore: Mapping[str, Any] | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the page of a document.

    Parameters
    ----------
    document : dict
        Of `document_of`, or the same read back from a JSON file.
    title : str, optional
        Heading of the page.
    language : {"en", "de"}, default="en"
        Of the page; columns and values stay as they are.
    explore : dict, optional
        As in `write_html`. With an ``endpoint`` in it the page asks that, and nothing else, about rows.
    links : sequence of (str, str)
        Words and addresses of other pages of a server.

    Returns
    -------
    str
        The same document gives the same page, byte for byte.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> from likewise.report import audit_document
    >>> "<h1>Hiring</h1>" in render_html(audit_document(result), title="Hiring")
    True
    """
    texts = Texts(check_language(language, owner="render_html"))
    kind = document["kind"].rpartition(".")[2]
    if kind in RENDERED:
        page = RENDERED[kind][0](document, texts)
        told = [texts.said(one["sentence"]) for one in document.get("findings", ())]
        answer = replace(page["answer"], warnings=[*told, *page["answer"].warnings])
        columns = document.get("sensitive")
        scope = [(texts("page.scope.sensitive"), texts.number(columns, "list"))] if columns else []
        if document.get("favourable") is not None:
            scope.insert(0, (texts("page.scope.favourable"), cell_words(texts, document["favourable"])))
        about = {"scope": scope, "texts": texts, "provenance": document["provenance"]}
        return render_page(**(about | page | {"title": title or page["title"], "answer": answer}))
    if kind not in KINDS:
        allowed = f"of kind {join_words([*KINDS, *RENDERED], 'or')}"
        raise bad_parameter("render_html", "document", allowed, document["kind"])
    # The rows of everybody audited are for AuditResult.load; the page lists a few people.
    document = {name: part for name, part in document.items() if name != "result"}
    name = document.get("name")
    shown = () if explore is None else ("explore",)
    data = {"data": document, **({} if explore is None else {"explore-data": explore})}
    page = (_audit_page if kind == "audit" else _comparison_page)(document, texts, explore)
    return render_page(
        title or texts(f"page.title.{kind}") + (f": {name}" if name else ""),
        texts=texts,
        links=links,
        provenance=document["provenance"],
        scripts=[asset(name) for name in (*_SCRIPTS, *(_EXPLORE_SCRIPTS if shown else ()))],
        data={**data, "texts": texts.for_scripts("script", *shown)},
        asks_server=explore is not None and explore.get("endpoint") is not None,
        personal=explore is not None or _lists_people(document),
        **page,
    )


def _lists_people(document: Mapping[str, Any]) -> bool:
    """Whether rows of people are in a document."""
    audits = [entry["audit"] for entry in document.get("entries", ())] or [document]
    return any(one["summary"]["people"] or one["maps"] for one in audits)


_TONES: dict[str, Tone] = {"depends": "bad", "unanswered": "open"}
# Effects drawn on the first screen; people and outcomes listed.
_DRAWN, _OUTCOMES = 6, 12
# Rates of groups, and how they are written.
_RATES = {
    "people": "whole", "favourable": "whole", "rate": "percent", "impact_ratio": "number",
    "error_rate": "percent", "false_negative_rate": "percent", "false_positive_rate": "percent", "mean": "number",
}  # fmt: skip


class _AuditParts:
    """The parts of one audit's page, in one language."""

    def __init__(
        self,
        document: Mapping[str, Any],
        texts: Texts,
        explore: Mapping[str, Any] | None = None,
        *,
        id: str = "",
        model: int = 0,
    ) -> None:
        self.document, self.texts, self.id, self.model = document, texts, id, model
        # A reader of a page of a server has no command line.
        self.served = explore is not None and explore.get("endpoint") is not None
        self.summary, self.known = document["summary"], document["said"]
        given = {"known": self.known}
        self.macros = templates(texts.language).get_template("page.html.j2").make_module(given)
        scope = self.summary["scope"]
        self.numbers = self.summary["shift"] is not None
        self.answered = self.summary["badge"]["kind"] != "unanswered"
        self.columns = list(self.summary["attributes"])
        self.favourable = None if scope["favourable"] is None else texts.number(scope["favourable_name"], "")
        self.unread = self.summary["badge"]["kind"] == "not_read"

    def said(self, sentence: str) -> str:
        return self.texts.said(sentence, self.known)

    @property
    def tone(self) -> Tone:
        """The colour of the badge: a limit decides if there is one."""
        limit = self.summary["limit"]
        if limit is not None and limit["passed"] is not None:
            return "plain" if limit["passed"] else "bad"
        return _TONES.get(self.summary["badge"]["kind"], "plain")

    @cached_property
    def answer(self) -> Answer:
        summary = self.summary
        limit = [] if summary["limit"] is None else [self.said(summary["limit"]["sentence"])]
        if not limit and summary["changed"] is not None and self.answered:
            said = self.texts("limit.none")
            limit = [said if self.served else f"{said} {self.texts('limit.how', how=option('a limit'))}"]
        # The badge says already that the model does not read a column.
        told = "unread" if self.unread else None
        found = [one["sentence"] for one in self.document["findings"] if one["kind"] != told]
        warnings = [
            one for one in (*found, *self.document["computed"]["reasons"]) if one != summary["sentence"]
        ]
        # To whose disadvantage comes first: beside the counts alone, those who "would lose" look like the harmed.
        first = [self.said(one) for one in (summary["disadvantage"], summary["sentence"]) if one]
        return Answer(
            self.said(summary["badge"]["title"]),
            self.tone,
            [*first, *limit],
            large=len(first),
            warnings=[self.said(one) for one in warnings],
            body=str(self.macros.first_screen(self.view)) if self.answered else "",
            sure=[self.said(summary["sure"])],
            not_shown=self._not_shown(),
            next_steps=self._next_steps(),
        )

    @cached_property
    def view(self) -> dict[str, Any]:
        """What the template writes: effects, one person, outcomes, rates and people, in words."""
        summary = self.summary
        return {
            "favourable": self.favourable,
            "numbers": self.numbers,
            "people": summary["scope"]["people"],
            "effects": self._effects(),
            "card": self._card(),
            "outcomes": self._outcomes(),
            "rates": self._rates(),
            "told": [
                self.texts(f"page.rates.{key}", favourable=self.favourable)
                for key, name in (("ratio", "impact_ratio"), ("wrong", "false_negative_rate"))
                if any(row.get(name) is not None for row in summary["group_rates"] or ())
            ],
            "listed": self._people(),
        }

    def _directed(self) -> list[dict[str, Any]]:
        """The effects of one attribute at a time, with losses and gains; of predicted numbers lower and higher ones."""
        rows = [row for row in self.summary["effects"] or () if row["single"] and self.answered]
        if self.numbers:
            return [row | {"lose": row["lower"], "gain": row["higher"]} for row in rows]
        return [row for row in rows if row["lose"] is not None]

    def _effects(self) -> dict[str, Any] | None:
        rows = [] if self.unread else self._directed()
        if not rows:
            return None
        moved = [row for row in rows if row["lose"] + row["gain"]]
        everything, first, drawn = self.summary["effects"], [], [*by_attribute(moved or rows)]
        # The largest two of every attribute, then the largest.
        ranked = sorted(
            (at > 1, -(row["lose"] + row["gain"]), k, at)
            for k, (_, some) in enumerate(drawn)
            for at, row in enumerate(some)
        )
        kept = {(k, at) for *_, k, at in ranked[:_DRAWN]}
        for k, (_, some) in enumerate(drawn):
            value = None if self.numbers else disadvantaged(some)
            listed = [
                row | {"against": recorded_as(row, value) and row["gain"] > row["lose"]}
                for at, row in enumerate(some)
                if (k, at) in kept
            ]
            # Those at a disadvantage first, as in the sentence.
            first += sorted(listed, key=lambda row: 0 if self.numbers else row["lose"] - row["gain"])
        return {
            "first": first,
            "still": self._still() if moved else [],
            "all": everything if moved and len(everything) > len(first) else [],
        }

    def _still(self) -> list[str]:
        """The attributes by which alone nothing was found to change."""
        if (self.summary["directions"] or {"other": 0})["other"] != 0:
            return []
        listed = by_attribute(self._directed())
        return [name for name, rows in listed if not any(row["lose"] + row["gain"] for row in rows)]

    def _card(self) -> dict[str, Any] | None:
        if not self.summary["people"]:
            return None
        one = self.summary["people"][0]
        rest = [name for name in one["cells"] if name not in one["change"]]
        rest.sort(key=lambda name: (name not in self.summary["columns"], one["cells"][name] in (0, None)))
        said = {name: self._outcome(one[name]) for name in ("decision", "instead")}
        change = [f"{name} {cell_words(self.texts, value)}" for name, value in one["change"].items()]
        key = "page.card.sentence_number" if self.numbers else "page.card.sentence"
        target = None if self.numbers else self.document["computed"]["settings"].get("target")
        named = {name: value_name(value, target) for name, value in said.items()}
        return {
            "where": self.said(one["where"]) if one["row"] is not None else self._row(one),
            "sentence": self.texts(key, change=change, **named),
            "lines": [(name, one["cells"][name], value) for name, value in one["change"].items()]
            + [(name, one["cells"][name], None) for name in rest[:3]],
            **said,
            "direction": one["direction"],
        }

    def _row(self, one: Mapping[str, Any]) -> str:
        """Where a person is in the user's table; by number, counted from 0, if that is not known."""
        if one["row"] is not None and self.summary["scope"]["counted"] == "position":
            return cell_words(self.texts, one["row"] + 1)
        return cell_words(self.texts, one["person"] if one["row"] is None else one["row"])

    def _outcome(self, value: Any) -> str:
        return self.texts.number(value) if self.numbers else cell_words(self.texts, value)

    def _outcomes(self) -> list[dict[str, Any]]:
        found = [
            one
            for one in self.summary["outcomes"] or ()
            if not self.unread and (one["share"] is not None or one["mean"] is not None)
        ]
        name = "mean" if self.numbers else "share"
        found = sorted(found, key=lambda one: -one[name])
        kept = found if len(found) <= _OUTCOMES else [*found[: _OUTCOMES // 2], *found[-_OUTCOMES // 2 :]]
        return [
            one | {"name": ", ".join(value_name(value, name) for name, value in one["values"].items())}
            for one in kept
        ]

    def _rates(self) -> list[dict[str, Any]]:
        texts, tables = self.texts, []
        for attribute, rows in by_attribute(self.summary["group_rates"] or ()):
            names = [name for name in _RATES if any(row.get(name) is not None for row in rows)]
            heads = [attribute, *(texts(f"page.rates.{name}") for name in names)]
            rows = [
                [
                    cell_words(texts, row["value"]),
                    *("–" if row.get(n) is None else texts.number(row[n], _RATES[n]) for n in names),
                ]
                for row in rows
            ]
            tables.append({"attribute": attribute, "heads": heads, "rows": rows})
        return tables

    def _people(self) -> dict[str, Any]:
        rows, texts = self.summary["people"], self.texts
        side = "_number" if self.numbers else ""
        names = list(dict.fromkeys(name for row in rows for name in row["cells"]))
        first = [name for name in names if any(name in row["change"] for row in rows)]
        columns = [*first, *(name for name in names if name not in first)][:MAX_COLUMNS]
        left_out = len(names) - len(columns)
        changed, kinds = self.summary["changed"], self.summary["directions"]
        total = max(len(rows) if changed is None else changed["count"], len(rows))
        said: dict[str, Any] = {"listed": len(rows), "total": total}
        lede = texts(f"page.people.lede{side or '_plain'}", **said)
        if rows and kinds is not None and kinds["gain"] is not None:
            counts = [
                texts(f"page.people.count_{kind}", n=n, favourable=self.favourable)
                for kind, n in kinds.items()
                if n
            ]
            kinds = reduce(lambda one, two: texts("page.people.then", one=one, two=two), counts)
            lede = texts("page.people.lede", kinds=kinds, total=total)
        if len({len(row["change"]) for row in rows}) > 1 and not side:
            lede += " " + texts("page.people.fewest")
        if len(rows) < total:
            lede += " " + texts("page.people.part", listed=len(rows))
            known = self.summary["listed"]
            everybody = texts("page.people.everybody" if known == total else "page.people.kept", n=known)
            if not self.served:
                lede += " " + texts("page.people.file", all=everybody, how=option("all people"))
        lede += " " + self.said(self.summary["scope"]["counted_words"])
        return {
            "title": texts(f"page.people.title{side}"),
            "head": texts(f"counted.head_{self.summary['scope']['counted']}"),
            "outcome": texts("page.card.prediction" if self.numbers else "page.people.decision"),
            "rows": [
                row
                | {"row": self._row(row), "effect": texts(f"page.people.{row['direction']}{side}")}
                | {name: self._outcome(row[name]) for name in ("decision", "instead")}
                for row in rows
            ],
            "columns": columns,
            "lede": lede + (" " + texts("page.people.columns", left_out=left_out) if left_out else ""),
        }

    def _not_shown(self) -> list[str]:
        texts, columns = self.texts, self.columns
        if not columns:
            return [texts("page.not_shown.labels"), texts("page.not_shown.missing")]
        asked = {
            answer["question"] for study in self.document.get("twins", ()) for answer in study["answers"]
        }
        found = [texts("page.not_shown.proxies", columns=columns)]
        if "consequences" not in asked:
            found.append(texts("page.not_shown.consequences", columns=columns))
        return [*found, texts("page.not_shown.labels")]

    def _next_steps(self) -> list[str]:
        texts, kind, columns = self.texts, self.summary["badge"]["kind"], self.columns or [""]
        if kind == "unanswered":
            return [texts("page.next.settle")]
        limit = self.summary["limit"]
        steps = [texts("page.next.above")] if limit is not None and limit["passed"] is False else []
        if kind == "depends":
            if self.favourable is None and not self.numbers:
                steps.append(texts("page.next.favourable"))
            gain = (self.summary["directions"] or {}).get("gain")
            listed = sum(row["direction"] == "gain" for row in self.summary["people"])
            who = "page.next.review_part" if listed < (gain or 0) else "page.next.review"
            moving = [name for name in columns if name not in self._still()] or columns
            alone = sum(row["gain"] for row in self._directed() if row["attribute"] == moving[0])
            entry = moving if len(moving) == 1 and alone == gain else columns
            said = {"n": gain, "listed": listed, "columns": entry, "favourable": self.favourable}
            review = texts(who, **said) if gain else texts("page.next.review_listed")
            review = " ".join(filter(None, (review, self._against(gain or 0))))
            lose = (self.summary["directions"] or {}).get("lose")
            mend = "page.next.mend_keep" if lose else "page.next.mend"
            mend = "page.next.mend_number" if self.summary["changed"] is None else mend
            mend = texts(mend, n=lose, favourable=self.favourable)
            return [*steps, review, texts("page.next.decide", columns=moving), mend]
        proxies = texts("page.next.proxies", columns=columns)
        if any(row.get("rate") is not None for row in self.summary["group_rates"] or ()):
            proxies += " " + texts("page.next.rates")
        return [proxies, texts("page.next.repeat_unread" if self.unread else "page.next.repeat")]

    def _against(self, gain: int) -> str:
        """Say how many of those who would gain are recorded with the entry at a disadvantage, of each attribute."""
        texts, drawn = self.texts, (self.view["effects"] or {"first": ()})["first"]
        said = []
        for attribute, rows in by_attribute(
            row for row in drawn if row["against"] and row["recorded"] != ANY
        ):
            names = {side: value_name(rows[0][side], attribute) for side in ("recorded", "instead")}
            said.append(names | {"n": rows[0]["gain"]})
        if len(said) == 1 and said[0]["n"] == gain:
            return texts("page.next.review_all", **said[0])
        groups = [texts("page.next.review_group", **one) for one in said]
        return texts("page.next.review_groups", n=gain, groups=groups) if groups and gain else ""

    def scope(self) -> list[tuple[str, str]]:
        """Who and what the page is about."""
        texts, scope = self.texts, self.summary["scope"]
        key = "page.scope.sampled" if scope["sampled"] else "page.scope.rows"
        found = [(texts("page.scope.people"), texts(key, people=scope["people"], supplied=scope["supplied"]))]
        files, kind = self.document["provenance"], self.document["computed"]["settings"].get("model_type")
        if kind and not (files and files["models"]):
            found.insert(0, (texts("page.scope.model"), kind))
        if not self.numbers:
            key = "page.scope.guessed" if scope["guessed"] else "page.scope.declared"
            # A bare number does not say what it stands for.
            if scope["guessed"] and (self.favourable or "").isdigit():
                key = "page.scope.guessed_code"
            key = "page.scope.unknown" if self.favourable is None else key
            found.append((texts("page.scope.favourable"), texts(key, favourable=self.favourable)))
        if self.columns:
            found.append((texts("page.scope.sensitive"), texts.number(self.columns, "list")))
        return found

    def sections(self, level: int = 2, explore: Mapping[str, Any] | None = None) -> list[str]:
        """Results by group, the people, trying one, realistic counterparts."""
        view, macros = self.view, self.macros
        if not self.answered:
            return []
        parts = [macros.who(view, self.id, level), macros.people(view["listed"], self.id, level, self.model)]
        if explore is not None:
            parts.append(macros.explore_panel(explore))
        if self.document.get("twins"):
            parts.append(macros.realistic(self.document["twins"], self.id, level))
        return [str(part) for part in parts if str(part).strip()]

    def annex(self, level: int = 3) -> list[str]:
        """What was asked for besides, and how everything was computed."""
        document, macros, summary = self.document, self.macros, self.summary
        words = ["entry"] if self.columns else []
        words += [] if self.favourable is None or self.numbers else ["favourable"]
        words += ["exact"] if self.columns else []
        words += [] if summary["changed"] is None else ["interval"]
        parts = []
        if document["asked"]["metric"] or document.get("twins"):
            words.append("counterpart")
        if document["asked"]["metric"]:
            parts.append(macros.apart(document, self.id, level))
            words += ["metric", "loss", "bound"]
        if document["evaluation"]:
            parts.append(macros.measures(document["evaluation"], self.id, level))
        if document["diagnoses"]:
            parts.append(macros.metric(document["diagnoses"], self.id, level))
        parts += [macros.computed(document, self.id, level), macros.terms(self.id, level, words)]
        return [str(one) for one in parts]


def _audit_page(
    document: Mapping[str, Any], texts: Texts, explore: Mapping[str, Any] | None
) -> dict[str, Any]:
    parts = _AuditParts(document, texts, explore)
    return {
        "answer": parts.answer,
        "scope": parts.scope(),
        "sections": parts.sections(explore=explore),
        "annex": parts.annex(),
    }


def _comparison_page(
    document: Mapping[str, Any], texts: Texts, explore: Mapping[str, Any] | None
) -> dict[str, Any]:
    parts = {
        entry["name"]: _AuditParts(entry["audit"], texts, explore, id=f"m{i}-", model=i)
        for i, entry in enumerate(document["entries"])
    }
    first = next(iter(parts.values()))

    def of(name: str, sentence: str) -> str:
        return texts("first.of_model", name=name, sentence=sentence)

    told = [of(name, one.said(one.summary["sentence"])) for name, one in parts.items()]
    warnings = [of(name, line) for name, one in parts.items() for line in one.answer.warnings]
    warnings += [
        texts("page.compared.left_out", name=name, measure=texts("page.compared.group_gap"))
        for name, one in parts.items()
        if without_groups(one.document["evaluation"])
    ]
    listed = [{"name": name, "tone": one.tone, "badge": one.answer.badge} for name, one in parts.items()]
    lede = texts("page.compared.lede", level=first.document["numbers"]["gap"]["confidence"])
    answer = Answer(
        texts("page.compared.badge", n=len(parts)),
        "plain",
        told,
        large=len(told),
        warnings=warnings,
        body=f'{first.macros.side_by_side(compared_measures(texts, document), listed)}<p class="lede">{lede}</p>',
        sure=first.answer.sure if len({one.summary["sure"] for one in parts.values()}) == 1 else (),
        not_shown=first.answer.not_shown,
        next_steps=[texts("page.compared.next")],
    )
    sections = [str(first.macros.explore_panel(explore))] if explore else []
    annex = []
    for name, one in parts.items():
        body = one.answer.body + "".join(one.sections(3))
        sections.append(section(name, body, id=f"model-{one.model}"))
        annex.append(section(name, "".join(one.annex(4)), id=f"annex-{one.model}", level=3))
    if document["diagnoses"]:
        annex.append(str(first.macros.metric(document["diagnoses"], "", 3)))
    return {"answer": answer, "scope": first.scope(), "sections": sections, "annex": annex}
