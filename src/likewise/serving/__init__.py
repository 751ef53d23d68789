"""The page of an audit with a model behind it, on the loopback address: ask about anybody, audit an uploaded table.

`gate` checks requests and holds the limits, `queue` reads uploads, asks the model one question at a time, runs
audits and keeps results in memory, `app` renders pages and routes requests, and `server` listens.

Examples
--------
>>> from likewise.serving import Limits, Secrets
>>> Limits(people=500).people, Secrets("token", 8000).link
(500, 'http://127.0.0.1:8000/?token=token')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.serving.app import Application as Application
    from likewise.serving.audits import FrameAuditor as FrameAuditor
    from likewise.serving.gate import Limits as Limits, Secrets as Secrets
    from likewise.serving.server import (
        RunningServer as RunningServer,
        serve as serve,
        start_server as start_server,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__)
