"""The paper's Project: plain training on rows without the sensitive directions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from likewise.core.randomness import RandomState
from likewise.domains import TabularDomain
from likewise.estimators.metrics import metric_encoder, trained_metric
from likewise.estimators.network_classifier import NetworkClassifier
from likewise.estimators.network_rows import TrainingRows
from likewise.preprocessing.project import projected_off
from likewise.training.sampling import Sampling
from likewise.training.setup import OptimizerLike

__all__ = ["ProjectClassifier"]


class ProjectClassifier(NetworkClassifier):
    """Plain training on rows projected off the sensitive subspace, as the paper's "Project".

    The same as a pipeline of `likewise.preprocessing.Project` and `MLPBaselineClassifier`, in one estimator whose
    network takes the unprojected rows: the projection is folded into its first layer.

    Parameters
    ----------
    metric : FairMetric, learner or list of them, optional
        Whose sensitive subspace is projected off; as in `SenSRClassifier`.
    hidden_layer_sizes, activation, module, domain, n_steps, batch_size, lr, optimizer, sampling, validation, \
patience, checkpoint, resume, progress, device, threads, random_state
        As in `MLPBaselineClassifier`.

    Attributes
    ----------
    metric_ : FairMetric
    removed_ : Subspace
        What was projected off.
    classes_, n_features_in_, feature_names_in_, module_, encoder_, history_, status_, findings_, n_iter_
        As in `MLPBaselineClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = ProjectClassifier(ExpertSubspace([0]), n_steps=100, random_state=0).fit(X, X.sum(axis=1) > 0)
    >>> a, b = clf.predict_proba([[-9.0, 1.0], [9.0, 1.0]])
    >>> bool(np.allclose(a, b))
    True
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        hidden_layer_sizes: Sequence[int] = (100,),
        activation: str = "relu",
        module: Any = None,
        domain: TabularDomain | None = None,
        n_steps: int = 2000,
        batch_size: int = 1000,
        lr: float = 1e-3,
        optimizer: OptimizerLike = "adam",
        sampling: Sampling = "balanced",
        validation: float | None = None,
        patience: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        progress: bool = False,
        device: str | None = None,
        threads: int | Literal["auto"] | None = "auto",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            module=module,
            domain=domain,
            n_steps=n_steps,
            batch_size=batch_size,
            lr=lr,
            optimizer=optimizer,
            sampling=sampling,
            validation=validation,
            patience=patience,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
            device=device,
            threads=threads,
            random_state=random_state,
        )
        self.metric = metric

    def _encoder(self) -> TabularDomain | None:
        return self.domain if self.domain is not None else metric_encoder(self.metric)

    def _learn(self, rows: TrainingRows) -> None:
        self.metric_ = trained_metric(self.metric, rows, owner=type(self).__name__)
        self.removed_ = projected_off(self.metric_, owner=type(self).__name__)
