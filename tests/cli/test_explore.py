"""`likewise audit --set explore=yes`: the model and some people inside the page, or a sentence before any work is done."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd


def panel(page):
    text = Path(page).read_text(encoding="utf-8")
    return json.loads(text.split('id="explore-data">')[1].split("</script>")[0])


def test_the_page_holds_model_and_people(run, model, table):
    done = run(
        "audit", model, table, "--target", "paid", "--sensitive", "sex", "--eps", "0", "-o", "page.html",
        "--set", "explore=yes", "--language", "de", "--set", "search=candidates",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = panel("page.html")
    assert [column["name"] for column in found["columns"]] == ["age", "hours", "job", "sex"]
    assert [column["sensitive"] for column in found["columns"]] == [False, False, False, True]
    assert found["models"][0]["model"]["kind"] == "layers"
    assert found["models"][0]["classes"] == ["no", "yes"]
    people = pd.read_csv(table)
    for one in found["people"][:20]:
        row = people.iloc[one["person"]]
        assert one["cells"] == row[["age", "hours", "job", "sex"]].tolist()
        assert one["label"] == row["paid"]
    assert "Ausprobieren" in Path("page.html").read_text(encoding="utf-8")


def test_trees_of_a_file_with_gaps_travel_too(run, people, tmp_path):
    """A boosted model in a process of its own, people with missing cells: gaps stay gaps in the page."""
    from xgboost import XGBClassifier

    table = people.assign(age=people["age"].where(people.index % 9 > 0))
    features = table.drop(columns="paid").astype({"job": "category", "sex": "category"})
    trees = XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True, n_jobs=1)
    trees.fit(features, (table["paid"] == "yes").astype(int)).save_model(tmp_path / "trees.json")
    table.to_csv(tmp_path / "gaps.csv", index=False)
    done = run(
        "audit", "trees.json", "gaps.csv", "--target", "paid", "--favourable", "yes", "--sensitive", "sex", "--eps", "0",
        "-o", "page.html", "--set", "explore=yes", "--set", "search=candidates", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = panel("page.html")
    assert found["models"][0]["model"]["kind"] == "trees"
    age = next(j for j, column in enumerate(found["columns"]) if column["name"] == "age")
    gaps = [one["person"] for one in found["people"] if one["cells"][age] is None]
    assert gaps
    assert all(np.array(gaps) % 9 == 0)


def test_what_cannot_be_explored_is_refused_before_the_audit(run, model, table, tmp_path, monkeypatch):
    asked = ("--target", "paid", "--sensitive", "sex", "--set", "explore=yes")
    done = run("audit", model, table, *asked)
    assert (done.code, "-o FILE.html" in done.err) == (2, True)
    (tmp_path / "secret_scores.py").write_text(
        "def score(frame):\n    return (frame['age'] > 40).astype(float)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    done = run("audit", "secret_scores:score", table, *asked, "--favourable", "yes", "-o", "page.html")
    sys.modules.pop("secret_scores", None)
    assert done.code == 2
    assert "cannot travel inside a page" in done.err
    assert "likewise serve" in done.err
    assert "Auditing" not in done.err
    assert not Path("page.html").exists()
