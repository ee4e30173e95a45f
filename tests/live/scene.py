"""Feed recorded runs to the hook as their client did: one event after another."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from ctxmgr.clients.claude_code import CLIENT
from ctxmgr.live.installation import hook_command

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "fixtures" / "demo"
LOOP = RUNS / "claude-code" / "projects" / "-home-dev-invoice-tool" / "7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"


class Said(NamedTuple):
    """How a hook ended."""

    code: int
    out: bytes
    err: bytes

    @property
    def context(self) -> str:
        """What the agent is told; empty for nothing."""
        return "" if not self.out else json.loads(self.out)["hookSpecificOutput"]["additionalContext"]


SILENT = Said(0, b"", b"")


def command(client: str) -> list[str]:
    """Return what a client of this name is told to start."""
    return [*hook_command(CLIENT)[:-1], client]


def hooked(client: str, event: Any, **environment: str) -> Said:
    """Start the hook as a client does, with an event, or with bytes as they are."""
    content = event if isinstance(event, bytes) else json.dumps(event).encode()
    ran = subprocess.run(
        command(client), input=content, capture_output=True, check=False, timeout=60,
        env={**os.environ, **environment},
    )  # fmt: skip
    return Said(ran.returncode, ran.stdout, ran.stderr)


def settings(text: str) -> None:
    """Write the user's own settings."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "ctxmgr" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def calls_of(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the calls of a Claude Code log with their results, as its hooks tell them."""
    calls: dict[str, dict[str, Any]] = {}
    for line in log.read_text("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        content: Any = row.get("message", {}).get("content")
        blocks = cast("list[Any]", content) if isinstance(content, list) else []
        for block in blocks:
            if block.get("type") == "tool_use":
                calls[block["id"]] = {"tool_name": block["name"], "tool_input": block["input"], "tool_use_id": block["id"]}
            elif block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                yield {**calls[block["tool_use_id"]], "tool_response": block["content"]}


def batch(call: dict[str, Any], log: Path, session: str = "s") -> dict[str, Any]:
    """Return the event after a call."""
    return {
        "session_id": session, "transcript_path": str(log), "cwd": str(log.parent), "hook_event_name": "PostToolBatch",
        "tool_calls": [call],
    }  # fmt: skip


def before(call: dict[str, Any], log: Path, session: str = "s") -> dict[str, Any]:
    """Return the event before a call."""
    return {**call, "session_id": session, "transcript_path": str(log), "cwd": str(log.parent), "hook_event_name": "PreToolUse"}


def write_log(path: Path, calls: list[tuple[str, str]], said: str = "Make the tests pass.") -> list[dict[str, Any]]:
    """Write a Claude Code log of shell calls with their results, a second apart, and return the calls as hooks tell them."""
    rows: list[dict[str, Any]] = [{"type": "user", "message": {"role": "user", "content": said}}]
    told: list[dict[str, Any]] = []
    for place, (command, output) in enumerate(calls):
        call = {"type": "tool_use", "id": f"toolu_{place}", "name": "Bash", "input": {"command": command}}
        message = {"id": f"msg_{place}", "role": "assistant", "type": "message", "model": "m", "content": [call]}
        failed = output.startswith("Exit code")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": output, "is_error": failed}
        rows += [{"type": "assistant", "message": message}, {"type": "user", "message": {"role": "user", "content": [result]}}]
        told.append({"tool_name": "Bash", "tool_input": call["input"], "tool_use_id": call["id"], "tool_response": output})
    shared = {"sessionId": "s", "version": "2.1.330", "cwd": str(path.parent), "isSidechain": False, "userType": "external"}
    lines: list[str] = []
    for place, row in enumerate(rows):
        moment = f"2026-01-21T10:{place // 60:02}:{place % 60:02}.000Z"
        above = f"u{place - 1}" if place else None
        lines.append(json.dumps({**shared, "parentUuid": above, "uuid": f"u{place}", "timestamp": moment, **row}))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return told


def messages(*texts: str) -> list[bytes]:
    """Return the lines by which a client of an agent begins a session and asks for these."""
    asked: list[tuple[str, dict[str, Any]]] = [("initialize", {"protocolVersion": 1}), ("session/new", {"cwd": "/p"})]
    asked += [("session/prompt", {"sessionId": "sess-1", "prompt": [{"type": "text", "text": text}]}) for text in texts]
    lines = [{"jsonrpc": "2.0", "id": number, "method": name, "params": params} for number, (name, params) in enumerate(asked)]
    return [json.dumps(line).encode() + b"\n" for line in lines]
