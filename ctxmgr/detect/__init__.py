"""Observations in, findings out; one pattern a module. Pure: no store, and no clock but what is passed in."""

from __future__ import annotations

from ctxmgr.detect.cycle import CycleDetector
from ctxmgr.detect.error_repetition import ErrorRepetitionDetector
from ctxmgr.detect.interface import Detector
from ctxmgr.detect.repetition import RepetitionDetector

DETECTORS: tuple[type[Detector], ...] = (RepetitionDetector, CycleDetector, ErrorRepetitionDetector)
"""All loop detectors, the tightest description first: where two see the same steps, the earlier one speaks."""
