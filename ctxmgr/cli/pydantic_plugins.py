"""Keep third-party pydantic plugins out of the command line.

In an environment with many packages the search for them, and the loading of what others have installed for their own
programs, would take longer than most commands.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

_NAME, _NONE = "PYDANTIC_DISABLE_PLUGINS", "__all__"
_LOADER = "pydantic.plugin._loader"
_ours: list[bool] = []


def disable() -> None:
    """Load no plugins in this process, unless the environment says which."""
    if _NAME not in os.environ:
        os.environ[_NAME] = _NONE
        _ours.append(True)
    if os.environ[_NAME] == _NONE and "pydantic" not in sys.modules:
        sys.modules[_LOADER] = _NoLoader(_LOADER)


class _NoLoader(ModuleType):
    """Stands in for what looks for plugins, which would load the whole reading of packages' metadata to find none."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        """Return no plugins."""
        return ()

    def __getattr__(self, name: str) -> Any:
        """Make way for the real one, where another version of the library asks it for more."""
        if name.startswith("__") or sys.modules.get(_LOADER) is not self:
            raise AttributeError(name)
        from importlib import import_module

        del sys.modules[_LOADER]
        return getattr(import_module(_LOADER), name)


def environment() -> dict[str, str]:
    """Return the environment for programs that are started: as it was handed over."""
    found = dict(os.environ)
    if _ours and found.get(_NAME) == _NONE:
        del found[_NAME]
    return found
