"""Readers of a session's record, shared by all failure classes.

| Where | What it reads |
|---|---|
| `session` | `Evidence`: entries, messages and the finding; what fails and repeats among them |
| `calls` | one call: command, files, edits, whether it may change something, whether it failed, whatever its status says |
| `log_readings` | what a log that was read says about a call that failed without a reason |
| `messages` | messages and their sentences: what people forbid, allow and decide |
| `files` | the last known content of a file; where the record has a path |
| `numbered_lines` | a view of a file whose lines have numbers: where the lines begin |
| `manifests` | scripts and targets of the manifests that were read, and which of them makes a file |
| `items` | answers by their structure: JSON objects, lines of `key: value`, rows of tables, lists of names |
| `pages` | answers that say there is more than they show |
| `nearest_names` | the recorded name most similar to another |
| `durations` | how long a call may take or waits by its own words, and how long something took |
| `searches` | what a search command looks for, and where |
| `interactive_commands` | commands that wait for a person |
| `texts` | recorded text as quotes: clean, bounded, in backticks |

Names that most classes need can be imported from here.
"""

from __future__ import annotations

from ctxmgr.diagnose.evidence.calls import CHECKS, call_input, call_key, may_change, program_name, start_clause
from ctxmgr.diagnose.evidence.messages import Message, messages_of
from ctxmgr.diagnose.evidence.session import MOST_CURRENT, MOST_ENTRIES, MOST_LATEST, Evidence
from ctxmgr.diagnose.evidence.texts import clock

__all__ = [
    "CHECKS",
    "MOST_CURRENT",
    "MOST_ENTRIES",
    "MOST_LATEST",
    "Evidence",
    "Message",
    "call_input",
    "call_key",
    "clock",
    "may_change",
    "messages_of",
    "program_name",
    "start_clause",
]  # fmt: skip
