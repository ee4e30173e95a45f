"""Install hooks in the settings of clients, and take them away."""

from __future__ import annotations

import os
from pathlib import Path

from ctxmgr.clients import client
from ctxmgr.live import installation


def settings_path(name: str, scope: installation.Scope = "user") -> Path:
    """Return the file of a client's settings; its folder is made."""
    asked = client(name)
    assert asked is not None
    path = asked.settings_file(scope, os.getcwd(), os.environ)
    assert path is not None
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Path(path)


def install(name: str, scope: installation.Scope = "user") -> installation.Change:
    """Install the hooks of a client, as far as they are not there."""
    asked = client(name)
    assert asked is not None
    change = installation.plan_installation(asked, scope, Path.cwd(), os.environ)
    if change.is_needed:
        installation.apply(change)
    return change


def uninstall(name: str, scope: installation.Scope = "user") -> None:
    """Take the hooks of a client away again."""
    asked = client(name)
    assert asked is not None
    installation.apply(installation.plan_removal(asked, scope, Path.cwd(), os.environ), undo=True)
