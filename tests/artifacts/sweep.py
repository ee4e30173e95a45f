"""Kill a change of artifacts before every call that changes a file, and look at what is left each time.

``python -m tests.artifacts.sweep put history.db FOLDER`` prints how many moments there were; what was wrong goes to stderr.
Every attempt runs in a process of its own, forked before any store is open in this one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxmgr.artifacts.blobs import hash_of
from ctxmgr.artifacts.names import view_paths
from ctxmgr.artifacts.repair import audit
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.types.artifact import Retention
from ctxmgr.types.artifact_request import CreateVersionRequest, NewArtifact, PruneRequest, PutRequest, RollbackRequest

CHANGING = (
    "write", "pwrite", "fsync", "fdatasync", "sync", "rename", "replace", "link", "symlink", "unlink", "remove", "mkdir",
    "rmdir", "ftruncate", "fchmod", "chmod",
)  # fmt: skip
_NONE = Retention(keep_versions=1, keep_days=0, always_keep=[])


def put(store: Store, *contents: tuple[str, str]) -> None:
    """Put texts under names of one agent."""
    items = [NewArtifact(name=name, content=text) for name, text in contents]
    ArtifactStore(store).put(PutRequest(agent="arch", artifacts=items))


OPERATIONS: dict[str, Callable[[Store], object]] = {
    "first": lambda store: put(store, ("a.yaml", "first: true\n")),
    "put": lambda store: put(store, ("a.yaml", "new: 1\n"), ("src/b.py", "b = 2\n"), ("same.md", "# same\n")),
    "create": lambda store: ArtifactStore(store).create_version(CreateVersionRequest(description="on request")),
    "rollback": lambda store: ArtifactStore(store).rollback(RollbackRequest(version=1, reason="swept")),
    "prune": lambda store: ArtifactStore(store).prune(PruneRequest(retention=_NONE)),
}


def prepare(location: str, operation: str) -> None:
    """Make a store with three versions, so that each operation has something to do."""
    with_all = open_store(location, create=True)
    if operation != "first":
        put(with_all, ("a.yaml", "a: 1\n"), ("same.md", "# same\n"))
        put(with_all, ("a.yaml", "a: 2\n"), ("src/c.py", "c = 3\n"))
        put(with_all, ("a.yaml", "a: 3\n"))
    with_all.close()


def kill_before(number: int) -> None:
    """Let this process end without warning before its n-th call that changes a file, 0 being the first."""
    count = -1

    def step() -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            step()
            if name == "write" and len(arguments[1]) > 1:  # a kill can also come in the middle of it
                half = len(arguments[1]) // 2
                done = call(arguments[0], bytes(arguments[1])[:half])
                step()
                return done + call(arguments[0], bytes(arguments[1])[half:]) if done == half else done
            return call(*arguments, **options)

        return run

    for name in CHANGING:
        setattr(os, name, wrapped(name, getattr(os, name)))
    real_open, execute = os.open, SqliteEngine.execute

    def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            step()
        return real_open(path, flags, *arguments, **options)

    def executed(self: SqliteEngine, sql: str, values: Any = None) -> int:
        step()
        return execute(self, sql, values)

    setattr(os, "open", opened)  # noqa: B010 - the two are patched alike
    setattr(SqliteEngine, "execute", executed)  # noqa: B010


def faults_left(location: str) -> list[str]:
    """Return which listed version lacks a file, or shows other bytes than it says."""
    if not Path(location).exists():
        return []
    store = open_store(location)
    root = os.open(Path(location).with_name("artifacts"), os.O_RDONLY) if store.artifacts.versions() else -1
    faults: list[str] = []
    for version in store.artifacts.versions():
        rows = {(row.agent, row.name): row for row in store.artifacts.state(version.number)}
        for key, path in view_paths(rows).items():
            digest = rows[key].hash
            for place in (f"v{version.number}/{path}", f"objects/{digest[:2]}/{digest[2:]}"):
                try:
                    if hash_of(os.open(place, os.O_RDONLY, dir_fd=root)) != digest:
                        faults.append(f"{place} has other bytes")
                except FileNotFoundError:
                    faults.append(f"{place} is missing")
    store.close()
    return faults


def faults_after(location: str, operation: str) -> list[str]:
    """Do the operation again, then return everything that does not agree, and what was left lying about."""
    store = open_store(location, create=True)
    try:
        OPERATIONS[operation](store)
    except InvalidInput:  # the rollback was done before the kill
        if operation != "rollback":
            raise
        put(store, ("z.md", "after\n"))
    faults = [f"{fault.what} {fault.reason}" for fault in audit(store)]
    folder = Path(location).with_name("artifacts")
    wanted = {f"v{row.number}" for row in store.artifacts.versions()} | {".lock", ".store", ".reserve", "objects", "current"}
    faults += [f"{name} was left" for name in os.listdir(folder) if name not in wanted]
    objects = {path.parent.name + path.name for path in (folder / "objects").rglob("*") if path.is_file()}
    faults += [f"object {name} was left" for name in objects - store.artifacts.hashes()]
    if operation in ("first", "put") and store.artifacts.find("arch", "a.yaml", store.artifacts.current() or 0) is None:
        faults.append("the put did not succeed the second time")
    store.close()
    return faults


def in_child(work: Callable[[], list[str]]) -> tuple[bool, bool]:
    """Run in a forked process; return whether it was killed, and whether it went well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            faults = work()
            sys.stderr.write("".join(f"{fault}\n" for fault in faults))
            code = int(bool(faults))
        except BaseException:
            sys.stderr.write(traceback.format_exc())
        sys.stderr.flush()
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status), status == 0


def sweep(operation: str, name: str, folder: Path, every: int = 1) -> tuple[int, int]:
    """Return at how many moments the operation was killed, and after how many of them something was wrong."""
    base = folder / "base"
    base.mkdir()

    def prepared() -> list[str]:
        prepare(str(base / name), operation)
        return []

    assert in_child(prepared)[1]
    moment = wrong = 0
    while True:
        work = folder / "work"
        subprocess.run(["rm", "-rf", str(work)], check=True)
        subprocess.run(["cp", "-a", str(base), str(work)], check=True)  # it keeps hard links
        location = str(work / name)

        def attempted(number: int = moment, location: str = location) -> list[str]:
            store = open_store(location, create=True)
            kill_before(number)
            OPERATIONS[operation](store)
            return []

        killed, well = in_child(attempted)
        if not killed:
            return moment // every, wrong + (not well)
        left = in_child(lambda location=location: faults_left(location))[1]
        again = in_child(lambda location=location: faults_after(location, operation))[1]
        if not (left and again):
            wrong += 1
            sys.stderr.write(f"killed before call {moment} of {operation}\n")
        moment += every


if __name__ == "__main__":
    moments, broken = sweep(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    sys.stdout.write(f"{moments} {broken}\n")
    sys.exit(1 if broken else 0)
