"""Batches as tensors, and their sources: rows, targets and further inputs of some objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

import torch

from likewise.core.checks import check_choice, check_integer, check_matrix, to_numpy
from likewise.core.errors import InputError, bad_parameter


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows with their targets.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        Encoded rows.
    y : Tensor of shape (n,)
        Class indices (int64), or floating numbers for a regression.
    sensitive_features : Tensor of int64 of shape (n, k), optional
        Values of k protected attributes as indices from 0 (`AdversarialDebiasing`).
    proxy : Tensor of shape (n, p), optional
        A vector about each person, such as the embedding of their name (`CoCL`).
    index : Tensor of int64 of shape (n,), optional
        Which rows of the data these are, for warm starts.
    weight : Tensor of shape (n,), optional
        What each row counts for in the loss.

    Examples
    --------
    >>> batch = Batch(torch.zeros(3, 2), torch.tensor([0, 1, 1]))
    >>> len(batch), len(batch.take(torch.tensor([0, 2])))
    (3, 2)
    """

    x: torch.Tensor
    y: torch.Tensor
    sensitive_features: torch.Tensor | None = None
    proxy: torch.Tensor | None = None
    index: torch.Tensor | None = None
    weight: torch.Tensor | None = None

    def __post_init__(self) -> None:
        n = len(self.x)
        if self.x.ndim != 2:
            raise bad_parameter("Batch", "x", "of shape (n, d), one row each", f"shape {tuple(self.x.shape)}")
        for name, tensor in self.tensors().items():
            if len(tensor) != n:
                raise InputError(
                    f"Batch: lengths differ: x has {n} rows, {name} has {len(tensor)}. Pass one entry per row."
                )
        if self.y.ndim != 1:
            raise bad_parameter("Batch", "y", "of shape (n,)", f"shape {tuple(self.y.shape)}")

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        proxy: Any = None,
        weight: Any = None,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> Batch:
        """Make a batch of arrays, frames or tensors, once they are finite and of one length.

        Parameters
        ----------
        X : array-like, tensor or numeric frame of shape (n, d)
        y : array-like of shape (n,)
            Class indices from 0, or floating numbers for a regression.
        sensitive_features : array-like of int of shape (n,) or (n, k), optional
        proxy : array-like of shape (n, p), optional
        weight : array-like of shape (n,), optional
        dtype : torch.dtype, default=torch.float32
            Of the floating tensors; the targets of a regression included.
        device : str or torch.device, default="cpu"

        Examples
        --------
        >>> Batch.from_arrays([[1.0, 2.0]], [1]).y
        tensor([1])
        """
        x = _tensor(check_matrix(X, owner="Batch.from_arrays")).to(device, dtype)
        target = _tensor(y).to(device)
        target = target.to(dtype) if target.is_floating_point() else target.to(torch.int64)
        beside: dict[str, torch.Tensor] = {"index": torch.arange(len(x), device=device)}
        if sensitive_features is not None:
            codes = _tensor(sensitive_features).to(device, torch.int64)
            beside["sensitive_features"] = codes[:, None] if codes.ndim == 1 else codes
        if proxy is not None:
            vectors = check_matrix(proxy, owner="Batch.from_arrays", name="proxy")
            beside["proxy"] = _tensor(vectors).to(device, dtype)
        if weight is not None:
            beside["weight"] = _tensor(weight).to(device, dtype)
        return cls(x, target, **beside)

    def __len__(self) -> int:
        return len(self.x)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return what it holds by name, without what is absent."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def take(self, rows: torch.Tensor) -> Batch:
        """Return some of the rows, by index."""
        return Batch(**{name: tensor[rows] for name, tensor in self.tensors().items()})

    def to(self, device: str | torch.device, dtype: torch.dtype | None = None) -> Batch:
        """Return the batch on a device, its floating tensors in a dtype."""
        return replace(
            self,
            **{
                name: tensor.to(device, dtype) if dtype and tensor.is_floating_point() else tensor.to(device)
                for name, tensor in self.tensors().items()
            },
        )


BatchLike: TypeAlias = "Batch | Mapping[str, torch.Tensor] | tuple[torch.Tensor, ...] | list[torch.Tensor]"


def as_batch(item: BatchLike) -> Batch:
    """Return a `Batch` for what a user's loader yields: (x, y), (x, y, sensitive_features), a mapping, or a `Batch`.

    Examples
    --------
    >>> len(as_batch((torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))))
    4
    """
    if isinstance(item, Batch):
        return item
    if isinstance(item, Mapping):
        known = {field.name for field in fields(Batch)}
        if not {"x", "y"} <= set(item) <= known:
            raise bad_parameter(
                "as_batch", "batch", f"a mapping of 'x', 'y' and others among {sorted(known)}", sorted(item)
            )
        return Batch(**item)
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        return Batch(*item)
    raise bad_parameter(
        "as_batch",
        "batch",
        "(x, y), (x, y, sensitive_features), a mapping of tensors, or a Batch",
        type(item).__name__,
        "Build Batch(x=..., y=..., ...) in your loop.",
    )


def _tensor(values: Any) -> torch.Tensor:
    """A tensor of array-like values; it shares their memory only if writing to it is allowed."""
    if isinstance(values, torch.Tensor):
        return values
    array = to_numpy(values)
    return torch.as_tensor(array if array.flags.writeable else array.copy())


# Where mini-batches come from: arrays, a DataLoader or Parquet files; seeded, and resumed exactly.


Sampling: TypeAlias = Literal["balanced", "uniform", "weighted"]


class BatchSource(ABC):
    """Batches without end, and a position that can be saved.

    Examples
    --------
    >>> class SameBatch(BatchSource):
    ...     def next(self):
    ...         return Batch(torch.zeros(2, 1), torch.tensor([0, 1]))
    ...     def position(self):
    ...         return {}
    ...     def restore(self, position):
    ...         pass
    >>> SameBatch().next().y.tolist()
    [0, 1]
    """

    @abstractmethod
    def next(self) -> Batch:
        """Return the next batch."""

    @abstractmethod
    def position(self) -> dict[str, torch.Tensor]:
        """Return where it stands, as tensors by name."""

    @abstractmethod
    def restore(self, position: Mapping[str, torch.Tensor]) -> None:
        """Go to a position that `position` returned."""


class _Deck:
    """Row numbers in a shuffled order; when they run out the deck is shuffled again.

    So rows are drawn without replacement, and everybody has been drawn before anybody is drawn again.
    """

    def __init__(self, rows: torch.Tensor, generator: torch.Generator) -> None:
        self._rows, self._generator = rows, generator
        self.order, self.at = self._shuffled(), 0

    def draw(self, k: int) -> torch.Tensor:
        parts, missing = [], k
        while missing > len(self.order) - self.at:
            parts.append(self.order[self.at :])
            missing -= len(self.order) - self.at
            self.order, self.at = self._shuffled(), 0
        parts.append(self.order[self.at : self.at + missing])
        self.at += missing
        return self._rows[torch.cat(parts) if len(parts) > 1 else parts[0]]

    def _shuffled(self) -> torch.Tensor:
        return torch.randperm(len(self._rows), generator=self._generator)


class ArrayBatches(BatchSource):
    """Batches from rows in memory.

    Parameters
    ----------
    data : Batch
        All rows.
    batch_size : int, default=1000
        Rows of a batch; less if the data has fewer, so that no row comes twice in a batch (except to fill
        up a rare class of a balanced batch).
    sampling : {"balanced", "uniform", "weighted"}, default="balanced"
        "balanced": as many rows of each class (Appendix C), up to one if the size does not divide;
        "uniform": all rows in a shuffled order; "weighted": rows drawn with replacement, by ``data.weight``,
        which then no longer weighs the loss.
    generator : torch.Generator
        On the CPU.

    Examples
    --------
    >>> data = Batch(torch.arange(6.0)[:, None], torch.tensor([0, 0, 0, 0, 0, 1]))
    >>> source = ArrayBatches(data, batch_size=4, generator=torch.Generator().manual_seed(0))
    >>> source.next().y.tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        data: Batch,
        batch_size: int = 1000,
        sampling: Sampling = "balanced",
        *,
        generator: torch.Generator,
    ) -> None:
        check_sampling(data, batch_size, sampling)
        self._generator, self._sampling = generator, sampling
        n, device = len(data), data.x.device
        index = torch.arange(n, device=device) if data.index is None else data.index
        weight = None if sampling == "weighted" else data.weight
        self.data = Batch(data.x, data.y, data.sensitive_features, data.proxy, index, weight)
        # Decks are shuffled on the CPU, where the generator is; what they hold are row numbers of the data.
        y = data.y.cpu()
        self._decks: list[_Deck] = []
        if sampling == "balanced":
            classes = torch.unique(y)
            batch_size = min(batch_size, max(n, len(classes)))
            sizes = [batch_size // len(classes)] * len(classes)
            for i in range(batch_size % len(classes)):
                sizes[i] += 1
            self._sizes = sizes
            self._decks = [_Deck(torch.nonzero(y == c)[:, 0], generator) for c in classes]
        elif sampling == "uniform":
            self._sizes = [min(batch_size, n)]
            self._decks = [_Deck(torch.arange(n), generator)]
        else:
            assert data.weight is not None
            self._sizes = [batch_size]
            self._cumulative = data.weight.double().cpu().cumsum(0)

    def next(self) -> Batch:
        """Return the next batch."""
        if self._sampling == "weighted":
            spots = torch.rand(self._sizes[0], generator=self._generator, dtype=torch.float64)
            rows = torch.searchsorted(self._cumulative, spots * self._cumulative[-1], right=True)
            rows = rows.clamp_(max=len(self.data) - 1)
        else:
            drawn = [deck.draw(k) for deck, k in zip(self._decks, self._sizes, strict=True)]
            rows = drawn[0] if len(drawn) == 1 else torch.cat(drawn)
        return self.data.take(rows.to(self.data.x.device))

    def position(self) -> dict[str, torch.Tensor]:
        """Return the generator's state and how far each deck has been dealt."""
        position = {"generator": self._generator.get_state()}
        for i, deck in enumerate(self._decks):
            position[f"order.{i}"] = deck.order.clone()
            position[f"at.{i}"] = torch.tensor(deck.at)
        return position

    def restore(self, position: Mapping[str, torch.Tensor]) -> None:
        """Go to a position that `position` returned."""
        self._generator.set_state(position["generator"])
        for i, deck in enumerate(self._decks):
            if len(position[f"order.{i}"]) != len(deck.order):
                raise InputError(
                    f"ArrayBatches.restore: the saved order is of {len(position[f'order.{i}'])} rows, "
                    f"the data has {len(deck.order)}. Resume with the data of the first run."
                )
            deck.order, deck.at = position[f"order.{i}"].clone(), int(position[f"at.{i}"])


class LoaderBatches(BatchSource):
    """Batches from a DataLoader or any other iterable of batches that can be iterated again.

    Whatever the loader draws from torch's global generator (shuffling, random transforms in this process) is
    drawn from a private state seeded by `generator`, so it is reproducible and leaves the global one alone.

    Parameters
    ----------
    loader : iterable of Batch, (x, y), (x, y, sensitive_features) or mappings
    generator : torch.Generator
    device : str or torch.device, default="cpu"
    dtype : torch.dtype, optional
        Of the floating tensors.

    Examples
    --------
    >>> pairs = [(torch.zeros(2, 1), torch.tensor([0, 1])), (torch.ones(2, 1), torch.tensor([1, 0]))]
    >>> source = LoaderBatches(pairs, generator=torch.Generator().manual_seed(0))
    >>> [float(source.next().x[0, 0]) for _ in range(3)]
    [0.0, 1.0, 0.0]
    """

    def __init__(
        self,
        loader: Iterable[Any],
        *,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        if isinstance(loader, Iterator):
            raise bad_parameter(
                "LoaderBatches",
                "loader",
                "something that can be iterated again, such as a DataLoader or a list",
                f"the iterator {type(loader).__name__}",
                "Pass the object that makes the iterator.",
            )
        self._loader, self._device, self._dtype = loader, device, dtype
        self._own = getattr(loader, "generator", None)
        seeded = torch.Generator().manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
        self._rng = seeded.get_state()
        self._iterator: Iterator[Any] | None = None
        self._begin()

    def _begin(self) -> None:
        """Remember how this pass over the loader begins, so that it can be repeated."""
        self._iterator, self._at = None, 0
        self._start = self._rng.clone()
        self._own_start = None if self._own is None else self._own.get_state()

    def next(self) -> Batch:
        """Return the next batch, from the next pass if this one is over."""
        item = self._pull()
        if item is None:
            if self._at == 0:
                raise InputError(
                    "LoaderBatches: the loader is empty. Pass one that yields at least one batch."
                )
            self._begin()
            item = self._pull()
            if item is None:
                raise InputError(
                    "LoaderBatches: the loader yields nothing the second time. Pass a DataLoader."
                )
        self._at += 1
        return as_batch(item).to(self._device, self._dtype)

    def _pull(self) -> Any:
        outside = torch.get_rng_state()
        torch.set_rng_state(self._rng)
        try:
            if self._iterator is None:
                self._iterator = iter(self._loader)
            return next(self._iterator, None)
        finally:
            self._rng = torch.get_rng_state()
            torch.set_rng_state(outside)

    def position(self) -> dict[str, torch.Tensor]:
        """Return how the current pass began and how many batches of it were drawn."""
        position = {"start": self._start, "at": torch.tensor(self._at)}
        return position if self._own_start is None else {**position, "own_start": self._own_start}

    def restore(self, position: Mapping[str, torch.Tensor]) -> None:
        """Begin the saved pass again and skip what was drawn of it."""
        self._rng = position["start"].clone()
        if self._own is not None and "own_start" in position:
            self._own.set_state(position["own_start"])
        self._begin()
        for _ in range(int(position["at"])):
            self.next()


def check_sampling(data: Batch, batch_size: int, sampling: str) -> None:
    """Raise an error that says what to do when batches of this kind cannot be drawn from the data."""
    owner = "ArrayBatches"
    check_choice(sampling, get_args(Sampling), owner=owner, name="sampling")
    check_integer(batch_size, owner=owner, name="batch_size", low=1)
    if sampling == "balanced":
        if data.y.is_floating_point():
            raise bad_parameter(owner, "sampling", "'uniform' or 'weighted' for a regression", sampling)
        classes = len(torch.unique(data.y))
        if batch_size < classes:
            raise bad_parameter(owner, "batch_size", f"at least {classes}, one row per class", batch_size)
    if sampling == "weighted":
        weight = data.weight
        if weight is None or not bool((weight >= 0).all()) or not bool(weight.sum() > 0):
            raise bad_parameter(
                owner,
                "data.weight",
                "non-negative numbers with a positive sum for sampling='weighted'",
                "no weights" if weight is None else "other weights",
            )
