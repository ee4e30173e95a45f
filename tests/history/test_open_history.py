"""What is opened at a path: a store, a log, another agent's log or an archive, told by what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import Damaged
from ctxmgr.history.open_history import open_history
from ctxmgr.store.engine.sqlite import sqlite
from tests.history.test_formats import fresh


def test_a_database_that_is_no_log_is_refused_and_a_new_store_is_not(tmp_path: Path) -> None:
    """Another program's database is told as one; a store whose tables are still in its write-ahead log is a store."""
    other = tmp_path / "other.db"
    connection = sqlite.connect(str(other))
    connection.execute("CREATE TABLE notes (id, words)")
    connection.commit()
    connection.close()
    with pytest.raises(Damaged, match="another program"):
        open_history(str(other), explicit=True, readonly=True)
    own = fresh(tmp_path)
    opened, _ = open_history(str(tmp_path / "store.db"), explicit=True)
    assert opened.sessions.count() == 0
    opened.close()
    own.close()
