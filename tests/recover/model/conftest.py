"""Models are tried against servers of the test itself: this machine may be reached here, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.store import Store, open_store
from tests.recover.model.asking import records


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def require_near(place: Any) -> None:
        assert str(place).startswith("127."), "a test tried to reach the network"

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            require_near(address[0])
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        if self.family != socket.AF_UNIX:
            require_near(address[0])
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        require_near(host)
        return look_up(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Store]:
    """Open a history with one stuck session."""
    with_one = open_store(str(tmp_path / "history.db"), create=True)
    with_one.append(records())
    yield with_one
    with_one.close()
