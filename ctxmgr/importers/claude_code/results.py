"""Read a tool's result: status, output, error, and output in a separate file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from ctxmgr.importers.claude_code.events import INTERRUPT, tagged
from ctxmgr.importers.claude_code.files import session_folders
from ctxmgr.importers.claude_code.records import open_log
from ctxmgr.importers.values import ident, mapping, positive, sequence, text, texts

Status = Literal["ok", "error", "denied", "interrupted"]

_MAX_OUTPUT = 1_000_000
_MAX_MESSAGE = 2_000
_REJECTED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_REJECTED_SIDE = ("User rejected tool use", "Error: User rejected", "Error: The user doesn't want")
_WITH_WORDS = ("the user said:", "the user provided the following reason")
_REFUSED = ("Claude requested permissions to ", "This command requires approval")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}")


def judge(record: dict[str, Any], block: dict[str, Any]) -> tuple[Status, bool]:
    """Return a result's status, and whether it is open until the next record shows if the person interrupted.

    A pending call that a person interrupts gets the same words as one that the person refused.
    """
    side = record.get("toolUseResult")
    failed = block.get("is_error") is True
    kind = ident(record.get("toolDenialKind"))
    words = "\n".join(texts(block.get("content")))[:_MAX_MESSAGE]
    stopped = mapping(side).get("interrupted") is True or mapping(side).get("wasInterrupted") is True
    if words.startswith(INTERRUPT) or (stopped and "timed out" not in words):
        return "interrupted", False
    if kind == "user-rejected" or (
        failed and (words.startswith(_REJECTED) or (text(side) or "").startswith(_REJECTED_SIDE))
    ):  # fmt: skip
        return "denied", not any(hint in words for hint in _WITH_WORDS)
    if kind is not None or (failed and _is_refusal(record, words)):
        return "denied", False
    return ("error", False) if failed else ("ok", False)


def _is_refusal(record: dict[str, Any], words: str) -> bool:
    if mapping(record.get("permissionDecision")).get("decision") in ("deny", "denied", "reject", "rejected"):
        return True
    return words.startswith(_REFUSED) or (words.startswith("Permission to use ") and "denied" in words)


def error_of(status: Status, record: dict[str, Any], block: dict[str, Any]) -> dict[str, str] | None:
    """Return the ``error`` object of a result that is not ok: its type and what it said, up to 2,000 characters."""
    if status == "ok":
        return None
    words = "\n".join(texts(block.get("content"))) or text(record.get("toolUseResult")) or ""
    kind = "toolError"
    if status != "error":
        kind = ident(record.get("toolDenialKind")) or status
    elif (inner := tagged(words, "tool_use_error")) is not None:
        kind, words = "toolUseError", inner
    elif words.startswith("Exit code "):
        kind = "exitCode"
    return {"type": kind, "message": words[:_MAX_MESSAGE]}


def output_of(record: dict[str, Any], block: dict[str, Any], path: Path, session: str) -> tuple[Any, dict[str, Any]]:
    """Return a result's output (text, or JSON where it is no text) and what is to be remarked about it."""
    content = block.get("content")
    blocks = sequence(content)
    if isinstance(content, str) or (blocks and all("text" in mapping(item) for item in blocks)):
        words = "\n".join(texts(content))
        if "<persisted-output>" in words[:200] or mapping(record.get("toolUseResult")).get("persistedOutputPath"):
            return _persisted(words, mapping(record.get("toolUseResult")), path, session)
        if len(words) > _MAX_OUTPUT:
            return words[:_MAX_OUTPUT], {"truncated": len(words)}
        return words, {}
    if content is None:
        return record.get("toolUseResult"), {}
    return ([_without_bytes(item) for item in blocks] if blocks else content), {}


def _without_bytes(item: object) -> Any:
    """Return a block without the bytes of a picture or document: their size says enough."""
    block = mapping(item)
    data = mapping(block.get("source")).get("data")
    if not isinstance(data, str):
        return item
    source = {key: value for key, value in mapping(block.get("source")).items() if key != "data"}
    return block | {"source": source | {"omittedCharacters": len(data)}}


def _persisted(words: str, side: dict[str, Any], path: Path, session: str) -> tuple[Any, dict[str, Any]]:
    """Read output that was put into a file beside the session; without it keep the preview and say so."""
    named = text(side.get("persistedOutputPath")) or _path_in(words)
    size = positive(side.get("persistedOutputSize"))
    for file in _places(named, path, session):
        try:
            if file.is_symlink():
                continue
            with open_log(file) as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > _MAX_OUTPUT:
                    return {"preview": words[:_MAX_OUTPUT], "path": named, "size": size}, {}
                return stream.read(_MAX_OUTPUT).decode("utf-8", "replace"), {}
        except (OSError, ValueError):
            continue
    remark: dict[str, Any] = {"missing": ["persistedOutput"], "persistedPath": named[:4096]}
    return words[:_MAX_OUTPUT], remark if size is None else remark | {"persistedSize": size}


def _path_in(words: str) -> str:
    start = words.find("saved to: ")
    return words[start + 10 :].split("\n", 1)[0].strip()[:4096] if start >= 0 else ""


def _places(named: str, path: Path, session: str) -> list[Path]:
    """Return where the named file may be read.

    The name comes from the log, so it is not followed just anywhere: only the folder for tool results of this very
    session counts, beside the log or where the log says.
    """
    parts = named.replace("\\", "/").split("/")
    if len(parts) < 3 or parts[-2] != "tool-results" or _SAFE_NAME.fullmatch(parts[-1]) is None:
        return []
    places = [folder / "tool-results" / parts[-1] for folder in session_folders(path, session)]
    if parts[-3] == session and ".." not in parts and "\0" not in named:
        places.append(Path(named))
    return places
