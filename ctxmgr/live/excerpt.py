"""Cut what matters now out of a client's log, so that a long session is answered as fast as a short one.

Kept are the first lines (who and where), what people said in between, and the end, which is all that the detectors look at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from ctxmgr.paths import open_regular

_WHOLE, _HEAD, _END = 600_000, 65_536, 400_000
_SPOKEN = 200_000
_SCANNED = 64_000_000
"""Bytes of a log in whose middle people's words are looked for; in a longer one that would take seconds."""
_LONGEST_LINE = 20_000
_PERSON = (b'"type":"user"', b'"type": "user"', b'"role":"user"', b'"role": "user"', b"user_message")
_RESULT = (b"tool_result", b"function_call_output")


def excerpt(log: str, folder: str, unwritten: Sequence[tuple[str, str]]) -> str:
    """Write the excerpt of a log into a folder, under the log's own name, and return its path.

    Args:
        log: of the client; its name may come from anywhere, so nothing but a regular file is opened.
        folder: where to.
        unwritten: ids and records of results that the client has not written yet; added where their ids name a call
            whose result is not there.

    Raises:
        OSError: there is no such log, or it is no regular file.
    """
    with open(open_regular(log), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(_WHOLE) if size <= _WHOLE else b"".join(_parts(stream, size))
    content = content[: content.rfind(b"\n") + 1]  # the client may be writing
    for call, record in unwritten:
        found = [line for line in content[-_WHOLE:].split(b"\n") if call and call.encode() in line]
        if found and not any(result in line for line in found for result in _RESULT):
            content += record.encode("ascii") + b"\n"
    place = os.path.join(folder, os.path.basename(log) or "log.jsonl")
    with open(place, "xb") as target:
        target.write(content)
    return place


def _parts(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the lines at the beginning, the short ones of people in the middle, and those at the end."""
    place, kept, end = 0, 0, size - _END
    for line in source:
        start, place = place, place + len(line)
        if start < _HEAD or start >= end:
            yield line
        elif size > _SCANNED:
            source.seek(end)
            source.readline()
            yield from source
            return
        elif kept < _SPOKEN and len(line) < _LONGEST_LINE and _is_spoken(line):
            kept += len(line)
            yield line


def _is_spoken(line: bytes) -> bool:
    return any(each in line for each in _PERSON) and not any(each in line for each in _RESULT)
