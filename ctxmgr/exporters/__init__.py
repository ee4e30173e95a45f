"""Write histories in the formats of other programs, with one module per format.

To add a format, write a module and list it in `EXPORTERS`. `tests/exporters` then compares the written file with what our own
importer of that format reads. Start with `conversation`, the form from which every format is written.

Pure: this package imports only `ctxmgr.log` and uses no store.
"""

from __future__ import annotations

from ctxmgr.exporters.atif import ATIF
from ctxmgr.exporters.claude_code import CLAUDE_CODE
from ctxmgr.exporters.conversation import Exporter
from ctxmgr.exporters.messages import MESSAGES
from ctxmgr.exporters.otlp import OTLP

EXPORTERS: tuple[Exporter, ...] = (ATIF, OTLP, MESSAGES, CLAUDE_CODE)
"""All formats for export, apart from our own."""
