"""Keep the plugins of the model library out of the command line, and tell the programs that it starts nothing of that.

In an environment with many packages the search for them, and the loading of what others have installed for their own
programs, would take longer than most commands.
"""

from __future__ import annotations

import os

_NAME, _NONE = "PYDANTIC_DISABLE_PLUGINS", "__all__"
_ours: list[bool] = []


def leave_out() -> None:
    """Load no plugins in this process, unless the environment says which."""
    if _NAME not in os.environ:
        os.environ[_NAME] = _NONE
        _ours.append(True)


def environment() -> dict[str, str]:
    """Return the environment for programs that are started: as it was handed over."""
    found = dict(os.environ)
    if _ours and found.get(_NAME) == _NONE:
        del found[_NAME]
    return found
