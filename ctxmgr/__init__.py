"""See where agent workflows go in circles or hang, and get them going again.

Agents record with `Recorder`; everything else asks `Workspace`. These names are resolved at first use, so that importing the
recorder does not load the rest. docs/architecture.md has the map of the packages.
"""

from __future__ import annotations

__version__ = "0.2.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError
    from ctxmgr.history.live.blackboard import BlackboardHistory
    from ctxmgr.history.live.bus import ActionFinished, ActionStarted, Event, EventBus, EventSubscriber
    from ctxmgr.history.live.shared_sessions import Feed
    from ctxmgr.recorder import Recorder
    from ctxmgr.recover.stuck_handler import RecoveryStuckHandler, StuckHandler, run_guarded
    from ctxmgr.workspace import Workspace

__all__ = [
    "ActionFinished",
    "ActionStarted",
    "BlackboardHistory",
    "CtxmgrError",
    "DegenerateLoopError",
    "Event",
    "EventBus",
    "EventSubscriber",
    "Feed",
    "HungError",
    "Recorder",
    "RecoveryStuckHandler",
    "StuckHandler",
    "Workspace",
    "__version__",
    "run_guarded",
]

_HOMES = {
    "ActionFinished": "ctxmgr.history.live.bus",
    "ActionStarted": "ctxmgr.history.live.bus",
    "BlackboardHistory": "ctxmgr.history.live.blackboard",
    "CtxmgrError": "ctxmgr.errors",
    "DegenerateLoopError": "ctxmgr.errors",
    "Event": "ctxmgr.history.live.bus",
    "EventBus": "ctxmgr.history.live.bus",
    "EventSubscriber": "ctxmgr.history.live.bus",
    "Feed": "ctxmgr.history.live.shared_sessions",
    "HungError": "ctxmgr.errors",
    "Recorder": "ctxmgr.recorder",
    "RecoveryStuckHandler": "ctxmgr.recover.stuck_handler",
    "StuckHandler": "ctxmgr.recover.stuck_handler",
    "Workspace": "ctxmgr.workspace",
    "run_guarded": "ctxmgr.recover.stuck_handler",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ctxmgr' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
