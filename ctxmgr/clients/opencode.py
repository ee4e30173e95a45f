"""The plug-in that opencode loads from its folder of plug-ins."""

from __future__ import annotations

from ctxmgr.clients.interface import home_of
from ctxmgr.clients.plugin import PluginClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class OpenCode(PluginClient):
    """opencode; the text for the agent stands behind the output of the call."""

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
        """Return the plug-in's file, the user's or the project's."""
        if scope == "project":
            return f"{folder}/.opencode/plugins/ctxmgr.js"
        return home_of(environment, "XDG_CONFIG_HOME", ".config") + "/opencode/plugins/ctxmgr.js"


CLIENT = OpenCode()
