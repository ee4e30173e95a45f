"""The report of an importer on the files that it read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.types.base import Shape, Text

_RECORD = 1_000
"""Bytes of a typical record, to estimate the number of records in a damaged range."""
NOT_UNDERSTOOD = 0.02
"""If a larger share of the records was not understood, an import or a judgement is partial (exit 8)."""


# Mutable and no shape: importers add to it at every line.
@dataclass(slots=True)
class FileCount:
    """Running counts while one file is read; the importer adds, the import driver reports.

    Attributes:
        records: lines (or objects) met, empty lines not counted.
        unknown: records of a type the importer does not know, by type name; they are not understood.
        damaged: byte ranges that hold no readable record: (offset, length, reason).
        tool_calls: entries by tool name; failed: results with status error, denied or interrupted.
        usage: tokens of the file, each API response counted once: {inputTokens, outputTokens, ...}. For a format with
            cumulative totals, the last total.
        notes: anything a person should hear once, e.g. "compressed with zstd; install ctxmgr-cli[zstd]".
    """

    path: Path
    session: str = ""
    agent: str = ""
    version: str = ""
    bytes: int = 0
    records: int = 0
    tool_calls: Counter[str] = field(default_factory=lambda: Counter[str]())
    failed: int = 0
    open: int = 0
    user_messages: int = 0
    harness_messages: int = 0
    messages: int = 0
    thoughts: int = 0
    responses: int = 0
    # One response may stand in several lines, each with the figures of the whole.
    usage: Counter[str] = field(default_factory=lambda: Counter[str]())
    unknown: Counter[str] = field(default_factory=lambda: Counter[str]())
    damaged: list[tuple[int, int, str]] = field(default_factory=lambda: list[tuple[int, int, str]]())
    notes: list[str] = field(default_factory=lambda: list[str]())


class FileReport(Shape):
    """The counts of one imported file, as shown to people and programs. A file of several sessions names its first one."""

    path: Text
    format: str
    version: Text
    session: Text
    agent: Text
    records: int
    tool_calls: int
    tool_names: dict[str, int]
    failed_calls: int
    open_calls: int
    user_messages: int
    harness_messages: int
    messages: int
    thoughts: int
    api_responses: int
    usage: dict[str, int]
    unknown: dict[str, int]
    damaged: list[dict[str, Any]]
    skipped: str | None = None
    notes: list[Text] = []
    sessions: int = 1


def lost_records(files: Sequence[FileReport]) -> int:
    """Return about how many records the damaged ranges of files held."""
    return sum(max(1, each["length"] // _RECORD) for file in files for each in file.damaged)


class ImportReport(Shape):
    """What one ``ctxmgr import`` did.

    Attributes:
        files: one report a file that was read, or passed over: then ``skipped`` says why. Unchanged ones are only counted
            in ``unchanged``.
        skipped: files, or whole folders, that were named or found and could not be read as logs; others: files of the
            folders that hold no log; other_files: the first of them.
        added: records written now; known: records that the store already held; doubles: copies of records that belong to
            another session (forks, resumes) and were left out; changed: records whose id is known with other content
            (the first content is kept); untrusted: records of the project's own state that were left out.
        unknown: record types that were not understood, with counts; not_understood: their share of all records, 0 to 1.
    """

    files: list[FileReport]
    skipped: int = 0
    others: int = 0
    other_files: list[Text] = []
    unchanged: int
    sessions: list[Text]
    records: int
    entries: int
    open_calls: int
    added: int
    known: int
    doubles: int
    changed: int
    untrusted: int = 0
    unknown: dict[str, int]
    damaged: int
    not_understood: float


def list_first_names(first: Sequence[str], count: int) -> str:
    """Return the first names, and the number of the others, as text: ``a, b, and 3 more``."""
    more = f", and {count - len(first):,} more" if count > len(first) else ""
    return ", ".join(first) + more


class FormatView(Shape):
    """A format of logs that can be read.

    Attributes:
        name: what ``import --from`` calls it.
        places: where the agent keeps them below the home folder; none where logs are only read where they are named.
        errors: calls that failed are marked; open_calls: a call whose result never came is seen; usage: tokens of each
            response; sub_agents: the work of agents that the agent started; times: of calls and results.
    """

    name: str
    title: str
    places: list[str]
    calls: bool
    results: bool
    errors: bool
    open_calls: bool
    usage: bool
    sub_agents: bool
    times: bool
