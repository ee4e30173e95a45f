"""Puts to a server whose client, or whose connection's process on the server, is killed in the middle.

A version is there whole or not at all, what it shows is never damaged, and what is left over goes with the next prune.
``KILL_SEED`` chooses other contents and moments.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from ctxmgr import cli
from ctxmgr.artifacts.server_blobs import ServerBlobs
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.cli.exits import Exit
from ctxmgr.store import open_store
from ctxmgr.types.artifact import GetRequest
from tests import postgresql_server
from tests.frontends import invoke, run_json

SEED = int(os.environ.get("KILL_SEED", "20261127"))
SIZES = (300_000, 2_500_000, 5_000_000)  # the first is sent with the version that lists it, the others before
_UNNAMED = (
    "SELECT count(*) FROM ctxmgr.blob WHERE NOT EXISTS "
    "(SELECT 1 FROM ctxmgr.artifact WHERE artifact.hash = blob.hash AND artifact.team = blob.team)"
)
_CONNECTIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'ctxmgr' AND datname = current_database()"


@pytest.fixture
def own_server() -> Iterator[str]:
    """Return the URL of an empty store on a server of its own, which goes on after one of its processes was killed."""
    with postgresql_server.another({"synchronous_commit": "on"}) as place:
        url = postgresql_server.url(place, "postgres")
        open_store(url, create=True).close()
        yield url


class Killed:
    """Puts in processes that are killed; what a store at a URL holds is compared with what it has to hold.

    Attributes:
        shown: the hash of each artifact by its name, of each version.
        seen: how often which state was found after a kill.
    """

    def __init__(self, url: str, folder: Path, draw: random.Random) -> None:
        self.url, self._draw = url, draw
        self._file, self._said = folder / "content.bin", folder / "said"
        self.shown: list[dict[str, str]] = [{}]
        self.seen: Counter[str] = Counter()
        self._usual = {size: self._measured(size) for size in SIZES}

    def _measured(self, size: int) -> float:
        began = time.monotonic()
        assert self._ended(self._begin(f"{size}.bin", self._draw.randbytes(size))) == 0
        self._shown_now(f"{size}.bin")
        return time.monotonic() - began

    def _begin(self, name: str, content: bytes) -> int:
        """Put a content in a process of its own; return its number."""
        self._file.write_bytes(content)
        child = os.fork()
        if child == 0:
            try:
                with open(self._said, "wb") as said:
                    os.dup2(said.fileno(), 1)
                    os.dup2(said.fileno(), 2)
                sys.argv = ["ctxmgr", "artifact", "put", str(self._file), "--agent", "a", "--name", name, "--store", self.url]
                os._exit(cli.main())
            finally:
                os._exit(99)
        return child

    def _ended(self, child: int) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _shown_now(self, name: str) -> None:
        self.shown.append({**self.shown[-1], name: sha256(self._file.read_bytes()).hexdigest()})

    def round(self, kill: Callable[[int], None]) -> None:
        """Begin a put, kill something of it at some moment, and check what is there; then put the same again."""
        size = self._draw.choice(SIZES)
        name, content = f"{size}.bin", self._draw.randbytes(size)
        for _ in range(self._draw.choice((1, 1, 2))):  # what one kill left is found by a put that is killed too
            child = self._begin(name, content)
            time.sleep(self._draw.uniform(0, 1.1 * self._usual[size]))
            kill(child)
            code = self._ended(child)
            said = self._said.read_text()
            assert code in (0, -signal.SIGKILL, Exit.STORE, Exit.BUSY), (code, said)
            assert "Traceback" not in said
            self._wait_for_server()
            self.seen[self._compare(name, code)] += 1
        began = time.monotonic()
        child = self._begin(name, content)
        assert self._ended(child) == 0, self._said.read_text()
        self._usual[size] = min(self._usual[size], time.monotonic() - began)
        if self.shown[-1][name] != sha256(content).hexdigest():
            self._shown_now(name)
        self._compare(name, 0)

    def _wait_for_server(self) -> None:
        for _ in range(600):
            with suppress(psycopg.OperationalError), psycopg.connect(self.url):
                return
            time.sleep(0.05)
        pytest.fail("the server did not come back")

    def _compare(self, name: str, code: int) -> str:
        """Check all that is there; return how far the last put came."""
        content = self._file.read_bytes()
        digest = sha256(content).hexdigest()
        with closing(open_store(self.url)) as store:
            versions = [row.number for row in store.artifacts.versions()]
            if versions[-1:] != [len(self.shown) - 1]:
                self._shown_now(name)
            elif code == 0:
                assert self.shown[-1][name] == digest
            assert versions[-1] == len(self.shown) - 1
            for number in versions:
                assert {row.name: row.hash for row in store.artifacts.state(number)} == self.shown[number], number
            assert audit(store) == []
            assert store.examine().damaged == []
            _, opened = ArtifactStore(store).open(GetRequest(agent="a", name=name))
            with opened:
                assert sha256(opened.read()).hexdigest() == self.shown[-1][name]
            listed = self.shown[-1][name] == digest
            left = bool(store.engine.query(_UNNAMED)[0][0])
        return "listed" if listed else "sent in part" if left else "not begun"

    def prune(self) -> None:
        """Remove all versions but two, and see that nothing else is left of the others."""
        ran = invoke(["version", "prune", "--keep-versions", "2", "--keep-days", "0", "--store", self.url])
        assert ran.exit_code == 0, ran.stderr
        with psycopg.connect(self.url) as connection:
            assert connection.execute(_UNNAMED.encode()).fetchall() == [(0,)]

    def kill_client(self, child: int) -> None:
        """Kill the process that puts."""
        os.kill(child, signal.SIGKILL)

    def kill_backend(self, child: int) -> None:
        """Kill one of the server's processes that the put talks to, if it does; the server then starts anew."""
        with psycopg.connect(self.url) as connection:
            processes = [row[0] for row in connection.execute(_CONNECTIONS).fetchall()]
        if processes:
            with suppress(ProcessLookupError):
                os.kill(self._draw.choice(sorted(processes)), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "backends"), [(4, 2), (40, 10)], ids=["some", "many"])
def test_a_kill_within_a_put(own_server: str, tmp_path: Path, clients: int, backends: int) -> None:
    """After each kill every version shows what was put, whole; the same put then succeeds, and a prune leaves nothing over."""
    print(f"KILL_SEED={SEED}")
    assert ServerBlobs.__module__ in sys.modules  # a child loads nothing before it begins
    draw = random.Random(SEED)
    killed = Killed(own_server, tmp_path, draw)
    kills = [killed.kill_client] * clients + [killed.kill_backend] * backends
    draw.shuffle(kills)
    for number, kill in enumerate(kills):
        killed.round(kill)
        if number % 10 == 7:
            killed.prune()
    killed.prune()
    print(killed.seen)
    assert killed.seen["sent in part"] + killed.seen["not begun"] > 0
    assert invoke(["verify", "--store", own_server]).exit_code == 0
    _, answer = run_json(["doctor", "--store", own_server, "--json"])
    assert {check["name"]: check["level"] for check in answer["data"]}["store.artifacts"] == "ok", answer
