"""Observations in, findings out; one pattern a module. Pure: no store, and no clock but what is passed in."""

from __future__ import annotations

from ctxmgr.detect.busy import BusyDetector
from ctxmgr.detect.chanting import ChantingDetector
from ctxmgr.detect.context_loop import ContextLoopDetector
from ctxmgr.detect.cycle import CycleDetector
from ctxmgr.detect.denied import DeniedDetector
from ctxmgr.detect.edit_revert import EditRevertDetector
from ctxmgr.detect.error_repetition import ErrorRepetitionDetector
from ctxmgr.detect.escalating_failure import EscalatingFailureDetector
from ctxmgr.detect.failure_streak import FailureStreakDetector
from ctxmgr.detect.interface import Detector
from ctxmgr.detect.interleaved import InterleavedDetector
from ctxmgr.detect.monologue import MonologueDetector
from ctxmgr.detect.near_duplicate import NearDuplicateDetector
from ctxmgr.detect.no_progress import NoProgressDetector
from ctxmgr.detect.ping_pong import PingPongDetector
from ctxmgr.detect.recovery_loop import RecoveryLoopDetector
from ctxmgr.detect.repetition import RepetitionDetector
from ctxmgr.detect.sleep_budget import SleepBudgetDetector
from ctxmgr.detect.stagnation import StagnationDetector
from ctxmgr.detect.trivial_change import TrivialChangeDetector
from ctxmgr.detect.unknown_tool import UnknownToolDetector

DETECTORS: tuple[type[Detector], ...] = (
    PingPongDetector,
    RecoveryLoopDetector,
    ContextLoopDetector,
    UnknownToolDetector,
    DeniedDetector,
    RepetitionDetector,
    CycleDetector,
    EditRevertDetector,
    ErrorRepetitionDetector,
    EscalatingFailureDetector,
    FailureStreakDetector,
    NearDuplicateDetector,
    TrivialChangeDetector,
    StagnationDetector,
    InterleavedDetector,
    MonologueDetector,
    ChantingDetector,
    NoProgressDetector,
    SleepBudgetDetector,
    BusyDetector,
)
"""All loop detectors, the tightest description first: where two see the same steps, the earlier one speaks."""
