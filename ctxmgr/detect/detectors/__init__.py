"""The detectors of loops, one kind of trouble in each module. `DETECTORS` names the module of each pattern.

Begin with `repeated_calls`. A detector remembers what it needs of its agent's steps, and knows no other detector. `interface`
defines what it may ask. `hung.StallWatch` watches for silence and for calls beyond their limit; `ctxmgr.detect.monitor` asks
it. May import `ctxmgr.detect.interface`, `step` and `text`.
"""

from __future__ import annotations

from ctxmgr.detect.detectors.cycles import CycleDetector, EscalatingFailureDetector, PingPongDetector, RecoveryLoopDetector
from ctxmgr.detect.detectors.failures import (
    ContextLoopDetector,
    DeniedDetector,
    ErrorRepetitionDetector,
    FailureStreakDetector,
    UnknownToolDetector,
)
from ctxmgr.detect.detectors.messages import ChantingDetector, MonologueDetector
from ctxmgr.detect.detectors.repeated_calls import (
    InterleavedDetector,
    NearDuplicateDetector,
    RepetitionDetector,
    TrivialChangeDetector,
)
from ctxmgr.detect.detectors.stagnation import (
    BusyDetector,
    EditRevertDetector,
    NoProgressDetector,
    SleepBudgetDetector,
    StagnationDetector,
)
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
"""All loop detectors, the tightest description first. If two see the same steps, the earlier one raises the finding."""
