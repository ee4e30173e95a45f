"""Flight recorder and recovery desk for agent workflows.

The public names are resolved when first used, so that importing the recorder never loads the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError
    from ctxmgr.recorder import Recorder
    from ctxmgr.workspace import Workspace

__all__ = ["CtxmgrError", "DegenerateLoopError", "HungError", "Recorder", "Workspace", "__version__"]

_HOMES = {
    "CtxmgrError": "ctxmgr.errors",
    "DegenerateLoopError": "ctxmgr.errors",
    "HungError": "ctxmgr.errors",
    "Recorder": "ctxmgr.recorder",
    "Workspace": "ctxmgr.workspace",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ctxmgr' has no attribute {name!r}")
    return getattr(import_module(home), name)
