"""Watch a run while it happens: count its rounds at each call, and tell the agent when it goes in circles.

Start with `event_answer`, which a client's hook runs (`hook`). It counts with the standard library only. If the count looks
like a loop, `detector_answer` asks the detectors, in a process of its own. `watcher` looks for calls that hang.
`installation`, `json_text` and `plugin_folder` put the hooks into a client's settings. For clients without hooks, `receiver`
takes OTLP, and `tap` passes messages between an ACP client and its agent while `tap_recorder` records what `acp_reader` reads.

This package may import everything but the command line and the MCP server. Modules that hooks load at every call may import
only `ctxmgr.clients` and `ctxmgr.log`.
"""
