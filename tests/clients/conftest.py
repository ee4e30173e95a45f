"""Real clients run only when asked for: ``make test-clients``."""

from __future__ import annotations

import pytest

_MARK = "clients"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{_MARK}: installs and runs real clients; only run with -m {_MARK}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the marked tests out unless the command line speaks of the marker."""
    if _MARK in str(config.option.markexpr):
        return
    left_out = [item for item in items if item.get_closest_marker(_MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
