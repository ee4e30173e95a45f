"""The handlers of the commands that agents and hooks call most, for people and programs, on plain rows.

A handler takes the store and the option values of its command and returns the answer. Models and drawing code are loaded only
when an answer is drawn. `ctxmgr.cli.fast.dispatch` calls the handlers, whether the table or typer has read the command line.
`annotations` has the handlers that write notes, snapshots and records, `detection` those that need verdicts.
"""

from __future__ import annotations

import gc
import os

from ctxmgr.base import paths
from ctxmgr.cli.envelope import (
    Answer,
    IndexProgress,
    OutputOptions,
    report_error,
    say_warnings,
    show_answer,
    slow_search,
    tell_session,
)
from ctxmgr.cli.fast.table import TABLE
from ctxmgr.cli.invocation import current_agent
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.history.open_history import open_history, require_record
from ctxmgr.history.query import tools
from ctxmgr.log import fast_json
from ctxmgr.log.ids import parse_time
from ctxmgr.store.repositories.queries import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ctxmgr.cli.fast.dispatch import Quick
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store import Store
    from ctxmgr.types.query import Page
    from ctxmgr.workspace import Workspace

    _T = TypeVar("_T")
    Handler = Callable[["OpenedStore", dict[str, Any]], Answer | None]


class OpenedStore:
    """The store of one command, as the asker sees it.

    Attributes:
        how: the output options.
        store: the history, without what is hidden from the agent.
        agent: the agent that asks, None for the operator.
        setting_warnings: warnings about settings that were ignored.
        warnings: other warnings for a person.
    """

    __slots__ = ("_workspace", "agent", "how", "setting_warnings", "store", "warnings")

    def __init__(
        self,
        how: OutputOptions,
        store: Store,
        setting_warnings: list[str],
        warnings: list[str],
        workspace: Workspace | None = None,
    ) -> None:
        self.how, self.store, self._workspace = how, store, workspace
        self.setting_warnings, self.warnings = setting_warnings, warnings
        self.agent = None if workspace is None else workspace.agent

    @property
    def workspace(self) -> Workspace:
        """The library over this store, for work that needs the settings."""
        if self._workspace is None:
            from ctxmgr.cli.invocation import disable_plugins

            disable_plugins()
            from ctxmgr.config import load_config
            from ctxmgr.workspace import Workspace

            self._workspace = Workspace(self.store, load_config(os.getcwd()))
        return self._workspace

    def rows(self) -> Rows:
        """Return the reader of the rows; it leaves long texts as they are stored if they are only written as JSON."""
        # An estimate would tell an agent of hidden records, and the log of its reads needs the rows parsed.
        return Rows(self.store.engine, exact=self.agent is not None, verbatim=self.agent is None and self.how.verbatim)

    def read(self, command: str, tool: Callable[[], _T], shown_records: Callable[[_T], object]) -> _T:
        """Return what a tool finds; if an agent asks, log the records that it was shown."""
        return tool() if self.agent is None else self.workspace.log_read(command, tool, shown_records)


def quick_answer(name: str, handler: Handler, values: dict[str, Any], how: OutputOptions) -> int | None:
    """Answer a command and return the exit code; return None, with nothing done, if its declared function has to answer."""
    if name not in HANDLERS:
        gc.enable()  # these may judge or append for minutes, reads are short
    try:
        if not _locate(name, values):
            return None
    except CtxmgrError as error:
        return None if name == "recover" else report_error(name, how.format, error)
    if name == "recover":
        cached = _cached_recovery(handler, values, how)
        return None if cached is None else show_answer(name, how, lambda: cached, _write_form, writes=True)
    return show_answer(name, how, lambda: _compute_answer(name, handler, values, how), _write_form, writes=name in WRITES)


def _write_form(command: str, how: OutputOptions, answer: Answer) -> None:
    from ctxmgr.cli.output import write_form

    write_form(command, how, answer)


def _compute_answer(name: str, handler: Handler, values: dict[str, Any], how: OutputOptions) -> Answer:
    opened = _open(values, how, writes=name in WRITES, create=name == "record")
    try:
        # `record` may create the store, so an empty store is no error there.
        if name not in WRITES:
            require_record(opened.store)
        answer = handler(opened, values)
        assert answer is not None, "only a recovery is handed over"
    except BaseException:
        _close(opened.store)  # an error of closing must not hide the error being raised
        raise
    if name in WRITES:
        opened.store.close()  # may raise an error that the data did not reach the disk
    else:
        _close(opened.store)
    return _with_warnings(opened, answer)


def _with_warnings(opened: OpenedStore, answer: Answer) -> Answer:
    # `_open` has written ``setting_warnings`` to stderr; JSON contains it too.
    answer.warnings[:0] = [*(opened.setting_warnings if opened.how.format == "json" else ()), *opened.warnings]
    return answer


def _locate(name: str, values: dict[str, Any]) -> bool:
    """Use a file that is address as a session as the store; return whether the command asks a single store."""
    # Most calls name none of these, so the code that tells files from sessions is not even loaded.
    named = [values[each] for each in ("session", "target", "log", "action", "address") if each in values]
    entries = values.get("entries")
    # ``action`` is a word of ``trace`` that may name a file; in other commands it is a list of filters.
    if name == "record" or not (entries or any(word is not None and not isinstance(word, list) for word in named)):
        return True
    from ctxmgr.cli import address as a

    session, store, address = values.get("session"), values["store"], values.get("address")
    if name == "list":
        chosen = a.moves_rows(values)
        values["target"], values["offset"] = a.list_start(values["target"], values["offset"], chosen=chosen)
    if entries:
        values["entries"], values["session"], values["store"] = a.locate_entries(entries, session, store)
    elif name == "sessions":
        values["store"] = a.locate_log(values["log"], store)
    elif name == "trace":
        located = a.locate_action(values["action"], values["target"], session, store)
        values["action"], values["session"], values["store"] = located
    elif address is not None:
        values["address"], values["session"], values["store"] = a.locate_entry(address, session, store)
    else:
        if name == "detect" and a.is_folder(values["target"]):
            return False
        values["session"], values["store"] = a.locate_store(values.get("target"), session, store)
    return True


def _cached_recovery(handler: Handler, values: dict[str, Any], how: OutputOptions) -> Answer | None:
    """Return the cached answer of a recovery; None without one, or on an error, which the recovery itself then reports."""
    if current_agent() is not None:
        return None
    try:
        opened = _open(values, how, warn=False)
        try:
            answer = handler(opened, values)
        finally:
            _close(opened.store)
    except CtxmgrError:
        return None
    if answer is None:
        return None
    say_warnings(opened.setting_warnings)
    return _with_warnings(opened, answer)


def _close(store: Store) -> None:
    try:
        store.close()
    except CtxmgrError:  # everything was read
        return


def _open(
    values: dict[str, Any], how: OutputOptions, *, writes: bool = False, create: bool = False, warn: bool = True
) -> OpenedStore:
    """Open and return the store; ``warn`` writes warnings about settings first, since the work may fail because of them."""
    location, masked, agent = values["store"], values.get("mask", True), current_agent()
    if agent is not None:
        from ctxmgr.workspace import Workspace

        workspace = Workspace.open(
            location, create=create, readonly=not writes, masked=masked, progress=IndexProgress(), agent=agent
        )
        setting_warnings = workspace.config.warnings()
        say_warnings(setting_warnings if warn else ())
        warnings = [line for line in workspace.warnings if line not in setting_warnings]
        return OpenedStore(how, workspace.store, setting_warnings, warnings, workspace)
    configured, setting_warnings = _configured_store(os.getcwd())
    say_warnings(setting_warnings if warn else ())
    chosen = location if location is not None else os.environ.get(paths.STORE_VARIABLE) or configured
    path = paths.nearest_store(os.getcwd()) if chosen is None else chosen
    store, warnings = open_history(
        path, explicit=chosen is not None, create=create, readonly=not writes, masked=masked, progress=IndexProgress()
    )
    return OpenedStore(how, store, setting_warnings, warnings)


def _configured_store(folder: str) -> tuple[str | None, list[str]]:
    """Return the store that the settings name, if any, and warnings about settings that were ignored."""
    # Usually there is at most a project's file. Only `store` is read from it, since loading the whole configuration takes
    # longer than a query.
    if not os.path.exists(paths.user_file(os.environ)):
        foreign: list[str] = []
        setting = next(
            (each for path in paths.settings_files(folder, foreign) if (each := paths.read_store_setting(path))), None
        )
        # Otherwise the file has other settings, or a store that the project may not name; that takes the whole configuration.
        if not foreign and (setting is None or setting[0]):
            return (None if setting is None else setting[1]), []
    from ctxmgr.config import load_config

    config = load_config(folder)
    return config.store, config.warnings()


def admits(command: str, values: dict[str, Any]) -> bool:
    """Whether the request of a command with a handler on rows admits the values."""
    quick: Quick = fast_json.loads(TABLE[command])["quick"]
    for name, (low, high) in quick["ranges"].items():
        if values[name] is not None and not low <= values[name] <= high:
            return False
    for name, choices in quick["choices"].items():
        chosen = values[name]
        words: list[str] = [chosen] if isinstance(chosen, str) else chosen or []
        if any(item not in choices for item in words):
            return False
    return True


def make_request(name: str, shape: str, values: dict[str, Any], **changed: Any) -> Any:
    """Return the request made of option values, with times as points in time.

    Args:
        name: the command.
        shape: name of the request in `ctxmgr.types.query`, which explains what is wrong with values that the table does not
            admit.
        values: the options.
        changed: fields of the request whose names differ from their options.

    Raises:
        InvalidInput: names the first value that can't be used.
    """
    fields = {**values, **changed}
    if not admits(name, values):
        from ctxmgr.cli.requests import build
        from ctxmgr.types import query

        request = getattr(query, shape)
        return build(request, **{field: value for field, value in fields.items() if field in request.model_fields})
    for bound in ("since", "until"):
        if fields.get(bound) is not None:
            import time

            from ctxmgr.cli.requests import moment

            fields[bound] = moment(fields[bound], time.time())
    if fields.get("since") and fields.get("until") and (parse_time(fields["until"]) or 0) < (parse_time(fields["since"]) or 0):
        raise InvalidInput("--until lies before --since", "times without a zone are UTC; '2h' means two hours ago")
    # The other options say where to read and how to show it.
    return tools.PlainRequest(**{name: value for name, value in fields.items() if name in tools.REQUEST_FIELDS})


def _page_answer(result: tools.QueryResult, reader: Rows, draw: Callable[[Printer], object]) -> Answer:
    answer = Answer(result.rows, draw, result.status, result.page)
    answer.texts = reader.texts
    return answer


def _build_view(row: dict[str, Any]) -> Any:
    from ctxmgr.store.row_mapper import entry_shape, event_shape

    return entry_shape(row) if row["kind"] == "entry" else event_shape(row)


def build_page(page: tuple[int, int, int, int, bool]) -> Page:
    """Return a page in the form that the views read."""
    from ctxmgr.types.query import Page

    return Page.make(*page)


def _trace(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    actions: list[str] = [*([values["action"]] if values["action"] else []), *(values["actions"] or [])]
    request = make_request("trace", "TraceRequest", values, action=actions, event_type=None)
    return _list_rows("trace", opened, values, lambda reader: tools.trace(opened.store, reader, request))


def _list(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    request = make_request("list", "ListRequest", values)
    return _list_rows("list", opened, values, lambda reader: tools.list_(opened.store, reader, request))


def _list_rows(name: str, opened: OpenedStore, values: dict[str, Any], tool: Callable[[Rows], tools.QueryResult]) -> Answer:
    reader = opened.rows()
    result = opened.read(name, lambda: tool(reader), lambda result: result.rows)
    tell_session(opened.store, values["session"], result.session)

    def draw(out: Printer) -> None:
        from ctxmgr.cli.views.entries import show_rows

        # If there are rows the view needs no page, so its model is not loaded.
        show_rows(out, [_build_view(row) for row in result.rows], None if result.rows else build_page(result.page))

    return _page_answer(result, reader, draw)


def _search(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    store, reader, everywhere = opened.store, Rows(opened.store.engine, exact=opened.agent is not None), values["all_sessions"]
    request = make_request("search", "SearchRequest", values, max_results=values["max_"], exact_total=False)
    result = opened.read("search", lambda: tools.search(store, reader, request, _hit_row), lambda result: result.rows)
    # A search of all sessions used no particular one.
    if not everywhere:
        tell_session(store, values["session"], result.session)

    def draw(out: Printer) -> None:
        from ctxmgr.cli.views.entries import show_hits
        from ctxmgr.types.query import SearchHit

        hits = [SearchHit(field=hit["field"], excerpt=hit["excerpt"], row=_build_view(hit["row"])) for hit in result.rows]
        show_hits(out, hits, values["query"], build_page(result.page), everywhere=everywhere)

    warnings, following = slow_search(store.count_unindexed())
    return Answer(result.rows, draw, result.status, result.page, warnings, following)


def _hit_row(row: dict[str, Any], field: str, excerpt: str) -> dict[str, Any]:
    return {"field": field, "excerpt": excerpt, "row": row}


def _show(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    place, session = _parse_address(values["address"], values["session"])
    store, reader = opened.store, opened.rows()
    try:
        entry = opened.read("show", lambda: tools.show(store, reader, tools.PlainRequest(**place)), lambda entry: entry)
    except NotFound as missing:
        if place["entry_id"] is None:
            raise
        return _show_continuation(opened, session, place["entry_id"], missing)
    tell_session(store, session, entry["session"])

    def draw(out: Printer) -> None:
        from ctxmgr.cli.views.entries import show_entry

        show_entry(out, _build_view(entry), full=values["full"])

    answer = Answer(entry, draw, next=[f"ctxmgr messages {entry['session']}@{entry['index']}"] if entry["events"] else [])
    answer.texts = reader.texts
    return answer


def _show_continuation(opened: OpenedStore, session: str | None, identity: str, missing: NotFound) -> Answer:
    """Return a recorded continuation as `recover` shows it.

    Raises:
        NotFound: ``missing``, if no continuation has this id either.
    """
    key = None if session is None else opened.store.sessions.key(session)
    # Checked without a model first, so that an unknown id loads almost nothing.
    if (session is not None and key is None) or opened.store.annotations.continuation(key, identity) is None:
        raise missing
    from ctxmgr.cli.commands.recover import continuation_answer
    from ctxmgr.types.operations import RecoverResponse

    try:
        continuation = opened.workspace.continuation(session, identity)
    except NotFound:
        raise missing from None
    return continuation_answer(opened.workspace, RecoverResponse(continuation=continuation))


def _messages(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    address = values["address"]
    # Without an address the request covers the whole session; "@0" only passes the session through the parser.
    place, session = _parse_address(address or "@0", values["session"])
    if not address:
        place["index"] = None
    store, reader = opened.store, opened.rows()
    request = make_request("messages", "MessagesRequest", values, **place)
    result = opened.read(
        "messages", lambda: tools.messages(store, reader, request), lambda result: [result.entry, *result.rows]
    )
    tell_session(store, session, result.session)

    def draw(out: Printer) -> None:
        from ctxmgr.cli.views.entries import show_messages
        from ctxmgr.types.query import MessagesResponse

        show_messages(
            out,
            MessagesResponse(
                status=result.status,
                session=result.session,
                entry=None if result.entry is None else _build_view(result.entry),
                messages=[_build_view(row) for row in result.rows],
                page=build_page(result.page),
            ),
        )

    return _page_answer(result, reader, draw)


def _parse_address(address: str, session: str | None) -> tuple[dict[str, Any], str | None]:
    from ctxmgr.cli.address import parse

    place = parse(address, session)
    return {"session": place.session, "index": place.index, "entry_id": place.entry_id}, place.session


HANDLERS: dict[str, Handler] = {
    "list": _list,
    "messages": _messages,
    "search": _search,
    "show": _show,
    "trace": _trace,
}
WRITES = frozenset({"note add", "record", "snapshot create"})
