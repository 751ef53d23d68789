"""Another model, asked about all twins of a person: what `as_model` makes of a `TwinConsensus`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.core.frames import is_frame, to_pandas
from likewise.evaluation.twin_makers import TwinMaker
from likewise.evaluation.twins import TwinFactor, canonical_rows, different_twins
from likewise.models.model import Model
from likewise.postprocessing.consensus import How, consensus
from likewise.twins.orbits import circle_rows

__all__ = ["ConsensusModel", "as_named_frame"]

# Rows of one question to the inner model.
_AT_ONCE = 2**17


class ConsensusModel(Model):
    """The consensus over a person's twins.

    Parameters
    ----------
    inner : Model
        Asked once about each twin.
    factors : sequence of TwinFactor
        Who is whose twin; columns by name, or by position ("0", "1", …) where the model takes an array.
    how : {"mean", "margin", "median", "worst"}
    favourable : object, optional
        The class that is good to get, for "worst"; the last one by default.
    maker : TwinMaker, optional
        Makes the twins, in place of factors.

    Examples
    --------
    >>> from likewise.evaluation.twins import spelled_out_factors
    >>> from likewise.models import as_model
    >>> inner = as_model(lambda t: np.where(t["sex"] == "M", 0.9, 0.4), takes_frame=True, classes=[0, 1])
    >>> model = ConsensusModel(inner, spelled_out_factors({"sex": ["F", "M"]}, None, owner="x"), "mean")
    >>> model.outputs(pd.DataFrame({"sex": ["F", "M"]}))[:, 1]
    array([0.65, 0.65])
    """

    def __init__(
        self,
        inner: Model,
        factors: Sequence[TwinFactor],
        how: How,
        *,
        favourable: Any = None,
        maker: TwinMaker | None = None,
    ) -> None:
        as_probabilities = inner.output_kind == "scores" and inner.loss.wants == "probabilities"
        # Twins are made of a table: a model that encodes tables itself is asked with tables.
        columns = None if inner.encoder is None else tuple(c.name for c in inner.encoder.columns_)
        super().__init__(
            loss=inner.loss,
            kind="probabilities" if as_probabilities and how != "margin" else inner.output_kind,
            classes=inner.known_classes,
            takes_frame=inner.takes_frame or columns is not None,
            feature_names=inner.feature_names if columns is None else columns,
            n_features=inner.n_features if columns is None else len(columns),
            missing=True,
            batch_rows=65536,
        )
        self.inner, self.factors, self.how, self.favourable = inner, tuple(factors), how, favourable
        self.maker = maker

    def _rows(self, X: Any) -> Any:
        # Frames stay frames: the factors' columns have names, and the inner model picks and checks its own.
        if is_frame(X):
            frame = to_pandas(X, owner="TwinConsensus", name="X")
            if not len(frame):
                raise InputError("TwinConsensus: 'X' is empty: it has no rows. Pass at least one row.")
            return frame
        return super()._rows(X)

    def _answer(self, rows: Any) -> FloatArray:
        frame = as_named_frame(rows, self.feature_names)
        if self.maker is None:
            canonical = canonical_rows(frame, self.factors, owner="TwinConsensus")
            same = [c for factor in self.factors if factor.everybody for c in factor.columns]
            first, place = _distinct(canonical.drop(columns=same))
            people = frame.iloc[first]
        else:
            canonical = circle_rows(self.maker, frame.reset_index(drop=True))
            first, place = _distinct(canonical)
            people = canonical.iloc[first]
        plain = not isinstance(rows, pd.DataFrame)
        outputs = self._asked(people, plain)
        if self._classes is None:
            self._classes = self.inner.known_classes
        probabilities = self.output_kind == "probabilities"
        agreed = consensus(outputs, self.how, probabilities=probabilities, favourable=self._favourable())
        return np.asarray(agreed[place])

    def _asked(self, people: pd.DataFrame, plain: bool) -> FloatArray:
        """What the inner model says about all twins, (T, n, C); about each that is another row it is asked once."""
        ask = self.inner.predict_proba if self._softens else self.inner.outputs
        if self.maker is not None:
            made = self.maker.make(people).tables
            return np.stack([ask(table.to_numpy() if plain else table) for table in made])
        twins = list(different_twins(people, self.factors, owner="TwinConsensus"))
        answers: list[FloatArray] = []
        for tables in _together([table for _, table in twins]):
            asked = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
            found = ask(asked.to_numpy() if plain else asked)
            answers += np.split(found, np.cumsum([len(table) for table in tables])[:-1])
        outputs = np.empty((len(twins), *answers[0].shape))
        everybody = np.arange(len(people))
        for number, (source, _) in enumerate(twins):
            outputs[number, source == number] = answers[number]
            known = source != number
            outputs[number, known] = outputs[source[known], everybody[known]]
        return outputs

    @property
    def _softens(self) -> bool:
        return self.output_kind == "probabilities" and self.inner.output_kind == "scores"

    def _favourable(self) -> int:
        if self.favourable is None or self._classes is None:
            return -1
        found = np.flatnonzero(self._classes == self.favourable)
        if not len(found):
            raise InputError(
                f"TwinConsensus: 'favourable' must be one of the classes {self._classes.tolist()}, "
                f"got {self.favourable!r}."
            )
        return int(found[0])


def as_named_frame(rows: Any, names: Sequence[str] | None) -> pd.DataFrame:
    """Return an array as a frame whose columns are the given names, or positions: "0", "1", ….

    Examples
    --------
    >>> list(as_named_frame(np.zeros((1, 2)), None).columns)
    ['0', '1']
    """
    if isinstance(rows, pd.DataFrame):
        return rows
    columns = [str(i) for i in range(rows.shape[1])] if names is None else list(names)
    return pd.DataFrame(rows, columns=columns, copy=False)


def _together(tables: Sequence[pd.DataFrame]) -> Iterator[list[pd.DataFrame]]:
    """Tables that make one question: asking costs some time whatever is asked, and rows some memory."""
    group: list[pd.DataFrame] = []
    for table in tables:
        rows = sum(map(len, group))
        # Columns of other types, as of a category that only one of them has, would become another type together.
        if group and (rows + len(table) > _AT_ONCE or not table.dtypes.equals(group[0].dtypes)):
            yield group
            group = []
        group.append(table)
    yield group


def _distinct(rows: pd.DataFrame) -> tuple[Any, Any]:
    """Positions of the different rows, and which of them each row is: twins in one table are asked about once.

    A model may round a row's answer by where it stands in the table; one answer for all twins cannot differ.
    """
    place, first = np.zeros(len(rows), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for column in rows.columns:
        codes = pd.factorize(rows[column], use_na_sentinel=False)[0]
        _, first, place = np.unique(
            place * (int(codes.max(initial=0)) + 1) + codes, return_index=True, return_inverse=True
        )
    return first, place
