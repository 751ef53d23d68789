"""The pytest plugin: the fixture `assert_fair`, and the marker `fair` that carries its choices.

pytest loads this module in every run of an environment that has likewise, so it imports nothing but pytest.
"""

from __future__ import annotations

from typing import Any

import pytest

_MARKER = "fair"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, so that ``--strict-markers`` takes it."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(sensitive_features, limit, **choices): choices of the fixture assert_fair, which fails a test whose "
        "model decides differently when only the sensitive columns change.",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a test that is marked and cannot audit anything: it would pass whatever the model does."""
    marked = any(marker.name == _MARKER for marker in item.own_markers)
    if marked and "assert_fair" not in getattr(item, "fixturenames", ()):
        pytest.fail(
            f"{item.name} is marked {_MARKER} but does not use the fixture assert_fair, so it audits nothing. "
            "Write: def test_model(assert_fair): assert_fair(model, X, y)",
            pytrace=False,
        )


@pytest.fixture
def assert_fair(request: pytest.FixtureRequest) -> Any:
    """Return `likewise.integrations.assert_fair` with the choices of the marker ``fair``, innermost first."""
    chosen: dict[str, Any] = {}
    for marker in request.node.iter_markers(_MARKER):
        if marker.args:
            pytest.fail(
                f"The marker {_MARKER} takes keywords only: sensitive_features=[…], limit=…", pytrace=False
            )
        chosen = {**marker.kwargs, **chosen}

    def check(model: Any, X: Any, y: Any = None, **choices: Any) -> Any:
        """Audit a model; see `likewise.integrations.assert_fair`."""
        __tracebackhide__ = True
        from likewise.integrations.assertion import assert_fair as audit_and_assert

        result = audit_and_assert(model, X, y, **{**chosen, **choices})
        told = {"changed": None if result.changed is None else result.changed.share}
        if result.worst_case is not None:
            told |= {"gap": result.gap, "pure_gap": result.pure_gap}
        for name, value in told.items():
            request.node.user_properties.append((f"likewise.{name}", value))
        return result

    return check
