"""The handlers of ``sessions`` and ``detect``, and the cached answers of ``recover``.

Cached sessions and verdicts are shown without loading the detectors; `ctxmgr.cli.detection` computes the others. A recovery's
answer is repeated if nothing has happened since, because the same history gives the same answer (ruling 24). Neither the
detectors nor the recovery is loaded then. This holds only for requests without options that could change the answer, see
`ctxmgr.cli.recovery_cache`.
"""

from __future__ import annotations

from ctxmgr.cli.envelope import Answer, group_notes, session_choice
from ctxmgr.cli.fast.rows import admits, build_page
from ctxmgr.cli.recovery_cache import find_config, find_settings
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.address import session_key
from ctxmgr.history.verdict_cache import STUCK, VerdictCache, worst_verdict
from ctxmgr.log.ids import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ctxmgr.cli.fast.rows import Handler, OpenedStore
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store import Store
    from ctxmgr.types.query import Page
    from ctxmgr.types.view import EntryView, SessionView


def _settings() -> dict[str, Any]:
    """Return the settings of detection in the current folder."""
    config = find_config()
    return {} if config is None else dict(config.detect)


_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")


def _next_command(command: str, session: str | None, store: str | None) -> list[str]:
    """Return the command to suggest next, as `session_command` spells it; nothing without a session."""
    if session is None:
        return []
    words = ["ctxmgr", command, "--session", session, *(["--store", store] if store is not None else [])]
    if all(word and _UNQUOTED.issuperset(word) for word in words):
        return [" ".join(words)]
    from ctxmgr.cli.views.layout import session_command  # slow to load

    return [session_command(command, session, store)]


def _sessions(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    # The request below refuses values that it does not admit.
    judged = opened.agent is None and (values["judge"] or values["stuck"])
    answer = _cached_sessions(opened.store, values) if judged and admits("sessions", values) else None
    if answer is not None:
        return answer
    from ctxmgr.cli.requests import build
    from ctxmgr.types.operations import SessionsRequest

    asked = {name: values[name] for name in ("agent", "project", "since", "stuck", "offset", "limit", "judge")}
    found = opened.workspace.sessions(build(SessionsRequest, **asked))
    first_wrong = next((row.session for row in found.sessions if row.verdict not in (None, "healthy")), None)
    following = _next_command("detect", first_wrong, values["store"])
    rows = [session.to_json() for session in found.sessions]
    return Answer(rows, lambda out: _show_sessions(out, found.sessions, found.page), found.status, found.page, next=following)


def _cached_sessions(store: Store, values: dict[str, Any]) -> Answer | None:
    """Return a page of sessions if all their verdicts are cached, else None."""
    since = values["since"]
    if since is not None:
        import time

        from ctxmgr.cli.requests import moment

        since = parse_time(moment(since, time.time()))
    chosen = values["agent"], values["project"], since
    offset, limit = values["offset"], values["limit"]
    kept = VerdictCache(store, _settings())
    rows: list[dict[str, Any]] = []
    try:
        for key, session in store.sessions.keys(*((0, None) if values["stuck"] else (offset, limit)), *chosen):
            row = kept.row(key, session)
            if row is None:  # an uncached session loads the detectors, which judge the others as quickly
                return None
            rows.append(row)
    finally:
        kept.close()
    if values["stuck"]:
        stuck = [row for row in rows if row["verdict"] in STUCK]
        rows, total = stuck[offset : offset + limit], len(stuck)
    else:
        total = store.sessions.count(*chosen)
    page = offset, limit, len(rows), total, True

    def draw(out: Printer) -> None:
        from ctxmgr.types.view import SessionView

        _show_sessions(out, [SessionView.model_validate(row) for row in rows], None if rows else build_page(page))

    first_wrong = next((row["session"] for row in rows if row["verdict"] != "healthy"), None)
    following = _next_command("detect", first_wrong, values["store"])
    return Answer(rows, draw, "ok" if rows else "empty", page, next=following)


def _show_sessions(out: Printer, sessions: list[SessionView], page: Page | None) -> None:
    import time

    from ctxmgr.cli.views.sessions import show_sessions

    show_sessions(out, sessions, page, time.time())


def _detect(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    cacheable = opened.agent is None and not (values["now"] or values["set_"] or values["ever"])
    answer = _cached_verdicts(opened, values) if cacheable else None
    if answer is not None:
        return answer
    from ctxmgr.cli.detection import run_detection

    done = run_detection(
        opened.workspace,
        values["session"],
        values["now"],
        values["set_"],
        all_sessions=values["all_sessions"],
        ever=values["ever"],
        exit_zero=values["exit_zero"],
        store=values["store"],
    )

    def draw(out: Printer) -> None:
        from ctxmgr.cli.views.findings import show_findings

        show_findings(out, done.verdicts, done.found.entries, values["store"])

    rows = [verdict.to_json() for verdict in done.verdicts]
    return Answer(rows, draw, done.status, warnings=done.found.notes, next=done.next, code=done.code)


def _cached_verdicts(opened: OpenedStore, values: dict[str, Any]) -> Answer | None:
    """Return the requested verdicts if all of them are cached, else None."""
    store = opened.store
    if values["all_sessions"]:
        chosen = store.sessions.keys(0, None)
    else:
        key = session_key(store, values["session"])
        chosen = [] if key is None else [(key, store.sessions.name(key))]
    kept = VerdictCache(store, _settings())
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    try:
        for key, session in chosen:
            found = kept.verdict(key, session)
            if found is None:
                return None
            rows.append(found["verdict"])
            warnings += [f"{session}: {note}" for note in found["notes"]]
    finally:
        kept.close()
    if not rows:  # the detection reports that there is nothing to judge
        return None
    warnings = group_notes(warnings)
    if not values["all_sessions"]:
        warnings[:0] = session_choice(store, values["session"], rows[0]["session"])
    draw = _drawing(opened, chosen, rows, values["store"]) if opened.how.draws else _draw_nothing
    wrong = [each["session"] for each in rows if each["verdict"] not in ("healthy", "warn")]
    wrong = wrong or [each["session"] for each in rows if each["notes"]]
    following = _next_command("recover", wrong[0], values["store"]) if wrong else []
    answer = Answer(rows, draw, warnings=warnings, next=following)
    worst = worst_verdict(verdict["verdict"] for verdict in rows)
    if not values["exit_zero"] and (worst in STUCK or store.unread_parts()):
        from ctxmgr.cli.exits import VERDICTS, Exit

        # A verdict with exit code 0 is here only because a part of the log was not read.
        answer.code = int(VERDICTS[worst] or Exit.PARTIAL)
        answer.status = "partial" if answer.code == Exit.PARTIAL else answer.status
    return answer


def _drawing(
    opened: OpenedStore, chosen: Iterable[tuple[int, str]], rows: list[dict[str, Any]], store: str | None
) -> Callable[[Printer], None]:
    """Return a function that draws cached verdicts; the entries that they name are read now, while the store is open."""
    from ctxmgr.cli.views.findings import show_findings
    from ctxmgr.history.detection import named_entries
    from ctxmgr.types.finding import SessionVerdict

    verdicts = [SessionVerdict.model_validate(row) for row in rows]
    entries: dict[str, EntryView] = {}
    for (key, _), verdict in zip(chosen, verdicts, strict=True):
        named_entries(opened.store, key, verdict, entries)
    return lambda out: show_findings(out, verdicts, entries, store)


def _draw_nothing(_: Printer) -> None:
    """Draw nothing, for an answer that is only written as rows."""


def recover(opened: OpenedStore, values: dict[str, Any]) -> Answer | None:
    """Return the cached continuation, or None if the recovery has to run."""
    store = opened.store
    settings = None if values["now"] else find_settings()
    if settings is None:
        return None
    try:
        key = session_key(store, values["session"])
        session = None if key is None else store.sessions.name(key)
        # A lease means that a recovery is running; the command itself then refuses.
        if key is None or session is None or store.leases.expiry(session, store.clock()) is not None:
            return None
    except CtxmgrError:  # the command itself reports it
        return None
    kept = VerdictCache(store, settings)
    try:
        cached = kept.continuation(key, session)
    finally:
        kept.close()
    if cached is None:
        return None
    choice = session_choice(store, values["session"], session)
    if values["prompt"] or not opened.how.draws:
        return Answer(cached["data"], lambda out: out.block(cached["prompt"]), warnings=[*choice, *cached["warnings"]])
    from ctxmgr.cli.commands.recover import continuation_answer
    from ctxmgr.types.operations import RecoverResponse
    from ctxmgr.types.route import Continuation

    told = Continuation.from_json(cached["data"]["continuation"]).model_copy(update={"told_again": True})
    answer = continuation_answer(opened.workspace, RecoverResponse(continuation=told), store=values["store"])
    answer.warnings[:0] = choice
    return answer


HANDLERS: dict[str, Handler] = {"detect": _detect, "recover": recover, "sessions": _sessions}
