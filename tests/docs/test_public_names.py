"""Every public name has a docstring of its own with an example; `--doctest-modules` runs the examples."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import likewise

SOURCE = Path(likewise.__file__).parent


def examples_of(value):
    from public_names import own_docstring

    return doctest.DocTestParser().get_examples(own_docstring(value))


def names():
    from public_names import public_names

    return [name for name in public_names() if name.has_its_own_page or inspect.ismodule(name.value)]


def test_every_public_name_has_an_example_of_its_own():
    without = [
        name.path
        for name in names()
        if (callable(name.value) or inspect.ismodule(name.value)) and not examples_of(name.value)
    ]
    assert not without, f"add an Examples section with a doctest to the docstring of {without}"


def test_every_public_value_stands_in_an_example_of_its_room():
    values = [name for name in names() if not callable(name.value) and not inspect.ismodule(name.value)]
    for name in values:
        shown = "".join(one.source for one in examples_of(importlib.import_module(name.module)))
        assert name.name in shown, f"show {name.name} in an example of {name.module}'s docstring"


@pytest.mark.parametrize("kind", [inspect.isclass, inspect.isfunction], ids=["classes", "functions"])
def test_examples_are_where_the_doctests_of_the_suite_look(kind):
    # An object of another package, or made at run time, would have an example that nobody runs.
    for name in names():
        if kind(name.value):
            module = importlib.import_module(name.value.__module__)
            assert SOURCE in Path(module.__file__).parents, name.path
            assert vars(module)[name.value.__name__].__qualname__ == name.value.__qualname__, name.path


def test_a_name_that_is_public_twice_has_one_page():
    from public_names import public_names

    homes = {name.path: name.home for name in public_names()}
    assert homes["likewise.audit"] == homes["likewise.auditing.audit"] == "likewise.audit"
    assert homes["likewise.auditing.Bracket"] == "likewise.auditing.Bracket"
