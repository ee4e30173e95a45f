"""Make long logs out of the samples: the same conversation again and again, under other ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ctxmgr.history.formats import IMPORTERS
from ctxmgr.importers.base import Importer

FIXTURES = Path(__file__).parents[2] / "fixtures"
DATABASES = (".db", ".sqlite", ".eval")

_IDS = re.compile(r"(?:id|ids|uuid|Id|Uuid|_id|Leaf)\Z")
_OUTPUTS = frozenset(("output", "aggregated_output", "stdout"))
_KEPT = frozenset(("sessionId", "session_id", "thread_id", "conversation_id", "run_id", "tool_id", "ordinal", "session.id"))


def folder_of(importer: Importer) -> Path:
    """Return where a format's samples are; the oldest two have a folder of their own."""
    return FIXTURES / ("logs" if importer.name in ("claude-code", "codex") else "formats") / importer.name


def samples() -> Iterator[tuple[Importer, Path]]:
    """Yield every sample of every format: a file, or a folder of one session's files."""
    for importer in IMPORTERS:
        for name in json.loads((folder_of(importer) / "TRUTH.json").read_text()):
            if (path := folder_of(importer) / name).exists():
                yield importer, path


def lengthened(path: Path, size: int, padding: int = 0) -> bytes | None:
    """Return a log of about ``size`` bytes with the conversation of a sample repeated; None for a database or an archive.

    Args:
        path: of the sample.
        size: bytes.
        padding: characters by which the outputs of tools are longer than those of the samples, which are of a few words.
    """
    more = "another line of what a tool printed\n" * (padding // 36)
    if path.suffix in DATABASES or not path.is_file():
        return None
    whole = path.read_text("utf-8", "replace")
    try:
        document = json.loads(whole)
    except ValueError:
        first, *lines = whole.rstrip("\n").split("\n")
        values = [json.loads(line) for line in lines]
        once = sum(len(json.dumps(_renamed(value, 0, more))) for value in values)
        copies = max(1, (size - len(first)) // max(1, once))
        rows = [first, *(json.dumps(_renamed(value, copy, more)) for copy in range(copies) for value in values)]
        return "\n".join(rows).encode() + b"\n"
    holder = cast("dict[str, Any]", document if isinstance(document, dict) else {"": document})
    name = max(holder, key=lambda name: len(json.dumps(holder[name])) if isinstance(holder[name], list) else 0)
    if not isinstance(holder[name], list):
        return None
    copies = max(1, size // max(1, len(whole)))
    items = [_renamed(item, copy, more) for copy in range(copies) for item in holder[name]]
    return json.dumps(holder | {name: items} if isinstance(document, dict) else items).encode()


def _renamed(value: Any, copy: int, more: str, key: str = "") -> Any:
    """Return a value whose ids are those of another copy."""
    if isinstance(value, dict):
        return {name: _renamed(item, copy, more, name) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_renamed(item, copy, more, key) for item in cast("list[Any]", value)]
    if more and key in _OUTPUTS and isinstance(value, str):
        return value + more
    if copy and isinstance(value, str) and value and key not in _KEPT and _IDS.search(key):
        return f"{value[:-6]}{copy:06x}" if len(value) >= 24 else f"{value}-{copy}"
    return value
