"""Clients that load a JavaScript plug-in instead of starting hooks. The plug-in counts rounds and starts us at the third.

It sends an event in our own format: the session, and its last calls with their results, of which some are new to us. The
client's log is therefore not read. After a minute of silence in a running turn, the plug-in sends the open calls once. The
watcher reads them like the log of another client, until the next activity removes them.
"""

from __future__ import annotations

from ctxmgr.clients import AFTER, QUIET, Call, Client, Event, client_home, first_text
from ctxmgr.log.fast_json import dumps, json_objects, json_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# The script runs in the process of the client. It therefore catches every error, and starts a process only at a third
# round. Calls are the same round if action and input are equal and the results differ only in hex digits. This blurs
# numbers and ids in the same way as `live.event_answer`.
COUNTING = """\
// Made by 'ctxmgr install CLIENT', which replaces it; 'ctxmgr uninstall CLIENT' takes it away.
// It has an agent told when it goes in circles. Below three identical rounds it starts nothing.
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, unlinkSync } from "node:fs";

const COMMAND = HOOK;
const QUIET = 60000;
const sessions = new Map();
const asking = new Set(); // sessions that wait for a person

const text = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, 20000);
const key = (call) => call.action + text(call.input) + call.result.replace(/[0-9a-f]/g, "");
const off = () => ["off", "0"].includes(process.env.CTXMGR_LIVE);

function of(session) {
  if (!sessions.has(session)) sessions.set(session, { said: [], calls: [], turn: 0, open: new Map() });
  return sessions.get(session);
}

function spoken(session, words) {
  const own = of(session);
  own.said = [...own.said, text(words).slice(0, 4000)].slice(-3);
  own.calls = [];
  own.turn += 1;
}

function told(session, folder, action, input, result, failed) {
  try {
    if (off()) return "";
    const own = of(session);
    moved(session);
    const { said, calls, turn } = own;
    calls.push({ action, input, result: text(result), failed, at: Date.now(), sent: false });
    if (calls.length > 64) calls.shift();
    const left = own.word;
    own.word = undefined;
    if (left) return left;
    const last = key(calls.at(-1));
    if (calls.filter((call) => key(call) === last).length < 3) return "";
    const fresh = calls.filter((call) => !call.sent).length;
    for (const call of calls) call.sent = true;
    const event = JSON.stringify({ session: `${session}#${turn}`, folder, said, calls, fresh });
    const ran = spawnSync(COMMAND[0], COMMAND.slice(1), { input: event, timeout: 9000, encoding: "utf8" });
    return ran.status === 0 && ran.stdout ? JSON.parse(ran.stdout).text : "";
  } catch {
    return "";
  }
}

// The agent works: from now on a minute without a sign of life is noted for the watcher, until the turn is over.
function works(session, folder) {
  const own = of(session);
  own.timer ??= setInterval(() => quiet(session, folder), QUIET / 6);
  own.timer.unref?.();
  moved(session);
}

function begun(session, id, action, input) {
  of(session).open.set(id, { action, input, at: Date.now() });
  moved(session);
}

function asks(session, waits) {
  asking[waits ? "add" : "delete"](session);
  moved(session);
}

function ended(session, id) {
  of(session).open.delete(id);
  moved(session);
}

function moved(session) {
  const own = of(session);
  own.at = Date.now();
  settle(own, own.noted);
  own.noted = undefined;
  if (own.parent) moved(own.parent);
}

function rests(session) {
  const own = of(session);
  clearInterval(own.timer);
  own.timer = undefined;
  asking.delete(session);
  own.open.clear();
  moved(session);
}

// What was noted of a silence is over: take the word that the watcher left, and what was noted away.
function settle(own, noted) {
  if (!noted?.log) return;
  try {
    appendFileSync(noted.session, '{"v":1,"kind":"sessionEnd"}\\n');
    unlinkSync(noted.log);
    if (!existsSync(noted.stall)) return;
    own.word = readFileSync(noted.stall, "utf8");
    unlinkSync(noted.stall);
  } catch {}
}

function quiet(session, folder) {
  try {
    const own = of(session);
    if (own.noted || asking.size || off() || Date.now() - own.at < QUIET) return;
    const noted = (own.noted = {});
    const { said, calls, open, at } = own;
    const last = calls.slice(-1).map((call) => ({ ...call, result: call.result.slice(0, 1000) }));
    const event = JSON.stringify({ session, folder, said, calls: [...last, ...open.values()], at, quiet: true });
    const ran = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
    let answer = "";
    ran.stdout.on("data", (part) => (answer += part));
    ran.stdin.on("error", () => {});
    ran.on("error", () => {});
    ran.on("close", () => {
      try {
        Object.assign(noted, JSON.parse(answer));
        if (own.noted !== noted) settle(own, noted);
      } catch {}
    });
    ran.stdin.end(event);
    ran.unref();
  } catch {}
}
"""


class PluginClient(Client):
    """A client with a plug-in. ``attachment`` is the JavaScript that connects the counting to the client's events."""

    attachment = ""
    counts_rounds = True

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the new calls, or the silence, that the plug-in reports. ``raw`` keeps all fields for the log."""
        calls = json_objects(fields.get("calls"))
        if fields.get("quiet") is True:
            event = Event(QUIET, "quiet", first_text(fields, "session"), folder=first_text(fields, "folder"))
            event.raw = fields
            return event
        made = [Call(first_text(each, "action"), each.get("input"), "", each.get("result")) for each in calls]
        fresh = fields.get("fresh")
        if type(fresh) is not int or not 0 < fresh <= len(made):
            return None
        # The calls before the new ones were in an earlier event. They are sent again only for the log.
        event = Event(AFTER, "calls", first_text(fields, "session"), made[-fresh:], folder=first_text(fields, "folder"))
        event.raw = fields
        return event

    def tell(self, event: Event, text: str) -> Any:
        """Return the text for the plug-in, which appends it to the result of the call."""
        return {"text": text}

    def log_content(self, event: Event) -> str | None:
        """Return the fields of the event as a log of format 1, or None if there are none."""
        if not event.raw:
            return None
        from ctxmgr.log.ids import format_time

        words = [each for each in json_texts(event.raw.get("said")) if each]  # the plug-in's key for messages of people
        rows: list[dict[str, Any]] = [{"kind": "session", "process": "p"}]
        rows += [
            {"kind": "event", "id": f"m{n}", "type": "user_message", "data": {"text": each}} for n, each in enumerate(words)
        ]
        moment = _moment(event.raw, 0.0)
        for number, each in enumerate(json_objects(event.raw.get("calls"))):
            # An open call may have begun before the last finished call ended, but times in a log must not go back.
            moment = max(moment if number else 0.0, _moment(each, moment))
            action = first_text(each, "action") or "?"
            entry = {"kind": "entry", "id": f"e{number}", "agent": self.name, "action": action, "input": each.get("input")}
            rows.append({**entry, "ts": format_time(moment)})
            if "result" in each:
                status = "error" if each.get("failed") is True else "ok"
                result = {"kind": "result", "entry": f"e{number}", "status": status, "output": each["result"]}
                # A model that writes for minutes after its last call is not silent: the event has
                # the time of the last activity.
                rows.append({**result, "ts": format_time(max(moment, _moment(event.raw, moment)))})
        first = next((row["ts"] for row in rows if "ts" in row), format_time(moment))
        # The watcher reads a silence from a file, after this process has ended, by the client's name of the session.
        session = event.session if event.kind == QUIET else "s"
        return "".join(dumps({"v": 1, "session": session, "ts": first, **row}) + "\n" for row in rows)

    def whole_file(self, command: Sequence[str]) -> str | None:
        """Return the script of the plug-in."""
        counting = COUNTING.replace("HOOK", dumps([*command])).replace("CLIENT", self.name)
        return counting + "\n" + self.attachment


class OpenCode(PluginClient):
    """opencode. The text for the agent follows the output of the call."""

    name = "opencode"
    title = "opencode"
    program = "opencode"
    least = (1, 18, 33)
    attachment = """\
export const ctxmgr = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    spoken(input.sessionID, (output?.parts ?? []).map((part) => part.text ?? "").join("\\n"));
  },
  "tool.execute.after": async (input, output) => {
    const failed = (output.metadata?.exit ?? 0) !== 0;
    const said = told(input.sessionID, directory, input.tool, input.args, output.output, failed);
    if (said) output.output += "\\n\\n" + said;
  },
  event: async ({ event }) => {
    const { sessionID, info, part, status } = event.properties ?? {};
    const session = sessionID ?? part?.sessionID ?? info?.sessionID;
    if (event.type === "session.created" && info?.parentID) of(info.id).parent = info.parentID;
    if (!session || !event.type) return;
    if (event.type === "session.status") return status?.type === "idle" ? rests(session) : works(session, directory);
    if (/^(permission|question)[.]/.test(event.type)) return asks(session, event.type.endsWith(".asked"));
    if (part?.type !== "tool") return moved(session);
    const state = part.state ?? {};
    if (["completed", "error"].includes(state.status)) return ended(session, part.callID);
    if (of(session).open.has(part.callID) || state.status !== "running") return moved(session);
    begun(session, part.callID, part.tool, state.input);
  },
});
"""

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the plug-in file of the user or of the project."""
        if scope == "project":
            return f"{folder}/.opencode/plugins/ctxmgr.js"
        return client_home(environment, "XDG_CONFIG_HOME", ".config") + "/opencode/plugins/ctxmgr.js"


class Pi(PluginClient):
    """pi. The text for the agent follows the content of the call's result."""

    name = "pi"
    title = "pi"
    program = "pi"
    least = (0, 74, 2)
    attachment = """\
export default function (pi) {
  const session = `${process.pid}-${Date.now()}`;
  pi.on("before_agent_start", (event) => spoken(session, event.prompt ?? ""));
  pi.on("agent_start", () => works(session, process.cwd()));
  for (const name of ["message_update", "tool_execution_update", "turn_start", "turn_end"]) pi.on(name, () => moved(session));
  for (const name of ["agent_end", "session_shutdown"]) pi.on(name, () => rests(session));
  pi.on("tool_execution_start", (event) => begun(session, event.toolCallId, event.toolName, event.args));
  pi.on("tool_execution_end", (event) => ended(session, event.toolCallId));
  pi.on("tool_result", (event) => {
    const result = (event.content ?? []).map((part) => part.text ?? "").join("\\n");
    const said = told(session, process.cwd(), event.toolName, event.input, result, event.isError === true);
    if (said) return { content: [...event.content, { type: "text", text: said }] };
  });
}
"""

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the extension file of the user or of the project."""
        home = f"{folder}/.pi" if scope == "project" else client_home(environment, "PI_CODING_AGENT_DIR", ".pi/agent")
        return f"{home}/extensions/ctxmgr.js"


def _moment(fields: Mapping[str, Any], default: float) -> float:
    """Return the time of an event in seconds since 1970. JavaScript counts milliseconds."""
    at = fields.get("at")
    return at / 1000 if isinstance(at, int | float) and 0 < at < 1e14 else default


OPENCODE, PI = OpenCode(), Pi()
