"""The model library: loaded only to ask, its models made or refused, bounded answers, and its errors in one plain line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from ctxmgr.errors import InvalidInput
from ctxmgr.recover.model import dialogue
from ctxmgr.recover.model.client import consult, load_library
from ctxmgr.recover.model.config import MissingExtra, ModelChoice
from ctxmgr.store import Store
from tests.recover.model.asking import consultation


@pytest.mark.parametrize(
    ("name", "said"),
    [("openai:gpt-x", "OPENAI_API_KEY"), ("nosuchprovider:x", "Unknown"), ("ollama:x", "OLLAMA_BASE_URL")],
)
def test_what_can_be_seen_to_fail_is_refused(stuck: Store, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    """An unknown provider and a missing key are refused before anything is asked."""
    for variable in ("OPENAI_API_KEY", "OLLAMA_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(InvalidInput, match=said):
        load_library(ModelChoice(name))
    with pytest.raises(InvalidInput, match=said):
        consult(consultation(stuck), ModelChoice(name), check=lambda _proposal: [])


def test_another_providers_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider whose own package is not installed is refused with the command that installs it."""
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.anthropic", raising=False)

    with pytest.raises(MissingExtra) as refused:
        load_library(ModelChoice("anthropic:claude"))
    assert "pip install 'ctxmgr-cli[anthropic]'" in str(refused.value.hint)


ROOT = Path(__file__).parents[3]


def _run(code: str, *arguments: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pydantic_ai", "openai", "httpx2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from ctxmgr.store import open_store
from ctxmgr.types.operations import RecoverRequest
from ctxmgr.workspace import Workspace
from ctxmgr.config import Config
from ctxmgr.recover.model import config as choice
from ctxmgr.recover.model import client as consult
from ctxmgr.recover.model import exchange as consultation
from ctxmgr.recover.model import tools
from ctxmgr.recover.model import messages as words
store = open_store(sys.argv[1])
given = Workspace(store, Config()).recover(RecoverRequest(session="stuck", plan=True, force=True)).continuation
assert given.by == "rules"
try:
    consult.load_library(choice.ModelChoice("openai:x"))
except choice.MissingExtra as error:
    assert error.kind == "invalid"
    print(error.hint)
"""


LOADED = """
import sys
import ctxmgr.workspace, ctxmgr.recover.recovery, ctxmgr.cli
from ctxmgr.recover.model import config as choice
from ctxmgr.recover.model import client as consult
from ctxmgr.recover.model import exchange as consultation
from ctxmgr.recover.model import tools
from ctxmgr.recover.model import messages as words
print(sorted({name.split('.')[0] for name in sys.modules} & {"pydantic_ai", "openai", "httpx2", "opentelemetry"}))
"""


def test_without_the_stack_the_rules_answer(stuck: Store) -> None:
    """Where the extra is not installed recovery works, and asking a model names the command that installs it."""
    assert "pip install 'ctxmgr-cli[llm]'" in _run(WITHOUT, stuck.location)


def test_nothing_loads_the_stack_by_itself() -> None:
    """Only a consultation loads the model stack; no module that others import does."""
    assert _run(LOADED) == "[]"


BANNER = """
import os, pty, sys
from ctxmgr.store import open_store
from tests.recover.model.asking import answer, ask
for name in [name for name in os.environ if name in ("CI", "GITHUB_ACTIONS") or name.startswith("PYTEST")]:
    del os.environ[name]
store = open_store(sys.argv[1])
master, slave = pty.openpty()
for number in (1, 2):
    os.dup2(slave, number)
found, _ = ask(store, [answer()])
os.set_blocking(master, False)
try:
    shown = os.read(master, 100_000)
except BlockingIOError:
    shown = b""
sys.exit(0 if found.proposal is not None and shown == b"" else 3)
"""


@pytest.mark.slow
def test_nothing_is_drawn_on_a_terminal(stuck: Store) -> None:
    """A consultation on a terminal writes nothing to it by itself, no banner and no warning."""
    assert _run(BANNER, stuck.location) == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "no answer within 3 s"),
        (exceptions.ModelAuthenticationError("stub", "bad key"), "the server refused the key; it is read from"),
        (exceptions.ModelHTTPError(502, "stub", "bad\x1b[31m\ngateway"), "the server answered with HTTP 502"),
        (exceptions.UsageLimitExceeded("x"), "it made more tool calls"),
        (exceptions.UnexpectedModelBehavior("odd\u202e\nanswer"), "no valid answer: odd"),
        (RuntimeError("a\x00b\nc"), "the consultation broke off: RuntimeError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_told_in_one_plain_line(error: Exception, said: str) -> None:
    """Whatever a server writes into an error, it ends as one printable line that begins with what went wrong."""
    told = dialogue.meaning(error, ModelChoice("stub", base_url="http://127.0.0.1:9/v1", seconds=3.0))

    assert told.startswith(said)
    assert told.isprintable()


def test_half_a_character_is_mended_and_whole_text_stays() -> None:
    """What can't be encoded is replaced wherever it stands; another response comes back as the same object."""
    whole = ModelResponse([TextPart("plain é")])
    half = ModelResponse([TextPart("half \ud83d"), ToolCallPart("search \ud83d", {"que\udc00ry": ["\ud83d", 7]})])

    assert dialogue.sound(whole) is whole
    mended = dialogue.sound(half)
    assert dialogue.dump([mended]).decode("utf-8").count("?") == 4
    assert [part.part_kind for part in mended.parts] == ["text", "tool-call"]
