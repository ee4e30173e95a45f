"""The commands, declared with typer: one module per noun, with the drawings that only its commands need.

`ctxmgr.cli.COMMANDS` lists all commands. A command reads its options, asks `ctxmgr.workspace`, and draws the answer; further
decisions belong into lower layers. `ctxmgr.cli.fast.table` is generated from these declarations.
"""
