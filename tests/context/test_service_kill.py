"""Killed at any statement of an assembly, a store holds the package with its summaries whole, or nothing of either."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import PACKAGE
from tests.context.world import PROSE, World

LONG = "# Title\n\n" + PROSE * 100

CHILD = """
import os, signal, sys
from ctxmgr.store import open_store
from ctxmgr.store.engine.sqlite import SqliteEngine
from tests.context.world import World

store = open_store(sys.argv[1])
world = World(store, contents=eval(open(sys.argv[2]).read()))
left = int(sys.argv[3])

def counted(plain):
    def run(*given, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given, **more)
    return run

for name in ("query", "execute", "many"):
    setattr(SqliteEngine, name, counted(getattr(SqliteEngine, name)))
world.assemble(tokens=900, items=["arch/*"])
store.close()
print(left)
"""


def run(place: Path, contents: Path, statement: int) -> tuple[int, str]:
    """Assemble in a process that is killed at its statement of this number; return how it ended and what it said."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(place), str(contents), str(statement)], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


def stands(store: Store) -> tuple[int, int, int]:
    """Return how many packages, items of packages and summaries a store holds."""
    rows = [int(store.engine.query(f"SELECT count(*) FROM {table}")[0][0]) for table in ("package", "package_item", "summary")]
    assert len(store.shared.events(PACKAGE)) == rows[0]
    assert store.verify()[1] == []
    return rows[0], rows[1], rows[2]


@pytest.mark.slow
def test_a_kill_at_any_statement(tmp_path: Path) -> None:
    """A sweep over the last statements, which write, and some of those before: nothing half, and the next assembly works."""
    place, contents = tmp_path / "history.db", tmp_path / "contents"
    with closing(open_store(str(place), create=True)) as store:
        world = World(store)
        world.put("arch", "a.md", LONG)
        world.put("arch", "b.md", LONG + "b")
    contents.write_text(repr(world.contents), encoding="utf-8")
    whole = tmp_path / "whole.db"
    shutil.copy(place, whole)
    code, said = run(whole, contents, 10**6)
    assert code == 0
    statements = 10**6 - int(said)
    seen: set[tuple[int, int, int]] = set()
    for statement in [1, statements // 2, *range(statements - 9, statements + 1)]:
        copy = tmp_path / f"{statement}.db"
        shutil.copy(place, copy)
        code, _ = run(copy, contents, statement)
        assert code == -signal.SIGKILL
        with closing(open_store(str(copy))) as store:
            seen.add(stands(store))
            again = World(store, contents=world.contents).assemble(tokens=900, items=["arch/*"])
            assert again.id is not None
    with closing(open_store(str(whole))) as store:
        assert stands(store) == (1, 2, 2)

    assert seen <= {(0, 0, 0), (1, 2, 2)}
    assert (0, 0, 0) in seen
