"""Answer commands for programs from rows, without models, typer and rich.

The commands' own functions answer from the same queries: to the byte, but for long texts, which pass through here as they
are stored. `ctxmgr.cli.fast.detection` has what takes verdicts.
"""

from __future__ import annotations

import gc
import os
import sys

from ctxmgr.base import paths
from ctxmgr.cli.envelope import (
    IndexProgress,
    ascii_json,
    envelope,
    report_error,
    say,
    slow_search,
    tell_session,
    write_json,
    write_lines,
)
from ctxmgr.cli.fast import Answer
from ctxmgr.cli.invocation import quiet
from ctxmgr.errors import CtxmgrError, NotFound, StorageFailed
from ctxmgr.history.open_history import open_history, require_record
from ctxmgr.history.query import tools
from ctxmgr.log.fast_json import cast
from ctxmgr.store.repositories.queries import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store import Store

    Page = tuple[int, int, int, int, bool] | dict[str, Any]


_JUDGING = frozenset({"detect", "sessions"})


def quick_answer(name: str, values: dict[str, Any], form: str) -> int | None:
    """Answer from rows; return the exit code, or None when the command's function has to, and nothing was done."""
    try:
        answer = _compute_answer(name, values, form)
        if answer is None:
            return None
    except CtxmgrError as error:
        return report_error(name, form, error)
    except OSError as error:
        if error.filename is None:  # an error about no file comes from writing to stdout, which `cli.run` reports
            raise
        reason = f"{os.fsdecode(error.filename)}: {error.strerror}"
        return report_error(name, form, StorageFailed(reason, "check it, and its permissions"))
    try:
        _write(name, form, answer)
    except BrokenPipeError:
        quiet(answer.code)  # what was found stands, though nobody reads on
    return answer.code


def _compute_answer(name: str, values: dict[str, Any], form: str) -> Answer | None:
    """Return the answer, or None when the other way in has to answer; nothing was done then."""
    tool, writes = _TOOLS.get(name), False
    if tool is None:
        gc.enable()  # these may judge or append for minutes; the reads are over at once
    if tool is None and name in _JUDGING:
        from ctxmgr.cli.fast import detection

        tool = detection.TOOLS[name]
    elif tool is None and name == "recover":
        return _cached_recovery(values, form)
    elif tool is None:
        tool, writes = _ANNOTATING[name], name in WRITES
    if not _locate(name, values):
        return None
    configured, left_out = _configured_store(os.getcwd())
    # Before work that goes on for long; else behind it, for where this way has no answer the other one says them.
    writes_all = writes or name == "record"
    _say_all(left_out if writes_all else ())
    masked = values.get("mask", True)
    try:
        store, warnings = _open(values["store"], configured, writes, create=name == "record", masked=masked)
        try:
            # `record` may create the store, so an empty one is no error there.
            if not writes_all:
                require_record(store)
            answer = tool(store, {**values, "drawn": form == "table"})
        finally:
            _close(store)
    except CtxmgrError:  # perhaps because of a setting that was left out
        _say_all(() if writes_all else left_out)
        raise
    if answer is None:
        return None
    _say_all(() if writes_all else left_out)
    # On stderr they were said by now; JSON holds them as well.
    answer.warnings[:0] = [*(left_out if form == "json" else ()), *warnings]
    return answer


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(f"ctxmgr: {line}")


def _locate(name: str, values: dict[str, Any]) -> bool:
    """Let a file that is given instead of a session be the store; return whether there is one store to ask then."""
    # Most calls name none of these: what tells files from sessions is then not even loaded.
    named = [values[each] for each in ("session", "target", "log", "action", "address") if each in values]
    entries = values.get("entries")
    # ``action`` is a word for ``trace``, which may be a file; for the other commands it is a list of filters.
    if name == "record" or not (entries or any(word is not None and not isinstance(word, list) for word in named)):
        return True
    from ctxmgr.cli import address as a

    session, store, given = values.get("session"), values["store"], values.get("address")
    if name == "list":
        chosen = a.moves_rows(values)
        values["target"], values["offset"] = a.list_start(values["target"], values["offset"], chosen=chosen)
    if entries:
        values["entries"], values["session"], values["store"] = a.locate_entries(entries, session, store)
    elif name == "sessions":
        values["store"] = a.locate_log(values["log"], store)
    elif name == "trace":
        found = a.locate_action(values["action"], values["target"], session, store)
        values["action"], values["session"], values["store"] = found
    elif given is not None:
        values["address"], values["session"], values["store"] = a.locate_entry(given, session, store)
    else:
        if name == "detect" and a.is_folder(values["target"]):
            return False
        values["session"], values["store"] = a.locate_store(values.get("target"), session, store)
    return True


def _cached_recovery(values: dict[str, Any], form: str) -> Answer | None:
    """Return the cached answer of a recovery; None also at any error, which the recovery itself then reports."""
    from ctxmgr.cli.fast.detection import recover

    try:
        if not _locate("recover", values):
            return None
        configured, left_out = _configured_store(os.getcwd())
        store, warnings = _open(values["store"], configured, writes=False, create=False, masked=True)
        try:
            answer = recover(store, values)
        finally:
            _close(store)
    except CtxmgrError:
        return None
    if answer is None:
        return None
    _say_all(left_out)
    answer.warnings[:0] = [*(left_out if form == "json" else ()), *warnings]
    return answer


def _close(store: Store) -> None:
    try:
        store.close()
    except CtxmgrError:  # all there is was read
        return


def _open(location: str | None, configured: str | None, writes: bool, *, create: bool, masked: bool) -> tuple[Store, list[str]]:
    chosen = location if location is not None else os.environ.get(paths.STORE_VARIABLE) or configured
    path = paths.nearest_store(os.getcwd()) if chosen is None else chosen
    return open_history(
        path, explicit=chosen is not None, create=create, readonly=not writes, masked=masked, progress=IndexProgress()
    )


def _configured_store(folder: str) -> tuple[str | None, list[str]]:
    """Return the store that the settings name, if any, and what is to be said of settings that were left out."""
    # The usual case, at most a project's file: only `store` is looked for in it, since loading the whole configuration takes
    # longer than a query.
    if not os.path.exists(paths.user_file(os.environ)):
        foreign: list[str] = []
        found = next((each for path in paths.settings_files(folder, foreign) if (each := paths.read_store_setting(path))), None)
        # Else the file holds more than a store that a project may name, which only the whole configuration can judge.
        if not foreign and (found is None or found[0]):
            return (None if found is None else found[1]), []
    from pathlib import Path

    from ctxmgr.config import load_config

    config = load_config(Path(folder))
    return config.store, config.warnings()


def _write(command: str, form: str, answer: Answer) -> None:
    restored = _same if answer.texts is None else answer.texts.restore
    if form == "json":
        document = envelope(command, answer.status, answer.data, answer.page, answer.warnings, answer.next)
        write_json(document, restored)
        return
    for warning in answer.warnings:
        say(f"ctxmgr: {warning}")
    if answer.draw is not None and form == "table":
        _draw(answer, answer.draw)
        return
    if form == "table":
        write_lines([answer.line or ""])
        return
    rows = cast("list[Any]", answer.data) if isinstance(answer.data, list) else [answer.data]
    write_lines(restored(ascii_json(row)) for row in rows)


def _draw(answer: Answer, draw: Callable[[Printer], object]) -> None:
    """Show an answer to a person, as `ctxmgr.cli.output` does."""
    from ctxmgr.cli.terminal import printer

    out = printer()
    if out.terminal:
        from ctxmgr.cli.terminal import open_pager

        with open_pager() as out:
            draw(out)
    else:
        draw(out)
    page = answer.page
    if page is not None and page["nextOffset"] is not None and sys.stderr.isatty():
        say(f"{page['offset'] + 1} to {page['nextOffset']} of {page['total']}; more: --offset {page['nextOffset']}")


def _same(line: str) -> str:
    return line


def _request(values: dict[str, Any], **changed: Any) -> tools.PlainRequest:
    """Return the request of option values, times as points in time."""
    asked = {**values, **changed}
    for name in ("since", "until"):
        if asked[name] is not None:
            import time

            from ctxmgr.cli.requests import moment

            asked[name] = moment(asked[name], time.time())
    return tools.PlainRequest(**asked)


def _trace(store: Store, values: dict[str, Any]) -> Answer:
    actions: list[str] = [*([values["action"]] if values["action"] else []), *(values["actions"] or [])]
    reader = Rows(store.engine, verbatim=True)
    found = tools.trace(store, reader, _request(values, action=actions, event_type=None))
    tell_session(store, values["session"], found.session)
    return _page(found, reader)


def _list(store: Store, values: dict[str, Any]) -> Answer:
    reader = Rows(store.engine, verbatim=True)
    found = tools.list_(store, reader, _request(values))
    tell_session(store, values["session"], found.session)
    return _page(found, reader)


def _page(found: tools.QueryResult, reader: Rows) -> Answer:
    answer = Answer(found.rows, found.status, found.page)
    answer.texts = reader.texts
    return answer


def _search(store: Store, values: dict[str, Any]) -> Answer:
    found = tools.search(store, Rows(store.engine), _request(values, max_results=values["max_"], exact_total=False), _hit)
    if not values["all_sessions"]:
        tell_session(store, values["session"], found.session)
    answer = Answer(found.rows, found.status, found.page)
    answer.warnings, answer.next = slow_search(store.count_unindexed())
    return answer


def _hit(row: dict[str, Any], field: str, excerpt: str) -> dict[str, Any]:
    return {"field": field, "excerpt": excerpt, "row": row}


def _show(store: Store, values: dict[str, Any]) -> Answer | None:
    asked, session = _parse_address(values["address"], values["session"])
    reader = Rows(store.engine, verbatim=True)
    try:
        entry = tools.show(store, reader, tools.PlainRequest(**asked))
    except NotFound:
        key = None if session is None else store.sessions.key(session)
        if asked["entry_id"] is None or (session is not None and key is None):
            raise
        if store.annotations.continuation(key, asked["entry_id"]) is None:
            raise
        return None  # it is a continuation, which is shown as `recover` shows it
    tell_session(store, session, entry["session"])
    answer = Answer(entry)
    answer.texts = reader.texts
    if entry["events"]:
        answer.next.append(f"ctxmgr messages {entry['session']}@{entry['index']}")
    return answer


def _messages(store: Store, values: dict[str, Any]) -> Answer:
    address = values["address"]
    # Without an address the whole session is meant; "@0" only carries the session through the parser.
    asked, session = _parse_address(address or "@0", values["session"])
    if not address:
        asked["index"] = None
    reader = Rows(store.engine, verbatim=True)
    found = tools.messages(store, reader, tools.PlainRequest(**{**values, **asked}))
    tell_session(store, session, found.session)
    return _page(found, reader)


def _parse_address(address: str, session: str | None) -> tuple[dict[str, Any], str | None]:
    from ctxmgr.cli.address import parse

    place = parse(address, session)
    return {"session": place.session, "index": place.index, "entry_id": place.entry_id}, place.session


_TOOLS: dict[str, Callable[[Store, dict[str, Any]], Answer | None]] = {
    "list": _list,
    "messages": _messages,
    "search": _search,
    "show": _show,
    "trace": _trace,
}


def _record(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.cli.invocation import disable_plugins
    from ctxmgr.cli.record_input import take

    disable_plugins()  # what is of no plain shape is checked by the models
    taken = take(store, values["session"], trusted=values["trust_project"])
    answer = Answer(taken.data, taken.status)
    answer.warnings += taken.warnings
    answer.line = taken.line
    return answer


def _add_note(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import tools

    asked = _on_entries(values, content=values["message"], tags=values["tag"] or [], links=values["link"] or [])
    note = tools.add_note(store, asked)
    tell_session(store, asked.session, note["session"])
    return Answer(note)


def _list_notes(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import tools

    found = tools.list_notes(store, tools.PlainRequest(**{**values, "tags": values["tag"] or [], "query": None}))
    return Answer(found.rows, found.status, found.page)


def _create_snapshot(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import tools

    asked = _on_entries(values)
    snapshot = tools.create_snapshot(store, asked)
    tell_session(store, asked.session, snapshot["session"])
    return Answer(snapshot)


def _list_snapshots(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import tools

    found = tools.list_snapshots(store, tools.PlainRequest(**values))
    return Answer(found.rows, found.status, found.page)


def _on_entries(values: dict[str, Any], **changed: Any) -> Any:
    """Return the request of a command that names entries."""
    from ctxmgr.cli.address import parse_all

    session, indexes, ids = parse_all(values["entries"], values["session"])
    return tools.PlainRequest(**{**values, **changed, "session": session, "entry_indices": indexes, "entry_ids": ids})


_ANNOTATING: dict[str, Callable[[Store, dict[str, Any]], Answer]] = {
    "note add": _add_note,
    "note list": _list_notes,
    "record": _record,
    "snapshot create": _create_snapshot,
    "snapshot list": _list_snapshots,
}
WRITES = frozenset({"note add", "record", "snapshot create"})
