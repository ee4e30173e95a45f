"""Yield the JSON objects of a Codex log."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from ctxmgr.importers.log_files import open_log
from ctxmgr.importers.values import mapping
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, Report, read_objects

SINGLE_OBJECT = re.compile(rb'\s*\{\s*"session"\s*:\s*\{')
"""How the rollouts of the TypeScript CLI (April and May 2025) begin: one object ``{session, items}``."""


def read_log(path: Path, report: Report) -> Iterator[Line]:
    """Yield the objects of a log in order; damage inside is told to ``report``.

    The items of a single-object rollout are numbered as lines from 2 on, line 1 being its header.

    Raises:
        OSError: when the file can't be read.
    """
    with open_log(path, report) as stream:
        if SINGLE_OBJECT.match(stream.peek(256)):
            yield from _single(stream, report)
        else:
            yield from read_objects(cast("IO[bytes]", stream), report)


def _single(stream: io.BufferedReader, report: Report) -> Iterator[Line]:
    raw = stream.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        report(0, len(raw), f"object is longer than the limit of {MAX_LINE:,} bytes")
        return
    try:
        whole: object = json.loads(raw)
    except (ValueError, RecursionError):
        report(0, len(raw), "torn or unreadable JSON")
        return
    content = mapping(whole)
    yield Line(1, 0, mapping(content.get("session")))
    items: object = content.get("items")
    if not isinstance(items, list):
        return
    for number, item in enumerate(cast("list[Any]", items), 2):
        if isinstance(item, dict):
            yield Line(number, 0, cast("dict[str, Any]", item))
        else:
            report(0, 0, f"item {number - 1} is not an object")
