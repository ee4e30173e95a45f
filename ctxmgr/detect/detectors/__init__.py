"""The detectors, one pattern a module; `DETECTORS` names them all."""

from __future__ import annotations

from ctxmgr.detect.detectors.busy import BusyDetector
from ctxmgr.detect.detectors.chanting import ChantingDetector
from ctxmgr.detect.detectors.context_loop import ContextLoopDetector
from ctxmgr.detect.detectors.cycle import CycleDetector
from ctxmgr.detect.detectors.denied import DeniedDetector
from ctxmgr.detect.detectors.edit_revert import EditRevertDetector
from ctxmgr.detect.detectors.error_repetition import ErrorRepetitionDetector
from ctxmgr.detect.detectors.escalating_failure import EscalatingFailureDetector
from ctxmgr.detect.detectors.failure_streak import FailureStreakDetector
from ctxmgr.detect.detectors.interleaved import InterleavedDetector
from ctxmgr.detect.detectors.monologue import MonologueDetector
from ctxmgr.detect.detectors.near_duplicate import NearDuplicateDetector
from ctxmgr.detect.detectors.no_progress import NoProgressDetector
from ctxmgr.detect.detectors.ping_pong import PingPongDetector
from ctxmgr.detect.detectors.recovery_loop import RecoveryLoopDetector
from ctxmgr.detect.detectors.repetition import RepetitionDetector
from ctxmgr.detect.detectors.sleep_budget import SleepBudgetDetector
from ctxmgr.detect.detectors.stagnation import StagnationDetector
from ctxmgr.detect.detectors.trivial_change import TrivialChangeDetector
from ctxmgr.detect.detectors.unknown_tool import UnknownToolDetector
from ctxmgr.detect.interface import Detector

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
