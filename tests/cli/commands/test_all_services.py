"""The units for systemd and the file for containers in docs/servers.md: what they name is there, and they run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from configparser import RawConfigParser
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from ruamel.yaml import YAML
from typer.main import get_command

from ctxmgr.cli import build_app
from ctxmgr.recorder import Recorder
from ctxmgr.store import open_store

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")
UNITS = dict(re.findall(r"`~/\.config/systemd/user/(ctxmgr-\w+\.service)`.*?```ini\n(.*?)```", PAGE, re.DOTALL))
COMPOSED = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
LIMIT = 60


def require_command(words: list[str]) -> None:
    """Let our own parser take a command line without running it; it refuses what it does not know."""
    assert Path(words[0]).name == "ctxmgr"
    group = cast("Any", get_command(build_app(words[1])))
    with group.make_context("ctxmgr", words[1:]) as context:
        name, command, rest = group.resolve_command(context, words[1:])
        assert name == words[1]
        assert command.make_context(name, rest, parent=context).params


def read_unit(name: str) -> RawConfigParser:
    """Return the settings of a unit."""
    parser = RawConfigParser(delimiters="=", strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNITS[name])
    return parser


@dataclass
class Home:
    """The home of a user of systemd, with our program where the units look for it."""

    path: Path
    environment: dict[str, str]

    def expand(self, text: str) -> str:
        """Return a text as systemd reads it."""
        return text.replace("%h", str(self.path)).replace("%%", "%")

    def start(self, unit: str, **other: str) -> subprocess.Popen[bytes]:
        """Start a unit's program with what systemd and the unit give it, and nothing else."""
        service = read_unit(unit)["Service"]
        name, _, value = self.expand(service["Environment"]).partition("=")
        words = [self.expand(word) for word in shlex.split(service["ExecStart"])]
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.path,
            env={**self.environment, name: value, **other},
        )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with our program, and one named notify-send that notes that it was called."""
    programs = {".local/bin/ctxmgr": f'exec {shlex.quote(sys.executable)} -m ctxmgr "$@"',
                "bin/notify-send": f'echo "$1" >> {tmp_path}/notified'}  # fmt: skip
    for place, line in programs.items():
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(f"#!/bin/sh\n{line}\n", encoding="ascii")
        (tmp_path / place).chmod(0o755)
    (tmp_path / "runs").mkdir()
    given = {"HOME": tmp_path, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "USER": "me", "LOGNAME": "me", "SHELL": "/bin/sh"}
    found = {"PYTHONPATH": ROOT}  # the program of an installation needs none
    return Home(tmp_path, {name: str(value) for name, value in {**given, **found}.items()})


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def stop(unit: str, running: subprocess.Popen[bytes]) -> str:
    """Stop a unit's program as systemd does. Return what it said; its code has to be one that systemd takes for success."""
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=LIMIT)
    assert time.monotonic() - began < LIMIT / 2  # systemd kills it after 90 s
    assert running.returncode in (0, int(read_unit(unit)["Service"].get("SuccessExitStatus", "0"))), said
    return said.decode()


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(name: str, home: Home, tmp_path: Path) -> None:
    """Every directive is known to systemd, and the program is where the unit says."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here: apt-get install systemd")
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / name).write_text(UNITS[name], encoding="utf-8")
    ran = subprocess.run(
        [analyze, "verify", "--user", "--man=no", tmp_path / name], capture_output=True, text=True, check=False,
        env={**home.environment, "XDG_RUNTIME_DIR": str(tmp_path / "run")},
    )  # fmt: skip
    if "bus" in ran.stderr or "initialize manager" in ran.stderr:
        pytest.skip(f"systemd-analyze can't work here: {ran.stderr}")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS)
def test_our_parser_takes_the_commands_of_the_units(name: str) -> None:
    """Command and options exist, and the store is named by the variable that is read."""
    unit = read_unit(name)
    assert unit.sections() == ["Unit", "Service", "Install"]
    require_command(shlex.split(unit["Service"]["ExecStart"].replace("%h", "/home/me")))
    assert unit["Service"]["Environment"].startswith("CTXMGR_STORE=postgresql://")
    assert len(UNITS) == 2


def test_the_file_for_containers_names_what_is_there() -> None:
    """Each command is one of ours, the package and its extra exist, and each volume and secret is declared."""
    whole, added = COMPOSED
    told = YAML(typ="safe").load(f"{whole}\n")
    services = {**told["services"], **YAML(typ="safe").load(added)}
    assert services.keys() == {"agent", "ship", "watch"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for service in services.values():
        assert service.keys() <= {"image", "command", "restart", "environment", "volumes", "secrets"}
        assert service.get("restart", "always") in ("always", "on-failure")
        assert set(service.get("secrets", ())) <= told["secrets"].keys()
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= {*told["volumes"], "./hooks"}
        if "command" in service:
            shell, flag, script = shlex.split(service["command"])
            assert (shell, flag) == ("sh", "-c")
            install, _, run = script.partition(" && exec ")
            assert shlex.split(install) == ["pip", "install", f"{project['name']}[postgresql]"]
            require_command(shlex.split(run))
            assert service["environment"].keys() == {"CTXMGR_STORE", "PGPASSFILE"}
            assert service["environment"]["PGPASSFILE"] == f"/run/secrets/{service['secrets'][0]}"
    assert "postgresql" in project["optional-dependencies"]


def count(url: str) -> int:
    """Return how many entries a store holds; none where there is no store yet."""
    with closing(open_store(url, create=True)) as store:
        return sum(int(row[0]) for row in store.engine.query("SELECT entries FROM session"))


@pytest.fixture
def recorder(home: Home) -> Iterator[Recorder]:
    """Record into the log that the unit ships."""
    with Recorder(home.path / "runs" / "history.jsonl", session="s", episode=False) as recorder:
        yield recorder


@pytest.mark.slow
def test_the_shipping_service_stops_and_goes_on(home: Home, recorder: Recorder, server_url: str) -> None:
    """Stopped while it ships it ends well; the next start brings the rest, and each record is there once."""
    unit, made = "ctxmgr-ship.service", 0
    for _ in range(2):
        for _ in range(2_000):
            recorder.entry("coder", "Bash", {"command": f"make {made}", "text": "x" * 500})
            made += 1
        before = count(server_url)
        with home.start(unit, CTXMGR_STORE=server_url) as running:
            until(lambda before=before: count(server_url) > before)
            assert stop(unit, running) == ""
    with home.start(unit, CTXMGR_STORE=server_url) as running:
        until(lambda: count(server_url) == made)
        stop(unit, running)
    with closing(open_store(server_url)) as store:
        ids = [record["id"] for record in store.sessions.records(None, ("entry",))]
        assert (len(ids), len(set(ids))) == (made, made)
        assert store.examine().damaged == []


def test_the_watching_service_runs_its_command_and_stops(home: Home, recorder: Recorder, server_url: str) -> None:
    """It finds its store, and the command that it runs, by what the unit gives it; stopped it leaves no lease behind."""
    unit = "ctxmgr-watch.service"
    for _ in range(20):
        recorder.result(
            recorder.entry("coder", "Bash", {"command": "make"}), "error", error={"type": "E", "message": "no rule ü"}
        )
    with (
        closing(open_store(server_url, create=True)) as store,
        closing(open_store(str(home.path / "runs/history.jsonl"))) as log,
    ):
        store.append(list(log.sessions.records(None)))
        with home.start(unit, CTXMGR_STORE=server_url) as running:
            until((home.path / "notified").exists)
            assert stop(unit, running) == ""
        assert (home.path / "notified").read_text() == "stuck\n"
        assert store.engine.query("SELECT count(*) FROM lease WHERE expires > 0") == [(0,)]
