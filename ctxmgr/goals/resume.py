"""Say after a crash what of the goal was seen on the disk, and what is only known from the history."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.goals.small import is_shortened, plain_line
from ctxmgr.goals.state import Item, State
from ctxmgr.types.goal import Claim, ProbeResult

_KEYS = ("path", "file_path", "filePath", "file", "filename", "notebook_path")
_TAKES_AWAY = re.compile(r"(?i)delete|remove|unlink|\brm\b|move|rename|trash|clean")
_MOST_PATHS, _MOST_DONE = 20, 20


def claims_of(state: State, root: str, probed: Sequence[ProbeResult]) -> list[Claim]:
    """Return what is verified, what is refuted, and what is only assumed, in this order of worth.

    Files that recent actions name are looked for below ``root``, and nothing else of them is touched.
    """
    claims = [_of_probe(each) for each in probed]
    claims += [_of_path(root, path, action) for path, action in _paths(state).items()]
    node = state.current()
    task = state.tree.parent(node) if node is not None else None
    if task is not None:
        done = [each for each in task.children if each.status == "done"][-_MOST_DONE:]
        claims += [
            Claim(text=f"{each.id} is done: {plain_line(each.text)}", basis="assumed") for each in done
        ]  # fmt: skip
    if node is not None and (attempt := node.attempt) is not None and attempt.actions:
        text = f"{attempt.actions} actions of attempt {attempt.number} at {node.id} had the effect that was recorded"
        claims.append(Claim(text=text, basis="assumed"))
    return claims


def _of_probe(seen: ProbeResult) -> Claim:
    detail = f": {plain_line(seen.detail)}" if seen.detail else ""
    basis = "assumed" if seen.ok is None else "verified" if seen.ok else "refuted"
    return Claim(text=f"{plain_line(seen.name, 60)}{detail}", basis=basis, probe=seen.name)


def _paths(state: State) -> dict[str, str]:
    """Return the paths that the latest successful actions name, each with the action that named it last."""
    found: dict[str, str] = {}
    for item in state.actions:
        if item.get("status") == "ok" and (path := _path(item)):
            found.pop(path, None)
            found[path] = item["action"]
    return dict(list(found.items())[-_MOST_PATHS:])


def _path(item: Item) -> str | None:
    args = item.get("args")
    if not isinstance(args, dict) or _TAKES_AWAY.search(str(item.get("action"))):
        return None
    fields = cast("dict[str, Any]", args)
    path = next((fields[key] for key in _KEYS if isinstance(fields.get(key), str)), None)
    if not path or "\0" in path or "://" in path or is_shortened(path):
        return None
    return path


def _of_path(root: str, path: str, action: str) -> Claim:
    shown, by = plain_line(path, 200), plain_line(action, 60)
    try:
        os.stat(os.path.join(root, path))
    except (FileNotFoundError, NotADirectoryError):
        return Claim(text=f"{shown} is not there, though {by} of it succeeded", basis="refuted")
    except (OSError, ValueError):
        return Claim(text=f"{shown} can't be looked at ({by} of it succeeded)", basis="assumed")
    return Claim(text=f"{shown} is there ({by})", basis="verified")
