"""A `TwinConsensus` as files: the model in its library's own format, and a JSON description beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.plain_forms import Fields, ListOf, MapOf, Maybe, check_form
from likewise.evaluation.twins import TwinFactor
from likewise.models.sidecars import damage_named, find_sidecar, plain_value, sidecar_path, write_with_sidecar
from likewise.postprocessing.twin_files import TWINS, described_maker, read_maker
from likewise.postprocessing.wrapped_models import model_bytes, read_wrapped

if TYPE_CHECKING:
    from likewise.postprocessing.twin_consensus import TwinConsensus

__all__ = ["FACTORS", "described_factors", "load_consensus", "read_factors", "save_consensus"]

_KIND = "twin_consensus"
FACTORS = ListOf(Fields({"everybody": bool, "settings": ListOf(MapOf(object))}))
_FORM = Fields(
    {
        "factors": FACTORS,
        "how": str,
        "favourable": object,
        "takes_frame": Maybe(bool),
        "classes": Maybe(ListOf(object)),
    },
    {"twins": Maybe(TWINS)},
    more=True,
)
_OWNER = "TwinConsensus.save"


def save_consensus(consensus: TwinConsensus, path: str | os.PathLike[str]) -> None:
    """Write a consensus and its model; see `TwinConsensus.save`."""
    classes = consensus._inner().known_classes
    labels = None
    if classes is not None:
        labels = [plain_value(label, owner=_OWNER, what="a class label") for label in classes.tolist()]
    maker = consensus._maker()
    about = {
        "factors": [] if maker is not None else described_factors(consensus._factors(), owner=_OWNER),
        "twins": None if maker is None else described_maker(maker, owner=_OWNER),
        "how": consensus.how,
        "favourable": plain_value(consensus.favourable, owner=_OWNER, what="'favourable'"),
        "takes_frame": consensus.takes_frame,
        "classes": labels,
    }
    data, inner = model_bytes(consensus.model, Path(path), owner=_OWNER)
    # A model that is a file and a description itself keeps its description inside of ours.
    write_with_sidecar(path, data, _KIND, about if inner is None else about | {"inner": inner})


def load_consensus(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    trust: bool = False,
    about: dict[str, Any] | None = None,
) -> Any:
    """Read a consensus that `save_consensus` wrote.

    Parameters
    ----------
    path : path-like
        Of the model's file.
    trusted : sequence of str, default=()
        Types in a skops file to trust, as in `load_model`.
    trust : bool, default=False
        Whether to load the model at once; else it is tried in a process of its own first.
    about : dict, optional
        The description, where it stands inside of another; the one beside the file by default.

    Returns
    -------
    TwinConsensus
    """
    from likewise.postprocessing.twin_consensus import TwinConsensus

    where = Path(path)
    about = find_sidecar(where, _KIND, "a TwinConsensus", about)
    native = read_wrapped(where, about.get("inner"), trusted=trusted, trust=trust)
    with damage_named(sidecar_path(where)):
        check_form(about, _FORM, "it")
        factors = read_factors(about["factors"])
        twins = about.get("twins")
        maker = None if twins is None else read_maker(twins)
        loaded = TwinConsensus(
            native,
            sensitive_features={
                f.columns[0]: [s[f.columns[0]] for s in f.settings]
                for f in factors
                if f.everybody and len(f.columns) == 1
            }
            or None,
            edits=maker or [list(f.settings) for f in factors if not f.everybody] or None,
            how=about["how"],
            favourable=about["favourable"],
            takes_frame=about["takes_frame"],
        )
        labels = None if about["classes"] is None else np.asarray(list(about["classes"]))
    loaded.factors_ = factors
    loaded.maker_ = maker
    loaded._labels = labels
    return loaded


def described_factors(factors: Sequence[TwinFactor], *, owner: str) -> list[dict[str, Any]]:
    """Return factors as JSON holds them.

    Examples
    --------
    >>> described_factors([TwinFactor(({"sex": "F"}, {"sex": "M"}), True)], owner="save")
    [{'everybody': True, 'settings': [{'sex': 'F'}, {'sex': 'M'}]}]
    """
    return [
        {
            "everybody": factor.everybody,
            "settings": [
                {c: plain_value(v, owner=owner, what=f"a value of {c!r}") for c, v in setting.items()}
                for setting in factor.settings
            ],
        }
        for factor in factors
    ]


def read_factors(stored: Sequence[Mapping[str, Any]]) -> tuple[TwinFactor, ...]:
    """Return the factors that `described_factors` described."""
    return tuple(
        TwinFactor(tuple(dict(setting) for setting in part["settings"]), bool(part["everybody"]))
        for part in stored
    )
