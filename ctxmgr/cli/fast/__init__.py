"""The fast path: common ``--json`` commands without typer, pydantic and rich. Start with `dispatch`."""
