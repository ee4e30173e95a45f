"""Real clients against a scripted model: what stands in the next request to the model, byte for byte.

``make test-clients`` installs them from their packages into a cache. Each run has a home of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxmgr.clients import client as client_named
from tests.clients.npm_cache import BIN, CACHE, PATH, install

pytestmark = pytest.mark.clients

PACKAGES = (
    "@anthropic-ai/claude-code@2.1.330",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "@github/copilot@1.0.102",
    "opencode-ai@1.18.33",
    "@earendil-works/pi-coding-agent@0.74.2",
)
PROGRAMS = ("claude", "codex", "gemini", "copilot", "opencode", "pi")
ROOT = Path(__file__).parents[2]
FAILING = "python3 -m unittest test_calc"
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
VARIED = [f"echo step {word} {'x' * n}" for n in range(5) for word in WORDS]
POLLING = ["echo done >> jobs; wc -l jobs; echo of 40 are done"] * 12
HANGING = {"claude-code": 110, "codex": 150, "gemini": 110, "copilot": 110, "opencode": 90, "pi": 90}
"""Seconds after which a hanging command comes back: more than the watcher's patience, and less than the client's own."""
HELD = {"codex": 3}
"""The request that follows the hanging call, unless it is the second: Codex hands a command back after 30 s and waits again."""
SECONDS = 240
FULL = 'mount -t tmpfs -o size=4k none "$0" && head -c 5000 /dev/zero 2>/dev/null >"$0/fill"; exec "$@"'
"""Run a command where a folder lies on a full disk, which only that command sees."""


class Ran(NamedTuple):
    """How a run ended: what the client printed, and the bodies of the requests to the model."""

    code: int
    out: str
    requests: list[str]

    def told(self) -> list[int]:
        """Return the places of the requests in which the agent reads a word of ours."""
        return [place for place, body in enumerate(self.requests, 1) if "[ctxmgr] " in body]


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """Install the clients once; they stay in the cache."""
    install(PACKAGES, PROGRAMS)


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a run: its own home, a project with a test that can't pass, the clients on the path."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_calc.py").write_text("import calc\n")
    (tmp_path / "home").mkdir()
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(tmp_path / "home"), "PATH": PATH, "IS_SANDBOX": "1"}


@contextmanager
def _model(commands: list[str], folder: Path) -> Generator[str]:
    folder.mkdir()
    script = ROOT / "tests" / "clients" / "scripted_model.py"
    command = [sys.executable, script, json.dumps(commands), str(folder)]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "fixtures" / "make_runs")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def _claude(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    own = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return [str(BIN / "claude"), "-p", "Make the test pass.", "--dangerously-skip-permissions"], {**environment, **own}


def _codex(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    provider = f'model_providers.here={{name="here",base_url="{url}/v1",wire_api="responses"}}'
    command = [
        str(BIN / "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5.5",
        "-c", "model_provider=here", "-c", provider, "Make the test pass.",
    ]  # fmt: skip
    return command, {**environment, "OPENAI_API_KEY": "none"}


def _gemini(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    path = Path(environment["HOME"]) / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    settings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    own_guard = {"disableLoopDetection": True}  # which would step in at the fifth call, whatever comes back
    path.write_text(json.dumps({**settings, "security": {"auth": {"selectedType": "gemini-api-key"}}, "model": own_guard}))
    own = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    # With a model of its own choice it would first ask one which to take, and repeat that for minutes.
    return [str(BIN / "gemini"), "--yolo", "-m", "gemini-2.5-pro", "-p", "Make the test pass."], {**environment, **own}


def _copilot(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    own = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_MODEL": "gpt-5.5", "COPILOT_OFFLINE": "true"}
    return [str(BIN / "copilot"), "-p", "Make the test pass.", "--allow-all-tools"], {**environment, **own}


def _pi(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    path = Path(environment["HOME"]) / ".pi" / "agent" / "models.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {"id": "scripted-model", "name": "scripted", "contextWindow": 100_000, "maxTokens": 4_000, "reasoning": False,
             "input": ["text"], "cost": free}  # fmt: skip
    here = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
    path.write_text(json.dumps({"providers": {"here": here}}))
    command = [str(BIN / "pi"), "-p", "--provider", "here", "--model", "scripted-model", "Make the test pass."]
    return command, environment


def _opencode(url: str, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    here = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted-model": {"name": "scripted"}}}
    settings = {"provider": {"here": here}, "permission": {"bash": "allow", "doom_loop": "allow"}}
    path = Path(environment["HOME"]).with_name("project") / "opencode.json"
    path.write_text(json.dumps(settings))
    return [str(BIN / "opencode"), "run", "-m", "here/scripted-model", "Make the test pass."], environment


STARTS: dict[str, Callable[[str, dict[str, str]], tuple[list[str], dict[str, str]]]] = {
    "claude-code": _claude, "codex": _codex, "gemini": _gemini, "copilot": _copilot, "opencode": _opencode, "pi": _pi,
}  # fmt: skip


def _ctxmgr(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ctxmgr", *arguments]
    place = Path(environment["HOME"]).with_name("project")
    return subprocess.run(
        command, cwd=place, capture_output=True, text=True, check=True, timeout=SECONDS,
        env={**environment, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def _install(client: str, environment: dict[str, str]) -> None:
    _ctxmgr(environment, "install", client, "--yes", *(["--trust"] if client == "codex" else []))


def _settings(client: str, environment: dict[str, str]) -> Path:
    """Return the file that has the client call us."""
    asked = client_named(client)
    assert asked is not None
    return Path(environment["HOME"]) / Path(asked.settings_file("user", "", environment) or "").relative_to(Path.home())


def _run(client: str, commands: list[str], environment: dict[str, str], *, full: Path | None = None) -> Ran:
    place = Path(environment["HOME"]).parent
    kept = place / f"requests-{len(list(place.glob('requests-*')))}"
    with _model(commands, kept) as url:
        command, own = STARTS[client](url, environment)
        if full is not None:
            command = ["unshare", "-rm", "sh", "-c", FULL, str(full), *command]
        ended = subprocess.run(
            command, cwd=place / "project", env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    return Ran(ended.returncode, ended.stdout + ended.stderr, [path.read_text("utf-8") for path in sorted(kept.iterdir())])


@pytest.mark.requirement("LV-told")
@pytest.mark.parametrize("client", STARTS)
def test_a_loop_is_told_after_the_third_round_and_the_agent_moves_on(client: str, world: dict[str, str]) -> None:
    """Three rounds, and the fourth request holds cause and next step; its answer is another way."""
    _install(client, world)
    ran = _run(client, [FAILING] * 9, world)

    assert (len(ran.requests), ran.told()) == (4, [4]), ran.out
    assert "You are going in circles: 3 times the same call" in ran.requests[3]
    assert "Next step:" in ran.requests[3]
    assert "I was told, and go another way." in ran.out


@pytest.mark.requirement("LV-silent")
@pytest.mark.parametrize("client", STARTS)
@pytest.mark.parametrize("commands", [VARIED, POLLING], ids=["varied", "polling"])
def test_a_run_in_order_hears_nothing(client: str, commands: list[str], world: dict[str, str]) -> None:
    """Fifty varied calls, and a poll whose answer changes: not one byte of ours in any request."""
    _install(client, world)
    ran = _run(client, commands, world)

    assert len(ran.requests) == len(commands) + 1, ran.out
    own = [body.replace(str(CACHE), "") for body in ran.requests]  # a client names the folder that it is installed in
    assert [place for place, body in enumerate(own, 1) if "ctxmgr" in body] == []


@pytest.mark.requirement("LV-open")
@pytest.mark.parametrize("client", STARTS)
def test_a_hook_that_can_not_work_changes_nothing(client: str, world: dict[str, str]) -> None:
    """Without the program, with a state that is locked or full, or with broken settings the run is the one without hooks."""
    alone = _run(client, [FAILING] * 5, world)
    _install(client, world)
    home = Path(world["HOME"])
    state, config = home / ".local" / "state" / "ctxmgr", home / ".config" / "ctxmgr" / "config.toml"
    settings = _settings(client, world)
    installed = settings.read_text("utf-8")
    config.parent.mkdir(parents=True)

    for fault in ("gone", "locked", "full", "broken"):
        shutil.rmtree(state / "live", ignore_errors=True)
        settings.write_text(installed.replace("ctxmgr/live/hook.py", "ctxmgr/live/gone.py") if fault == "gone" else installed)
        config.write_text("this is no TOML" if fault == "broken" else "")
        if fault == "locked":
            (state / "live").write_text("")
        ran = _run(client, [FAILING] * 5, world, full=state if fault == "full" else None)
        assert (fault, ran.code, len(ran.requests), ran.told()) == (fault, alone.code, len(alone.requests), []), ran.out
        (state / "live").unlink() if fault == "locked" else None


@pytest.mark.requirement("LV-hang")
@pytest.mark.parametrize("client", STARTS)
def test_a_call_that_hangs_is_told_by_the_watcher(client: str, world: dict[str, str]) -> None:
    """The watcher that a hook started tells the person meanwhile, and the agent with what comes back after all."""
    home = Path(world["HOME"])
    noticed, config = home / "noticed", home / ".config" / "ctxmgr" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[detect]\ncall_seconds = 20\n[live]\nexec = ["tee", "{noticed}"]\n')
    _install(client, world)
    if client in ("opencode", "pi"):
        settings = _settings(client, world)
        settings.write_text(settings.read_text().replace("QUIET = 60000", "QUIET = 3000"))

    live = home / ".local" / "state" / "ctxmgr" / "live"
    try:
        ran = _run(client, [f"timeout {HANGING[client]} tail -f /dev/null", FAILING], world)

        assert (len(ran.requests), ran.told()[:1]) == (HELD.get(client, 2), [HELD.get(client, 2)]), ran.out
        told = ran.requests[-1]
        assert "This was noted while nothing came back: Your call has not returned for" in told
        assert "Next step:" in told
        assert ("write_stdin" if client == "codex" else "tail -f") in noticed.read_text()
        assert [path.name for path in live.iterdir() if path.suffix in (".jsonl", ".stall", ".open")] == []
        _until_gone(int((live / "watcher.lock").read_text()), 30)
    finally:
        _end_watcher(live / "watcher.lock")


def _until_gone(pid: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.2)
    assert not Path(f"/proc/{pid}").exists(), "the watcher goes on though no session lives"


def _end_watcher(lock: Path) -> None:
    """End the watcher of a run, which has the folder of that run for its own."""
    pid = int(lock.read_text() or 0) if lock.exists() else 0
    with suppress(OSError):
        if pid and b"--watch" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("client", STARTS)
def test_what_is_uninstalled_is_silent(client: str, world: dict[str, str]) -> None:
    """Installed and undone, the loop goes on as it would without us."""
    _install(client, world)
    _ctxmgr(world, "uninstall", client, "--yes")
    ran = _run(client, [FAILING] * 5, world)

    assert (len(ran.requests), ran.told()) == (6, [])


@pytest.mark.requirement("LV-told")
def test_the_plugin_tells_as_the_hooks_in_the_settings_do(world: dict[str, str]) -> None:
    """Claude Code itself takes the folder for a marketplace, installs the plugin, and its agent is told."""
    folder = Path(world["HOME"]) / "plugin"
    _ctxmgr(world, "install", "claude-code", "--plugin", str(folder), "--yes")
    for arguments in (["validate", str(folder)], ["marketplace", "add", str(folder)], ["install", "ctxmgr@ctxmgr"]):
        subprocess.run([str(BIN / "claude"), "plugin", *arguments], env=world, check=True, capture_output=True, timeout=SECONDS)
    ran = _run("claude-code", [FAILING] * 9, world)

    assert (len(ran.requests), ran.told()) == (4, [4]), ran.out
    assert "hook.claude-code  installed as a plugin, called" in _ctxmgr(world, "doctor").stdout
