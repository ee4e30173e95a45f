"""Parse the lines of a log into blocks of rows; ordinary lines by msgspec.

All others are read as `ctxmgr.log.reader` reads them, and make the same rows a little later.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.log.codec import MAX_DEPTH, MAX_LINE
from ctxmgr.log.fast_json import cast
from ctxmgr.log.ids import parse_time
from ctxmgr.log.line_splitter import read_lines
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.log.reader import read_line, read_records
from ctxmgr.store.project_session import EXECUTION, PROJECT
from ctxmgr.store.text_normalisation import fold, storable
from ctxmgr.store.write.batch import usage_tokens
from ctxmgr.store.write.bulk import RowBatch, SessionRows, import_facts, is_written_alone
from ctxmgr.store.write.encoded_record import prepare_line
from ctxmgr.types.record import check, is_plain_error

if TYPE_CHECKING:
    from collections.abc import Generator
    from io import FileIO

    from ctxmgr.log.reader import Line
    from ctxmgr.store.write.encoded_record import EncodedRecord

_Optional = str | None
_Filled = Annotated[str, msgspec.Meta(min_length=1)]
# As `ctxmgr.types.record.is_plain` takes whole numbers: a float does not hold larger ones exactly.
_Number = Annotated[float, msgspec.Meta(gt=-(2.0**53), lt=2.0**53)] | None


# Millions of these are made and none is part of a cycle, so Python's collector need not track them.
class Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An entry, a result or an event.

    Members of free form are decoded too: only so their JSON is looked at. One shape for all three, for of a kind that comes
    twice the last counts.
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
    """Return the record of an ASCII line, or None, which says nothing; what its kind needs is still to be looked at."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


_READ = 1 << 20
"""Bytes that are read together, which make one block."""

_SECOND_PROCESS_FROM = 1 << 25
"""Bytes from which on a second process reads ahead: to start it takes as long as to read a tenth of them."""

_SUM = b',"sum":"'
_NAMES = 4096  # that are remembered in their folded form


def read_blocks(path: str, start: int, last: str, much: int, masked: bool | None = None) -> Generator[tuple[Any, ...]]:
    """Yield what `blocks` yields; of so many bytes that it pays, made in a second process as long as there is one."""
    from ctxmgr.store.worker_process import ProcessLost, run_in_second_process

    if much >= _SECOND_PROCESS_FROM:
        try:
            with run_in_second_process("ctxmgr.store.write.log_parser:blocks", path, start, last, masked) as other:
                for packed in other:
                    yield packed
                    # If that process is lost, the rest is read here, from behind the last block that came.
                    start, last = packed[1], packed[3]
                return
        except ProcessLost:  # or it could not read the log, which is told better from here
            pass
    yield from blocks(path, start, last, masked)


def blocks(path: str, start: int, last: str, masked: bool | None = None) -> Generator[tuple[Any, ...]]:
    """Yield the lines of a log from the start of a line on as packed `RowBatch`es; an unfinished last line is left out.

    Args:
        path: of the log.
        start: where the first line begins.
        last: the sum before it.
        masked: None for the index of this log, whose rows say where the lines are. For a store the rows hold the bodies,
            with secrets masked or not.

    Raises:
        NotFound, StorageFailed: as `ctxmgr.log.reader.read`.
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
    """The reading of a log; ``done`` are the blocks that are whole."""

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
            # Without the last line end, behind which an empty line would follow.
            self._take(data[: cut - 1].split(b"\n"))
        # Less came than was asked for: the log ends here, in a line that has no end yet.
        elif len(data) < _READ:
            self.ended = True
        else:
            self._long_line(stream)
        self._close()

    def _long_line(self, stream: FileIO) -> None:
        """Take a line that is longer than what is read together."""
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
        """Leave what comes now to those who read line by line."""
        self._close()
        if not (self.done and self.done[-1].parts is None):
            self.done.append(RowBatch(self._at, self._last))
            self.done[-1].parts = None
        self.done[-1].end = self._at = end
        self.done[-1].after = self._last = last
        self._block = RowBatch(end, last)

    def _take(self, lines: list[bytes]) -> None:
        """Gather whole lines; here most of the time is spent."""
        session, part, last = "", SessionRows(), self._last.encode("ascii")
        for raw in lines:
            plain, total = None, raw[-18:-2]
            # A line as the journal ends it: the member with 16 hex digits, a quote and a brace.
            if raw[-26:-18] == _SUM and raw.isascii():
                sums = sha256(last)
                sums.update(raw[:-26])
                sums.update(b"}")
                # Brackets within texts are counted too: at worst a line takes the slow way.
                if sums.hexdigest()[:16].encode("ascii") == total and raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
                    plain = decode_plain(raw)
            length = len(raw)
            if plain is not None:
                block = self._block
                if plain.session != session:
                    # Records of the project change state that other records follow from: they are written one by one.
                    session = "" if plain.session == PROJECT else plain.session
                    part = block.part(session) if session else SessionRows()
                behind = (self._at, length) if self._masked is None else self._body(raw)
                if session and behind and self._plain(part, block.count, plain, behind):
                    last = total
                    block.count += 1
                    self._at += length + 1
                    continue
                if session and not part.records:  # which would make the session known
                    del cast("dict[str, SessionRows]", block.parts)[session]
            self._last = last.decode("ascii")
            self._other(raw.rstrip(b"\r\n"), length + 1)
            session, last = "", self._last.encode("ascii")
        self._last = last.decode("ascii")

    def _body(self, raw: bytes) -> tuple[str, str] | None:
        """Return the body of a plain record as a store holds it, and its sum; None where a secret is to be masked."""
        body = raw[:-26] + b"}"
        return (body.decode("ascii"), raw[-18:-2].decode("ascii")) if not self._masked or mask(body) is body else None

    def _plain(self, part: SessionRows, place: int, plain: Plain, behind: tuple[int, int] | tuple[str, str]) -> bool:
        """Add a record to its part; return whether it is one that can be."""
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
            # Agents and actions are few in an honest log; in another one each line may bring new ones.
            if len(self._folded) >= _NAMES:
                self._folded.clear()
            folded = self._folded[name] = fold(name)
        return folded

    def _other(self, raw: bytes, length: int) -> None:
        """Take one line, however it is, as those do who read line by line."""
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
        if self._masked is not None and None in items:  # an import says so, and begins anew
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
        """Return what the row of a record ends in; for a store, take note of the record."""
        if self._masked is None:
            return line.offset, line.length
        block = self._block
        if not line.sum_ok or item.body != line.body:
            block.follows = False
        block.told.append(import_facts(line.record))
        return item.body.decode("ascii"), line.total
