"""The facade: what leaving a workspace tells."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ctxmgr.errors import NotFound, StorageFailed
from ctxmgr.types.query import AddNoteRequest
from ctxmgr.workspace import Workspace
from tests import builders as b


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name a database of one entry, on a disk that syncs nothing."""
    path = str(tmp_path / "run.db")
    with Workspace.open(path, create=True) as workspace:
        workspace.store.append([b.entry("s", 0, "Bash", {"command": "a"})])

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", refuse)
    return path


def test_a_failed_sync_is_told_where_the_workspace_is_left(place: str) -> None:
    """What was added and is not on the disk is no success."""
    with pytest.raises(StorageFailed), Workspace.open(place, create=True) as workspace:
        workspace.add_note(AddNoteRequest(entry_indices=[0], content="n"))


def test_a_failed_sync_does_not_hide_the_error_of_the_work(place: str) -> None:
    """The error that left the workspace is the one that arrives."""

    def work() -> None:
        with Workspace.open(place, create=True) as workspace:
            workspace.add_note(AddNoteRequest(entry_indices=[0], content="n"))
            raise NotFound("mine")

    with pytest.raises(NotFound, match="mine"):
        work()
