"""What the suites over every kind share."""

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Let a check that is expected to fail do so in a line: its traceback would be spelled out, and read by nobody."""
    try:
        return (yield)
    except Exception as error:
        if pyfuncitem.get_closest_marker("xfail") is None:
            raise
        error.__cause__ = error.__context__ = None
        raise error.with_traceback(None) from None
