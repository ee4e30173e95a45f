"""What each failure class has: a kind and one function."""

from __future__ import annotations

from typing import Protocol

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.types.diagnosis import Diagnosis


class FailureClass(Protocol):
    """A module that knows one way in which calls fail.

    ``applies`` is a function of the evidence alone, takes time in proportion to it at most, never raises, and answers None
    unless the record supports the cause.
    """

    KIND: str

    def applies(self, evidence: Evidence, /) -> Diagnosis | None:
        """Return the diagnosis, or None."""
        ...
