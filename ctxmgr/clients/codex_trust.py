"""Trust our hooks in Codex, as its own ``/hooks`` does.

Codex itself computes the hash of each hook and stores the trust: the way it hashes is private and has changed before.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import tomllib
from collections.abc import Mapping
from typing import Any, cast

from ctxmgr.base.paths import read_regular
from ctxmgr.errors import StorageFailed

_SECONDS = 30.0
_MAX_BYTES = 5_000_000
_HINT = "start codex, run /hooks, and trust those of ctxmgr there"


def trust(program: str, hooks: str, folder: str) -> int:
    """Have Codex trust our hooks in a file, and return how many; to be called only when the user asked for it.

    Args:
        program: the command that starts Codex.
        hooks: path of the file with the hooks.
        folder: the folder for which Codex lists its hooks.

    Raises:
        StorageFailed: Codex can't be asked, or does not answer as it did.
    """
    try:
        server = subprocess.Popen(
            [program, "app-server"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise StorageFailed(f"'{program} app-server' can't be started: {error.strerror}", _HINT) from None
    # Reads from the pipe have no time limit of their own: killing the server ends them.
    limit = threading.Timer(_SECONDS, server.kill)
    limit.start()
    try:
        return _trusted(server, hooks, folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StorageFailed("Codex did not say which hooks it knows", _HINT) from None
    finally:
        limit.cancel()
        server.kill()
        server.communicate()


def _trusted(server: subprocess.Popen[bytes], hooks: str, folder: str) -> int:
    _request(server, 1, "initialize", {"clientInfo": {"name": "ctxmgr", "version": "1"}})
    _send(server, {"method": "initialized"})
    listed = _request(server, 2, "hooks/list", {"cwds": [folder]})
    found = {
        hook["key"]: {"trusted_hash": hook["currentHash"]}
        for each in listed["data"]
        for hook in each["hooks"]
        if os.path.realpath(hook["sourcePath"]) == hooks and "ctxmgr/live/hook.py" in hook["command"]
    }
    if found:
        edit = {"keyPath": "hooks.state", "value": found, "mergeStrategy": "upsert"}
        _request(server, 3, "config/batchWrite", {"edits": [edit]})
    return len(found)


def _send(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def _request(server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> Any:
    """Return the result of a request; other messages of the server are passed over.

    Raises:
        ValueError: the server ended. KeyError: it answered with an error.
    """
    assert server.stdout is not None
    _send(server, {"id": number, "method": method, "params": params})
    for line in server.stdout:
        message: Any = json.loads(line)
        if message.get("id") == number:
            return message["result"]
    raise ValueError("the server ended")


def is_trusted(home: str, hooks: str) -> bool:
    """Whether Codex has stored a trust in hooks of this file; only Codex can tell whether they changed since."""
    try:
        table: Mapping[str, Any] = tomllib.loads(read_regular(os.path.join(home, "config.toml"), _MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    state: Any = table.get("hooks", {}).get("state", {})
    return isinstance(state, dict) and any(str(key).startswith(f"{hooks}:") for key in cast("dict[str, Any]", state))
