"""A model that is at hand in Python, behind a page on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likewise.core.checks import check_same_length
from likewise.core.errors import bad_parameter
from likewise.core.frames import to_pandas
from likewise.domains import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.serving.app import Application
from likewise.serving.frame_audits import FrameAuditor
from likewise.serving.limits import Limits
from likewise.serving.server import RunningServer

__all__ = ["serve", "start_server"]


def start_server(
    model: Any,
    people: Any,
    y: Any,
    *,
    sensitive: Sequence[str],
    metric: FairMetric | None = None,
    domain: TabularDomain | None = None,
    immutable: Sequence[str] = (),
    eps: float = 0.1,
    seconds: float | None = None,
    name: str = "the model",
    uploads: bool = True,
    limits: Limits | None = None,
    language: str = "en",
    port: int = 0,
    random_state: int = 0,
    progress: bool = False,
) -> RunningServer:
    """Audit a model, and return the server of its page; entering it as a context starts it.

    Parameters
    ----------
    model, people, y, sensitive, metric, domain, immutable, eps, seconds, name, uploads, limits, language, port, random_state
        As in `serve`.
    progress : bool, default=False
        Show how far the audit is, on standard error.

    Examples
    --------
    >>> import urllib.request
    >>> import numpy as np, pandas as pd
    >>> people = pd.DataFrame({"skill": np.arange(20) / 10, "sex": ["F", "M"] * 10})
    >>> score = lambda frame: 1 / (1 + np.exp(1 - frame["skill"] - (frame["sex"] == "M")))
    >>> from likewise.fair_metrics import ExpertSubspace
    >>> metric = ExpertSubspace(["sex"]).fit(people).metric_
    >>> with start_server(score, people, [0, 1] * 10, sensitive=["sex"], metric=metric, eps=0.0) as server:
    ...     urllib.request.urlopen(server.link).status
    200
    """
    table = to_pandas(people, owner="serve", name="people")
    check_same_length("serve", people=table, y=y)
    if isinstance(sensitive, str) or not len(sensitive):
        raise bad_parameter("serve", "sensitive", allowed="a list of at least one column", got=sensitive)
    auditor = FrameAuditor(model, name, metric, domain, tuple(immutable), eps, random_state)
    audited = auditor.audit(table, y, tuple(sensitive), progress, seconds=seconds)
    return RunningServer(
        lambda secrets: Application(
            secrets,
            name=name,
            audited=audited,
            auditor=auditor if uploads else None,
            known={"target": None, "positive": None, "sensitive": list(sensitive)},
            limits=limits,
            language=language,
        ),
        port,
    )


def serve(
    model: Any,
    people: Any,
    y: Any,
    *,
    sensitive: Sequence[str],
    metric: FairMetric | None = None,
    domain: TabularDomain | None = None,
    immutable: Sequence[str] = (),
    eps: float = 0.1,
    seconds: float | None = None,
    name: str = "the model",
    uploads: bool = True,
    limits: Limits | None = None,
    language: str = "en",
    port: int = 0,
    random_state: int = 0,
) -> None:
    """Audit a model, and serve the page with the model behind it on the loopback address until Ctrl-C.

    The link that is printed has a token; who does not know it gets nothing. Nothing is written.

    Parameters
    ----------
    model : anything `likewise.models.as_model` takes
        Such as a function, which gets the table and returns probabilities. It is asked about one thing at a time.
    people : table of shape (n, p)
        In original units.
    y : array-like of shape (n,)
        Their labels.
    sensitive : sequence of str
        Columns that should not decide.
    metric : FairMetric, optional
        Who is comparable with whom; by default it is learned from the sensitive columns.
    domain : TabularDomain, optional
        Which rows can exist; by default it is made from the table.
    immutable : sequence of str
        Columns that no twin may differ in.
    eps : float, default=0.1
        As in `audit`.
    seconds : float, optional
        How long to search before the page is there.
    name : str
        Of the model, for headings.
    uploads : bool, default=True
        Whether further tables can be audited in the browser.
    limits : Limits, optional
        How much may be asked.
    language : {"en", "de"}, default="en"
        Of the pages.
    port : int, default=0
        0 takes a free one.
    random_state : int, default=0

    Examples
    --------
    >>> serve(lambda frame: frame["skill"] > 1, {"skill": [1.0]}, [0], sensitive=[])
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: serve: ...
    """
    from rich.console import Console

    running = start_server(
        model, people, y, sensitive=sensitive, metric=metric, domain=domain, immutable=immutable, eps=eps,
        seconds=seconds, name=name, uploads=uploads, limits=limits, language=language, port=port, random_state=random_state,
        progress=True,
    )  # fmt: skip
    screen = Console(highlight=False, soft_wrap=True)
    running.until_interrupted(
        lambda link: screen.print(f"Serving {name} on {link} (Ctrl-C ends it)", markup=False)
    )
