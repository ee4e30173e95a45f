"""Contract tests for detectors, importers and stores, also for third-party ones: begin reading with `detector`.

May import `ctxmgr.history` and what lies below, and nothing but tests may import this.

Subclass one in a test module, set the attribute that names yours, and run pytest, which these classes need::

    from ctxmgr.conformance import DetectorConformance

    class TestMine(DetectorConformance):
        detector = MyDetector

        def round(self, story, number, **fields):
            return story.call("Look", {"at": "door"}, "closed", **fields)

The project's own detectors, importers and stores pass the same classes.
"""

from __future__ import annotations

import pytest

# Before the imports below: pytest rewrites asserts only in test modules and in modules registered before they are imported.
for _name in ("detector", "importer", "store"):
    pytest.register_assert_rewrite(f"ctxmgr.conformance.{_name}")

from ctxmgr.conformance.detector import (  # noqa: E402 - their assertions are to be rewritten, so that a failure tells values
    NEW_WORK,
    DetectorConformance,
    Scenario,
    SessionConformance,
    SpokenConformance,
    WarningConformance,
)
from ctxmgr.conformance.importer import ImporterConformance  # noqa: E402
from ctxmgr.conformance.store import StoreConformance  # noqa: E402

__all__ = [
    "NEW_WORK",
    "DetectorConformance",
    "ImporterConformance",
    "Scenario",
    "SessionConformance",
    "SpokenConformance",
    "StoreConformance",
    "WarningConformance",
]
