"""The panel of a page in a real Chromium: JavaScript equals Python, and what a visitor who edits a person sees."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from likewise.auditing.auditor import audit
from likewise.models import as_model
from likewise.report import Comparison, render_html, write_html
from likewise.report.explore import explore_document, page_model
from likewise.report.explore.document import column_documents
from likewise.report.templates import asset


def load(name):
    """A module beside this file; the folders of tests are no packages."""
    key = f"likewise_browser_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, Path(__file__).with_name(f"{name}.py"))
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]


models = load("page_models")
axe = load("test_accessibility")

LABELS = {0: "refused", 1: "granted"}
SEX, RACE = "explore-10", "explore-9"
OLD = "const age = document.getElementById('explore-0'); age.value = '200'; age.dispatchEvent(new Event('input'))"
SCORE_ALL = """
const { localScorer, decide } = window.likewise;
const scorer = localScorer(arguments[0], arguments[1]);
return arguments[2].map((row) => {
  try { const p = scorer.one(row); return { p, decision: decide(p) }; } catch (error) { return { refused: error.key || String(error) }; }
});"""


class Story:
    """Two models on Adult, audited: what the demo shows, in small. Only sex costs nothing; nobody's relationship may change."""

    def __init__(self):
        from sklearn.linear_model import LogisticRegression

        data = lw.datasets.load_adult()
        self.people = data.frame_test.iloc[:400].reset_index(drop=True)
        self.y = data.y_test[:400]
        # Every kind of scale that a number may be on.
        scales = {"capital-gain": "value or not", "capital-loss": "signed log", "hours-per-week": "rank"}
        self.domain = lw.TabularDomain.from_frame(data.frame, immutable=["relationship"], scales=scales)
        self.metric = lw.ExpertSubspace(["sex"], domain=self.domain).fit(data.frame_train).metric_
        rows = self.domain.encode_array(data.frame_train.iloc[:3000])
        blind = rows.copy()
        blind[:, self.domain.group("sex")] = 0.0
        y = data.y_train[:3000]
        self.models = {
            name: as_model(LogisticRegression(max_iter=300).fit(X, y))
            for name, X in (("plain", rows), ("blind", blind))
        }
        self.results = {name: self.audit(model) for name, model in self.models.items()}

    def audit(self, model):
        choices = {"metric": self.metric, "domain": self.domain, "eps": 0.1, "search": "candidates"}
        return audit(model, self.people, self.y, edits=["sex"], **choices)

    def explore(self, *names):
        return explore_document(
            self.domain,
            self.people,
            self.y,
            models={name: self.models[name] for name in names},
            sensitive_features=["sex", "race"],
            results={name: self.results[name] for name in names},
            labels=LABELS,
        )

    def chance(self, name, frame):
        return self.models[name].predict_proba(self.domain.encode_array(frame))[:, 1]


@pytest.fixture(scope="module")
def story():
    return Story()


@pytest.fixture(scope="module")
def pages(story, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_html(story.results["plain"], folder / "audit.html", labels=LABELS, explore=story.explore("plain"))
    german = {"labels": LABELS, "language": "de", "explore": story.explore("plain")}
    write_html(story.results["plain"], folder / "german.html", **german)
    both = Comparison.of({name: (None, story.results[name]) for name in ("plain", "blind")})
    write_html(both, folder / "comparison.html", labels=LABELS, explore=story.explore("plain", "blind"))
    return folder


@pytest.fixture
def panel(browser, pages):
    browser.show(pages / "audit.html")
    browser.wait(lambda: browser.all(".outcome"))
    return browser


def cell(value):
    return None if value is None or value != value else value


def choose(browser, field, word):
    """Change a list by the keyboard, as a visitor who types the first letters does."""
    browser.one(f"#{field}").send_keys(word)


def shown(browser, selector):
    return browser.one(selector).text


# ---- JavaScript equals Python ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", models.NAMES)
def test_javascript_equals_python(panel, name):
    frame, _, domain = models.people()
    columns = column_documents(domain)
    document = page_model(as_model(models.fitted(name)), domain, frame)
    rows, kinds = models.edge_rows(models.thresholds(name, document["features"], columns))
    cells = [[cell(value) for value in row] for row in rows[list(domain.encoding_.names)].to_numpy().tolist()]
    found = panel.js(SCORE_ALL, document, columns, cells)
    wanted, decisions = models.answers(name, rows, kinds)
    assert len(found) == models.ROWS
    assert [("refused" in one) for one in found] == [row is None for row in wanted]
    taken = [i for i, row in enumerate(wanted) if row is not None]
    assert len(taken) >= 700
    np.testing.assert_allclose(
        [found[i]["p"] for i in taken], [wanted[i] for i in taken], rtol=0, atol=1e-6, err_msg=name
    )
    assert [found[i]["decision"] for i in taken] == [decisions[i] for i in taken]
    assert {one["refused"] for one in found if "refused" in one} <= {"missing", "unseen", "large"}


def test_rules_are_those_of_the_domain(panel, story):
    explored = story.explore("plain")
    edits = {"age": [16, 17, 90, 91, 40.5, None], "sex": ["Male", "Martian", None], "relationship": ["Wife"]}
    row = story.people.iloc[:1].astype(object)
    for name, values in edits.items():
        for value in values:
            changed = row.assign(**{name: pd.Series([value], dtype=object)})
            violations = [one for one in story.domain.validate(changed, row) if one.column == name]
            j = list(row.columns).index(name)
            fault = panel.js(
                "const { key } = window.likewise.fault(...arguments) || { key: null }; return key;",
                explored["columns"][j],
                value,
                row.iloc[0, j],
            )
            assert (fault is not None) == bool(violations), (name, value, fault, violations)


# ---- the visitor -----------------------------------------------------------------------------------------


def test_a_visitor_tries_the_first_person_who_would_gain(browser, pages, story):
    from selenium.webdriver.common.keys import Keys

    browser.driver.get_log("browser")
    browser.driver.get_log("performance")
    browser.show(pages / "audit.html")
    # The first of the table: decided differently as a man.
    first = browser.one("#people tbody tr")
    number = int(first.get_attribute("data-person"))
    document = json.loads(browser.js("return document.getElementById('data').textContent"))
    row = next(one for one in document["summary"]["people"] if one["person"] == number)
    assert list(row["change"]) == ["sex"]
    assert (row["decision"], row["instead"]) == ("refused", "granted")
    first.find_element("css selector", ".try").click()
    assert browser.js("return document.activeElement.id") == "explore-person"
    assert shown(browser, ".outcome-decision") == row["decision"]
    assert browser.text(".explore-block .mini-badge") == ["differs"]
    choose(browser, SEX, row["change"]["sex"])
    browser.wait(lambda: browser.all(".outcome.is-flipped"))
    assert shown(browser, ".outcome-decision").startswith(row["instead"])
    assert f"sex {row['cells']['sex']} → {row['change']['sex']}" in shown(browser, ".explore-said")
    # Three years older, by the arrow keys.
    age = browser.one("#explore-0")
    age.send_keys(Keys.ARROW_UP * 3)
    twin = story.people.iloc[[number]].assign(sex=row["change"]["sex"])
    older = twin.assign(age=twin["age"] + 3)
    assert int(age.get_attribute("value")) == int(older["age"].iloc[0])
    chance = story.chance("plain", older)[0]
    browser.wait(lambda: f"{100 * chance:.1f}%" in shown(browser, ".outcome-chance"))
    # Nobody is 200 years old; the outcome stays that of the last possible row.
    age.send_keys(Keys.CONTROL + "a")
    age.send_keys("200")
    browser.wait(lambda: browser.one(".explore-refused").is_displayed())
    assert "age cannot be above 90; 200 was typed." in shown(browser, ".explore-refused")
    assert age.get_attribute("aria-invalid") == "true"
    browser.one(".explore-top button").click()
    browser.wait(lambda: not browser.one(".explore-refused").is_displayed())
    assert shown(browser, ".outcome-decision") == row["decision"]
    assert browser.driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert {url for url in asked if not url.startswith("data:")} == {(pages / "audit.html").as_uri()}


def test_no_script_but_ours_and_no_connection(pages):
    text = (pages / "audit.html").read_text(encoding="utf-8")
    policy = text.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy
    assert len(text.encode()) < 2_000_000


def test_the_decision_for_all_values_of_the_sensitive_columns(panel, story):
    explored = story.explore("plain")
    names = [name for column in explored["columns"] if column["sensitive"] for name in [column["name"]]]
    for person, place in [(one["person"], one["row"]) for one in explored["people"]][:12]:
        panel.js("return window.likewise.explored.pick(arguments[0])", person)
        panel.wait(lambda n=place: f"Row {n}" in shown(panel, ".explore-said"))
        row = story.people.iloc[[person]]
        every = pd.concat(
            [
                row.assign(race=race, sex=sex)
                for race in story.domain.column("race").categories
                for sex in story.domain.column("sex").categories
            ]
        )
        decided = story.chance("plain", every) > 0.5
        other = int((decided != (story.chance("plain", row)[0] > 0.5)).sum())
        said = shown(panel, ".explore-block .verdict-line")
        assert ("the same" in said) == (other == 0)
        assert (f"{other} of all {len(every)} combinations" in said) == (other > 0)
    assert names == ["race", "sex"]


def test_the_panel_begins_with_the_person_of_the_first_screen(panel, story):
    first = story.results["plain"].listed[0].person
    assert panel.one("#explore-person").get_attribute("value") == str(first)


def test_what_may_not_change_is_locked_and_free_for_somebody_typed(panel):
    field = panel.one("#explore-8")
    assert not field.is_enabled()
    assert "may not change" in panel.one("#explore-8-note").text
    panel.all(".explore-top button")[1].click()
    panel.wait(lambda: panel.one("#explore-8").is_enabled())
    assert "Somebody typed here" in shown(panel, ".explore-said")
    assert not panel.all(".outcome.is-flipped")


def test_of_a_wide_table_the_rest_is_folded_and_opens_where_something_is_wrong(browser, tmp_path):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(40, 60)).round(2)).rename(columns=lambda i: f"c{i}")
    people["sex"] = rng.choice(["F", "M"], 40)
    y = (people["c0"] > 0).to_numpy().astype(int)
    domain = lw.TabularDomain.from_frame(people)
    metric = lw.ExpertSubspace(["sex"], domain=domain).fit(people).metric_
    from sklearn.linear_model import LogisticRegression

    model = as_model(LogisticRegression().fit(domain.encode_array(people), y))
    result = audit(model, people, y, metric=metric, domain=domain, eps=0.0, search="candidates")
    explored = explore_document(
        domain, people, models={"m": model}, sensitive_features=["sex"], results={"m": result}
    )
    write_html(result, tmp_path / "wide.html", explore=explored)
    browser.show(tmp_path / "wide.html", width=400, height=800)
    browser.wait(lambda: browser.all(".outcome"))
    assert browser.js("return document.documentElement.scrollWidth") <= 400
    assert browser.one(".explore-form summary").text == "37 more columns"
    assert not browser.one("#explore-50").is_displayed()
    browser.js(OLD.replace("explore-0", "explore-50"))
    assert browser.one("#explore-50").is_displayed()
    assert "c50 cannot be above" in shown(browser, ".explore-refused")


def test_several_models_side_by_side(browser, pages, story):
    browser.show(pages / "comparison.html")
    browser.wait(lambda: len(browser.all(".outcome")) == 2)
    person = int(browser.one("#explore-person").get_attribute("value"))
    row = story.people.iloc[[person]]
    for name, text in zip(("plain", "blind"), browser.text(".outcome-chance"), strict=True):
        assert f"{100 * story.chance(name, row)[0]:.1f}%" in text
    # A model that does not see sex and race decides the same whatever they are.
    browser.all(".explore-top .switch button")[1].click()
    browser.wait(lambda: browser.all(".explore-top .switch button[aria-pressed=true]")[0].text == "blind")
    assert browser.all(".explore-block")


def test_narrow_printed_and_dark(browser, pages, tmp_path):
    browser.show(pages / "audit.html", width=400, height=800)
    browser.wait(lambda: browser.all(".explore-block"))
    assert browser.js("return document.documentElement.scrollWidth") <= 400
    browser.show(pages / "audit.html", media="print", width=720)
    browser.wait(lambda: browser.all(".explore-block"))
    assert not any(part.is_displayed() for part in browser.all(".explore-form, .explore-top, .explore .try"))
    assert all(browser.one(part).is_displayed() for part in (".outcome", ".explore-said", ".explore-facts"))
    assert browser.js("return document.documentElement.scrollWidth") <= 720


@pytest.mark.skipif(not axe.AXE.is_file(), reason=f"no axe-core at {axe.AXE}: `make browser` installs it")
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing_in_the_panel(browser, pages, width):
    browser.show(pages / "comparison.html", width=width)
    browser.wait(lambda: browser.all(".explore-block"))
    browser.js(axe.AXE.read_text(encoding="utf-8"))
    browser.js("for (const part of document.querySelectorAll('main section:not(.explore)')) part.remove()")
    axe.nothing_found(browser)
    browser.js("document.querySelector('.explore-block .try').click()")
    axe.nothing_found(browser)
    browser.js(OLD)
    assert browser.one(".explore-refused").is_displayed()
    axe.nothing_found(browser)


def test_the_panel_speaks_german(browser, pages, story):
    browser.show(pages / "german.html")
    browser.wait(lambda: browser.all(".explore-block"))
    assert browser.one(".explore h2").text == "Ausprobieren"
    browser.js(OLD)
    assert "age kann nicht über 90 liegen; eingegeben wurde 200." in shown(browser, ".explore-refused")
    assert browser.driver.get_log("browser") == []


def test_a_server_is_asked_where_the_model_stays_behind(panel, story):
    explored = explore_document(
        story.domain, story.people, models={"far": lambda X: X[:, 0] > 0}, endpoint={"url": "/score", "token": "t"}
    )  # fmt: skip
    assert explored["models"][0]["model"] is None
    text = render_html(
        json.loads(panel.js("return document.getElementById('data').textContent")), explore=explored
    )
    assert "connect-src 'self'" in text
    sent = panel.js(
        """const asked = [];
        window.fetch = async (url, options) => {
          asked.push([url, options.headers["X-Likewise-Token"], JSON.parse(options.body)]);
          return { ok: asked.length < 2, status: 429, json: async () => (asked.length < 2 ? { probabilities: [[0.2, 0.8]] } : { error: "Too fast." }) };
        };
        const scorer = window.likewise.remoteScorer({ url: "/score", token: "t" }, "far");
        return scorer.score([[1, null]]).then((first) => scorer.score([[1]]).catch((error) => [asked, first, error.key, error.values.sentence]));"""
    )
    assert sent == [
        [
            ["/score", "t", {"rows": [[1, None]], "model": "far"}],
            ["/score", "t", {"rows": [[1]], "model": "far"}],
        ],
        [[0.2, 0.8]],
        "server",
        "Too fast.",
    ]


def test_every_script_of_the_panel_is_small():
    assert sum(len(asset(name)) for name in ("evaluate.js", "remote.js", "rows.js", "explore.js")) < 60_000
