"""``sessions``, ``detect`` and ``recover`` on the fast path, from cached answers.

Cached sessions and verdicts are shown without models; others are worked out as the commands do it. A recovery's answer is given
again where nothing has happened since: the same history gives the same answer (ruling 24), so neither the detectors nor the
recovery is loaded. That holds only for a request without options that could change the answer, see `ctxmgr.cli.recovery_cache`.
"""

from __future__ import annotations

from ctxmgr.cli.envelope import tell_session
from ctxmgr.cli.fast import Answer
from ctxmgr.cli.recovery_cache import find_config, find_settings
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.address import session_key
from ctxmgr.history.verdict_cache import STUCK, VerdictCache, worst_verdict
from ctxmgr.log.ids import parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store import Store
    from ctxmgr.types.view import EntryView
    from ctxmgr.workspace import Workspace


def _settings() -> dict[str, Any]:
    """Return the settings of detection that hold here."""
    config = find_config()
    return {} if config is None else dict(config.detect)


def _workspace(store: Store) -> Workspace:
    from pathlib import Path

    from ctxmgr.cli.invocation import disable_plugins

    disable_plugins()
    from ctxmgr.config import load_config
    from ctxmgr.workspace import Workspace

    return Workspace(store, load_config(Path.cwd()))


_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")


def _next_command(command: str, session: str, store: str | None) -> list[str]:
    """Return the command that may come next, as `session_command` spells it."""
    words = ["ctxmgr", command, "--session", session, *(["--store", store] if store is not None else [])]
    if all(word and _UNQUOTED.issuperset(word) for word in words):
        return [" ".join(words)]
    from ctxmgr.cli.views.layout import session_command  # what quotes takes longer to load

    return [session_command(command, session, store)]


def _sessions(store: Store, values: dict[str, Any]) -> Answer | None:
    answer = _cached_sessions(store, values) if values["judge"] or values["stuck"] else None
    if answer is not None or values["drawn"]:
        return answer
    from ctxmgr.cli.detection import list_sessions

    asked = {name: values[name] for name in ("agent", "project", "since", "stuck", "offset", "limit", "judge")}
    found, following = list_sessions(_workspace(store), values["store"], **asked)
    answer = Answer([session.to_json() for session in found.sessions], found.status, found.page.to_json())
    answer.next += following
    return answer


def _cached_sessions(store: Store, values: dict[str, Any]) -> Answer | None:
    """Return a page of sessions whose verdicts are all kept, or None."""
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
            if row is None:  # one that is not cached loads the detectors, which then judge the others as quickly
                return None
            rows.append(row)
    finally:
        kept.close()
    if values["stuck"]:
        stuck = [row for row in rows if row["verdict"] in STUCK]
        rows, total = stuck[offset : offset + limit], len(stuck)
    else:
        total = store.sessions.count(*chosen)
    if values["drawn"] and not rows:
        return None
    answer = Answer(rows, "ok" if rows else "empty", (offset, limit, len(rows), total, True))
    answer.draw = lambda out: _show_sessions(out, rows)
    first_wrong = next((row["session"] for row in rows if row["verdict"] != "healthy"), None)
    answer.next += [] if first_wrong is None else _next_command("detect", first_wrong, values["store"])
    return answer


def _show_sessions(out: Printer, rows: list[dict[str, Any]]) -> None:
    import time

    from ctxmgr.cli.views.sessions import show_sessions
    from ctxmgr.types.view import SessionView

    show_sessions(out, [SessionView.model_validate(row) for row in rows], None, time.time())


def _detect(store: Store, values: dict[str, Any]) -> Answer | None:
    answer = None if values["now"] or values["set_"] or values["ever"] else _cached_verdicts(store, values)
    if answer is not None or values["drawn"]:
        return answer
    from ctxmgr.cli.detection import run_detection

    done = run_detection(
        _workspace(store),
        values["session"],
        values["now"],
        values["set_"],
        all_sessions=values["all_sessions"],
        ever=values["ever"],
        exit_zero=values["exit_zero"],
        store=values["store"],
    )
    answer = Answer([verdict.to_json() for verdict in done.verdicts], done.status)
    answer.warnings += done.found.notes
    answer.next += done.next
    answer.code = int(done.code)
    return answer


def _cached_verdicts(store: Store, values: dict[str, Any]) -> Answer | None:
    """Return the verdicts that were asked for where all of them are kept, or None."""
    if values["all_sessions"]:
        chosen = store.sessions.keys(0, None)
    else:
        key = session_key(store, values["session"])
        chosen = [] if key is None else [(key, store.sessions.name(key))]
    kept = VerdictCache(store, _settings())
    answer = Answer([])
    try:
        for key, session in chosen:
            found = kept.verdict(key, session)
            if found is None:
                return None
            answer.data.append(found["verdict"])
            answer.warnings += [f"{session}: {note}" for note in found["notes"]]
    finally:
        kept.close()
    # The command's own function says that there is nothing to judge.
    if not answer.data:
        return None
    if len(answer.data) == 1:
        tell_session(store, values["session"], answer.data[0]["session"])
    worst = worst_verdict(verdict["verdict"] for verdict in answer.data)
    wrong = [each["session"] for each in answer.data if each["verdict"] not in ("healthy", "warn")]
    wrong = wrong or [each["session"] for each in answer.data if each["notes"]]
    answer.next += _next_command("recover", wrong[0], values["store"]) if wrong else []
    if values["drawn"]:
        from ctxmgr.cli.views.findings import show_findings
        from ctxmgr.history.detection import named_entries
        from ctxmgr.types.finding import SessionVerdict

        verdicts = [SessionVerdict.model_validate(verdict) for verdict in answer.data]
        entries: dict[str, EntryView] = {}
        for (key, _), verdict in zip(chosen, verdicts, strict=True):
            named_entries(store, key, verdict, entries)
        answer.draw = lambda out: show_findings(out, verdicts, entries, values["store"])
    if not values["exit_zero"] and (worst in STUCK or store.unread()):
        from ctxmgr.cli.exits import VERDICTS, Exit

        # A verdict with code 0 comes here only because a part of the log was not read.
        answer.code = int(VERDICTS[worst] or Exit.PARTIAL)
        answer.status = "partial" if answer.code == Exit.PARTIAL else answer.status
    return answer


TOOLS: dict[str, Callable[[Store, dict[str, Any]], Answer | None]] = {"detect": _detect, "sessions": _sessions}


def recover(store: Store, values: dict[str, Any]) -> Answer | None:
    """Return the cached continuation, or None where the recovery has to run."""
    settings = None if values["now"] else find_settings()
    if settings is None:
        return None
    try:
        key = session_key(store, values["session"])
        session = None if key is None else store.sessions.name(key)
        # A lease means that a recovery is running: the command itself refuses then.
        if key is None or session is None or store.leases.expiry(session, store.clock()) is not None:
            return None
    except CtxmgrError:  # told by the command itself
        return None
    kept = VerdictCache(store, settings)
    try:
        cached = kept.continuation(key, session)
    finally:
        kept.close()
    if cached is None:
        return None
    answer = Answer(cached["data"])
    answer.warnings += cached["warnings"]
    answer.draw = lambda out: out.block(cached["prompt"])
    return answer
