"""A store: what it makes only when it is asked for, what one that is only read refuses, and what a database answers itself."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.log import codec
from ctxmgr.store import Store, open_store
from tests.builders import entry, write


def test_what_is_not_asked_for_is_not_made(store: Store) -> None:
    """Each repository is made once; a name that a store does not have is an ordinary fault."""
    assert "annotations" not in vars(store)
    assert store.annotations is store.annotations
    assert "annotations" in vars(store)
    with pytest.raises(AttributeError, match="'nothing'"):
        store.nothing  # type: ignore[attr-defined]  # noqa: B018
    write(store, "s", ["Bash:a"])
    store.forget_sessions()
    write(store, "s", ["Bash:b"])
    assert store.sessions.entry_count(1) == 2


WRITES: dict[str, Callable[[Store], Any]] = {
    "append": lambda store: store.append([entry("s", 1)]),
    "append_encoded": lambda store: store.append_encoded(entry("s", 1), codec.encode(entry("s", 1))),
    "append_lines": lambda store: store.append_lines([]),
    "migrate": lambda store: store.migrate(),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_store_that_is_only_read_refuses_to_write(name: str, store_path: Path) -> None:
    """Every way in names the store, and nothing is written."""
    with_one = open_store(str(store_path), create=True)
    write(with_one, "s", ["Bash:a"])
    with_one.close()
    before = store_path.read_bytes()
    opened = open_store(str(store_path), readonly=True)

    with pytest.raises(StorageFailed, match=f"{store_path.name} was opened for reading only"):
        WRITES[name](opened)
    opened.close()
    assert store_path.read_bytes() == before


def test_a_wait_ends_with_what_can_be_read() -> None:
    """Or when its time is over."""
    store = open_store(":memory:", create=True)
    one, other = socket.socketpair()
    other.send(b"x")
    store.wait(60, one)
    one.recv(1)
    store.wait(0.01, one)
    store.wait(0.01)
    for each in (one, other, store):
        each.close()
