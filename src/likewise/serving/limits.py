"""How much a browser may ask of the server."""

from __future__ import annotations

from dataclasses import dataclass, fields

from likewise.core.errors import bad_parameter


@dataclass(frozen=True)
class Limits:
    """What the server takes; anything beyond is refused with a sentence, and never held in memory.

    Parameters
    ----------
    body_bytes : int, default=2**20
        Of a question to the model, or any other short message.
    upload_bytes : int, default=64 * 2**20
        Of an uploaded table.
    unpacked_bytes : int, default=256 * 2**20
        That an uploaded table may become when it is unpacked.
    people : int, default=100_000
        Rows of an uploaded table.
    columns : int, default=2_000
        Columns of an uploaded table.
    cells : int, default=5_000_000
        Rows × columns of an uploaded table.
    rows : int, default=1_000
        Rows of a question to the model.
    depth : int, default=8
        How deep JSON may be nested.
    seconds : int, default=60
        For a request to arrive in.
    per_second, burst : int, default=200 and 400
        Requests on average, and at once.
    waiting : int, default=16
        Questions that wait for the model, which answers one at a time.
    results : int, default=20
        Audits that are kept; the oldest goes first.

    Examples
    --------
    >>> Limits(rows=10).rows
    10
    """

    body_bytes: int = 2**20
    upload_bytes: int = 64 * 2**20
    unpacked_bytes: int = 256 * 2**20
    people: int = 100_000
    columns: int = 2_000
    cells: int = 5_000_000
    rows: int = 1_000
    depth: int = 8
    seconds: int = 60
    per_second: int = 200
    burst: int = 400
    waiting: int = 16
    results: int = 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise bad_parameter("Limits", field.name, allowed="a whole number >= 1", got=value)
