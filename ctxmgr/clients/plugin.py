"""Clients that load a plug-in of JavaScript instead of starting hooks: it counts by itself, and starts us past its threshold.

What it then sends is a form of our own: the session, and its last calls with their results, of which some are new to us. So
no log of the client has to be read.
"""

from __future__ import annotations

from ctxmgr.clients.interface import AFTER, Call, Client, Event, as_object, text_of
from ctxmgr.log.fast_json import cast, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

COUNTING = """\
// Made by 'ctxmgr install CLIENT', which replaces it; 'ctxmgr uninstall CLIENT' takes it away.
// It has an agent told when it goes in circles. Below three identical rounds it starts nothing.
import { spawnSync } from "node:child_process";

const COMMAND = HOOK;
const sessions = new Map();

const text = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, 20000);
const key = (call) => call.action + text(call.input) + call.result.replace(/[0-9a-f]/g, "");

function spoken(session, words) {
  const before = sessions.get(session);
  const said = [...(before?.said ?? []), text(words).slice(0, 4000)].slice(-3);
  sessions.set(session, { said, calls: [], turn: (before?.turn ?? 0) + 1 });
}

function told(session, folder, action, input, result, failed) {
  try {
    if (["off", "0"].includes(process.env.CTXMGR_LIVE)) return "";
    if (!sessions.has(session)) spoken(session, "");
    const { said, calls, turn } = sessions.get(session);
    calls.push({ action, input, result: text(result), failed, at: Date.now(), sent: false });
    if (calls.length > 64) calls.shift();
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
"""


class PluginClient(Client):
    """A client with a plug-in; ``attachment`` is the JavaScript that ties the counting to its events."""

    attachment = ""

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return what the plug-in says: the new calls, with all that it sent kept for the log."""
        listed = fields.get("calls")
        calls = [as_object(each) for each in cast("list[Any]", listed)] if isinstance(listed, list) else []
        made = [Call(text_of(each, "action"), each.get("input"), "", each.get("result")) for each in calls if each is not None]
        fresh = fields.get("fresh")
        if type(fresh) is not int or not 0 < fresh <= len(made):
            return None
        event = Event(AFTER, "calls", text_of(fields, "session"), made[-fresh:], folder=text_of(fields, "folder"))
        event.raw = fields
        return event

    def tell(self, event: Event, text: str) -> Any:
        """Return the text for the plug-in, which puts it behind the call's result."""
        return {"text": text}

    def log_content(self, event: Event) -> str | None:
        """Return what the plug-in sent as a log of our own format."""
        from ctxmgr.log.ids import format_time

        said: Any = event.raw.get("said")
        rows: list[dict[str, Any]] = [{"kind": "session", "session": "s", "process": "p"}]
        words = [each for each in cast("list[Any]", said) if isinstance(each, str) and each] if isinstance(said, list) else []
        rows += [
            {"kind": "event", "id": f"m{n}", "type": "user_message", "data": {"text": each}} for n, each in enumerate(words)
        ]
        moment = 0.0
        for number, each in enumerate(cast("list[dict[str, Any]]", event.raw["calls"])):
            at = each.get("at")
            moment = max(moment, at / 1000) if isinstance(at, int | float) and 0 < at < 1e14 else moment
            when = {"ts": format_time(moment)}
            action = text_of(each, "action") or "?"
            status = "error" if each.get("failed") is True else "ok"
            entry = {"kind": "entry", "id": f"e{number}", "agent": self.name, "action": action, "input": each.get("input")}
            rows += [
                entry | when,
                {"kind": "result", "entry": f"e{number}", "status": status, "output": each.get("result")} | when,
            ]
        first = next((row["ts"] for row in rows if "ts" in row), format_time(0))
        return "".join(dumps({"v": 1, "session": "s", "ts": first, **row}) + "\n" for row in rows)

    def whole_file(self, command: Sequence[str]) -> str | None:
        """Return the plug-in."""
        counting = COUNTING.replace("HOOK", dumps([*command])).replace("CLIENT", self.name)
        return counting + "\n" + self.attachment
