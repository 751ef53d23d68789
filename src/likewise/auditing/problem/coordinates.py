"""One table of rows, seen by the model, by the fair metric and by the domain: who gets it raw, who encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise.auditing.problem.editable_rows import tabular
from likewise.auditing.support.frontier import Floats, Ints
from likewise.core.arrays import to_numpy
from likewise.core.frames import is_frame, to_pandas

__all__ = ["Views"]


@dataclass(frozen=True, eq=False)
class Views:
    """How a table of audited rows is shown to the model, the metric and the domain.

    Parameters
    ----------
    model : Model
        Gets the table itself where it takes frames, else the encoded array.
    metric : FairMetric
        Gets the table where its feature map reads tables, else the encoded array.
    domain : Domain or None
        Gets the encoded array.
    encoder : TabularDomain or None
        Who encodes: the domain, or the metric's feature map.
    raw : bool
        Whether the table is in original units.
    """

    model: Any
    metric: Any
    domain: Any
    encoder: Any
    raw: bool

    @classmethod
    def of(cls, X: Any, *, model: Any, metric: Any, domain: Any) -> Views:
        """Find out from the columns of `X` whether it is raw, and who can encode it.

        A frame with the encoded columns of the `TabularDomain` is encoded. Where raw and encoded columns have
        the same names (no categories), the table is raw if the metric encodes, that is, has a feature map.
        """
        encoder = tabular(domain) or tabular(metric.feature_map)
        if not is_frame(X):
            return cls(model, metric, domain, encoder, raw=False)
        if encoder is None:
            return cls(model, metric, domain, None, raw=True)
        columns = list(to_pandas(X, owner="audit", name="X").columns)
        encoded = columns == [str(name) for name in encoder.get_feature_names_out()]
        same = encoded and columns == [column.name for column in encoder.columns_]
        return cls(
            model, metric, domain, encoder, raw=metric.feature_map is not None if same else not encoded
        )

    def for_model(self, table: Any) -> Any:
        """Return rows as the model takes them."""
        if self.encoder is None:
            return table
        if self.raw:
            reads_tables = self.model.takes_frame or self.model.encoder is not None
            return table if reads_tables else self.encoder.encode_array(table)
        if not self.model.takes_frame:
            return table
        wanted = getattr(self.model, "feature_names", None)
        names = [str(name) for name in self.encoder.get_feature_names_out()]
        if isinstance(table, pd.DataFrame) and wanted is None:
            return table
        if wanted is not None and set(wanted) <= set(names):
            return table if isinstance(table, pd.DataFrame) else pd.DataFrame(table, columns=names)
        return self.encoder.decode(table)

    @property
    def model_agrees(self) -> bool:
        """Whether encoded rows mean the same to the model as to the domain: it has no encoder, or the same one."""
        own = self.model.encoder
        return not self.raw or own is None or own is self.encoder or _same_encoding(own, self.encoder)

    def features(self, table: Any) -> tuple[Floats, float]:
        """Return φ of rows, float64 of shape (n, d), and the resolution of the numbers φ is made of."""
        if self.raw and self.encoder is not None and tabular(self.metric.feature_map) is None:
            table = self.encoder.encode_array(table)
        phi = to_numpy(self.metric.features(table))
        return phi.astype(np.float64), float(np.finfo(phi.dtype).eps)

    def possible(self, table: Any, features: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each row is one that can exist; True throughout where there is no domain."""
        rows = self.encoded(table, features)
        if rows is None:
            return np.ones(len(features), dtype=bool)
        away = np.abs(rows - to_numpy(self.domain.nearest_valid(rows)))
        return np.asarray((away <= 1e-6 * (1.0 + np.abs(rows))).all(axis=1))

    def encoded(self, table: Any, features: Floats) -> Floats | None:
        """Return rows as the domain takes them, or None where there is no domain to ask.

        `features` are used where they are the same thing.
        """
        if self.domain is None:
            return None
        if not self.raw:
            return np.asarray(to_numpy(table), dtype=np.float64)
        if self.encoder is None:
            return np.asarray(table.to_numpy(), dtype=np.float64)
        if self.metric.feature_map is None or self.metric.feature_map is self.domain:
            return features
        return np.asarray(self.encoder.encode_array(table), dtype=np.float64)

    def fixed_names(self) -> tuple[str, ...]:
        """Names of the columns that the domain says may not change."""
        known = tabular(self.domain)
        return () if known is None else tuple(c.name for c in known.columns_ if c.immutable)

    def fixed_positions(self) -> Ints:
        """Positions, in the encoding, of what may not change."""
        known = tabular(self.domain)
        if known is None:
            return np.array(sorted(getattr(self.domain, "immutable", ())), dtype=np.int64)
        parts = [np.arange(c.start, c.stop) for c in known.columns_ if c.immutable]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)


def _same_encoding(one: Any, other: Any) -> bool:
    """Whether two fitted table domains encode every table alike, whatever their ranges."""
    if tabular(one) is None or tabular(other) is None:
        return False
    parts = (
        [(c.name, c.kind, c.categories, c.mean, c.scale, c.start, c.stop) for c in domain.columns_]
        for domain in (one, other)
    )
    return next(parts) == next(parts)
