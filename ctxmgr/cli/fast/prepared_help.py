"""Print help that was rendered beforehand."""

from __future__ import annotations

import os
import sys

_WIDTH = 80
"""Help is never laid out wider than this, so that from here on it is the same for every width."""


def print_help(command: list[str]) -> bool:
    """Show a command's help and return True, or do nothing: where it must be laid out anew, or there is no such command."""
    if not _is_plain():
        return False
    from ctxmgr.cli.fast.help_texts import TEXTS

    text = TEXTS.get(" ".join(command))
    if text is None:
        return False
    sys.stdout.write(text)
    return True


def _is_plain() -> bool:
    """Whether the program goes by its own name, no shell asks what could come next, and the width is the usual one."""
    started = getattr(sys.modules.get("__main__"), "__package__", None)
    if started or os.path.basename(sys.argv[0]) != "ctxmgr" or any(name.endswith("_COMPLETE") for name in os.environ):
        return False
    try:
        columns = int(os.environ.get("COLUMNS", "0"))
        if columns <= 0:
            columns = os.get_terminal_size(1).columns or _WIDTH
    except ValueError:
        return False
    except OSError:  # no terminal
        columns = _WIDTH
    return columns >= _WIDTH
