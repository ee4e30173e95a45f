"""Parse the lines of a log into blocks of rows.

msgspec parses ordinary lines. `ctxmgr.log.reader` reads all others, which is slower and gives the same rows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.log.codec import MAX_DEPTH, MAX_LINE, chain
from ctxmgr.log.fast_json import cast
from ctxmgr.log.ids import parse_time
from ctxmgr.log.line_splitter import read_lines
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.log.reader import read_line, read_records
from ctxmgr.store.project_session import EXECUTION, PROJECT
from ctxmgr.store.text_normalisation import fold, storable
from ctxmgr.store.write.append import prepare_line
from ctxmgr.store.write.batch import usage_tokens
from ctxmgr.store.write.bulk import RowBatch, SessionRows, import_facts, is_written_alone
from ctxmgr.types.record import check, is_plain_error

if TYPE_CHECKING:
    from collections.abc import Generator
    from io import FileIO

    from ctxmgr.log.reader import Line
    from ctxmgr.store.write.append import EncodedRecord

_Optional = str | None
_Filled = Annotated[str, msgspec.Meta(min_length=1)]
# The same limit as in `ctxmgr.types.record.is_plain`: a float can't hold larger whole numbers exactly.
_Number = Annotated[float, msgspec.Meta(gt=-(2.0**53), lt=2.0**53)] | None


# Millions of these are created and none is part of a cycle, so Python's garbage collector need not track them.
class Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An entry, a result or an event.

    Members of any form are decoded too, because only that validates their JSON. There is one shape for all three kinds,
    because in JSON with a repeated member ``kind`` the last one counts.
    """

    v: Literal[1]
    kind: Literal["entry", "result", "event"]
    session: _Filled
    ts: _Optional = None
    id: _Optional = None
    agent: _Optional = None
    action: _Optional = None
    inputType: _Optional = None  # noqa: N815  # as on the wire
    input: Any = None
    process: _Optional = None
    turn: str | int | None = None
    step: str | int | None = None
    parent: _Optional = None
    task: _Optional = None
    timeoutMs: _Number = None  # noqa: N815
    durationMs: _Number = None  # noqa: N815
    status: Literal["ok", "error", "denied", "interrupted"] | None = None
    output: Any = None
    error: Any = None
    usage: Any = None
    meta: Any = None
    entry: _Optional = None
    type: _Optional = None
    data: Any = None
    sum: str = ""


_decode = msgspec.json.Decoder(Plain).decode


def decode_plain(line: bytes) -> Plain | None:
    """Return the record of an ASCII line, or None, which does not mean that it is invalid.

    The caller checks the members that its kind requires.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


_READ = 1 << 20
"""Bytes read at once. They form one block."""

_SECOND_PROCESS_FROM = 1 << 25
"""Number of bytes from which a second process reads ahead. Starting it takes as long as reading a tenth of them."""

_SUM = b',"sum":"'
_NAMES = 4096  # names whose folded form is cached


def read_blocks(path: str, start: int, last: str, much: int, masked: bool | None = None) -> Generator[tuple[Any, ...]]:
    """Yield the same as `blocks`. If there are enough bytes (``much``), build the blocks in a second process."""
    from ctxmgr.store.worker_process import ProcessLost, run_in_second_process

    if much >= _SECOND_PROCESS_FROM:
        try:
            with run_in_second_process("ctxmgr.store.write.log_parser:blocks", path, start, last, masked) as other:
                for packed in other:
                    yield packed
                    # If that process is lost, read the rest here, behind the last block that arrived.
                    start, last = packed[1], packed[3]
                return
        except ProcessLost:  # or it could not read the log, which this process reports better
            pass
    yield from blocks(path, start, last, masked)


def blocks(path: str, start: int, last: str, masked: bool | None = None) -> Generator[tuple[Any, ...]]:
    """Yield the lines of a log from an offset on as packed `RowBatch`es, without an unfinished last line.

    Args:
        path: the path of the log.
        start: the offset of the first line.
        last: the checksum before it.
        masked: None for the index of this log, whose rows hold the offsets of lines. For a store the rows hold the bodies,
            with secrets masked or not.

    Raises:
        NotFound, StorageFailed: see `ctxmgr.log.reader.read`.
    """
    try:
        with open(open_regular(path), "rb", buffering=0) as stream:
            reader = _BlockReader(start, last, masked)
            while not reader.ended:
                reader.read(stream)
                for block in reader.done:
                    yield block.pack()
                reader.done.clear()
    except FileNotFoundError:
        raise NotFound(f"log {path!r} does not exist") from None
    except OSError as error:
        raise StorageFailed(f"log {path!r} can't be read: {error.strerror}") from error


class _BlockReader:
    """Reads a log into blocks; ``done`` holds the complete ones."""

    def __init__(self, start: int, last: str, masked: bool | None) -> None:
        self.done: list[RowBatch] = []
        self.ended = False
        self._descriptor = -1
        self._at = start
        self._last = last
        self._block = RowBatch(start, last)
        self._masked = masked
        self._folded: dict[str, str] = {}

    def read(self, stream: FileIO) -> None:
        """Read the next lines."""
        self._descriptor = stream.fileno()
        stream.seek(self._at)
        data = stream.read(_READ)
        cut = data.rfind(b"\n") + 1
        if cut:
            # Leave out the last line end, so that the split gives no empty line after it.
            self._take(data[: cut - 1].split(b"\n"))
        # Fewer bytes than requested: the log ends here, in a line that has no end yet.
        elif len(data) < _READ:
            self.ended = True
        else:
            self._long_line(stream)
        self._close()

    def _long_line(self, stream: FileIO) -> None:
        """Take a line that is longer than one read."""
        stream.seek(self._at)
        with open(stream.fileno(), "rb", closefd=False) as buffered:
            _, _, raw, length = next(read_lines(buffered, MAX_LINE))
            buffered.seek(self._at + length - 1)
            self.ended = buffered.read(1) != b"\n"
        if self.ended:
            return
        if raw is None:
            self._leave_unparsed(self._at + length, self._last)
        else:
            self._other(raw, length)

    def _close(self) -> None:
        block = self._block
        if self._at > block.start:
            block.end, block.after = self._at, self._last
            self.done.append(block)
        self._block = RowBatch(self._at, self._last)

    def _leave_unparsed(self, end: int, last: str) -> None:
        """Add the bytes up to ``end`` as a block without parts, to be read line by line."""
        self._close()
        if not (self.done and self.done[-1].parts is None):
            self.done.append(RowBatch(self._at, self._last))
            self.done[-1].parts = None
        self.done[-1].end = self._at = end
        self.done[-1].after = self._last = last
        self._block = RowBatch(end, last)

    def _take(self, lines: list[bytes]) -> None:
        """Add whole lines to the block. Most of the time is spent here."""
        session, part, last = "", SessionRows(), self._last
        for raw in lines:
            plain, body, total, length = None, b"", "", len(raw)
            # A line that ends as the journal writes it: the member ``sum`` with 16 hex digits, a quote and a brace.
            if raw[-26:-18] == _SUM and raw.isascii():
                body, total = raw[:-26] + b"}", raw[-18:-2].decode("ascii")
                # This also counts brackets within texts. At worst a line takes the slow path.
                if chain(last, body) == total and body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
                    plain = decode_plain(raw)
            if plain is not None:
                block = self._block
                if plain.session != session:
                    # Records of the project change state on which later records depend, so they are written one by one.
                    session = "" if plain.session == PROJECT else plain.session
                    part = block.part(session) if session else SessionRows()
                if self._masked is None:
                    behind = self._at, length
                else:  # a record with a secret to mask takes the slow path
                    behind = (body.decode("ascii"), total) if not self._masked or mask(body) is body else None
                if session and behind and self._plain(part, block.count, plain, behind):
                    last = total
                    block.count += 1
                    self._at += length + 1
                    continue
                if session and not part.records:  # an empty part would create the session
                    del cast("dict[str, SessionRows]", block.parts)[session]
            self._last = last
            self._other(raw.rstrip(b"\r\n"), length + 1)
            session, last = "", self._last
        self._last = last

    def _plain(self, part: SessionRows, place: int, plain: Plain, behind: tuple[int, int] | tuple[str, str]) -> bool:
        """Add a record to its part. Return False and add nothing if it needs the slow path."""
        moment, kind, used, folded = parse_time(plain.ts), plain.kind, plain.usage, self._folded.get
        error = plain.error
        if kind == "entry":
            name, agent, action, status = plain.id, plain.agent, plain.action, plain.status
            if (
                not name
                or agent is None
                or action is None
                or action == EXECUTION
                or not (error is None or is_plain_error(error))
            ):
                return False
            type_, process = plain.inputType, plain.process
            name, told = storable(name), action
            part.add_entry(
                name,
                (
                    place, len(part.entries), folded(agent) or self._fold(agent), folded(action) or self._fold(action),
                    type_ and (folded(type_) or self._fold(type_)), process and storable(process), moment, status or "open",
                    None if status is None else place,
                ),
            )  # fmt: skip
        elif kind == "event":
            name, said, agent, entry = plain.id, plain.type, plain.agent, plain.entry
            if not name or not said:
                return False
            name, told = storable(name), said
            part.add_event((
                place, storable(said), agent and (folded(agent) or self._fold(agent)), entry and storable(entry),
                len(part.entries), moment,
            ))  # fmt: skip
            used = plain.data if said == "usage" else None
        else:
            name, status = plain.entry, plain.status
            if not name or status is None or (error is not None and not is_plain_error(error)):
                return False
            name, told = storable(name), ""
            part.complete(place, name, status)
        part.records.append((place, kind, name, moment, *behind))
        if self._masked is not None:
            self._block.told.append((kind, told, plain.status, name))
        if used is not None and (tokens := usage_tokens(used)) is not None:
            part.usage.append((place, *tokens))
        return True

    def _fold(self, name: str) -> str:
        folded = self._folded.get(name)
        if folded is None:
            # An ordinary log has few agents and actions, but a hostile one may have new ones in each line.
            if len(self._folded) >= _NAMES:
                self._folded.clear()
            folded = self._folded[name] = fold(name)
        return folded

    def _other(self, raw: bytes, length: int) -> None:
        """Take one line of any form, with the slow reader."""
        last = self._last
        found: list[Line] = []
        damage: list[tuple[int, int, str]] = []

        def hear(offset: int, length: int, reason: str) -> None:
            damage.append((offset, length, reason))

        for line in read_records(raw, self._at, length, last, hear, partial(read_line, self._descriptor, self._at + length)):
            found.append(line)
            last = line.total or last
        end = self._at + length
        if any(is_written_alone(line.record) for line in found):
            self._leave_unparsed(end, last)
            return
        items = [self._item(line, damage) for line in found]
        if self._masked is not None and None in items:  # the import reports the invalid record and starts again
            self._leave_unparsed(end, last)
            return
        block = self._block
        block.damage += damage
        for line, item in zip(found, items, strict=True):
            if item is not None:
                part = block.part(str(item.record["session"]))
                part.add(block.count, item, self._row_end(line, item))
                block.count += 1
        self._at, self._last = end, last

    def _item(self, line: Line, damage: list[tuple[int, int, str]]) -> EncodedRecord | None:
        try:
            check(line.record)
            return prepare_line(line, masked=bool(self._masked))
        except InvalidInput as error:
            damage.append((line.offset, line.length, error.message))
            return None

    def _row_end(self, line: Line, item: EncodedRecord) -> tuple[int, int] | tuple[str, str]:
        """Return the last columns of a record's row. For a store, also note the facts of the record for the import."""
        if self._masked is None:
            return line.offset, line.length
        block = self._block
        if not line.sum_ok or item.body != line.body:
            block.follows = False
        block.told.append(import_facts(line.record))
        return item.body.decode("ascii"), line.total
