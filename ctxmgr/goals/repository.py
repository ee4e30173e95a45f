"""Load, catch up, append and save the history and state of a goal.

The order of writing is history, then state: the history is synced before the state names it, and whatever the state does
not include yet is folded in again. A state file is therefore allowed to lag; how far is bounded, so that the next process
has little to fold.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from typing import Any, NoReturn

from ctxmgr.errors import Busy, NotFound, StorageFailed, Superseded
from ctxmgr.goals import state_files
from ctxmgr.goals import state_files as owner
from ctxmgr.goals.reducer import EVENT, fold
from ctxmgr.goals.state import Owner, State
from ctxmgr.goals.state_files import Included
from ctxmgr.log.codec import Record, chain, decode, encode
from ctxmgr.log.ids import new_id, now, parse_time
from ctxmgr.log.journal import Durability, Journal, read
from ctxmgr.paths import require_no_link
from ctxmgr.types.plain_records import build

LAG = 128
"""Records that a process which holds a goal may write before it saves the state again."""


class GoalRepository:
    """One goal's folder.

    Attributes:
        folder, path: absolute, of the folder and of the history in it.
        damaged: names of files that were set aside and made anew.
        state: what the history folds into, as of the last look.
        warnings: what was found damaged, and what was done about it.
        replayed: records that the state file did not include when it was loaded.
        generation: of the state file.
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
        self.included = Included()
        self.clock = clock
        self.path = os.path.join(self.folder, state_files.HISTORY)
        self._hold, self._masked, self._timeout = hold, masked, timeout
        self._durability: Durability = durability
        self._journal: Journal | None = None
        self._inode = -1
        self._lag: int = 0
        self._aside: list[str] = []
        self._loops_saved: int = -1
        self._me: dict[str, Any] | None = None
        self._epoch: int | None = None

    def look(self) -> State:
        """Return the state as of now, without a lock and without writing anything."""
        self._catch_up()
        return self.state

    @contextlib.contextmanager
    def change(self, *, work: bool, anew: bool = False, take_over: bool = False, create: bool = False) -> Generator[Change]:
        """Hold the lock, caught up and entitled to write.

        Args:
            work: whether this is for the owner alone; what only steers (a block, a further task, a message) is not.
            anew: whether one that was superseded may take the goal up again.
            take_over: also from an owner that is alive.
            create: whether the folder is made where it is missing.

        Raises:
            NotFound: there is no history, and ``create`` is false.
            Busy: another process holds the goal, or the lock.
            Superseded: another process took the goal over from this one.
        """
        if not create and not os.path.exists(self.path):
            raise NotFound(f"there is no goal in {self.folder!r}", "begin one with 'ctxmgr goal start'")
        with owner.locked(self.folder, self._timeout) as lock:
            self._catch_up()
            previous = self.state.owner
            if anew and self._epoch != self.state.epoch:
                self._epoch = None
            claim = self._claim(work, take_over)
            yield Change(self, lock, claim, previous)

    def release(self) -> None:
        """Let go of the goal, and save what the state file lacks."""
        if self._epoch is not None and self._me is not None and self._me["pid"] == os.getpid():
            try:
                with self.change(work=True) as change:
                    change.write([self.event({"op": "release", "epoch": self._epoch})], save=True)
            except (Superseded, Busy, StorageFailed):
                pass  # whoever has it now needs nothing from us
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
            self._me = self._epoch = None  # a forked child is somebody else
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
        """Write, sync, fold; and save the state where it must not lag."""
        stored = [self._as_stored(record) for record in records]
        if self._journal is None:
            self._journal = Journal(self.path, durability=self._durability, mask=False, timeout=self._timeout)
        try:
            size = self._journal.append(stored)
        except Busy:
            if lock.is_held():
                raise
            self._superseded()
        if not lock.is_held():
            self._superseded()
        self._inode = owner.inode(self.path)
        for record in stored:
            fold(self.state, record)
            self.included.sum = chain(self.included.sum, encode(record))
        self.included.records += len(stored)
        self.included.bytes = size
        self._lag += len(stored)
        if self._hold and self._me is not None and self.state.owner and self.state.owner.owner == self._me["owner"]:
            self._epoch = self.state.epoch
        if save or not self._hold or self._lag >= LAG:
            self.save()

    def save(self) -> None:
        """Write the state file, if it lacks anything; a failure is a warning, since the history holds it all."""
        if not self.needs_save:
            return
        if self._aside:
            for name, given in zip(self._aside, state_files.set_aside(self.folder, self._aside), strict=False):
                self._warn(f"{name} was set aside as {given} and made anew from the history")
            self._aside = []
        refused: int = len(self.state.loops) + self.state.count("refused")
        try:
            loops: bool = refused != self._loops_saved and not state_files.loops_fit(self.folder, self.state)
            state_files.save(self.folder, self.state, self.included, self.generation + 1, loops=loops)
        except StorageFailed as error:
            self._warn(f"{error.message}; {error.hint}")
            return
        self.generation += 1
        self._lag, self._loops_saved = 0, refused

    @property
    def needs_save(self) -> bool:
        """Whether the state file lacks something or is damaged."""
        return self._lag > 0 or bool(self._aside)

    def _superseded(self) -> NoReturn:
        self._drop()
        raise Superseded(
            f"the goal in {self.folder!r} was taken over while this process was stopped", "nothing that it wrote since counts"
        )

    def _as_stored(self, record: Record) -> Record:
        """Return the record as a reader will find it: what is masked in the file is masked in the state too."""
        line = encode(record)
        if not self._masked:
            return decode(line)
        from ctxmgr.log.mask_prefilter import mask  # which a reader has no need of

        return decode(mask(line))

    def _drop(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            with contextlib.suppress(StorageFailed):
                journal.close()
        self._inode = -1

    def _catch_up(self) -> None:
        try:
            require_no_link(self.path, writing=False)
            found = os.stat(self.path)
        except FileNotFoundError:
            if self._inode != 0:
                self._load(0)
            return
        except OSError as error:
            raise StorageFailed(f"{self.path!r} can't be read: {error.strerror}", "fix the permissions") from error
        if found.st_ino != self._inode or found.st_size < self.included.bytes:
            self._load(found.st_ino)
        elif found.st_size > self.included.bytes:
            self._replay()

    def _load(self, inode: int) -> None:
        self._drop()
        loaded = state_files.load(self.folder)
        self.state, self.included, self.generation = loaded.state, loaded.included, loaded.generation
        self._aside = [name for name, _ in loaded.damaged]
        self.damaged += [name for name in self._aside if name not in self.damaged]
        for name, why in loaded.damaged:
            self._warn(f"{name} can't be used ({why}); the state is read from the history")
        self._lag = 0
        self.replayed = self._replay() if inode else 0
        self._inode = inode

    def _replay(self) -> int:
        """Fold in what the history holds beyond what is included; return how many records that were."""
        included, count = self.included, 0

        def damage(offset: int, length: int, reason: str) -> None:
            self._warn(f"{state_files.HISTORY}: {length} bytes at {offset}: {reason}")

        with contextlib.suppress(NotFound):
            for line in read(self.path, included.bytes, damage, included.sum):
                fold(self.state, line.record)
                count += 1
                included.bytes, included.sum = line.offset + line.length, line.total or included.sum
                included.records += 1
        self._lag += count
        return count

    def _warn(self, text: str) -> None:
        if text not in self.warnings and len(self.warnings) < 100:
            self.warnings.append(text)


class Change:
    """The right to write one change.

    Attributes:
        state: what the change is decided on.
        previous: who held the goal before.
        takes: whether writing takes the goal over from somebody, or into possession.
    """

    def __init__(self, repository: GoalRepository, lock: owner.Lock, claim: list[Record], previous: Owner | None) -> None:
        self._repository, self._lock, self._claim = repository, lock, claim
        self.state = repository.state
        self.previous = previous
        self.takes = bool(claim)

    def write(self, records: Sequence[Record], *, save: bool = True) -> None:
        """Append the records, after the claim to the goal where there is one; nothing at all when there is neither."""
        claim, self._claim = self._claim, []
        together = [*claim, *records]
        if not self.state.exists and records:
            session = records[0]["session"]
            together = [*records, *({**each, "session": session} for each in claim)]
        if together:
            self._repository.append(self._lock, together, save=save or bool(claim))
        elif save:
            self._repository.save()
