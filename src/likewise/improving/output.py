"""The files of an improvement: page, JSON, table, the chosen model in its library's own format."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from likewise.core.errors import InputError, MissingExtraError
from likewise.core.files import atomic_path
from likewise.improving.documents import KIND, improvement_document
from likewise.improving.improvement import Improvement
from likewise.improving.page import render_improvement

__all__ = ["check_improvement_folder", "write_improvement"]

JSON, PAGE, TABLE, MODEL = "improvement.json", "index.html", "alternatives.csv", "model"


def check_improvement_folder(folder: str | os.PathLike[str]) -> None:
    """Raise where files cannot be written, or would replace files that no search wrote.

    Parameters
    ----------
    folder : path-like
        It need not exist.
    """
    where = Path(folder)
    for parent in (where, *where.parents):
        if parent.exists() and not parent.is_dir():
            raise InputError(f"{parent} is a file, not a folder. Choose another -o.")
    ours = where / JSON
    if ours.exists():
        try:
            known = json.loads(ours.read_text(encoding="utf-8")).get("kind") == KIND
        except (ValueError, AttributeError):
            known = False
        if not known:
            raise InputError(f"{ours} was not written by `improve`. Choose another -o.")
        return
    taken = [name for name in (PAGE, TABLE) if (where / name).exists()]
    if taken:
        raise InputError(f"{where / taken[0]} was not written by `improve`. Choose another -o.")


def write_improvement(
    improvement: Improvement, folder: str | os.PathLike[str], *, language: str = "en"
) -> tuple[Path, ...]:
    """Write an improvement: ``index.html``, ``improvement.json``, ``alternatives.csv`` and the chosen model.

    Parameters
    ----------
    improvement : Improvement
    folder : path-like
        Made where it is not there; files of an earlier search in it are replaced.
    language : {"en", "de"}, default="en"
        Of the page.

    Returns
    -------
    tuple of Path
        What was written. A model that cannot be written without pickle is left out.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from likewise.improving import improve
    >>> from likewise.improving.families.boosting import BoostingCandidate
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> few = {"n_estimators": 10, "max_depth": 2}
    >>> plain = BoostingCandidate("plain", "", blind=False, choices=few)
    >>> blind = BoostingCandidate("blind", "", choices=few)
    >>> import tempfile
    >>> result = improve(people, hired, sensitive=["sex"], candidates=[plain, blind], folds=2)
    >>> [path.name for path in write_improvement(result, tempfile.mkdtemp())]
    ['improvement.json', 'index.html', 'alternatives.csv', 'model.ubj']
    """
    where = Path(folder)
    check_improvement_folder(where)
    where.mkdir(parents=True, exist_ok=True)
    document = json.dumps(improvement_document(improvement), ensure_ascii=False, allow_nan=False, indent=1)
    texts = {
        JSON: document + "\n",
        PAGE: render_improvement(improvement, language=language),
        TABLE: improvement.frame.to_csv(index_label="model"),
    }
    written = []
    for name, text in texts.items():
        with atomic_path(where / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.append(where / name)
    return (*written, *_write_model(improvement, where / f"{MODEL}{improvement.suffix}"))


def _write_model(improvement: Improvement, target: Path) -> tuple[Path, ...]:
    if not hasattr(improvement.model, "save"):
        return ()
    try:
        improvement.model.save(target)
    except (InputError, MissingExtraError) as error:
        warnings.warn(f"The chosen model was not written: {error}", UserWarning, stacklevel=3)
        return ()
    return (target,)
