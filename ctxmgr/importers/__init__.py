"""Read foreign logs as records of log format 1. Each module reads one format, or two of one family.

To add a format, write its module, list it in `importers`, and put samples with their expected content into
``fixtures/formats/<name>``. To learn how importers work, start with `ctxmgr.importers.pi`, a short one, and then read its base:
`base` and `transcript`. Importers are pure. They may import `ctxmgr.types`, `ctxmgr.text`, `ctxmgr.log` and the layers below,
but neither the store nor the detectors.
"""

from __future__ import annotations

from ctxmgr.importers.atif import ATIF
from ctxmgr.importers.base import Importer, OpenTables
from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.importers.codex import CODEX
from ctxmgr.importers.copilot import COPILOT
from ctxmgr.importers.gemini import GEMINI, GEMINI_PRINTED, QWEN
from ctxmgr.importers.inspect_ai import INSPECT
from ctxmgr.importers.langgraph import LANGGRAPH_ROWS, langgraph
from ctxmgr.importers.message_list import CLINE, MESSAGE_LIST
from ctxmgr.importers.openai_agents import OPENAI_AGENTS_TRACES, openai_agents
from ctxmgr.importers.opencode import OPENCODE_FILES, OPENCODE_PRINTED, opencode
from ctxmgr.importers.openhands import OPENHANDS
from ctxmgr.importers.otlp import OTLP
from ctxmgr.importers.pi import PI
from ctxmgr.importers.swe_agent import MINI_SWE_AGENT, SWE_AGENT


def importers(open_tables: OpenTables) -> tuple[Importer, ...]:
    """Return the importers in the order in which they are asked. The importers with the weakest proofs come last.

    Args:
        open_tables: reads SQLite databases, for agents that keep their logs there.
    """
    return (
        CLAUDE_CODE,
        CODEX,
        PI,
        COPILOT,
        GEMINI,
        GEMINI_PRINTED,
        QWEN,
        opencode(open_tables),
        OPENCODE_PRINTED,
        OPENCODE_FILES,
        CLINE,
        MINI_SWE_AGENT,
        SWE_AGENT,
        ATIF,
        OPENHANDS,
        OTLP,
        langgraph(open_tables),
        LANGGRAPH_ROWS,
        openai_agents(open_tables),
        OPENAI_AGENTS_TRACES,
        INSPECT,
        MESSAGE_LIST,
    )
