"""The extension that pi loads from its folder of extensions."""

from __future__ import annotations

from ctxmgr.clients.plugin import PluginClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Pi(PluginClient):
    """pi; the text for the agent stands behind the content of the call's result."""

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
        """Return the extension's file, the user's or the project's."""
        import os

        home = folder if scope == "project" else os.path.join(os.path.expanduser("~"), ".pi", "agent")
        return f"{home}/.pi/extensions/ctxmgr.js" if scope == "project" else f"{home}/extensions/ctxmgr.js"


CLIENT = Pi()
