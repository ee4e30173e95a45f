"""What each command loads: none typer, pydantic or rich; answers from rows nothing that draws; the others what they need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxmgr.cli import COMMANDS

pytestmark = pytest.mark.usefixtures("history")

ROOT = Path(__file__).parents[1]

HEAVY = {
    "typer", "click", "pydantic", "pydantic_core", "rich", "sqlite_utils", "jsonschema", "ruamel", "typing_extensions",
    "typing", "re", "enum", "json", "dataclasses", "inspect", "importlib.metadata", "pathlib", "contextlib", "functools",
    "collections", "datetime", "hashlib", "tempfile", "tomllib", "subprocess", "threading", "logging", "urllib.parse",
    "pysqlite3.dbapi2",
}  # fmt: skip
"""Modules of which each takes a noticeable part of the time in which Python itself starts."""

MODEL_STACK = {"pydantic_ai", "httpx2", "httpcore2", "openai", "anthropic", "opentelemetry", "asyncio", "logfire"}
NEVER = MODEL_STACK | {"sqlite_utils", "psycopg", "mcp", "numpy", "tree_sitter", "tiktoken", "bpe_openai", "jq", "zstandard"}
"""What no command loads that can do without it."""

_WRITING = "invocation fast fast.annotations fast.dispatch fast.rows fast.table envelope record_input address command_line"
WRITING = {"ctxmgr.cli", *(f"ctxmgr.cli.{name}" for name in _WRITING.split())}
"""Modules of the command line that writing for programs needs."""

RUN = """
import sys
sys.argv = ["ctxmgr", *sys.argv[1:]]
before = set(sys.modules)
from ctxmgr.__main__ import main
try:
    code = main()
except SystemExit as ended:
    code = ended.code
loaded = sorted(set(sys.modules) - before)
import json
sys.stderr.write("\\n" + json.dumps([code, loaded]))
"""


class Ran(NamedTuple):
    """How a command ended, and the modules that it loaded."""

    code: int
    loaded: set[str]


def _ran(*arguments: str, folder: Path, given: str = "") -> Ran:
    command = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{RUN}", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, input=given)
    assert ended.stderr, ended.stdout
    code, loaded = json.loads(ended.stderr.splitlines()[-1])
    return Ran(int(code or 0), set(loaded))


QUICK_READS = [
    ("list", "--json"), ("list", "-s", "healthy", "--format", "ndjson"), ("trace", "Bash", "--json"), ("show", "@1", "--json"),
    ("messages", "--json"), ("search", "boom", "--json"), ("list", "--action", "x", "--json"), ("note", "list", "--json"),
    ("snapshot", "list", "--json"),
]  # fmt: skip


WRITES = [
    ("record",), ("record", "--json"), ("record", "--session", "s", "--format", "ndjson"),
    ("note", "add", "@0", "-m", "look", "-t", "x", "--json"), ("snapshot", "create", "@0", "--summary", "s", "--json"),
]  # fmt: skip
HOOKED = """
{"kind":"session","session":"s","process":"p","workflow":"w","meta":{"title":"t"}}
{"kind":"entry","session":"s","id":"e","agent":"a","action":"Bash","input":{"command":"ls"},"meta":{"key":"value"}}
{"kind":"result","session":"s","entry":"e","status":"ok","output":"a\\nb","durationMs":12,"usage":{"inputTokens":3}}
{"kind":"event","session":"s","type":"message","data":{"text":"done"}}
"""
ENDED = HOOKED + '{"kind":"sessionEnd","session":"s","outcome":"completed"}\n'


@pytest.mark.parametrize("arguments", WRITES, ids=" ".join)
def test_what_a_hook_writes_with_loads_little(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """To record, to note and to bundle loads neither typer nor the model library, and few of the command line's modules."""
    ran = _ran(*arguments, folder=tmp_path, given=HOOKED)

    assert ran.code == 0
    assert ran.loaded & (HEAVY | NEVER) == set()
    assert {name for name in ran.loaded if name.startswith("ctxmgr.cli")} <= WRITING


def test_the_end_of_a_session_loads_neither_typer_nor_the_model_stack(tmp_path: Path) -> None:
    """The one record that leaves an episode loads what reads the history, and nothing that draws or asks a model."""
    ran = _ran("record", "--json", folder=tmp_path, given=ENDED)

    assert ran.code == 0
    assert ran.loaded & (NEVER | {"typer", "rich", "click"}) == set()


@pytest.mark.parametrize("arguments", QUICK_READS, ids=" ".join)
def test_the_quick_path_loads_next_to_nothing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A read for a program loads the driver's extension, the interpreter's own small modules, and few of ours."""
    ran = _ran(*arguments, folder=tmp_path)

    assert ran.code == 0
    assert ran.loaded & (HEAVY | NEVER) == set()


@pytest.mark.parametrize("arguments", [("detect", "--json"), ("sessions", "--format", "ndjson")], ids=" ".join)
def test_judging_for_programs_loads_no_typer(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Verdicts for a program are made of models, but neither typer nor what draws is loaded, and no search for plugins."""
    ran = _ran(*arguments, folder=tmp_path)

    assert ran.code == 0
    assert ran.loaded & (NEVER | {"typer", "rich", "importlib.metadata", "ctxmgr.cli.terminal"}) == set()


def test_what_is_not_plain_is_checked_without_plugins(tmp_path: Path) -> None:
    """A record that the models must look at loads them, and no plugins of theirs."""
    ran = _ran("record", "--json", folder=tmp_path, given='{"kind":"event","session":"s","type":7}')

    assert ran.code == 2
    assert "pydantic" in ran.loaded
    assert ran.loaded & {"typer", "rich", "importlib.metadata"} == set()


def test_an_empty_folder_costs_the_quick_path_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no history yet the answer comes from an empty one, made without what migrates stores."""
    monkeypatch.setenv("CTXMGR_STORE", "")
    ran = _ran("list", "--json", folder=tmp_path)

    assert ran.code == 0
    assert ran.loaded & (HEAVY | NEVER) == set()


@pytest.mark.parametrize(("arguments", "code"), [(("show", "@99", "--json"), 3), (("list", "-s", "none", "--json"), 3)])
def test_a_refusal_of_the_quick_path_loads_little(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """A refused read for a program loads the names of the exit codes, and neither typer nor the model library."""
    ran = _ran(*arguments, folder=tmp_path)

    assert ran.code == code
    assert ran.loaded & (NEVER | {"typer", "pydantic", "rich", "json", "dataclasses", "typing", "inspect"}) == set()


def test_times_and_logs_load_what_reads_them(tmp_path: Path) -> None:
    """A read by time, and one of an indexed log, load neither typer nor the model library."""
    log = tmp_path / "log.jsonl"
    log.write_text("", "utf-8")
    for arguments in (("list", "--since", "2h", "--json"), ("list", "--json", "--store", str(log))):
        indexed = _ran(*arguments, folder=tmp_path)
        assert indexed.loaded & NEVER == set()
        ran = _ran(*arguments, folder=tmp_path)

        assert ran.code == 0
        assert ran.loaded & (NEVER | {"typer", "pydantic", "rich"}) == set()


def test_the_version_loads_nothing(tmp_path: Path) -> None:
    """Asking for the version loads two modules of ours and none of anybody else's."""
    ran = _ran("--version", folder=tmp_path)

    assert ran.loaded == {"ctxmgr", "ctxmgr.__main__", "__future__"}


@pytest.mark.parametrize("words", [(), ("list",), ("note", "add")], ids=" ".join)
def test_help_loads_its_text(words: tuple[str, ...], tmp_path: Path) -> None:
    """Help was laid out beforehand: nothing is loaded but the text."""
    ran = _ran(*words, "--help", folder=tmp_path)

    assert ran.code == 0
    assert ran.loaded & (HEAVY | NEVER) == set()
    assert "ctxmgr.store" not in ran.loaded


EVERY = {
    "sessions": ("sessions",),
    "detect": ("detect", "--exit-zero"),
    "recover": ("recover", "--plan", "-s", "looping"),
    "request": ("request", "--plan", "--type", "introspect", "--from", "coder", "--reason", "lost", "--goal", "go on"),
    "trace": ("trace",),
    "list": ("list",),
    "search": ("search", "a"),
    "show": ("show", "@0"),
    "messages": ("messages",),
    "note": ("note", "list"),
    "snapshot": ("snapshot", "list"),
    "memory": ("memory", "recall", "boom"),
    "prompt": ("prompt", "agent"),
    "artifact": ("artifact", "list"),
    "version": ("version", "list"),
    "context": ("context", "get"),
    "execution": ("execution", "list"),
    "access": ("access", "list"),
    "goal": ("goal", "tree"),
    "import": ("import", "nothing-here"),
    "formats": ("formats",),
    "receive": ("receive", "--help"),
    "record": ("record",),
    "export": ("export",),
    "verify": ("verify",),
    "stats": ("stats",),
    "sql": ("sql", "SELECT action, kind FROM entries LEFT JOIN findings USING (session)"),
    "index": ("index",),
    "ship": ("ship", "--status"),
    "store": ("store", "migrate"),
    "watch": ("watch", "--help"),
    "tap": ("tap", "--help"),
    "doctor": ("doctor",),
    "config": ("config", "list"),
    "completion": ("completion", "bash"),
    "trust": ("trust", "--list"),
    "install": ("install", "--list"),
    "uninstall": ("uninstall", "codex", "--dry-run"),
    "hook": ("hook", "codex"),
    "schema": ("schema", "exits"),
    "demo": ("demo", "--help"),
    "check": ("check", "--help"),
    "report": ("report", "--help"),
    "browse": ("browse", "--help"),
    "mcp": ("mcp", "--help"),
}
"""Each command with arguments that make it do its work, where it ends by itself."""


MODELLED = frozenset({"schema"})
"""Commands that show what pydantic knows."""


ONE_FORM = frozenset(
    {"export", "schema", "hook", "completion", *(name for name, words in EVERY.items() if words[-1] == "--help")}
)
"""Commands that answer people and programs alike."""


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, id=f"{name}-{reader}")
        for name in sorted(COMMANDS)
        for reader, form in (("person", ()), ("program", ("--json",)))
        if not (form and name in ONE_FORM)
    ],
)
def test_no_command_loads_what_it_can_do_without(name: str, form: tuple[str, ...], tmp_path: Path) -> None:
    """No command loads typer or pydantic, a language model's client, another engine, a parser of code, or what draws boxes."""
    ran = _ran(*EVERY[name], *form, folder=tmp_path)

    assert ran.code in (0, 3, 21), ran.code
    assert ran.loaded & (NEVER | {"rich", "typer", "click"}) == set()
    assert ("pydantic" in ran.loaded and "pydantic_core" in ran.loaded) == (name in MODELLED)
    others = {module for module, _ in COMMANDS.values()} - {COMMANDS[name][0]}
    assert ran.loaded & {f"ctxmgr.cli.{module}" for module in others} == set()


def test_a_tap_loads_neither_the_store_nor_a_server(tmp_path: Path) -> None:
    """An editor waits for the tap: what stands between it and the agent loads nothing of the commands declared beside it."""
    ran = _ran("tap", "--", sys.executable, "-c", "", folder=tmp_path)

    assert ran.code == 0
    beside = {"ctxmgr.workspace", "ctxmgr.store", "ctxmgr.history.shipper", "ctxmgr.live.receiver", "http.server", "ssl"}
    assert ran.loaded & beside == set()


@pytest.mark.slow
def test_what_an_agent_asks_at_every_step_loads_no_detectors(tmp_path: Path) -> None:
    """To look at a goal, or to record an action that is no loop at a glance, loads neither the detectors nor the store."""
    for words in (("start", "ship it"), ("add", "write it", "test it"), ("next",)):
        assert _ran("goal", *words, folder=tmp_path).code == 0
    record = ("record", "run_tests", "--args", "{}", "--result", "success")
    heavy = {"typer", "pydantic_core", "dataclasses", "inspect", "ctxmgr.store", "ctxmgr.workspace", "ctxmgr.config"}
    recorded = False
    for words in (("brief",), ("tree",), record, ("brief",), record, ("done",), ("next",)):
        ran = _ran("goal", *words, "--json", folder=tmp_path)

        assert ran.code == 0, words
        detecting = {name for name in ran.loaded if name.startswith("ctxmgr.detect.detectors")}
        assert bool(detecting) == (words is record and recorded), words
        recorded |= words is record
        if not detecting:
            assert ran.loaded & heavy == set(), words
