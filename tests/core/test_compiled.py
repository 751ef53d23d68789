"""Loops that are compiled: what is kept on disk follows the files that it was made of."""

import importlib.util

import pytest


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_is_compiled_anew_if_one_that_it_calls_changes_in_another_file(tmp_path):
    pytest.importorskip("numba")
    head = "from likewise.core.compiled import compiled\n\n@compiled\n"
    outer, inner = tmp_path / "outer.py", tmp_path / "inner.py"
    outer.write_text(head + "def twice(x):\n    return 2.0 * step(x)\n")
    found = []
    for added in ("1.0", "10.0"):
        inner.write_text(head + f"def step(x):\n    return x + {added}\n")
        module = load(outer)
        module.step = load(inner).step
        found.append(module.twice(1.0))
    assert found == [4.0, 22.0]
    assert list(tmp_path.glob("__pycache__/outer.twice*.nbi"))
