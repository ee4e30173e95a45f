"""Templates of entries and results: the constant parts of a record are encoded once, so that recording one is quick.

The bytes equal those of `ctxmgr.log.codec.encode` and masking. A record of an unusual shape is refused with a TypeError, and
the recorder encodes it in the ordinary way. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ctxmgr.log.codec import encode_value
from ctxmgr.log.journal import Journal
from ctxmgr.log.json_value import is_plain

_MAX_NAMES = 1_000
"""Combinations of agent, action and input type that are remembered; a program may make up names."""
_STATUSES = frozenset({"ok", "error", "denied", "interrupted"})
_ID_LENGTH, _ID_SIGNS = 36, b"0123456789abcdef-"


class EncodedSink(Protocol):
    """A sink that takes encoded records too; see `ctxmgr.log.journal.Journal`."""

    masked: Callable[[bytes], bytes]

    def append_made(self, head: bytes, value: bytes, tail: bytes) -> None:
        """Store one record put together from these parts. Only the value is still to be masked."""
        ...


class RecordTemplate:
    """Writes the entries and results of one process into a sink, from parts that are mostly encoded already."""

    def __init__(self, sink: EncodedSink, session: str, process: str) -> None:
        self._sink = sink
        self._takes_any = isinstance(sink, Journal)
        # No secret reaches from one of these parts into another: each of them ends behind a member or its name.
        self._entry = sink.masked(b'{"v":1,"kind":"entry","session":%b,"ts":"' % encode_value(session, 1)).decode("ascii")
        self._result = self._entry.replace("entry", "result", 1)
        self._tail = sink.masked(b',"process":%b}' % encode_value(process, 1))
        self._names: dict[tuple[str, str, str], str] = {}

    def entry(self, entry: str, present: str, names: tuple[str, str, str], value: object) -> None:
        """Append the entry; ``names`` are its agent, action and input type.

        Raises:
            InvalidInput, TypeError: when a part of it can't be written as it is; nothing was written.
        """
        if not (self._takes_any or is_plain(value)):  # a log takes any value that has a form in JSON
            raise TypeError("a value to be converted")
        members = self._names.get(names) or self._remember(names)
        head = f'{self._entry}{present}","id":"{entry}"{members}'.encode("ascii")
        self._sink.append_made(head, encode_value(value, 1), self._tail)

    def result(self, present: str, entry: str, status: str, output: object, took: float | None) -> None:
        """Append a result without an error and usage; an ``output`` of None is none.

        Raises:
            InvalidInput, TypeError: as `entry`.
        """
        if type(status) is not str or status not in _STATUSES or not _is_id(entry) or not (self._takes_any or is_plain(output)):
            raise TypeError("a value to be converted")
        head = f'{self._result}{present}","entry":"{entry}","status":"{status}"'.encode("ascii")
        tail = b"}" if took is None else b',"durationMs":%b}' % encode_value(took, 1)
        if output is None:
            self._sink.append_made(head, b"", tail)
        else:
            self._sink.append_made(head + b',"output":', encode_value(output, 1), tail)

    def _remember(self, names: tuple[str, str, str]) -> str:
        if not all(type(name) is str for name in names):
            raise TypeError("a name that is no text")
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
        members = b',"agent":%b,"action":%b,"inputType":%b,"input":' % tuple(encode_value(name, 1) for name in names)
        self._names[names] = text = self._sink.masked(members).decode("ascii")
        return text


def _is_id(text: object) -> bool:
    """Whether the text looks like an id as `ids.new_id` makes them, which is spelled as it is and never taken for a secret."""
    return (
        type(text) is str and len(text) == _ID_LENGTH and text.isascii() and not text.encode("ascii").translate(None, _ID_SIGNS)
    )
