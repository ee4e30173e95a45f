"""The history tools for agents over the Model Context Protocol. Start with `server.build_server`.

`tools` answers through `ctxmgr.workspace`. `server` publishes the tools with the official SDK (the extra ``mcp``), which no
other module loads. This package may import `ctxmgr.workspace` and the layers below.
"""
