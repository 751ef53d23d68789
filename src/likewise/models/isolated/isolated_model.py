"""The model of a file in a process of its own, behind the contract of every other model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.frames import is_frame, to_pandas
from likewise.models.isolated.facts import Facts, plain_labels
from likewise.models.layered_model import LayeredModel
from likewise.models.losses import Loss
from likewise.models.model import Model, look_like_probabilities
from likewise.models.model_rows import table_or_matrix

if TYPE_CHECKING:
    from likewise.models.isolated.model_file import IsolatedFile
    from likewise.models.relu_network import ReluNetwork
    from likewise.models.tree_ensemble import TreeEnsemble

__all__ = ["IsolatedModel", "IsolatedNetwork", "make_model"]

# Of outputs that do not look like what they should, so many are shown to the model.
_SHOWN = 64


class IsolatedModel(Model):
    """A model that is asked in another process.

    It answers what the same file answers in this process, to the bit. Made by `likewise.models.load_model`.

    Parameters
    ----------
    file : IsolatedFile
    choices : mapping
        What the model was made with there.
    facts : Facts
        What is known of it.
    loss : Loss
    classes : array-like, optional
        Other names for its classes.
    """

    def __init__(
        self, file: IsolatedFile, choices: Mapping[str, Any], facts: Facts, loss: Loss, classes: Any = None
    ) -> None:
        super().__init__(
            loss=loss,
            kind=facts.kind,
            classes=facts.classes if classes is None else classes,
            takes_frame=facts.takes_frame,
            feature_names=facts.feature_names,
            n_features=facts.n_features,
            missing=facts.missing,
            batch_rows=facts.batch_rows,
        )
        self.file, self._choices = file, dict(choices)
        self._named = facts.classes is not None
        self._adapter, self._decides = facts.adapter, facts.decides
        self._guesses, self._keeps_frames = facts.guesses, facts.keeps_frames

    @property
    def adapter(self) -> str:
        """The class that the model has where it runs."""
        return self._adapter

    def with_classes(self, classes: Any) -> Self:
        """Return the same model with other names for its classes; see `Model.with_classes`."""
        renamed = super().with_classes(classes)
        if not self._named:
            # It could not tell its classes, so it is told.
            labels = None if renamed._classes is None else renamed._classes.tolist()
            renamed._choices = self._choices | {"classes": plain_labels(labels)}
        return renamed

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the decision for each row, (n,), as the model itself decides."""
        classes = self.classes_ if self._decides else None
        if classes is None:
            return super().predict(X)
        rows = self._rows(X)
        found = np.concatenate(
            [
                self.file.decisions(self._choices, rows[start : start + self._batch_rows], start)
                for start in range(0, len(rows), self._batch_rows)
            ]
        )
        return np.asarray(classes[np.clip(found, 0, len(classes) - 1)])

    def read_trees(self) -> TreeEnsemble:
        """Return the trees of the model, where it has some; see `likewise.models.tree_ensemble.read_trees`."""
        return self.file.trees(self._choices)

    def read_network(self) -> ReluNetwork:
        """Return the ReLU network that the model is, if so; see `likewise.models.relu_network.read_relu_network`."""
        return self.file.network(self._choices)

    def _rows(self, X: Any) -> Any:
        if self._keeps_frames and is_frame(X):
            return to_pandas(X, owner=self._adapter, name="X")
        return table_or_matrix(
            X,
            owner=self._adapter,
            takes_frame=self.takes_frame,
            feature_names=self.feature_names,
            n_features=self.n_features,
            missing=self._missing,
        )

    def _ask(self, batch: Any, start: int, question: Any = None) -> np.ndarray[Any, Any]:
        outputs, classes = self.file.outputs(self._choices, batch, start)
        if self._classes is None:
            self._classes = classes
        return outputs

    def _answer(self, rows: Any) -> Any:
        return self._ask(rows, 0)

    def _check_whole(self, outputs: FloatArray) -> None:
        if self._guesses and look_like_probabilities(outputs):
            self.file.check_whole(self._choices, outputs[:_SHOWN])


class IsolatedNetwork(IsolatedModel, LayeredModel):
    """A model in another process that is a linear model or a small network: its weights came with its description."""

    def __init__(
        self, file: IsolatedFile, choices: Mapping[str, Any], facts: Facts, loss: Loss, classes: Any = None
    ) -> None:
        super().__init__(file, choices, facts, loss, classes)
        assert facts.layers is not None
        self.layers = facts.layers


def make_model(
    file: IsolatedFile, choices: Mapping[str, Any], loss: Loss, classes: Any = None
) -> IsolatedModel:
    """Return the model of a file under some choices, with gradients where it has weights.

    Parameters
    ----------
    file : IsolatedFile
    choices : mapping
        As it is asked for there.
    loss : Loss
    classes : array-like, optional
    """
    facts = file.facts(choices)
    kind = IsolatedModel if facts.layers is None else IsolatedNetwork
    return kind(file, choices, facts, loss, classes)
