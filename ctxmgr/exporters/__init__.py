"""Write histories in the formats of other programs; one format a module.

To add one: write the module and name it in `EXPORTERS`. `tests/exporters` then holds what our own importer of that format
reads against what was written. Begin with `conversation`, the one form that every format is written from.

Pure: imports `ctxmgr.log` alone, and knows no store.
"""

from __future__ import annotations

from ctxmgr.exporters.atif import ATIF
from ctxmgr.exporters.claude_code import CLAUDE_CODE
from ctxmgr.exporters.conversation import Exporter
from ctxmgr.exporters.messages import MESSAGES
from ctxmgr.exporters.otlp import OTLP

EXPORTERS: tuple[Exporter, ...] = (ATIF, OTLP, MESSAGES, CLAUDE_CODE)
"""All formats that history can be written in, beside its own."""
