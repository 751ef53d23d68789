"""The base of all network estimators: it reads rows, trains a network by an objective, and predicts."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from likewise.core.checks import FloatArray, check_labels, check_same_length, check_share
from likewise.core.errors import bad_parameter
from likewise.core.parameters import parameters_from_fields
from likewise.core.randomness import RandomState, numpy_generator
from likewise.core.subspace import Subspace
from likewise.data.tabular import TabularDomain
from likewise.mitigation.project import read_new_rows
from likewise.models.losses import LossLike
from likewise.models.torch_module import TorchModel
from likewise.training.batch import ArrayBatches, Batch, BatchSource, Sampling
from likewise.training.distributed import current_ranks, joined
from likewise.training.estimators.automatic import (
    ENOUGH_STEPS,
    VALIDATE_EVERY,
    Auto,
    HeldOut,
    at_chance,
    auto_schedule,
    hold_out,
)
from likewise.training.estimators.parameters import TrainingConfig, WithConfig
from likewise.training.estimators.rows import (
    TrainingRows,
    canonical_order,
    classes_alike,
    read_labels,
    read_rows,
    read_sample_weight,
    warn_unscaled,
)
from likewise.training.loop import train
from likewise.training.networks import (
    behind_projection,
    check_outputs,
    folded,
    make_network,
    plain_layers,
    scores_of,
)
from likewise.training.objective import ERM, Objective, State
from likewise.training.results import Finding, TrainingResult, TrainingWarning, warn_about

# A fitted estimator as a `Model`: its network, with gradients, on encoded rows or raw tables.


class NetworkModel(TorchModel):
    """The network of a fitted estimator; what `likewise.models.as_model` makes of one.

    Encoded rows go to the network as they are; raw tables are encoded by the estimator's own encoder first.
    """

    def __init__(self, estimator: Any, *, loss: LossLike = "cross_entropy", classes: Any = None) -> None:
        names = estimator.classes_ if classes is None else classes
        super().__init__(estimator.module_, loss=loss, classes=names)
        self.estimator = estimator
        self.encoder: TabularDomain | None = getattr(estimator, "encoder_", None)
        known = getattr(estimator, "feature_names_in_", None) if self.encoder is None else None
        self.feature_names = None if known is None else tuple(map(str, known))

    def _rows(self, X: Any) -> Any:
        if self.encoder is None:
            return super()._rows(X)
        return read_new_rows(self.estimator, X, owner=type(self.estimator).__name__)


# Attributes of scikit-learn's about the columns, set while the rows are read.
_COLUMNS = ("n_features_in_", "feature_names_in_")


@parameters_from_fields
class NetworkClassifier(WithConfig, ClassifierMixin, BaseEstimator):
    """A network behind the scikit-learn contract; a subclass says what it minimises.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(100,)
        Widths of the hidden layers; () makes it a linear model.
    activation : {"relu", "tanh", "sigmoid", "gelu", "silu", "elu", "softplus"}, default="relu"
    module : torch.nn.Module or callable, optional
        Your own network instead: a module (copied, with its weights), or a function that makes one, called
        with the numbers of columns and classes. It gives logits (n, C), or one logit for two classes.
    domain : TabularDomain, optional
        Encoder of raw frames, fitted or not. Without it one is made from the frame if it has columns of
        text.
    n_steps : int or "auto", default=2000
        Updates of the weights, at most.
    batch_size : int or "auto", default=1000
        Rows of one update; "auto" is a sixteenth of the table, between 64 and 512.
    lr : float, default=1e-3
        Learning rate.
    validation : float or "auto", optional
        Share of the rows to hold out: the weights with the lowest robust loss on them are kept, where classes
        count as they are sampled. "auto" is a fifth, at most 2,000 people, and none of fewer than 100.
    training : TrainingConfig, optional
        How training is run: optimiser, sampling, patience, checkpoint, progress, device and more.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same bytes every time.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X was a frame.
    module_ : torch.nn.Module
        The trained network of encoded rows.
    encoder_ : TabularDomain
        Only if a raw frame was encoded.
    history_ : History
        Loss and more, step by step.
    status_ : {"finished", "stopped_early", "interrupted", "diverged"}
    findings_ : tuple of Finding
        What a user should look at; each was given as a warning too.
    n_iter_ : int
        Steps made.
    n_steps_, batch_size_, validation_, patience_
        What the parameters of these names were, or what the table made of "auto".
    """

    hidden_layer_sizes: Sequence[int] = (100,)
    activation: str = "relu"
    module: Any = None
    domain: TabularDomain | None = None
    n_steps: int | Auto = 2000
    batch_size: int | Auto = 1000
    lr: float = 1e-3
    validation: float | Auto | None = None
    training: TrainingConfig | None = None
    random_state: RandomState = None

    # ---- what a subclass says -------------------------------------------------------------------------

    def _learn(self, rows: TrainingRows) -> None:
        """Learn on the rows whatever the objective needs: ``metric_``, ``removed_`` and the like."""

    def _objective(self) -> Objective:
        """Return what is minimised, from the parameters and what `_learn` learned."""
        return ERM()

    def _beside(self, rows: TrainingRows) -> dict[str, Any]:
        """Return what the batches hold besides rows and classes: `sensitive_features` codes, `proxy` vectors."""
        return {}

    def _encoder(self) -> TabularDomain | None:
        """Return the encoder that the parameters name, if any."""
        return self.domain

    def _look_back(
        self, people: Batch, held_out: HeldOut | None, result: TrainingResult
    ) -> tuple[Finding, ...]:
        """Return what else to say about the trained network, seen on the people held out or else on all."""
        if result.steps < ENOUGH_STEPS or any(one.code == "loss_flat" for one in result.findings):
            return ()
        judges = people if held_out is None else held_out.people
        owner, other = type(self).__name__, self._why_at_chance()
        return at_chance(self.module_, judges, seen=held_out is None, owner=owner, other=other)

    def _why_at_chance(self) -> str:
        """Return why a network may have learned nothing of columns that tell y, and what to do."""
        return "it did not learn: try more 'n_steps', another 'lr' or other 'hidden_layer_sizes'"

    # ---- fit ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
            A frame with columns of text is encoded by a `TabularDomain` (`domain`, or one made from the frame).
            Numeric frames and arrays are taken as they are: standardise them.
        y : array-like of shape (n,)
            Class labels of any kind, two or more.
        sensitive_features : array, Series, frame or dict, optional
            Sensitive attributes of each row that are not columns of X.
        sample_weight : array-like of shape (n,), optional
            What each row counts for, at least 0: batches are drawn by it, within each class if `sampling` is
            "balanced". Two of a row and a weight of 2 are the same. Metrics and encoders are learned without it.

        Returns
        -------
        self
        """
        with joined():
            people, held_out = self._prepare(X, y, sensitive_features, sample_weight)
            result = self._train(people, held_out)
            self._check(people, held_out, result)
        return self

    def _prepare(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[Batch, HeldOut | None]:
        """Read the rows, learn what the objective needs, make the network; return everybody and who is held out."""
        owner = type(self).__name__
        if self._config.patience not in (None, "auto") and self.validation is None:
            raise bad_parameter(
                owner,
                "patience",
                "None if no rows are held out",
                self._config.patience,
                "Pass validation=0.2.",
            )
        if self._config.resume and not isinstance(self.random_state, (int, np.integer)):
            raise bad_parameter(
                owner,
                "random_state",
                "an int if resume=True, so that the run is the same one",
                self.random_state,
            )
        rows, classes = self._training_rows(X, y, sensitive_features, sample_weight, first=True)
        self._begin(rows, classes, owner)
        people = self._batch(rows)
        if self.validation_ is None:
            return people, None
        share = check_share(self.validation_, owner=owner, name="validation")
        alike = self._config.sampling == "balanced"
        return people, hold_out(people, share, self._random, alike=alike)

    def _train(self, people: Batch, held_out: HeldOut | None) -> TrainingResult:
        """Train the network on all but the people held out."""
        part = people if held_out is None else people.take(held_out.rows)
        files = {"checkpoint": self._config.checkpoint, "resume": self._config.resume}
        return self._finish(self._run(self.network_, part, self.objective_, self.n_steps_, held_out, **files))

    def _check(self, people: Batch, held_out: HeldOut | None, result: TrainingResult) -> None:
        """Add what the trained network shows to the findings, and warn of all of them."""
        if result.ended:
            self.findings_ += self._look_back(people, held_out, result)
        if current_ranks().first:
            warn_about(self.findings_, stacklevel=3)

    def _run(
        self,
        network: torch.nn.Module,
        data: Batch | BatchSource,
        objective: Objective,
        steps: int,
        held_out: HeldOut | None = None,
        *,
        blind: bool = True,
        **changes: Any,
    ) -> TrainingResult:
        """Train a network as the parameters say but for `changes`; one that is `blind` behind what is projected off."""
        config = self._config
        how = {
            "optimizer": config.optimizer,
            "lr": self.lr,
            "batch_size": self.batch_size_,
            "sampling": self._drawing(data) if isinstance(data, Batch) else config.sampling,
            "validation": None if held_out is None else held_out.people,
            "validate_every": VALIDATE_EVERY if config.patience == "auto" else 100,
            "patience": None if held_out is None else self.patience_,
            "progress": config.progress,
            "device": config.device,
            "threads": config.threads,
            "random_state": self._seed(),
            "warn": False,
        }
        net = behind_projection(network, self.removed_ if blind else None)
        return train(net, data, objective, steps=steps, **how | changes)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sensitive_features: Any = None,
        steps: int | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Go on training on more rows.

        The first call encodes, learns the metric and makes the network, as `fit` does; later ones go on with
        all of these and with the optimiser.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`; `y` may lack classes.
        classes : array-like, optional
            All class labels; needed in the first call.
        steps : int, optional
            Updates to make; default: as many batches as these rows fill.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        first = not hasattr(self, "network_")
        if first and classes is None:
            raise bad_parameter(owner, "classes", "all class labels in the first call of partial_fit", "None")
        known = classes if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise bad_parameter(
                owner, "classes", f"those of the first call, {self.classes_.tolist()}", classes
            )
        with joined():
            rows, found = self._training_rows(
                X, y, sensitive_features, sample_weight, first=first, classes=known
            )
            if first:
                self._begin(rows, found, owner)
            batch = self._batch(rows)
            generator = torch.Generator().manual_seed(self._seed())
            source = ArrayBatches(batch, self.batch_size_, self._drawing(batch), generator=generator)
            size = min(self.batch_size_, len(batch))
            steps = -(-len(batch) // size) if steps is None else steps
            how: dict[str, Any] = {"optimizer": self._optimizer or self._config.optimizer}
            how["state"] = self._state
            self._finish(self._run(self.network_, source, self.objective_, steps, **how))
        return self

    def _training_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, first: bool, classes: Any = None
    ) -> tuple[TrainingRows, np.ndarray[Any, Any]]:
        owner = type(self).__name__
        given, x, encoder = read_rows(self, X, owner=owner, domain=self._encoder(), first=first)
        labels, codes = read_labels(y, x, owner=owner, classes=classes)
        if sensitive_features is not None:
            table = sensitive_features
            lengths = next(iter(table.values())) if isinstance(table, dict) and table else table
            check_same_length(owner, X=x, sensitive_features=lengths)
        weights = read_sample_weight(sample_weight, x, owner=owner)
        rows = TrainingRows(given, x, codes, sensitive_features, encoder, weights)
        if weights is None:
            return rows, labels
        # Drop zero-weight rows; sampling must not depend on row order.
        order = canonical_order(x, codes)
        rows = rows.take(order[weights[order] > 0])
        present = np.unique(rows.codes)
        if classes is not None or len(present) == len(labels):
            return rows, labels
        check_labels(labels[rows.codes], owner=owner, min_classes=2)
        return replace(rows, codes=np.searchsorted(present, rows.codes)), labels[present]

    def _begin(self, rows: TrainingRows, classes: np.ndarray[Any, Any], owner: str) -> None:
        """Check everything and make network and objective: what fails, fails here, before training."""
        for name in self._learned_names():
            if name not in _COLUMNS:
                delattr(self, name)
        if rows.encoder is not None:
            self.encoder_ = rows.encoder
        else:
            warn_unscaled(rows, owner=owner)
        self.classes_ = classes
        self.removed_: Subspace | None = None
        auto = auto_schedule(len(rows.x))
        self.n_steps_ = auto.n_steps if self.n_steps == "auto" else self.n_steps
        self.batch_size_ = auto.batch_size if self.batch_size == "auto" else self.batch_size
        self.validation_ = auto.validation if self.validation == "auto" else self.validation
        # Patience counts validations, so it needs people held out.
        patience = auto.patience if self.validation_ is not None else None
        self.patience_ = patience if self._config.patience == "auto" else self._config.patience
        self._random = current_ranks().generator(self.random_state)
        self._learn(rows)
        self._restore(rows.x.shape[1])
        check_outputs(self.network_, rows.x, len(classes), owner=owner)

    def _drawing(self, batch: Batch) -> Sampling:
        """How batches are drawn: by their weights if rows have any."""
        return self._config.sampling if batch.weight is None else "weighted"

    def _learned_names(self) -> list[str]:
        """Return what `fit` has set so far: the attributes whose names end in ``_``."""
        return sorted(name for name in vars(self) if name.endswith("_") and not name.startswith("_"))

    def _restore(self, width: int) -> None:
        """Make objective and network, with first weights, for what was learned about rows of `width` columns."""
        if not hasattr(self, "_random"):
            self._random = numpy_generator(self.random_state)
        self._width = width
        self._optimizer: torch.optim.Optimizer | None = None
        self._state: State | None = None
        self.objective_ = self._objective()
        self.network_ = self._new_network()

    def _new_network(self) -> torch.nn.Module:
        """A network with first weights, for rows of the width known."""
        network = make_network(
            self.module,
            n_in=self._width,
            n_out=len(self.classes_),
            hidden=self.hidden_layer_sizes,
            activation=self.activation,
            seed=self._seed(),
            owner=type(self).__name__,
        )
        return network if self._config.device is None else network.to(self._config.device)

    def _as_module(self, network: torch.nn.Module) -> torch.nn.Module:
        """Return the network of encoded rows: what is projected off is folded into it."""
        return folded(network, self.removed_).eval()

    def _batch(self, rows: TrainingRows) -> Batch:
        dtype = next((p.dtype for p in self.network_.parameters() if p.is_floating_point()), torch.float32)
        weights = rows.weights
        if weights is not None and self._config.sampling == "balanced":
            weights = classes_alike(rows.codes, weights)
        return Batch.from_arrays(rows.x, rows.codes, dtype=dtype, weight=weights, **self._beside(rows))

    def _seed(self) -> int:
        return int(self._random.integers(2**31))

    def _finish(self, result: TrainingResult) -> TrainingResult:
        """Keep what a training gave."""
        self._optimizer, self._state = result.optimizer, result.state
        self.history_, self.status_, self.findings_ = result.history, result.status, result.findings
        self.n_iter_ = result.state.step
        self.module_ = self._as_module(self.network_)
        if result.status in ("diverged", "interrupted") and current_ranks().first:
            warnings.warn(f"{type(self).__name__}: {result.reason}.", TrainingWarning, stacklevel=4)
        return result

    # ---- predict --------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        x = read_new_rows(self, X, owner=type(self).__name__)
        # In double precision, so that a row's answer does not depend on the rows beside it.
        net = copy.deepcopy(self.module_).double() if self.module is None else self.module_
        return scores_of(net, x)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, p)
            As in `fit`; if `fit` encoded a frame, encoded rows are taken too.

        Returns
        -------
        ndarray of shape (n, C)
            In the order of ``classes_``.
        """
        return np.asarray(softmax(self._scores(X), axis=1))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores (n, C) before the softmax; for two classes the second minus the first, (n,)."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the likeliest class of each row, (n,)."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @property
    def coefs_(self) -> list[FloatArray]:
        """Weights (in, out) of each layer if the network is a plain MLP, as scikit-learn's `MLPClassifier`."""
        return [layer.T for layer in plain_layers(self.module_)[0]]

    @property
    def intercepts_(self) -> list[FloatArray]:
        """Biases (out,) of each layer if the network is a plain MLP."""
        return plain_layers(self.module_)[1]

    # ---- as a model, as a file --------------------------------------------------------------------------

    def __likewise_model__(self, **choices: Any) -> Any:
        """Return the network as a differentiable `likewise.models.Model`, for `as_model` and audits."""
        check_is_fitted(self)
        return NetworkModel(self, **choices)

    def save(self, path: str | os.PathLike[str], *, training: bool = False) -> None:
        """Write the fitted estimator to one safetensors file, whole or not at all; without pickle.

        Parameters
        ----------
        path : path-like
        training : bool, default=False
            Also write what `partial_fit` needs to go on exactly where training ended (the optimiser's moments, λ,
            the random state), and the history.

        Notes
        -----
        Written are weights, classes, columns, the encoder, the metric that was learned and the parameters. A
        module of your own is written by its weights only; parameters that are functions are left out.
        """
        from likewise.training.estimators.files import save_estimator

        check_is_fitted(self)
        save_estimator(self, path, training=training)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, module: Any = None) -> Self:
        """Read an estimator that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : path-like
        module : torch.nn.Module or callable, optional
            The module of your own that was trained (its build; the weights are in the file).

        Returns
        -------
        NetworkClassifier
            It predicts the same.

        Raises
        ------
        FormatError
            When the file is damaged, of another kind, or from a newer version.
        """
        from likewise.training.estimators.files import load_estimator

        loaded: Self = load_estimator(cls, path, module=module)
        return loaded
