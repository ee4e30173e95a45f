"""What the plug-ins of opencode and pi note of a silence: by whom it is told, and what takes it away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import client, state_folder
from ctxmgr.live.installation import hook_command
from ctxmgr.live.watcher import HookedSessions
from tests.live.scene import SILENT, hooked

NOW = 1_800_000_000.0
OPEN = {"action": "bash", "input": {"command": "npm run dev"}, "at": 1000 * (NOW - 900)}
DONE = {"action": "bash", "input": {"command": "ls"}, "result": "a.py", "failed": False, "at": 1000 * (NOW - 950)}
QUIET = {"session": "s", "folder": "/", "said": ["Build it."], "at": 1000 * (NOW - 900), "quiet": True}

PI = """
import plugin from "./ctxmgr.mjs";
const on = {};
plugin({ on: (name, does) => { on[name] = does; } });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
on.before_agent_start({ prompt: "Build it." });
on.agent_start({});
on.tool_execution_start({ toolCallId: "1", toolName: "bash", args: { command: "npm run dev" } });
await STEP(pause);
const said = on.tool_result({ toolName: "bash", input: {}, content: [{ type: "text", text: "stopped" }], isError: false });
on.tool_execution_end({ toolCallId: "1" });
on.agent_end({});
await pause(1500);
console.log(JSON.stringify(said ?? null));
"""
OPENCODE = """
import { ctxmgr } from "./ctxmgr.mjs";
const on = await ctxmgr({ directory: "/" });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const tell = (type, properties) => on.event({ event: { type, properties: { sessionID: "s", ...properties } } });
const part = (status) => {
  const state = { status, input: {} };
  return tell("message.part.updated", { part: { type: "tool", callID: "1", tool: "bash", state } });
};
await tell("session.status", { status: { type: "busy" } });
await part("running");
await STEP(pause);
const output = { output: "stopped", metadata: { exit: 0 } };
await on["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "1", args: {} }, output);
await part("completed");
await tell("session.status", { status: { type: "idle" } });
await pause(1500);
console.log(JSON.stringify(output.output === "stopped" ? null : output));
"""
WAITS = 'await tell("permission.asked", {}); await pause(1500); await tell("permission.replied", {});'


def _noted(suffix: str) -> list[Path]:
    folder = Path(state_folder())
    return [path for path in folder.iterdir() if path.suffix == suffix] if folder.exists() else []


@pytest.mark.requirement("LV-hang")
@pytest.mark.parametrize("name", ["opencode", "pi"])
@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([DONE, OPEN], 'has waited 15 min for bash "npm run dev"'),
        ([DONE], "nothing has happened for 15 min since"),
        ([], "the run began, and nothing was ever done in 15 min"),
    ],
)
def test_the_watcher_reads_what_a_plug_in_noted(name: str, calls: list[dict[str, Any]], reason: str) -> None:
    """A call that hangs and a silence without one; what is left for the agent tells of the call alone."""
    said = hooked(name, {**QUIET, "calls": calls})
    assert (said.code, said.err) == (0, b"")
    files: dict[str, str] = json.loads(said.out)
    assert set(files) == {"session", "log", "stall"}
    assert os.stat(files["log"]).st_mode & 0o777 == 0o600
    for path in Path(state_folder()).iterdir():
        os.utime(path, (NOW - 800, NOW - 800))

    (sight,) = HookedSessions(lambda: NOW).tick()
    assert (sight.event, sight.session) == ("raised", "s")
    assert sight.finding is not None
    assert reason in sight.finding.reason
    assert os.path.exists(files["stall"]) == (OPEN in calls)
    if OPEN in calls:
        assert "Your call has not returned for 15 min" in Path(files["stall"]).read_text("utf-8")

    with open(files["session"], "a", encoding="ascii") as stream:
        stream.write('{"v":1,"kind":"sessionEnd"}\n')
    assert HookedSessions(lambda: NOW).has_ended()


@pytest.mark.parametrize("calls", [None, 7, [7], [None], "x", [{}], [{"at": -1, "action": 7}], [{"at": 1e300}]])
def test_a_silence_that_makes_no_sense_is_no_fault(calls: object) -> None:
    """Whatever stands in the event, the hook ends well."""
    said = hooked("pi", {**QUIET, "calls": calls})
    assert (said.code, said.err) == (0, b"")
    assert said == SILENT or json.loads(said.out)


@pytest.mark.cases(2)
@pytest.mark.requirement("LV-hang")
@pytest.mark.parametrize(
    ("name", "step"), [("pi", "hangs"), ("pi", "moves"), ("opencode", "hangs"), ("opencode", "moves"), ("opencode", "waits")]
)
def test_a_plug_in_notes_a_silence_once_and_takes_it_away(name: str, step: str, tmp_path: Path) -> None:
    """Run by Node: a call that hangs is noted and its agent told; one that moves, or waits for a person, starts nothing."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node")
    found = client(name)
    assert found is not None
    plugin = found.whole_file(hook_command(found)) or ""
    (tmp_path / "ctxmgr.mjs").write_text(plugin.replace("QUIET = 60000", "QUIET = 600"), "utf-8")
    stalled = tmp_path / "stalled"
    moves = "on.message_update({})" if name == "pi" else 'await tell("message.part.delta", {})'
    steps = {
        # It is noted once, however long it goes on: for two more rounds here.
        "hangs": f'for (let n = 0; n < 400 && !fs.existsSync("{stalled}"); n++) await pause(10); await pause(1200);',
        "moves": f"for (let n = 0; n < 8; n++) {{ await pause(200); {moves}; }}",
        "waits": WAITS,
    }
    driver = tmp_path / "driver.mjs"
    script = PI if name == "pi" else OPENCODE
    driver.write_text('import fs from "node:fs";' + script.replace("await STEP(pause);", steps[step]), "utf-8")

    with subprocess.Popen([node, str(driver)], stdout=subprocess.PIPE, text=True) as ran:
        if step == "hangs":
            end = time.monotonic() + 4
            while not _noted(".jsonl") and time.monotonic() < end:
                time.sleep(0.02)
            (noted,) = _noted(".jsonl")
            noted.with_suffix(".stall").write_text("[ctxmgr] It hung.", "utf-8")
            stalled.touch()
        assert ran.stdout is not None
        said = json.loads(ran.stdout.read())

    assert (said is not None) == (step == "hangs")
    assert "[ctxmgr] It hung." in json.dumps(said) or step != "hangs"
    assert _noted(".jsonl") == _noted(".stall") == []
    assert len(_noted(".session")) == (step == "hangs")
    assert all(path.read_text().endswith('"sessionEnd"}\n') for path in _noted(".session"))
