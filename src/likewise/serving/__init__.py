"""The page of an audit with a model behind it, on the loopback address: ask about anybody, audit an uploaded table.

`gate` says who may come in, `limits` how much may be asked, `bodies` and `uploads` read what a browser sends no further
than that, `row_scores` asks the model, `turns` lets it answer one question at a time, `desk` runs the one audit of an
upload and keeps results in memory, `pages` draws, `app` puts these behind addresses, and `server` listens.

Examples
--------
>>> from likewise.serving import Limits, Secrets
>>> Limits(people=500).people, Secrets("token", 8000).link
(500, 'http://127.0.0.1:8000/?token=token')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names
from likewise.serving.limits import Limits

if TYPE_CHECKING:
    from likewise.serving.app import Application
    from likewise.serving.frame_audits import FrameAuditor
    from likewise.serving.gate import Secrets
    from likewise.serving.serve_model import serve, start_server
    from likewise.serving.server import RunningServer

__all__ = [
    "Application",
    "FrameAuditor",
    "Limits",
    "RunningServer",
    "Secrets",
    "serve",
    "start_server",
]

_HOMES = {
    "Application": "app",
    "FrameAuditor": "frame_audits",
    "RunningServer": "server",
    "Secrets": "gate",
    "serve": "serve_model",
    "start_server": "serve_model",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
