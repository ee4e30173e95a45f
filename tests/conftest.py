"""What every test stands on: a home of its own, no network, and both kinds of store."""

from __future__ import annotations

import gc
import os
import re
import socket
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import psycopg
import pytest
from hypothesis import is_hypothesis_test, settings

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.rule_changes import change_rules
from ctxmgr.store import Store, open_store
from ctxmgr.types.access import AccessRule
from tests import pgbouncer, postgresql_server, s3_server
from tests.cli.console import lay_tables, make_history
from tests.frontends import ask as ask

pytest.register_assert_rewrite("tests.store.workers")

# Where a change is judged the examples are the same each time; everywhere else new ones are tried in each run.
settings.register_profile("ctxmgr", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("ctxmgr")

_CASES = 6
"""So many cases of a test run at most, spread evenly over all; its marker ``cases`` names another number, for each kind."""

_FEW_EXAMPLES = 10
"""So many examples a test draws at most, unless the command line speaks of slow tests or of those that draw examples."""

Allow = Callable[..., None]

_UNTIL = "TESTS_UNTIL"
"""The variable with the time at which the last test may begin; `time.time` of the process that runs the others."""

STORE_FILES = {"sqlite": "history.db", "jsonl": "history.jsonl"}

SERVER = "postgresql"
"""The kind of store that is on a server: its place is a URL. Tests of `CONTRACT` run on it too."""

POOLER = "pooler"
"""The same behind a pooler; they take long, so they run only where slow tests are asked for."""

CONTRACT = {
    f"tests/{folder}/test_{name}.py"
    for folder, names in (
        ("artifacts", "finder put put_faults service_access service_diff version_folders versions versions_prune"),
        ("history", "detection detection_reserved detection_tail ingest"),
        ("history/query", "address tools_annotations tools_links tools_notes tools_snapshots visibility"),
        (
            "history/query",
            "requests_filters requests_hostile requests_messages requests_paging requests_process requests_search",
        ),
        ("store", "all_concurrency all_round_trip verification"),
        ("store/repositories", "annotations bookkeeping queries sessions"),
        ("store/write", "append batch"),
    )
    for name in names.split()
}
"""The modules whose tests tell what every store does, on whatever engine."""

_LEAKS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "COLUMNS")

_ASKED_FOR = ("llm", "clients", "slow", "long")
"""Markers of tests that take long or need more than a machine always has: they run only where the command line names them."""


class _SlowCases:
    """Decides, before pytest chooses by markers, which cases and how many examples are left to the slow run."""

    @staticmethod
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark as slow all but a few cases of each test, which kinds of store share; let tests draw few examples."""
        few = not {"slow", "hypothesis"} & set(re.findall(r"\w+", str(config.option.markexpr)))
        cases: dict[str, dict[object, list[pytest.Function]]] = {}
        for item in items:
            if not isinstance(item, pytest.Function):
                continue
            if few and is_hypothesis_test(item.obj):
                _draw_few(getattr(item.obj, "__func__", item.obj))
            if hasattr(item, "callspec") and not any(map(item.get_closest_marker, _ASKED_FOR)):
                kinds = cases.setdefault(item.nodeid.partition("[")[0], {})
                kinds.setdefault(item.callspec.params.get("store_path"), []).append(item)
        for kinds in cases.values():
            for number, group in enumerate(kinds.values()):
                marker = group[0].get_closest_marker("cases")
                places = spread_evenly(len(group), marker.args[0] if marker else _CASES)
                if marker is None and len(kinds) > 1:
                    places = places[number % len(places) :: len(kinds)]
                for place, item in enumerate(group):
                    if place not in places:
                        item.add_marker("slow")


def spread_evenly(count: int, most: int) -> list[int]:
    """Return so many of the places from 0 up to `count`, the first and the last among them; of one the first."""
    if most >= count:
        return list(range(count))
    return [place * (count - 1) // max(1, most - 1) for place in range(most)]


def _draw_few(test: Any) -> None:
    own: settings = test._hypothesis_internal_use_settings or settings()
    test._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, _FEW_EXAMPLES))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to run the first case of each test alone, in a quarter of the time, or as many tests as some time allows."""
    parser.addoption("--first-cases", action="store_true", help="of each test run the first case only")
    parser.addoption("--seconds", type=int, help="begin no test after so many seconds, and say how many are left out")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of a marker that has to be asked for, unless the command line speaks of it, and further cases."""
    absent = [name for name in _ASKED_FOR if name not in str(config.option.markexpr)]
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    functions: set[str] = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        late = config.option.first_cases and function in functions
        if late or any(item.get_closest_marker(name) for name in absent):
            left_out.append(item)
        else:
            kept.append(item)
            functions.add(function)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Leave out a test for which no time is left."""
    if time.time() > float(os.environ.get(_UNTIL, "inf")):
        pytest.skip("no time was left")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point everything that a home or a setting of this machine could leak through beside the test's folder."""
    home = tmp_path.with_name(tmp_path.name + "-home")  # the folder itself stays empty, so that a test can look at all of it
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home if name == "HOME" else home / name.lower()))
    home.mkdir(exist_ok=True)
    for name in [*_LEAKS, *(name for name in os.environ if name.startswith("CTXMGR_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CTXMGR_WATCH", "off")  # no test leaves a watcher behind
    monkeypatch.setenv("CTXMGR_STORE", str(home / "default.db"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine's own file system."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise AssertionError("a test tried to reach the network")

    def guarded(self: socket.socket, address: Any) -> None:
        connect(self, address) if self.family == socket.AF_UNIX else refuse()

    def guarded_ex(self: socket.socket, address: Any) -> int:
        return connect_ex(self, address) if self.family == socket.AF_UNIX else refuse()

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes run the tests: one and a half for each core, for many a test waits."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let Python's search for garbage leave out what collection makes: a million objects that live as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000, 20, 20)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Name the places of the run's files and of its server where the run begins; the processes beside it are told."""
    config.pluginmanager.register(_SlowCases())
    if not hasattr(config, "workerinput"):
        if config.option.seconds is not None:
            os.environ[_UNTIL] = str(time.time() + config.option.seconds)
        folder = postgresql_server.quick_folder()
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
        temporary = postgresql_server.begin_run(folder) / "tmp"
        temporary.mkdir()
        # Not on a disk either, where to close a database alone takes 50 ms.
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the run's server where the run ends."""
    postgresql_server.end_process()
    if not hasattr(config, "workerinput"):
        postgresql_server.end_run()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a history on a database or on a log; what is true of every store on both and on a server."""
    if "store_path" in metafunc.fixturenames:
        name = metafunc.definition.nodeid
        contract = name.partition("::")[0] in CONTRACT
        everywhere = contract and metafunc.definition.get_closest_marker("only_files") is None
        everywhere = everywhere and "folder" not in metafunc.fixturenames  # a server has no folder of artifacts
        late = () if any(map(metafunc.definition.get_closest_marker, _ASKED_FOR)) else (pytest.mark.slow,)
        kinds: list[Any] = sorted(STORE_FILES)
        if not contract:
            other = not crc32(name.encode()) % 2  # the same in each process, and each kind as often as the other
            kinds[other] = pytest.param(kinds[other], marks=late)
        if everywhere:
            kinds += [SERVER, pytest.param(POOLER, marks=late)]
        metafunc.parametrize("store_path", kinds, indirect=True)


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server_url() -> str:
    """Return the URL of an empty database on the run's server."""
    return postgresql_server.fresh_database(os.environ.get("PYTEST_XDIST_WORKER", "alone"))


@pytest.fixture
def pooled(server_url: str) -> str:
    """Return the URL of an empty store behind a pooler with two connections; skip where there is no pooler."""
    if not pgbouncer.can_start():
        pytest.skip(pgbouncer.MISSING)
    open_store(server_url, create=True).close()
    return pgbouncer.through(server_url, pgbouncer.start(os.environ.get("PYTEST_XDIST_WORKER", "alone"), pool_size=2))


@pytest.fixture
def server_store(server_url: str) -> Iterator[Store]:
    """Open an empty store on the server."""
    opened = open_store(server_url, create=True)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def s3_service() -> Iterator[dict[str, str]]:
    """Run a service that speaks S3; return the variables by which a client finds it."""
    with s3_server.serving() as variables:
        yield variables


@pytest.fixture
def bucket(s3_service: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of an empty place in a bucket, with the variables set by which it is found."""
    for name, value in s3_service.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.BUCKET}/{tmp_path.parent.name}-{tmp_path.name}"


@pytest.fixture
def store_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | postgresql_server.ServerPath:
    """Name the place of the test's history: a database, a log, or the URL of one on a server, one after the other."""
    if request.param == POOLER:
        if not pgbouncer.can_start():
            pytest.skip(pgbouncer.MISSING)
        port = pgbouncer.start(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
        return postgresql_server.ServerPath(pgbouncer.through(request.getfixturevalue("server_url"), port))
    if request.param == SERVER:
        return postgresql_server.ServerPath(request.getfixturevalue("server_url"))
    return tmp_path / STORE_FILES[request.param]


@pytest.fixture
def store(store_path: Path) -> Iterator[Store]:
    """Open the test's history, empty."""
    if store_path.suffix == ".db":
        lay_tables(store_path)
    opened = open_store(str(store_path), create=True)
    yield opened
    opened.close()


@pytest.fixture
def allow(store: Store) -> Allow:
    """Return what puts a rule in force: agent, resource type, pattern, permission."""

    def put(agent: str, kind: str, pattern: str, permission: str = "read", priority: int = 100) -> None:
        rule = AccessRule.model_validate(
            {"agent": agent, "resource_type": kind, "pattern": pattern, "permission": permission, "priority": priority}
        )
        change_rules(store, AccessGuard(store), add=[rule])

    return put


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every command find the small history of `tests.cli.console.records`."""
    place = make_history(tmp_path / "history.db")
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    return place


@pytest.fixture
def admin(server_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection of our own to the test's database on the server."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        yield connection
