"""What is generated for the fast path follows from the declarations of the commands, and is checked in."""

from __future__ import annotations

from ctxmgr.cli.fast import dispatch, generate
from ctxmgr.cli.fast.table import TABLE


def test_the_table_follows_from_the_declarations() -> None:
    """The table that is checked in is what the declarations of the commands and their requests give today."""
    assert generate.TABLE_FILE.read_text("utf-8") == generate.render_table()
    assert set(generate.QUICK) < TABLE.keys()


def test_the_help_follows_from_the_declarations() -> None:
    """The helps that are checked in are what typer shows today."""
    assert generate.TEXTS_FILE.read_text("utf-8") == generate.render_texts()


def test_the_quick_path_serves_what_it_says() -> None:
    """Every parameter that the fast path says to serve is one of the table's."""
    commands = [command for name in generate.QUICK if (command := dispatch.command_by_name(name))]
    known = {name for command in commands for name in command["defaults"]}

    assert known >= generate.SERVED
