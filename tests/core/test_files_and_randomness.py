import numpy as np
import pytest
import torch

from likewise.core.errors import InputError, MissingExtraError, require
from likewise.core.files import atomic_path
from likewise.core.randomness import numpy_generator, spawn_seeds, torch_generator


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("old")

    def write():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_finished_write_replaces_and_keeps_the_mode(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o640)
    with atomic_path(target) as temporary:
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_global_random_state_is_left_alone():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    torch.manual_seed(1)
    torch_before = torch.get_rng_state().clone()
    numpy_generator(0).normal()
    numpy_generator(None).normal()
    torch.rand(2, generator=torch_generator(0))
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_generators_accept_what_scikit_learn_accepts():
    generator = np.random.default_rng(0)
    assert numpy_generator(generator) is generator
    state = np.random.RandomState(0)
    assert isinstance(numpy_generator(state), np.random.Generator)
    assert spawn_seeds(np.int64(3), 2) == spawn_seeds(3, 2)
    for bad in [-1, "0", 1.5, True]:
        with pytest.raises(InputError, match="random_state=0"):
            numpy_generator(bad)


def test_an_absent_extra_is_named():
    with pytest.raises(MissingExtraError, match=r"pip install 'likewise\[onnx\]'"):
        require("no_such_module_here", extra="onnx", why="Auditing an ONNX model")
