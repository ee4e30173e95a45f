"""Watch a run while it happens: count its rounds at each call, and tell the agent when it goes in circles.

Begin with `event_answer`, which a client's hook runs (`hook`). It counts with the standard library alone; only when that
looks like a loop, `detector_answer` asks the real detectors, in a process of its own. `watcher` looks for calls that
hang. `installation`, `json_text` and `plugin_folder` put the hooks into a client's settings. Without a hook, `receiver` takes
OTLP, and `tap` stands between an ACP client and its agent while `tap_recorder` records.

It may import all but the command line and the MCP server; what hooks load at every call imports `ctxmgr.clients` and
`ctxmgr.log` alone.
"""
