"""The commands, declared with typer: one noun a module, with what it alone draws.

`ctxmgr.cli.COMMANDS` names them all. A command reads its options, asks `ctxmgr.workspace`, and draws the answer: what it
decides itself belongs further down. `ctxmgr.cli.fast.table` is generated from these declarations.
"""
