"""Random state without global state: one seed in, independent numpy or torch generators out; torch's own put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from likewise.core.errors import bad_parameter

if TYPE_CHECKING:
    import torch

RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"


def numpy_generator(random_state: RandomState) -> np.random.Generator:
    """Return a `numpy.random.Generator` for anything scikit-learn calls a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None:
        return np.random.default_rng()
    if (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return np.random.default_rng(int(random_state))
    raise bad_parameter(
        "random_state",
        "random_state",
        "an int >= 0, a numpy Generator or RandomState, or None",
        random_state,
        "Pass random_state=0 for a reproducible run.",
    )


def spawn_seeds(random_state: RandomState, n: int) -> list[int]:
    """Return `n` independent integer seeds, for workers, splits or restarts."""
    return [int(s) for s in numpy_generator(random_state).integers(2**31, size=n)]


def torch_generator(random_state: RandomState) -> torch.Generator:
    """Return a `torch.Generator` seeded from a random state; torch's global generator is left alone."""
    import torch

    generator = torch.Generator()
    generator.manual_seed(spawn_seeds(random_state, 1)[0])
    return generator


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the generators that a network on a device draws from.

    Not ``torch.manual_seed``: without CUDA it keeps the stack of every call for a CUDA that may come.
    """
    import torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


@contextmanager
def private_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block with torch's generators seeded (dropout draws from them), then put them back."""
    import torch

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed_torch(seed, device)
        yield
