"""docs/proof.md names everything that is read, and every finding: its lists are those of the code."""

from pathlib import Path
from typing import get_args

import pytest

from likewise.auditing.bounds import families
from likewise.auditing.inference.sanity import FindingKind
from likewise.auditing.verification import asked_shares
from likewise.models import sklearn_network, tree_ensemble

PAGE = (Path(__file__).parents[2] / "docs" / "proof.md").read_text(encoding="utf-8")
LISTS = {
    "trees": tree_ensemble._CLASSES,
    "linear": sklearn_network._LINEAR,
    "networks": sklearn_network._NETWORKS,
    "steps": sklearn_network._AFFINE,
    "selectors": sklearn_network._SELECTORS,
    "searches": sklearn_network._SEARCHES | sklearn_network._FROZEN,
}


@pytest.mark.parametrize("name", LISTS)
def test_every_class_that_is_read_is_named(name):
    missing = [kind for kinds in LISTS[name].values() for kind in kinds if f"`{kind}`" not in PAGE]
    assert not missing


def test_every_finding_is_named():
    assert not [kind for kind in get_args(FindingKind) if f"`{kind}`" not in PAGE]


def test_figures_are_those_of_the_code():
    assert f"at least {families._ROWS:,}" in PAGE
    assert f"up to {families._SPLIT_ROWS:,} rows" in PAGE
    assert f"more than {asked_shares._MOST_OF_PERSON:,} combinations" in PAGE
    assert f"each under up to {asked_shares._MOST_ASKED:,} combinations" in PAGE
