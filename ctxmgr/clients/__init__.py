"""The agents that can call our hook: how each tells what happens, how it is answered, and where its settings are.

To add one: write a module here, and name it in `CLIENTS`. Start with `interface`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole hook
if TYPE_CHECKING:
    from ctxmgr.clients.interface import Client

CLIENTS = ("claude-code", "codex", "gemini", "copilot", "opencode", "pi")
"""Names of the clients. The module of each bears its name, and a hook loads the one that calls it."""


def client(name: str) -> Client | None:
    """Return the client of this name, None when there is none."""
    if name not in CLIENTS:
        return None
    module = "ctxmgr.clients." + name.replace("-", "_")
    found: Client = __import__(module, fromlist=["CLIENT"]).CLIENT
    return found
