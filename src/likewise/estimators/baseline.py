"""The paper's Baseline: plain training."""

from __future__ import annotations

from likewise.estimators.network_classifier import NetworkClassifier

__all__ = ["MLPBaselineClassifier"]


class MLPBaselineClassifier(NetworkClassifier):
    """A multilayer perceptron trained for accuracy alone, as the paper's "Baseline".

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(100,)
        Widths of the hidden layers; () makes it a linear model.
    activation : {"relu", "tanh", "sigmoid", "gelu", "silu", "elu", "softplus"}, default="relu"
    module : torch.nn.Module or callable, optional
        Your own network instead: a module (copied, with its weights), or a function that makes one, called
        with the numbers of columns and classes. It gives logits (n, C), or one logit for two classes.
    domain : TabularDomain, optional
        Encoder of raw frames, fitted or not. Without it one is made from the frame where it has columns of
        text.
    n_steps : int, default=2000
        Updates of the weights.
    batch_size : int, default=1000
        Rows of one update.
    lr : float, default=1e-3
        Learning rate.
    optimizer : {"adam", "adamw", "sgd"} or callable (parameters, lr) -> Optimizer, default="adam"
    sampling : {"balanced", "uniform"}, default="balanced"
        "balanced" draws as many rows of each class, as the paper's Appendix C.
    validation : float, optional
        Share of the rows to hold out: the weights with the lowest robust loss on them are kept.
    patience : int, optional
        Stop after so many validations (one every 100 steps) without a better one.
    checkpoint : path, optional
        File that the run is written to now and then.
    resume : bool, default=False
        Go on from the checkpoint, if there is one, to the result of an uninterrupted run; needs a
        `random_state` that is an int.
    progress : bool, default=False
        Show a bar with the time left.
    device : str, optional
        Where to train, such as "cuda"; default: the CPU, or where your module is.
    threads : int, "auto" or None, default="auto"
        Torch threads while training; "auto" is 1 for networks below a million parameters.
    random_state : int, Generator, RandomState or None, default=None
        An int gives the same bytes every time.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X was a frame.
    module_ : torch.nn.Module
        The trained network of encoded rows.
    encoder_ : TabularDomain
        Only where a raw frame was encoded.
    history_ : History
        Loss and more, step by step.
    status_ : {"finished", "stopped_early", "interrupted", "diverged"}
    findings_ : tuple of Finding
        What a user should look at; each was given as a warning too.
    n_iter_ : int
        Steps made.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> clf = MLPBaselineClassifier(n_steps=200, random_state=0).fit(X, y)
    >>> clf.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist()
    ['yes', 'no']
    """
