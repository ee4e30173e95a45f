"""Load, update, append and save the history and the state of a goal.

The history is written and synced before the state that refers to it (ruling 19). On load, records that the state does not
include are folded in. A state file may therefore lag. The lag is bounded, so that the next process has little to fold.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from typing import Any, NoReturn

from ctxmgr.base.paths import require_no_link
from ctxmgr.errors import Busy, CtxmgrError, Damaged, NotFound, StorageFailed, Superseded
from ctxmgr.goals import state_files
from ctxmgr.goals import state_files as owner
from ctxmgr.goals.changes import EVENT, fold
from ctxmgr.goals.state import Owner, State
from ctxmgr.goals.state_files import HistoryExtent
from ctxmgr.log.codec import Record, chain, decode, encode
from ctxmgr.log.ids import new_id, now, parse_time
from ctxmgr.log.journal import Durability, Journal, read
from ctxmgr.log.reader import BROKEN_SUM
from ctxmgr.types.plain_records import build

BEGIN = 'begin one: ctxmgr goal start "what is to be done", or with a plan, ctxmgr goal start --from plan.md'
"""Hint for a folder without a goal."""

LAG = 128
"""Maximum number of records that a process holding a goal writes before it saves the state again.

Saving costs more than appending, because the whole state is written.
"""

_MAX_CHECKED = 8 * 1024 * 1024
"""Maximum size of a history, in bytes, that is read again when another program has written to it: a third of a second."""


class GoalRepository:
    """The folder of one goal.

    Attributes:
        folder, path: absolute paths of the folder and of the history in it.
        damaged: names of files that were set aside and created again.
        state: the state as of the last read.
        warnings: damage that was found, and how it was handled.
        replayed: number of records that the state file did not include when it was loaded.
        generation: generation of the state file.
        lost: the goal that a state file knows, but the history does not hold, or "".
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, hold: bool, durability: Durability, masked: bool, timeout: float,
        clock: Callable[[], str] = now,
    ) -> None:  # fmt: skip
        self.folder = os.path.abspath(folder)
        self.state = State()
        self.warnings: list[str] = []
        self.damaged: list[str] = []
        self.replayed = 0
        self.generation = 0
        self.lost = ""
        self.included = HistoryExtent()
        self.clock = clock
        self.path = os.path.join(self.folder, state_files.HISTORY)
        self._hold, self._masked, self._timeout = hold, masked, timeout
        self._durability: Durability = durability
        self._journal: Journal | None = None
        self._inode = -1
        self._lag: int = 0
        self._unchecked: HistoryExtent | None = None  # what somebody else may have changed since it was folded in
        self._grown = False  # whether the history had more than the loaded state: then its owner may be writing
        self._damaged_files: list[str] = []
        self._loops_saved: int = -1
        self._me: dict[str, Any] | None = None
        self._epoch: int | None = None

    def look(self) -> State:
        """Return the current state, without a lock and without writing."""
        self._catch_up()
        return self.state

    @contextlib.contextmanager
    def change(self, *, work: bool, anew: bool = False, take_over: bool = False, create: bool = False) -> Generator[Change]:
        """Hold the lock. Inside the block the state is up to date and the process may write.

        Args:
            work: whether only the owner may do this; edits (a block, a further task, a message) are open to others.
            anew: whether a superseded process may take the goal again.
            take_over: take the goal even from a live owner.
            create: create a missing folder.

        Raises:
            NotFound: there is no history, and ``create`` is false. Damaged: so it is, though a state file knows a goal.
            Busy: another process holds the goal or the lock.
            Superseded: another process has taken the goal over from this one.
        """
        # Before the lock, which would create the folder: a mistyped path must leave nothing behind.
        if not create and not os.path.exists(self.path):
            self._catch_up()
            raise self.missing_goal()
        with owner.hold_lock(self.folder, self._timeout) as lock:
            self._catch_up(writing=True)
            previous = self.state.owner
            if anew and self._epoch != self.state.epoch:
                self._epoch = None
            claim = self._claim(work, take_over)
            yield Change(self, lock, claim, previous)

    def release(self) -> None:
        """Release the goal, and save the state if the file lags."""
        if self._epoch is not None and self._me is not None and self._me["pid"] == os.getpid():
            try:
                with self.change(work=True) as change:
                    change.write([self.event({"op": "release", "epoch": self._epoch})], save=True)
            except (Superseded, Busy, NotFound, Damaged, StorageFailed):
                # A new owner does not need our release, and a removed goal has none. On a full disk, the next
                # process sees that ours has ended.
                pass
        self._epoch = None
        if self._journal is not None:
            journal, self._journal = self._journal, None
            journal.close()

    def event(
        self, data: dict[str, Any], kind: str = EVENT, *, session: str | None = None, name: str | None = None
    ) -> Record:  # fmt: skip
        """Return an event of the goal's session, with a new id unless one is given."""
        place = session or self.state.session or "goal"
        return build("event", place, self.clock(), id=name or new_id(), type=kind, data=data)

    def _claim(self, work: bool, take_over: bool) -> list[Record]:
        if self._me is not None and self._me["pid"] != os.getpid():
            self._me = self._epoch = None  # a forked child does not own what its parent owns
        if self._epoch is not None:
            if self._epoch != self.state.epoch:
                raise Superseded(
                    f"the goal in {self.folder!r} was taken over by another process",
                    "go on with 'resume' when this process is to have it again",
                )
            return []
        if not work and not take_over:
            return []
        holder = self.state.owner
        # A single command owns nothing: otherwise the next command would have to take the goal over from it.
        if holder is None and not self._hold:
            return []
        seconds = parse_time(self.clock()) or 0.0
        if holder is not None and not take_over and owner.is_alive(holder, self.state.last_ts, seconds):
            raise Busy(
                f"the goal in {self.folder!r} is held by process {holder.pid}",
                "end it, or take over from it with 'ctxmgr goal resume --take-over'",
            )
        self._me = owner.identity()
        return [self.event({"op": "own", "epoch": self.state.epoch + 1, "held": self._hold, **self._me})]

    def append(self, lock: owner.Lock, records: Sequence[Record], *, save: bool) -> None:
        """Append and sync the records, fold them in, and save the state if it must not lag."""
        stored = [self._mask_record(record) for record in records]
        if self._journal is None:
            self._journal = Journal(self.path, durability=self._durability, mask=False, timeout=self._timeout)
        try:
            size = self._journal.append(stored)
        except Busy:
            # If we still hold the lock, another program has locked the history. Otherwise a
            # successor has taken the lock from us.
            if lock.is_held():
                raise
            self._raise_superseded()
        if not lock.is_held():
            # Checked after the write: if we were stopped and replaced, the write went to a file that nobody reads.
            self._raise_superseded()
        self._inode, self.included.modified = 0, None
        with contextlib.suppress(FileNotFoundError):  # removed behind our back
            found = os.stat(self.path)
            self._inode, self.included.modified = found.st_ino, state_files.modification(found)
        for record in stored:
            fold(self.state, record)
            self.included.sum = chain(self.included.sum, encode(record))
        self.included.records += len(stored)
        self.included.bytes = size
        self._lag += len(stored)
        # A claim is valid after it was folded in as the newest.
        if self._hold and self._me is not None and self.state.owner and self.state.owner.owner == self._me["owner"]:
            self._epoch = self.state.epoch
        if save or not self._hold or self._lag >= LAG:
            self.save()

    def save(self) -> None:
        """Write the state file if it lags. A failure is only a warning, because the history has everything."""
        if not self.needs_save:
            return
        if self._damaged_files:
            for name, new_name in zip(
                self._damaged_files, state_files.set_aside_files(self.folder, self._damaged_files), strict=False
            ):
                self._warn(f"{name} was set aside as {new_name} and made anew from the history")
            self._damaged_files = []
        refused: int = len(self.state.loops) + self.state.count("refused")
        try:
            # Refusals are rare, so most saves leave the file unchanged.
            loops: bool = refused != self._loops_saved and not state_files.loops_fit(self.folder, self.state)
            state_files.save(self.folder, self.state, self.included, self.generation + 1, loops=loops)
        except StorageFailed as error:
            self._warn(f"{error.message}; {error.hint}")
            return
        self.generation += 1
        self._lag, self._loops_saved = 0, refused

    @property
    def needs_save(self) -> bool:
        """Whether the state file lags or is damaged."""
        return self._lag > 0 or bool(self._damaged_files)

    def _raise_superseded(self) -> NoReturn:
        self._close_journal()
        raise Superseded(
            f"the goal in {self.folder!r} was taken over while this process was stopped", "nothing that it wrote since counts"
        )

    def _mask_record(self, record: Record) -> Record:
        """Return the record as a reader will find it, so that the state is masked like the file."""
        line = encode(record)
        if not self._masked:
            return decode(line)
        from ctxmgr.log.mask_prefilter import mask  # a reader does not need it

        return decode(mask(line))

    def _close_journal(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            with contextlib.suppress(StorageFailed):
                journal.close()
        self._inode = -1

    def missing_goal(self) -> CtxmgrError:
        """Return the error for a folder whose history holds no goal."""
        if not self.lost:
            return NotFound(f"there is no goal in {self.folder!r}", BEGIN)
        what = "holds no goal" if os.path.exists(self.path) else "is missing"
        return Damaged(
            f"{self.path!r} {what}, but the saved state knows one: {self.lost[:200]!r}",
            "bring the history back, e.g. from a backup; or give it up: ctxmgr goal start TEXT --replace",
        )

    def _catch_up(self, *, writing: bool = False) -> None:
        try:
            require_no_link(self.path, writing=False)
            found = os.stat(self.path)
        except FileNotFoundError:
            # 0 means that the history is known to be missing.
            if self._inode != 0:
                self._load(None)
            return
        except OSError as error:
            raise StorageFailed(f"{self.path!r} can't be read: {error.strerror}", "fix the permissions") from error
        written = state_files.modification(found)
        # The file is another one (a take-over copies the history) or shorter, so it may lack records that we folded in.
        if found.st_ino != self._inode or found.st_size < self.included.bytes:
            self._load(found)
        elif found.st_size > self.included.bytes:
            self._replay()
        elif written != self.included.modified:
            self._unchecked = self.included.replace()
        self.included.modified = written
        # While its owner writes, each look would read the history again. The next process that changes the goal does it.
        if self._unchecked is not None and (writing or not self._grown):
            self._check_again(self._unchecked)
            self._unchecked = None
        if self.included.broken is not None:
            self._warn(
                f"{state_files.HISTORY} is damaged: {BROKEN_SUM.partition(':')[0]} at byte {self.included.broken:,}; "
                f"'ctxmgr verify {self.path}' says more"
            )

    def _load(self, found: os.stat_result | None) -> None:
        self._close_journal()
        loaded = state_files.load(self.folder)
        self.state, self.included, self.generation = loaded.state, loaded.included, loaded.generation
        self._damaged_files = [name for name, _ in loaded.damaged]
        self.damaged += [name for name in self._damaged_files if name not in self.damaged]
        for name, why in loaded.damaged:
            self._warn(f"{name} can't be used ({why}); the state is read from the history")
        self._lag = self.replayed = 0
        self._unchecked = None
        if found is not None:
            if self.included.modified != state_files.modification(found):
                self._unchecked = self.included.replace()
            self._grown = found.st_size > self.included.bytes
            self.replayed = self._replay()
        self._inode = found.st_ino if found is not None else 0
        self.lost = "" if self.state.exists else loaded.lost

    def _replay(self) -> int:
        """Fold in the records of the history that the state does not include, and return their number."""
        included, count = self.included, 0
        with contextlib.suppress(NotFound):
            for line in read(self.path, included.bytes, self._note_damage, included.sum):
                fold(self.state, line.record)
                count += 1
                included.bytes, included.sum = line.offset + line.length, line.total or included.sum
                included.records += 1
        self._lag += count
        return count

    def _check_again(self, part: HistoryExtent) -> None:
        """Read a part of the history again, because another program has written to it."""
        if part.bytes > _MAX_CHECKED:
            if not self._grown:
                self._warn(
                    f"{state_files.HISTORY} was written by another program, and is too long to be checked at each step: "
                    f"'ctxmgr verify {self.path}' does it"
                )
            return
        behind, self.included.broken = self.included.broken, None
        last = ""
        for line in read(self.path, 0, self._note_damage, "", part.bytes):
            last = line.total or last
        if self.included.broken is None:
            # Of the last record, no later one has the sum.
            self.included.broken = part.bytes if last != part.sum else behind if (behind or 0) >= part.bytes else None

    def _note_damage(self, offset: int, length: int, reason: str) -> None:
        self._warn(f"{state_files.HISTORY}: {length} bytes at {offset}: {reason}")
        # What was torn off before it was acknowledged breaks no sum. It is told once, and nothing is lost.
        if reason == BROKEN_SUM and self.included.broken is None:
            self.included.broken = offset

    def _warn(self, text: str) -> None:
        if text not in self.warnings and len(self.warnings) < 100:  # a hostile history could cause any number of them
            self.warnings.append(text)


class Change:
    """Permission to write one change.

    Attributes:
        state: the state on which the change is decided.
        previous: the owner so far, or None.
        takes: whether this write makes the process the owner.
    """

    def __init__(self, repository: GoalRepository, lock: owner.Lock, claim: list[Record], previous: Owner | None) -> None:
        self._repository, self._lock, self._claim = repository, lock, claim
        self.state = repository.state
        self.previous = previous
        self.takes = bool(claim)

    def write(self, records: Sequence[Record], *, save: bool = True) -> None:
        """Append the claim of ownership, if there is one, and the records. Without either, nothing is written."""
        claim, self._claim = self._claim, []
        together = [*claim, *records]
        # A claim belongs to the goal's session, which the first records create.
        if not self.state.exists and records:
            session = records[0]["session"]
            together = [*records, *({**each, "session": session} for each in claim)]
        if together:
            self._repository.append(self._lock, together, save=save or bool(claim))
        elif save:
            self._repository.save()
