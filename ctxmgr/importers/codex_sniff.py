"""Recognise a Codex log by its first bytes; its name only helps where the bytes alone can't tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxmgr.importers.codex_known import EXEC_ITEMS, EXEC_TYPES, ITEMS, ROLLOUT_NAME, TOP_LEVEL, ZSTD_MAGIC
from ctxmgr.importers.codex_open import SINGLE_OBJECT
from ctxmgr.importers.codex_values import mapping, text

_CUT_META = re.compile(
    rb'\s*\{(?:"timestamp":\s*"[^"]{1,40}",\s*)?(?:"ordinal":\s*\d{1,18},\s*)?"type":\s*"session_meta",\s*"payload":\s*\{'
)
"""How a first line begins that is longer than the bytes to judge by (it holds the whole base instructions)."""

_ITEMS_MEMBER = re.compile(rb'"items"\s*:\s*\[')


def is_codex(path: Path, head: bytes) -> bool:
    """Whether a file with this path and these first bytes is a rollout of any era or ``codex exec --json`` output."""
    named = ROLLOUT_NAME.search(path.name) is not None
    if head.startswith(ZSTD_MAGIC):
        return named and path.suffix == ".zst"
    if SINGLE_OBJECT.match(head):
        return bool(_ITEMS_MEMBER.search(head)) or path.name.startswith("rollout-")
    if _CUT_META.match(head):
        return True
    return any(_proves(value, first, named) for value, first in _objects(head))


def _objects(head: bytes) -> Iterator[tuple[dict[str, Any], bool]]:
    for place, raw in enumerate(head.split(b"\n")):
        try:
            value = mapping(json.loads(raw))
        except (ValueError, RecursionError):
            continue
        if value:
            yield value, place == 0


def _proves(value: dict[str, Any], first: bool, named: bool) -> bool:
    """Whether one line can stand only in a Codex log."""
    kind = text(value.get("type"))
    if isinstance(value.get("payload"), dict):
        return kind in TOP_LEVEL
    if kind in EXEC_TYPES:
        if kind == "thread.started":
            return text(value.get("thread_id")) is not None
        return kind.startswith("item.") and text(mapping(value.get("item")).get("type")) in EXEC_ITEMS
    if kind is None:
        header = {"id", "timestamp", "instructions"} <= value.keys() and text(value.get("id")) is not None
        return (first and header) or value == {"record_type": "state"}
    bare = kind in ITEMS and (kind != "message" or isinstance(value.get("content"), list))
    return named and bare and "sessionId" not in value and "session_id" not in value
