"""Every preprocessing transformer through scikit-learn's own checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise.fair_metrics import ExpertSubspace
from likewise.mitigation import HardDebias, Project

TRANSFORMERS = [
    Project(ExpertSubspace([0])),
    HardDebias([(0, 1)]),
    HardDebias([(0, 1), (1, 2, 3)], n_components=1, normalize=False),
]


@parametrize_with_checks(TRANSFORMERS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_transformer_is_tried():
    from likewise import mitigation

    public = {name for name in mitigation.__all__ if hasattr(getattr(mitigation, name), "transform")}
    assert {type(t).__name__ for t in TRANSFORMERS} == public
