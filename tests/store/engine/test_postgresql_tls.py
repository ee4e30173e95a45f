"""What TLS with `verify-full` takes and refuses: the server's name in its certificate, over a root that is known.

The server of the tests speaks no TLS, so something before it does; what is checked is our side.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.store import open_store
from tests import postgresql_server

pytestmark = pytest.mark.slow


def _answer(client: socket.socket, context: ssl.SSLContext, behind: str) -> None:
    """Agree to speak TLS, as a server does, and pass on what is said."""
    with suppress(OSError), client:
        client.recv(8)  # the request for TLS
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as secured, socket.socket(socket.AF_UNIX) as server:
            server.connect(behind)
            back = threading.Thread(target=_pass, args=(server, secured), daemon=True)
            back.start()
            _pass(secured, server)
            server.shutdown(socket.SHUT_RDWR)
            back.join()


def _pass(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)


@pytest.fixture
def port(tmp_path: Path, server_url: str) -> Iterator[int]:
    """Return a port of the loopback behind which the test's server is, with a certificate for db.example."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=db.example",
         "-addext", "subjectAltName=DNS:db.example", "-keyout", tmp_path / "server.key", "-out", tmp_path / "server.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    behind = str(postgresql_server.server() / ".s.PGSQL.5432")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=_answer, args=(client, context, behind), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def test_only_the_name_in_the_certificate_is_taken(tmp_path: Path, server_url: str, port: int) -> None:
    """The right name over a known root is taken; a wrong name, or an unknown root, is refused, with what to do next."""
    database = server_url.partition("@/")[2].partition("?")[0]

    def url(host: str, *more: str) -> str:
        said = "&".join(("hostaddr=127.0.0.1", *more))
        return f"postgresql://tester@{host}:{port}/{database}?{said}"

    root = f"sslrootcert={tmp_path / 'server.crt'}"
    store = open_store(url("db.example", root), create=True)
    assert store.sessions.count() == 0
    store.close()
    absent = url("db.example", "sslmode=verify-full", f"sslrootcert={tmp_path / 'absent'}")
    for wrong, message, hint in (
        (url("other.example", root), "did not prove .* does not match host name", "name that its certificate has"),
        (url("db.example", "sslrootcert=system"), "did not prove who it is: .* verify failed", "?sslrootcert=FILE"),
        (url("db.example"), "did not prove who it is: .* verify failed", "?sslrootcert=FILE"),
        (absent, "can't be checked: root certificate file .* does not exist", "?sslrootcert=system"),
    ):
        with pytest.raises(StorageFailed, match=message) as refused:
            open_store(wrong)
        assert hint in str(refused.value.hint)


def test_a_server_without_tls_is_told_apart() -> None:
    """It proves nothing wrong: it has no certificate at all, and the next step is another one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with listener.accept()[0] as client:
                client.recv(8)  # the request for TLS
                client.sendall(b"N")
                client.recv(8)

        threading.Thread(target=refuse, daemon=True).start()
        with pytest.raises(StorageFailed, match="can't be reached over TLS: server does not support SSL") as refused:
            open_store(f"postgresql://tester@db.example:{listener.getsockname()[1]}/x?hostaddr=127.0.0.1")
    assert "sslmode=disable" in str(refused.value.hint)
