"""Foreign logs in, records of log format 1 out; one agent format a module.

To add one: write the module, name it in `IMPORTERS`.
"""

from __future__ import annotations

from ctxmgr.importers.claude_code.importer import ClaudeCode
from ctxmgr.importers.codex.importer import Codex
from ctxmgr.importers.interface import Importer

IMPORTERS: tuple[Importer, ...] = (ClaudeCode(), Codex())
