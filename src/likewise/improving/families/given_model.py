"""The user's own model, as it is and with the consensus of twins; it is asked, never trained."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.errors import InputError
from likewise.domains import TabularDomain
from likewise.improving.candidate import Candidate
from likewise.improving.families.consensus import twin_consensus
from likewise.improving.people import Ground
from likewise.models.convert import as_model
from likewise.models.matching import Matched, match_model, name_classes
from likewise.models.model import Model
from likewise.models.model_files import LoadedModel
from likewise.postprocessing import TwinConsensus

__all__ = ["GivenModel", "given_candidates"]

NAME = "Your model"
_SUFFIXES = {"xgboost": ".ubj", "lightgbm": ".txt", "catboost": ".cbm", "onnx": ".onnx", "sklearn": ".skops"}


@dataclass(frozen=True, eq=False)
class GivenModel(Candidate):
    """A model that came ready.

    Parameters
    ----------
    model : Model
        Takes the raw table.
    consensus : bool
        Whether the answer is the consensus of a person's twins.
    native : object
        As it was given, for its file.
    """

    model: Model
    consensus: bool
    native: Any = None

    @property
    def name(self) -> str:
        """How tables and pages call it."""
        return f"{NAME}, twin consensus" if self.consensus else NAME

    @property
    def note(self) -> str:
        """One sentence about what it does."""
        if self.consensus:
            return (
                "Your model, asked about all twins of a person; the answer is their mean. Not trained again."
            )
        return "As it is. Where it was trained on people of this table, its accuracy is flattered."

    @property
    def trained(self) -> bool:
        """It is ready."""
        return False

    def settings(self, ground: Ground) -> dict[str, Any]:
        """Its answers about the people of the table: whatever gives the same answers is the same model here."""
        answers = np.asarray(self.model.predict_proba(ground.frame), dtype=np.float64).round(6) + 0.0
        return {
            "consensus": self.consensus,
            "answers": hashlib.sha256(answers.tobytes()).hexdigest()[:16],
        }

    @property
    def suffix(self) -> str:
        """Of its library's own format."""
        roots = {kind.__module__.split(".")[0] for kind in type(self.native).__mro__}
        return next((ending for name, ending in _SUFFIXES.items() if name in roots), ".safetensors")

    def fit(self, ground: Ground, rows: Any, *, seed: int) -> Any:
        """Return the model, which no rows change."""
        if not self.consensus:
            return self.model
        wrapped = twin_consensus(self.model, ground)
        return _of_native(self.native, wrapped, ground) or wrapped

    def cost(self, n_people: int) -> float:
        """Only predictions."""
        return 1.0


def given_candidates(model: Any, ground: Ground, *, positive: Any = None) -> tuple[Candidate, ...]:
    """Return the user's model as it is and with the consensus of twins.

    Parameters
    ----------
    model : object or LoadedModel
        Anything `match_model` can bring together with the table.
    ground : Ground
    positive : object, optional
        Value of the target that stands for class 1, where the model only numbers its classes.
    """
    loaded = model if isinstance(model, LoadedModel) else LoadedModel(model, "import path")
    matched = match_model(
        loaded,
        ground.frame,
        make_domain=lambda used: (
            ground.domain if list(used) == list(ground.frame.columns) else _part_of(ground, used)
        ),
        widen=lambda domain: domain.widened(ground.frame[[column.name for column in domain.columns_]]),
        needed=ground.sensitive,
        encoder=ground.metric.feature_map,
    )
    named = name_classes(matched.model, ground.classes.tolist(), positive)
    if named.loss.regression:
        raise InputError("improve: 'model' is a regression. Pass a classifier.")
    table = _of_table(named, matched)
    return tuple(GivenModel(table, consensus, loaded.native) for consensus in (False, True))


def _part_of(ground: Ground, used: Sequence[str]) -> TabularDomain:
    """The domain of some columns, with the ground's scales."""
    scales = {c.name: c.curve for c in ground.domain.columns_ if c.name in used and c.curve is not None}
    return TabularDomain.from_frame(ground.frame[list(used)], scales=scales or None)


def _of_native(native: Any, wrapped: TwinConsensus, ground: Ground) -> TwinConsensus | None:
    """The same consensus of the model as it was given, which can be written to a file; None where it answers otherwise."""
    some = ground.frame.iloc[ground.train[:50]]
    try:
        found = twin_consensus(native, ground)
        same = np.allclose(found.predict_proba(some), wrapped.predict_proba(some), rtol=0, atol=1e-9)
        named = found.predict(some).tolist() == wrapped.predict(some).tolist()
    except Exception:  # whatever a model does with rows that are not its own
        return None
    return found if same and named else None


def _of_table(model: Model, matched: Matched) -> Model:
    """The model as a function of the raw table, whatever rows it takes itself."""

    def answer(table: Any) -> Any:
        rows = table[list(matched.columns)]
        return model.predict_proba(rows if model.takes_frame else matched.domain.encode_array(rows))

    return as_model(answer, takes_frame=True, classes=model.known_classes)
