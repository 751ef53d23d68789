from __future__ import annotations

import pytest

from likewise.core.errors import InputError
from likewise.improving import Rule


def figures(**models):
    names = ("balanced accuracy", "changed decisions", "pure gap", "gap at ε", "group gap")
    return {name: dict(zip(names, values, strict=True)) for name, values in models.items()}


def test_only_models_that_are_accurate_enough_are_chosen():
    found = figures(best=(0.9, 0.5, 0.5, 0.5, 0.5), fair=(0.889, 0, 0, 0, 0), near=(0.89, 0.4, 0.4, 0.4, 0.4))
    assert Rule().allowed(found) == ("best", "near")
    assert Rule().choose(found) == "near"
    assert Rule(within=0.02).choose(found) == "fair"


def test_what_is_within_the_error_of_the_folds_is_accurate_enough():
    found = figures(best=(0.9, 0.5, 0.5, 0.5, 0.5), fair=(0.885, 0, 0, 0, 0))
    assert Rule().choose(found) == "best"
    found["fair"]["standard error"] = 0.006
    assert Rule().choose(found) == "fair"


def test_what_comes_first_decides_and_the_rest_between_alike():
    found = figures(
        a=(0.9, 0.0, 0.0, 0.3, 0.1), b=(0.895, 0.002, 0.0, 0.1, 0.2), c=(0.895, 0.2, 0.0, 0.0, 0.0)
    )
    assert Rule().choose(found) == "b"
    assert Rule(alike=0.0).choose(found) == "a"
    assert Rule(least=("group gap",)).choose(found) == "c"


def test_between_equals_the_more_accurate_is_taken():
    assert Rule().choose(figures(a=(0.9, 0, 0, 0, 0), b=(0.901, 0, 0, 0, 0))) == "b"


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"within": -0.1}, "'within'"),
        ({"least": ("fairness",)}, "'least' must be one or more of"),
        ({"least": ()}, "'least'"),
        ({"alike": 2}, "'alike'"),
    ],
)
def test_bad_rules_are_refused(choices, message):
    with pytest.raises(InputError, match=message):
        Rule(**choices)


def test_it_says_what_less_accuracy_would_buy():
    """A rule that leaves everybody unequal names the model that does not, and its price."""
    found = figures(
        plain=(0.69, 0.9, 1, 1.6, 0.2), consensus=(0.642, 0, 0, 0.3, 0.1), useless=(0.5, 0, 0, 0, 0)
    )
    name, wider = Rule().looser(found)
    assert (name, wider.within) == ("consensus", 0.05)
    assert wider.choose(found) == "consensus"
    assert wider.looser(found) is None  # nothing is left to be halved
    assert Rule().looser({"plain": found["plain"]}) is None


def test_a_model_that_another_beats_is_never_taken():
    """Rounding made these alike, and the less accurate and less fair one was taken."""
    nan = float("nan")
    found = figures(
        a=(0.90, 0.0, 0.0, 0.583, 0.149), b=(0.899, 0.0, 0.0, 0.816, 0.264), c=(0.893, 0.002, 0.0, 0.4, 0.1)
    )
    assert Rule().dominated(found) == ("b",)
    assert Rule(least=("changed decisions",)).choose(found) == "a"
    assert Rule().choose({"b": found["b"], "a": found["a"]}) == "a"
    # What was not measured does not decide.
    found = figures(a=(0.90, 0.0, 0.0, 0.5, nan), b=(0.90, 0.0, 0.0, 0.4, nan))
    assert Rule().choose(found) == "b"
    assert Rule().dominated(found) == ("a",)
