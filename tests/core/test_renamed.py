"""Old keywords are taken with a warning that points at the caller."""

import pytest

from likewise.core.errors import InputError
from likewise.core.renamed import renamed_keyword


@renamed_keyword("lam", "lambda_")
class Price:
    def __init__(self, lambda_=1.0):
        self.lambda_ = lambda_


class Discount(Price):
    pass


@renamed_keyword("lam", "lambda_")
def double(*, lambda_):
    return 2 * lambda_


@pytest.mark.parametrize(("make", "owner"), [(Price, "Price"), (Discount, "Discount")])
def test_of_a_class_and_of_what_inherits_it(make, owner):
    with pytest.warns(DeprecationWarning, match=f"{owner}: 'lam' is called 'lambda_' now") as seen:
        assert make(lam=3.0).lambda_ == 3.0
    assert seen[0].filename == __file__
    assert make(lambda_=2.0).lambda_ == make(2.0).lambda_ == 2.0
    assert isinstance(make(), Price)


def test_of_a_function():
    with pytest.warns(DeprecationWarning, match="double: 'lam'") as seen:
        assert double(lam=3.0) == 6.0
    assert seen[0].filename == __file__
    assert (double.__name__, double(lambda_=1.0)) == ("double", 2.0)
    with pytest.raises(InputError, match="Pass 'lambda_' only"):
        double(lam=1.0, lambda_=1.0)
