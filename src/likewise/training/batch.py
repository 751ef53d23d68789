"""A mini-batch, or a whole data set, as tensors: rows, targets and what some objectives need beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import torch

from likewise.core.arrays import to_numpy
from likewise.core.checks import check_matrix
from likewise.core.errors import InputError, bad_parameter
from likewise.core.renaming import renamed_parameters, warn_renamed

__all__ = ["Batch", "BatchLike", "as_batch"]


@renamed_parameters(sensitive="sensitive_features")
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
            raise bad_parameter(
                "Batch", "x", allowed="of shape (n, d), one row each", got=f"shape {tuple(self.x.shape)}"
            )
        for name, tensor in self.tensors().items():
            if len(tensor) != n:
                raise InputError(
                    f"Batch: lengths differ: x has {n} rows, {name} has {len(tensor)}. Pass one entry per row."
                )
        if self.y.ndim != 1:
            raise bad_parameter("Batch", "y", allowed="of shape (n,)", got=f"shape {tuple(self.y.shape)}")

    @classmethod
    @renamed_parameters(sensitive="sensitive_features")
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

    @property
    def sensitive(self) -> torch.Tensor | None:
        """The old name of `sensitive_features`."""
        warn_renamed("Batch.sensitive", "Batch.sensitive_features")
        return self.sensitive_features

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
        if not {"x", "y"} <= set(item) <= known | {"sensitive"}:  # an old name
            raise bad_parameter(
                "as_batch",
                "batch",
                allowed=f"a mapping of 'x', 'y' and others among {sorted(known)}",
                got=sorted(item),
            )
        return Batch(**item)
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        return Batch(*item)
    raise bad_parameter(
        "as_batch",
        "batch",
        allowed="(x, y), (x, y, sensitive_features), a mapping of tensors, or a Batch",
        got=type(item).__name__,
        remedy="Build Batch(x=..., y=..., ...) in your loop.",
    )


def _tensor(values: Any) -> torch.Tensor:
    """A tensor of array-like values; it shares their memory only where writing to it is allowed."""
    if isinstance(values, torch.Tensor):
        return values
    array = to_numpy(values)
    return torch.as_tensor(array if array.flags.writeable else array.copy())
