"""The tools over a history for agents that speak the Model Context Protocol. Begin with `server.build_server`.

`tools` answers through `ctxmgr.workspace`; `server` puts the answers on the wire with the official SDK (the extra ``mcp``),
which only it loads. May import `ctxmgr.workspace` and what lies below.
"""
