"""Every exception of the package, in one tree under `LikewiseError`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from types import ModuleType


class LikewiseError(Exception):
    """Base of every error that the package raises on purpose.

    Examples
    --------
    >>> import likewise as lw
    >>> try:
    ...     lw.mahalanobis([[-1.0]])
    ... except lw.LikewiseError as error:
    ...     print(type(error).__name__)
    InputError
    """

    def __str__(self) -> str:
        # What another library said, within a sentence of ours, ends in a full stop or does not.
        return re.sub(r"(?<!\.)\.\.(?=\s)", ".", super().__str__())


class InputError(LikewiseError, ValueError):
    """What the caller passed cannot be used; the message says what to do.

    Examples
    --------
    >>> import likewise as lw
    >>> try:
    ...     lw.mahalanobis([[-1.0]])
    ... except lw.InputError as error:
    ...     print(error)
    mahalanobis: 'sigma' must be positive semi-definite, got a matrix with eigenvalue -1. A covariance must be inverted first if its inverse is meant.
    """


class FormatError(InputError):
    """A file is not what it claims to be, is damaged, or comes from a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import likewise as lw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "metric.safetensors"
    >>> _ = path.write_bytes(b"not what it claims to be")
    >>> try:
    ...     lw.FairMetric.load(path)
    ... except lw.core.FormatError as error:
    ...     print("no metric file")
    no metric file
    """


class ModelError(LikewiseError, ValueError):
    """A model answered with something that cannot be scored (wrong shape, not finite, no classes).

    Examples
    --------
    >>> import likewise as lw
    >>> try:
    ...     lw.as_model(lambda rows: [float("nan")] * len(rows)).predict([[1.0], [2.0]])
    ... except lw.core.ModelError as error:
    ...     print(error)
    CallableModel: the model's output is not finite for 2 of 2 rows, first at row 0: [nan]. Nothing can be said about such a model.
    """


class NotConvergedError(LikewiseError, RuntimeError):
    """A search or a training ended without a trustworthy answer.

    Examples
    --------
    >>> issubclass(NotConvergedError, LikewiseError), issubclass(NotConvergedError, RuntimeError)
    (True, True)
    """


class NotAskedError(LikewiseError, AttributeError):
    """A value of a result was read that the call did not ask for; the message says how to ask.

    Examples
    --------
    >>> issubclass(NotAskedError, AttributeError)
    True
    """


class UnfairError(LikewiseError):
    """A model did not pass the audit at the asked level.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import likewise as lw
    >>> people = pd.DataFrame({"skill": [0.0, 0.5, 2.0, 1.0], "sex": ["F", "M", "M", "F"]})
    >>> score = lambda frame: 1 / (1 + np.exp(-frame["skill"] - (frame["sex"] == "M")))
    >>> metric = lw.ExpertSubspace(["sex"]).fit(people).metric_
    >>> result = lw.audit(score, people, [0, 1, 1, 1], metric=metric, eps=0.0)
    >>> try:
    ...     result.raise_if_unfair(delta=0.1)
    ... except lw.UnfairError as error:
    ...     print("stop the build")
    stop the build
    """


class MissingExtraError(LikewiseError, ImportError):
    """An optional dependency is needed and absent; the message names the extra to install.

    Examples
    --------
    >>> from likewise.core.errors import require
    >>> try:
    ...     require("no_such_package", extra="report", why="A page")
    ... except MissingExtraError as error:
    ...     print(error)
    A page needs 'no_such_package', which is not installed. Run: pip install 'likewise[report]'
    """


def bad_parameter(owner: str, name: str, allowed: str, got: object, remedy: str = "") -> InputError:
    """Build the error for one bad parameter; the arguments come in the order of its sentence."""
    shown = got if isinstance(got, str) else repr(got)
    return InputError(f"{owner}: {name!r} must be {allowed}, got {shown}." + (f" {remedy}" if remedy else ""))


def no_rows(owner: str, name: str = "X", least: str = "row") -> InputError:
    """Build the error for a table without rows."""
    return InputError(f"{owner}: {name!r} is empty: it has no rows. Pass at least one {least}.")


def first_line_of(error: BaseException) -> str:
    """Return what another library's error says first, to stand within a sentence; its type if it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:300]


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Return " (did you mean 'sex'?)" for the known word nearest to an unknown one, or nothing if none is near."""
    import difflib

    close = difflib.get_close_matches(str(word), [str(one) for one in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(values: Sequence[object], most: int = 12) -> str:
    """Return the first values, and that there are more; a space at the end is shown."""
    shown = (f"“{one}”" if str(one).endswith(" ") else str(one) for one in values[:most])
    return ", ".join(shown) + (", …" if len(values) > most else "")


# Optional dependencies load when used; an absent one says which extra to install.


def require(module: str, *, why: str, extra: str = "") -> ModuleType:
    """Import an optional module, or raise an error that tells how to get it: by an extra of ours, or by its own name."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise
        package = f"'likewise[{extra}]'" if extra else module
        raise MissingExtraError(
            f"{why} needs {module!r}, which is not installed. Run: pip install {package}"
        ) from error


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    from importlib import metadata  # as slow as the rest of the package's import

    found = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def is_installed(module: str) -> bool:
    """Whether an optional module can be imported; it is not imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
