"""Read records of format 1 from stdin into a store."""

from __future__ import annotations

import sys

from ctxmgr.cli.envelope import say
from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.log import codec
from ctxmgr.log.ids import new_id
from ctxmgr.log.line_splitter import read_lines
from ctxmgr.store.project_session import PROJECT, untrusted_message
from ctxmgr.types.record import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxmgr.store import AppendResult, Store

_BATCH = 200  # number of records in one transaction
_EARLIER_KEPT = "the records before it are kept"


class RecordCounts:
    """Counts of records: added, known already, and left out because they would change the project's own state."""

    __slots__ = ("added", "ended", "known", "left_out")

    def __init__(self) -> None:
        self.added = self.known = self.left_out = 0
        self.ended: list[str] = []

    def plus(self, appended: AppendResult) -> None:
        """Add the counts of an append."""
        self.added += appended.added
        self.known += appended.known

    @property
    def status(self) -> str:
        """Return "ok" if there was any record, else "empty"."""
        return "ok" if self.added or self.known else "empty"

    @property
    def data(self) -> dict[str, int]:
        """The counts as JSON."""
        return {"added": self.added, "known": self.known}

    @property
    def line(self) -> str:
        """The counts as a sentence."""
        return f"{self.added} records added, {self.known} known already"

    @property
    def warnings(self) -> list[str]:
        """Warnings for a person."""
        return [untrusted_message(self.left_out)] if self.left_out else []


def take(store: Store, session: str | None, *, trusted: bool) -> RecordCounts:
    """Append the records on stdin.

    Args:
        store: the store to append to.
        session: session of records that name none.
        trusted: also accept access rules, artifacts and context from the records.

    Raises:
        InvalidInput, Conflict: a line can't be appended; the message names the first one.
        Denied: the asker may not append a line.
        StorageFailed, Busy: the store can't be written.
    """
    # Without the message, the command would seem to hang.
    if sys.stdin.isatty():
        say("ctxmgr: reading records from the terminal, one JSON object a line; Ctrl-D ends")
    done = RecordCounts()
    batch: list[tuple[int, codec.Record]] = []
    try:
        for line in _records(session):
            # Records of this session are access rules and artifacts. Untrusted input must not grant anything.
            if line[1]["session"] == PROJECT and not trusted:
                done.left_out += 1
                continue
            batch.append(line)
            # Only remembered here: an episode needs all records of its session in the store.
            if line[1]["kind"] == "sessionEnd":
                done.ended.append(line[1]["session"])
            if len(batch) >= _BATCH:
                # Empty the batch first: after a refusal, the ``finally`` below must not append it again.
                full, batch = batch, []
                _append(store, full, done)
    finally:  # records before a faulty line or an interrupt are kept
        _append(store, batch, done)
    if done.ended:
        from ctxmgr.memory.episodes import retain_ended_sessions

        retain_ended_sessions(store, done.ended)
    return done


def _append(store: Store, batch: list[tuple[int, codec.Record]], done: RecordCounts) -> None:
    """Append numbered records in one transaction. If one is refused, append those before it and name its line.

    Raises:
        Conflict, InvalidInput: a record has a known id but other content, or can't be stored.
    """
    try:
        done.plus(store.append([record for _, record in batch]))
    except (Conflict, InvalidInput):  # nothing of the batch was stored, so append the records before the fault one by one
        for number, record in batch:
            try:
                done.plus(store.append([record]))
            except (Conflict, InvalidInput) as error:
                reason = error.message.removesuffix("; nothing was written")
                raise type(error)(f"stdin line {number}: {reason}", f"{_EARLIER_KEPT}; {error.hint}") from None


def _records(session: str | None) -> Iterator[tuple[int, codec.Record]]:
    """Yield (line number, record of format 1) for each line of stdin.

    Raises:
        InvalidInput: a line is not such a record; the message names the first one.
    """
    for number, _, line, length in read_lines(sys.stdin.buffer, codec.MAX_LINE):
        if line is None:
            raise InvalidInput(f"stdin line {number} is {length:,} bytes long; the limit is {codec.MAX_LINE:,}", _EARLIER_KEPT)
        if not line.strip():
            continue
        try:
            yield number, check(_complete_record(codec.decode(line), session))
        except InvalidInput as error:
            raise InvalidInput(f"stdin line {number}: {error.message}", f"{_EARLIER_KEPT}; {error.hint}") from None
        except ValueError as error:
            raise InvalidInput(f"stdin line {number}: {error}", f"{_EARLIER_KEPT}; one JSON object a line") from None


def _complete_record(given: codec.Record, session: str | None) -> codec.Record:
    """Return the record with the version first, as in every log, and with defaults for fields that may be left out."""
    record: codec.Record = {"v": 1, **given}
    if session is not None:
        record.setdefault("session", session)
    if record.get("kind") in ("entry", "event", "note", "snapshot"):
        record.setdefault("id", new_id())
    if record.get("kind") == "event" and isinstance(record.get("type"), str):
        record["type"], speaker = codec.event_origin(record["type"], record.get("data"), record.get("agent"))
        if speaker is not None:
            record["agent"] = speaker
    record.pop("sum", None)  # a checksum of the log that the record comes from; it does not fit the chain of this store
    return record
