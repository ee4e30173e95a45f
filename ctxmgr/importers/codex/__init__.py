"""Read Codex rollouts of every version: find them, group them by session, yield records.

Start with `head`, the content of the first line, and `rollout`, which sends each line to its reader. `thread` is the state
between lines. This package may import what every importer may, but no other format.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import LISTS, Coverage, JsonImporter, Log, Place
from ctxmgr.importers.codex.calls import Calls, Facts, from_facts
from ctxmgr.importers.codex.head import (
    EXEC_ITEMS,
    EXEC_TYPES,
    ITEMS,
    ROLLOUT_NAME,
    SINGLE_OBJECT,
    TOP_LEVEL,
    Head,
    read_head,
    read_log,
)
from ctxmgr.importers.codex.rollout import Rollout
from ctxmgr.importers.codex.thread import Item, Meter, Thread
from ctxmgr.importers.log_files import ZSTD_MAGIC, head_values, plain_name
from ctxmgr.importers.values import clean, integer, join_texts, mapping, sequence, text
from ctxmgr.log.codec import fingerprint

# Names of these tools in a rollout, so that both logs of one run contain the same actions.
_ACTIONS = {"command_execution": "exec_command", "file_change": "apply_patch", "web_search": "web_search"}
_GIVEN = ("command", "changes", "query", "arguments", "prompt", "receiver_thread_ids")


class ExecStream:
    """Reads one captured standard output. `read` takes its objects in order.

    Item ids start at ``item_0`` in every run. A run is therefore identified by the fingerprint of its first item, and by a
    number if another run begins with an identical item.
    """

    def __init__(self, log: Log, thread: Thread) -> None:
        self._log = log
        self._thread = thread
        self._calls = Calls(thread)
        self._meter = Meter(thread)
        self._seen: set[str] = set()
        self._run: str | None = None
        self._runs: Counter[str] = Counter()

    def read(self, value: dict[str, Any]) -> None:
        """Take the next object."""
        kind = text(value.get("type")) or "untyped"
        item = self._thread.item(self._log.line, value, value, bare=True)
        if kind not in EXEC_TYPES:
            self._log.unknown(kind)
        elif kind == "thread.started":
            self._run = None
            self._seen.clear()
        elif kind == "turn.started":
            self._thread.name_turn(self._thread.own_id())
            self._thread.turn_began()
        elif kind in ("turn.completed", "turn.failed"):
            self._turn_end(item, kind)
        elif kind == "error":
            self._error(item, item.payload)
        else:
            self._item(item, kind, mapping(item.payload.get("item")))

    def _turn_end(self, item: Item, kind: str) -> None:
        self._meter.turn_total(item, item.payload.get("usage"))
        data: dict[str, Any] = {"reason": "completed"}
        if kind == "turn.failed":
            problem = mapping(item.payload.get("error"))
            self._error(item, problem)
            data = {"reason": "failed", "error": clean(problem)}
        self._thread.event("turn_end", data, item.at, f"{self._thread.own_id()}:turn_end")
        self._thread.name_turn(None)

    def _error(self, item: Item, body: dict[str, Any]) -> None:
        message = text(body.get("message")) or "error"
        self._thread.event("error", {"text": message, "message": message}, item.at)

    def _item(self, item: Item, kind: str, body: dict[str, Any]) -> None:
        sort, name = text(body.get("type")) or "untyped", text(body.get("id"))
        thread = self._thread
        if sort not in EXEC_ITEMS:
            self._log.unknown(f"item/{sort}")
            return
        self._run = self._run or self._name_run(body)
        full = f"{thread.origin}:{self._run}:{name or thread.number}"  # unique among all runs of the thread
        if sort in ("agent_message", "reasoning"):
            if kind == "item.completed":
                self._say(item, sort, join_texts(body.get("text")), full)
        elif sort == "error":
            if kind == "item.completed":
                self._error(item, body)
        elif sort == "todo_list":
            self._plan(item, kind, body, full)
        else:
            self._call(item, kind, body, full)

    def _name_run(self, first: dict[str, Any]) -> str:
        """Return the name of the run that begins with this item."""
        mark = fingerprint(first)[:8]
        self._runs[mark] += 1
        return mark if self._runs[mark] == 1 else f"{mark}-{self._runs[mark]}"

    def _say(self, item: Item, sort: str, words: str, event_id: str) -> None:
        self._thread.spoke(item)
        if sort == "agent_message":
            self._thread.count.messages += 1
            self._thread.event("message", {"text": words}, item.at, event_id)
        else:
            self._thread.count.thoughts += 1
            self._thread.event("thought", {"text": words}, item.at, event_id)

    def _plan(self, item: Item, kind: str, body: dict[str, Any], full: str) -> None:
        """Read a to-do list. Each change is a call of the plan tool; its completion is only the end of the turn."""
        # `codex exec` completes a to-do list again, unchanged, when the turn ends.
        if kind == "item.completed" and full in self._seen:
            return
        self._seen.add(full)
        entry_id, name = f"{full}:{self._thread.number}", text(body.get("id"))
        self._calls.entry(item, entry_id, (name, "update_plan", "todo_list", clean(body.get("items"))))
        self._calls.result(item, name or entry_id, from_facts(Facts()))

    def _call(self, item: Item, kind: str, body: dict[str, Any], full: str) -> None:
        name = text(body.get("id"))
        if full not in self._seen:
            self._seen.add(full)
            sort = text(body.get("type")) or ""
            names = [text(body.get("server")), text(body.get("tool"))]
            action = _ACTIONS.get(sort) or ".".join(name for name in names if name) or sort
            given = clean({key: body[key] for key in _GIVEN if body.get(key) is not None})
            self._calls.entry(item, full, (name, action, sort, given))
        if kind == "item.completed" and not self._thread.has_answer(name or full):
            self._thread.output_came()
            self._calls.result(item, name or full, from_facts(_facts(body)))


def _facts(body: dict[str, Any]) -> Facts:
    output = text(body.get("aggregated_output"))
    result = mapping(body.get("result"))
    if output is None and result:
        output = join_texts(sequence(result.get("content"))) or None
    error = text(mapping(body.get("error")).get("message")) or text(body.get("error"))
    return Facts(text(body.get("status")), integer(body.get("exit_code")), None, output, error)


_CUT_SESSION_META = re.compile(
    rb'\s*\{(?:"timestamp":\s*"[^"]{1,40}",\s*)?(?:"ordinal":\s*\d{1,18},\s*)?"type":\s*"session_meta",\s*"payload":\s*\{'
)
"""Beginning of a first line that exceeds the head because it contains all base instructions."""

_ITEMS_MEMBER = re.compile(rb'"items"\s*:\s*\[')


def is_codex(path: Path, head: bytes) -> bool:
    """Whether a file with this path and these first bytes is a rollout of any era or ``codex exec --json`` output."""
    named = ROLLOUT_NAME.search(path.name) is not None
    if head.startswith(ZSTD_MAGIC):  # without the module zstandard only the name can tell
        return named and path.suffix == ".zst"
    if SINGLE_OBJECT.match(head):
        return bool(_ITEMS_MEMBER.search(head)) or path.name.startswith("rollout-")
    if _CUT_SESSION_META.match(head):
        return True
    values = head_values(head, LISTS)
    return any(_proves(value, value is values[0], named) for value in values)


def _proves(value: dict[str, Any], first: bool, named: bool) -> bool:
    """Whether one line occurs only in a Codex log."""
    kind = text(value.get("type"))
    if isinstance(value.get("payload"), dict):
        return kind in TOP_LEVEL
    if kind in EXEC_TYPES:
        if kind == "thread.started":
            return text(value.get("thread_id")) is not None
        return kind.startswith("item.") and text(mapping(value.get("item")).get("type")) in EXEC_ITEMS
    if kind is None:
        header = {"id", "timestamp", "instructions"} <= value.keys() and text(value.get("id")) is not None
        return (first and header) or value == {"record_type": "state"}
    # The first versions wrote bare items, as other logs of the Responses API do, so the file name must match too.
    bare = kind in ITEMS and (kind != "message" or isinstance(value.get("content"), list))
    return named and bare and "sessionId" not in value and "session_id" not in value


class _Session:
    """Reads the files of a session, with one thread per file.

    Ids are an item's own id if the model provider made it unique, else ``<thread>:<item or call id>``, else
    ``<thread>:<line>``. A sub-agent's log joins the session of the thread that started it. A fork is a separate session that
    names its original. The printed stream of ``codex exec`` repeats the rollout of the same thread, so it becomes a separate
    session, ``exec-<thread>``.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._heads = {path: read_head(path) for path in log.group}
        self._threads = {head.thread: head for head in reversed(self._heads.values())}  # of several copies the first counts
        self._file: Rollout | ExecStream | None = None

    def begin(self) -> Rollout | ExecStream:
        log, head = self._log, self._heads[self._log.path]
        thread = Thread(_session(head, self._threads), log.count, log.name, head=head, counter=log.counter)
        log.add(thread)
        self._file = ExecStream(log, thread) if head.shape == "exec" else Rollout(log, thread)
        return self._file

    def end(self) -> None:
        if isinstance(self._file, Rollout):
            self._file.finish()
        self._log.close()


def _session(head: Head, threads: Mapping[str, Head]) -> str:
    """Return the session of a thread: the oldest known thread in its chain of parents."""
    if head.shape == "exec":
        return f"exec-{head.thread}"
    seen: set[str] = set()
    while head.sub_agent and head.thread not in seen:
        seen.add(head.thread)
        if head.root is not None:
            return head.root
        if head.parent is None:
            return head.thread
        if head.parent not in threads:
            return head.parent
        head = threads[head.parent]
    return head.thread


def _group_root(path: Path, heads: Mapping[Path, Head], first: Mapping[str, Path]) -> Path:
    seen: set[Path] = set()
    while path not in seen:  # recorded ids may form a circle
        seen.add(path)
        head = heads[path]
        above = first.get(head.parent or "") or (first.get(head.root or "") if head.sub_agent else None)
        if above is None or above in seen:
            break
        path = above
    return path


def _originals_first(groups: Mapping[Path, list[Path]], heads: Mapping[Path, Head]) -> list[list[Path]]:
    by_thread = {heads[top].thread: top for top in groups}
    placed: dict[Path, list[Path]] = {}
    for first in sorted(groups, key=lambda path: (plain_name(path), str(path))):
        line: list[Path] = []
        top: Path | None = first
        # Recorded ids may form a circle; ``line`` ends it.
        while top is not None and top not in placed and top not in line:
            line.append(top)
            top = by_thread.get(heads[top].forked_from or "")
        placed.update((top, groups[top]) for top in reversed(line))
    return list(placed.values())


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith(_ENDINGS)


def _head_or_none(path: Path) -> Head | None:
    try:
        return read_head(path)
    except OSError:
        return None


_ENDINGS = (".jsonl", ".jsonl.zst", ".json")


def _is_log(path: Path) -> bool:
    """Whether a file is a rollout, and not the compressed form of an existing plain one."""
    packed = path.suffix == ".zst" and path.with_suffix("").exists()
    return _is_rollout(path.name) and not packed and path.is_file()


def _thread_files(path: Path) -> Sequence[Path]:
    """Return a rollout, and the rollouts of its direct and indirect sub-agents in the same day's folder."""
    try:
        names = sorted(entry.name for entry in os.scandir(path.parent) if _is_rollout(entry.name))
        family = {read_head(path).thread}
    except OSError:
        return [path]
    children: dict[Path, Head] = {}
    for name in names:
        head = None if name == path.name else _head_or_none(path.parent / name)
        if head is not None and head.parent is not None:
            children[path.parent / name] = head
    found: list[Path] = []
    while born := [file for file, head in children.items() if head.parent in family]:
        family.update(children.pop(file).thread for file in born)
        found.extend(born)
    return [path, *sorted(found)]


def _group(paths: Iterable[Path]) -> list[list[Path]]:
    """Group each thread with the sub-agents below it. Originals come before their forks."""
    files = sorted(set(paths), key=lambda path: (plain_name(path), str(path)))
    heads = {path: _head_or_none(path) or Head(thread=plain_name(path)) for path in files}
    first: dict[str, Path] = {}
    for path in files:
        first.setdefault(heads[path].thread, path)
    groups: dict[Path, list[Path]] = {}
    tops = {path: _group_root(path, heads, first) for path in files}
    # The top of each group is added first, because a group begins with its main log.
    for path in sorted(files, key=lambda path: tops[path] != path):
        groups.setdefault(tops[path], []).append(path)
    return _originals_first(groups, heads)


CODEX = JsonImporter(
    name="codex",
    title="Codex",
    reader=_Session,
    coverage=Coverage(),
    places=(
        Place(".codex/sessions", "**/rollout-*", variable="CODEX_HOME", below="sessions"),
        Place(".codex/archived_sessions", "**/rollout-*", variable="CODEX_HOME", below="archived_sessions"),
    ),
    recognises=is_codex,
    is_log=_is_log,
    related=_thread_files,
    grouped=_group,
    values=lambda path, _lists, report: read_log(path, report),
)
