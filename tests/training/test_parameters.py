"""Parameters that every estimator has are declared once, and scikit-learn, Python and readers see them in each."""

import dataclasses
import inspect
import pickle
import pydoc

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV

from likewise import training
from likewise.core.errors import InputError
from likewise.core.parameters import parameters_from_fields, with_inherited_sections
from likewise.fair_metrics import ExpertSubspace
from likewise.training.estimators.network_classifier import NetworkClassifier

CLASSES = [
    cls
    for name in training.__all__
    if name.endswith("Classifier") and issubclass(cls := getattr(training, name), NetworkClassifier)
]
SHARED = {
    "hidden_layer_sizes", "activation", "module", "domain", "n_steps", "batch_size", "lr", "validation", "training",
    "random_state",
}  # fmt: skip
OWN = {
    "MLPBaselineClassifier": set(),
    "ProjectClassifier": {"metric"},
    "SenSRClassifier": {"metric", "eps", "blind_to", "search", "group_penalty", "attributes"},
    "SenSeIClassifier": {"metric", "eps", "blind_to", "search", "rho", "outputs"},
    "WassersteinRobustClassifier": {"eps", "search"},
    "AdversarialDebiasingClassifier": {"attributes", "strength", "equalized_odds", "adversary_lr"},
    "CoCLClassifier": {"attributes", "strength"},
}  # fmt: skip
each = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@each
def test_signature_get_params_and_attributes_agree(cls):
    parameters = inspect.signature(cls).parameters
    assert set(parameters) == SHARED | OWN[cls.__name__]
    assert all(p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert by_position == [name for name in ("metric", "attributes") if name in OWN[cls.__name__]][:1] or (
        cls.__name__ == "WassersteinRobustClassifier" and not by_position
    )
    estimator = cls()
    assert set(vars(estimator)) == set(parameters)
    for name, value in estimator.get_params(deep=False).items():
        assert value is parameters[name].default
        assert value is getattr(estimator, name)


@each
def test_clone_pickle_set_params_repr_and_html(cls):
    made = cls(n_steps=7, random_state=3)
    for copy in (clone(made), pickle.loads(pickle.dumps(made)), cls().set_params(n_steps=7, random_state=3)):
        assert copy.get_params() == made.get_params()
        assert copy != made  # identity, as scikit-learn's
    assert repr(made) == f"{cls.__name__}(n_steps=7, random_state=3)"
    assert "n_steps" in made._repr_html_()
    assert hash(made) == hash(made)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_stepz'"):
        cls(n_stepz=3)
    with pytest.raises(ValueError, match="Invalid parameter 'n_stepz'"):
        made.set_params(n_stepz=3)


@each
def test_help_tells_of_every_parameter_once(cls):
    text = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    section = inspect.getdoc(cls).split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    names = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    assert sorted(names) == sorted(inspect.signature(cls).parameters)
    assert "Updates of the weights, at most" in text
    assert "The trained network of encoded rows." in text


def test_grid_search_over_own_and_shared_parameters():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = training.SenSRClassifier(ExpertSubspace([0]), hidden_layer_sizes=(4,), n_steps=5, random_state=0)
    grid = {
        "eps": [1e-3, 1e-2],
        "training__sampling": ["balanced", "uniform"],
        "metric__directions": [[0], [1]],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, X.sum(axis=1) > 0)
    assert set(search.best_params_) == set(grid)
    assert len(search.cv_results_["params"]) == 8


@pytest.mark.parametrize("cls", [*CLASSES, training.FairBoostingClassifier], ids=lambda cls: cls.__name__)
def test_nested_parameters_of_the_configuration(cls):
    config = cls.config_class
    model = cls().set_params(training__patience=7)
    assert model.training == config(patience=7)
    assert model.get_params()["training__patience"] == 7
    assert set(model.get_params()) >= {f"training__{field.name}" for field in dataclasses.fields(config)}
    assert clone(model).training == model.training
    assert (
        cls(training=config()).set_params(training=None).get_params()["training__patience"]
        == config().patience
    )
    with pytest.raises(ValueError, match="Invalid parameter 'patienze' for"):
        model.set_params(training__patienze=7)
    with pytest.raises(InputError, match=f"'training' must be a {config.__name__} or None"):
        cls(training={"patience": 7}).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert len(inspect.signature(cls).parameters) <= 16


def test_a_subclass_with_an_init_of_its_own_works_as_ever():
    class Mine(training.SenSRClassifier):
        def __init__(self, *, metric=None, n_steps=5, width=3):
            super().__init__(metric, n_steps=n_steps, hidden_layer_sizes=(width,))
            self.width = width

    assert clone(Mine(width=4)).get_params(deep=False) == {"metric": None, "n_steps": 5, "width": 4}


def test_the_base_class_owns_what_all_share():
    assert set(inspect.signature(NetworkClassifier).parameters) == SHARED
    assert NetworkClassifier.__annotations__.keys() == SHARED


def test_own_words_replace_inherited_ones_and_other_sections_stay():
    base = "B.\n\nParameters\n----------\na : int\n    Base.\nb : int\n\nNotes\n-----\nOf the base."
    own = "C.\n\nParameters\n----------\na : float\n    Own.\n\nExamples\n--------\n>>> 1\n1"
    assert with_inherited_sections(own, base) == (
        "C.\n\nParameters\n----------\na : float\n    Own.\nb : int\n\nExamples\n--------\n>>> 1\n1"
    )
    assert with_inherited_sections("C.", base).endswith("a : int\n    Base.\nb : int")


def test_a_class_without_a_docstring():
    @parameters_from_fields
    class Bare(BaseEstimator):
        depth: int = 3

    assert Bare(depth=4).get_params() == {"depth": 4}
