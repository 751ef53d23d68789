"""Scorers in scikit-learn's own searches: the fairer of two planted models is taken."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from likewise.core.errors import InputError
from likewise.integrations import pure_gap_scorer


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"skill": rng.normal(size=120), "sex": rng.choice(["F", "M"], size=120)})
    return frame, (frame["skill"] + 2 * (frame["sex"] == "M") > 1).astype(int).to_numpy()


def pipeline(last):
    words = make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["skill"]))
    return Pipeline([("words", words), ("see", FunctionTransformer()), ("last", last)])


def blind(rows):
    """Rows without what was made of sex."""
    return np.asarray(rows)[:, 2:]


SEARCHED = {"see__func": [None, blind]}


def test_grid_search_takes_the_fairer_of_two_planted_models(people):
    frame, y = people
    by = {"accuracy": "accuracy", "fair": pure_gap_scorer(["sex"])}
    model = pipeline(LogisticRegression())
    fair = GridSearchCV(model, SEARCHED, scoring=by, refit="fair", cv=3, error_score="raise").fit(frame, y)
    accurate = GridSearchCV(model, SEARCHED, scoring="accuracy", cv=3).fit(frame, y)
    # The data reward the unfair model, so accuracy alone takes it.
    assert accurate.best_params_["see__func"] is None
    assert fair.best_params_["see__func"] is blind
    assert fair.best_score_ == pytest.approx(0.0, abs=1e-12)
    seen = fair.cv_results_["mean_test_fair"]
    assert seen[0] < -0.1


def test_halving_search_and_a_score_beside(people):
    frame, y = people
    model = pipeline(LogisticRegression())
    halving = HalvingGridSearchCV(
        model, SEARCHED, scoring=pure_gap_scorer(["sex"], beside="accuracy", weight=10), cv=3, random_state=0,
        error_score="raise",
    ).fit(frame, y)  # fmt: skip
    assert halving.best_params_["see__func"] is blind
    fitted = model.fit(frame, y)
    gap = -pure_gap_scorer(["sex"])(fitted, frame, y)
    both = pure_gap_scorer(["sex"], beside="accuracy", weight=0.5)(fitted, frame, y)
    assert both == pytest.approx(fitted.score(frame, y) - 0.5 * gap)


def test_the_score_is_the_hand_computed_gap_of_a_logistic_model(people):
    frame, y = people
    fitted = pipeline(LogisticRegression()).fit(frame, y)
    losses = []
    for sex in ("F", "M"):
        p = fitted.predict_proba(frame.assign(sex=sex))
        losses.append(-np.log(p[np.arange(len(y)), y]))
    own = -np.log(fitted.predict_proba(frame)[np.arange(len(y)), y])
    gap = np.mean(np.max(losses, axis=0) - own)
    assert pure_gap_scorer(["sex"])(fitted, frame, y) == pytest.approx(-gap, abs=1e-9)


def test_regressors_are_scored_by_the_squared_error(people):
    frame, y = people
    scores = cross_val_score(
        pipeline(Ridge()), frame, y.astype(float), scoring=pure_gap_scorer(["sex"]), cv=2, error_score="raise"
    )
    assert (scores < 0).all()


def test_a_scorer_is_scikit_learns_and_can_be_sent_to_other_processes(people):
    scorer = pure_gap_scorer(["sex"], beside="accuracy", random_state=1)
    assert check_scoring(pipeline(LogisticRegression()), scoring=scorer) is scorer
    again = pickle.loads(pickle.dumps(scorer))
    frame, y = people
    fitted = pipeline(LogisticRegression()).fit(frame, y)
    assert again(fitted, frame, y) == scorer(fitted, frame, y)


def test_mistakes_are_said_in_words(people):
    frame, y = people
    fitted = pipeline(LogisticRegression()).fit(frame, y)
    with pytest.raises(InputError, match=r"'X' has no column 'sexx' \(did you mean 'sex'"):
        pure_gap_scorer(["sexx"])(fitted, frame, y)
    with pytest.raises(InputError, match="'X' must be a table with named columns"):
        pure_gap_scorer(["sex"])(fitted, frame.to_numpy(), y)
    with pytest.raises(InputError, match="'metric' must be 'columns', 'learned'"):
        pure_gap_scorer(["sex"], metric="other")(fitted, frame, y)
    with pytest.raises(ValueError, match="acuracy"):
        pure_gap_scorer(["sex"], beside="acuracy")
