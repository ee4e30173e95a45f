"""Make one line of text from any JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.cli.views.safe_text import Keep

if TYPE_CHECKING:
    from ctxmgr.types.view import EntryView, EventView

# The telling fields of the calls that agents make, the most telling first.
_INPUT_FIELDS = (
    "command", "cmd", "script", "code", "file_path", "filePath", "notebook_path", "pattern", "query", "url", "path", "uri",
    "prompt", "question", "description", "subject", "title", "message", "text", "content", "task", "name", "id",
)  # fmt: skip
_WHERE = ("path", "file_path", "glob", "directory", "workdir")
_TEXT_FIELDS = ("text", "content", "message", "thought", "delta", "title", "summary", "error", "reason", "prompt")
_SHELLS = ("sh", "bash", "zsh", "dash")
_DEEPEST = 8


def brief(value: Any) -> str:
    """Return the telling part of an input: a command, a path, a pattern; else compact JSON. Never raises."""
    if value is None or value in ({}, [], ""):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        for name in _INPUT_FIELDS:
            text = _input_text(fields.get(name))
            if text:
                where = _place(fields) if name in ("pattern", "query") else ""
                return f"{text}  in {where}" if where else text
    return compact(value)


def end_to_keep(text: str) -> Keep:
    """Return which part of a brief tells most when it must be cut: the end of a path, else the beginning."""
    return "end" if text.startswith(("/", "./", "../", "~/")) and not any(map(str.isspace, text)) else "start"


def _input_text(value: Any) -> str:
    if isinstance(value, list):
        words = [word for word in cast("list[Any]", value) if isinstance(word, str)]
        if not words or len(words) != len(cast("list[Any]", value)):
            return ""
        shell = len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc", "-ic")
        return words[2] if shell else _joined(words)
    return value if isinstance(value, str) and value.strip() else ""


def _place(fields: Mapping[str, Any]) -> str:
    return next((place for name in _WHERE if (place := _input_text(fields.get(name)))), "")


def compact(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON for people: in one line, or indented. Never raises."""
    import json

    separators = (", ", ": ") if indent is None else (",", ": ")
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_odd)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, numbers of too many digits, deep nests
        return _odd(value)


def _odd(value: object) -> str:
    return f"<{type(value).__name__}>"


def pretty(value: Any) -> str:
    """Return a value to be read at leisure: text as it is, text blocks joined, anything else as indented JSON."""
    if isinstance(value, str):
        return value
    joined = _blocks(value)
    return joined if joined is not None else compact(value, indent=2)


def _blocks(value: Any) -> str | None:
    """Return the text of a list of content blocks that hold nothing but text, else None."""
    if not isinstance(value, list) or not value:
        return None
    texts: list[str] = []
    for block in cast("list[Any]", value):
        fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        text = fields.get("text")
        if not isinstance(text, str) or set(fields) - {"type", "text", "cache_control"}:
            return None
        texts.append(text)
    return "\n".join(texts)


def event_text(data: Any, depth: int = 0) -> str:
    """Return what an event says: its text wherever the format keeps it, else compact JSON."""
    if isinstance(data, str):
        return data
    if isinstance(data, list) and depth < _DEEPEST:
        parts = [event_text(part, depth + 1) for part in cast("list[Any]", data)]
        return "\n".join(part for part in parts if part)
    if isinstance(data, dict) and depth < _DEEPEST:
        fields = cast("dict[str, Any]", data)
        for name in _TEXT_FIELDS:
            if name in fields and (text := event_text(fields[name], depth + 1)):
                return text
    return "" if data is None or data in ({}, []) else compact(data)


def row_text(row: EntryView | EventView) -> str:
    """Return what a row of a list tells in one line."""
    return brief(row.input) if row.kind == "entry" else event_text(row.data)


def error_text(error: Any) -> str:
    """Return an error in words: "TypeError: no such field"."""
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        parts = [part for part in (fields.get("type"), fields.get("message")) if isinstance(part, str) and part]
        if len(parts) > 1 and parts[1].startswith(f"{parts[0]}:"):  # "Error: Error: no such file"
            return parts[1]
        if parts:
            return ": ".join(parts)
    return "" if error is None else error if isinstance(error, str) else compact(error)


def command(*words: str) -> str:
    """Return a command line that can be pasted, its words quoted where needed."""
    return _joined(["ctxmgr", *words])


def _joined(words: Iterable[str]) -> str:
    import shlex  # what loads the regular expressions, which few views need

    return shlex.join(words)


def session_command(name: str, session: str, store: str | None) -> str:
    """Return a command about a session that can be pasted; ``store`` is the one that was named, if any."""
    return command(name, "--session", session, *(["--store", store] if store is not None else []))
