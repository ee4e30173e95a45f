"""Read sessions, their agents and their processes (FR-026)."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, candidates
from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast, json_object, text_or_empty, text_or_none
from ctxmgr.store.engine.dialect import NO_LIMIT
from ctxmgr.store.project_session import PROJECT, require_not_archived
from ctxmgr.store.row_mapper import load, only_row, placeholders
from ctxmgr.store.text_normalisation import fold, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.types.view import ProcessView, SessionView

_COLUMNS = "SELECT key, id, workflow, source, meta, entries, first, last, events FROM session "
_FAILED = ("error", "denied", "interrupted")
# `json_extract` fails the whole statement at a text that is not JSON. One altered row must not hide all sessions.
_FOLDER = "CASE WHEN json_valid(meta) AND json_type(meta, '$.cwd') = 'text' THEN json_extract(meta, '$.cwd') END"
# The basename of the folder, for which SQLite has no function. The inner rtrim removes all trailing characters but slashes,
# which leaves the parent folder; replace then removes the parent from the path.
_LAST_OF_FOLDER = f"replace(rtrim({_FOLDER}, '/'), rtrim(rtrim({_FOLDER}, '/'), replace(rtrim({_FOLDER}, '/'), '/', '')), '')"
_GOAL = _FOLDER.replace("$.cwd", "$.goal")
_ORIGIN = f"SELECT key, id, workflow, source IS NOT NULL, {_FOLDER}, entries, first, {_GOAL} FROM session"


class Origin:
    """The origin of a session.

    Attributes:
        imported: whether an importer read it. Importers name the workflow after the tool.
        folder: the folder in which the agent worked; None if unknown.
        entries: the number of entries.
        first: the time of its first record in seconds since 1970, or None.
        goal: the goal that it was begun for; None if it names none.
    """

    __slots__ = ("entries", "first", "folder", "goal", "imported", "key", "session", "workflow")

    def __init__(self, row: Row) -> None:
        self.key = int(row[0])
        self.session = str(row[1])
        self.workflow: str | None = row[2]
        self.imported = bool(row[3])
        self.folder: str | None = row[4]
        self.entries = int(row[5])
        self.first: float | None = row[6]
        self.goal: str | None = row[7]


_MESSAGE_TYPES = frozenset({"message", "agent_message_chunk", "user_message", "user_message_chunk"})


class Sessions:
    """The sessions of a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def key(self, session: str) -> int | None:
        """Return the integer key of a session by its id or an unambiguous prefix, or None.

        The reserved session is found by its whole id only.

        Raises:
            InvalidInput: several ids have this prefix, or the session was archived.
        """
        rows = self._engine.query("SELECT key FROM session WHERE id = :id", {"id": storable(session)})
        if not rows and session:
            # Check only now, because a session is either in the store or archived, never both.
            require_not_archived(self._engine, storable(session))
            rows = self._engine.query(
                "SELECT key, id FROM session WHERE id >= :id AND id < :after AND id <> :project ORDER BY id LIMIT 6",
                {"id": storable(session), "after": storable(session) + "\U0010ffff", "project": PROJECT},
            )
        if len(rows) > 1:
            raise InvalidInput(f"several session ids start with {session!r}", candidates([str(row[1]) for row in rows]))
        return int(rows[0][0]) if rows else None

    def latest(self) -> int | None:
        """Return the key of the session with the latest activity, or None in an empty store. Ignores the reserved session."""
        # NULLS LAST, because PostgreSQL would sort sessions without a time first.
        rows = self._engine.query(
            "SELECT key FROM session WHERE id <> :project ORDER BY last DESC NULLS LAST, seq DESC LIMIT 1",
            {"project": PROJECT},
        )
        return int(rows[0][0]) if rows else None

    def name(self, key: int) -> str:
        """Return the id of the session with this key."""
        return str(only_row(self._engine.query("SELECT id FROM session WHERE key = :key", {"key": key}))[0])

    def entry_count(self, key: int) -> int:
        """Return the number of entries of a session."""
        return int(only_row(self._engine.query("SELECT entries FROM session WHERE key = :key", {"key": key}))[0])

    def event_count(self, key: int) -> int:
        """Return the number of events of a session."""
        return int(only_row(self._engine.query("SELECT events FROM session WHERE key = :key", {"key": key}))[0])

    def failures_in_row(self, key: int) -> int:
        """Return the number of failed or denied actions since a session's last action that was ok or interrupted."""
        rows = self._engine.query(
            "SELECT count(*) FROM entry WHERE session = :key AND status IN ('error', 'denied') AND idx > coalesce("
            "(SELECT max(idx) FROM entry WHERE session = :key AND status IN ('ok', 'interrupted')), -1)",
            {"key": key},
        )
        return int(rows[0][0])

    def last_error(self, key: int) -> dict[str, Any] | None:
        """Return the data of the error event with which a session ends; None without one, or if an entry or message follows."""
        done = self._engine.query("SELECT coalesce(max(seq), 0) FROM entry WHERE session = :key", {"key": key})
        rows = self._engine.query(
            # Limited, because a run that hangs may end in thousands of heartbeats.
            "SELECT seq, type FROM event WHERE session = :key AND seq > :done ORDER BY seq DESC LIMIT 30",
            {"key": key, "done": done[0][0]},
        )
        for seq, kind in rows:
            if kind in _MESSAGE_TYPES:
                return None
            if kind == "error":
                body = self._engine.query(
                    "SELECT body FROM record WHERE seq = :seq AND session = :key", {"seq": seq, "key": key}
                )
                return json_object(load(body[0][0]).get("data"))
        return None

    def last_moment(self, key: int) -> float | None:
        """Return the latest timestamp of a session's records in seconds since 1970, or None if no record has one."""
        last = only_row(self._engine.query("SELECT last FROM session WHERE key = :key", {"key": key}))[0]
        return None if last is None else float(last)

    def count(self, agent: str | None = None, project: str | None = None, since: float | None = None) -> int:
        """Return the number of sessions that `page` selects."""
        where, values = _choose(agent, project, since)
        return int(self._engine.query(f"SELECT count(*) FROM session {where}", values)[0][0])

    def keys(
        self, offset: int, limit: int | None, agent: str | None = None, project: str | None = None, since: float | None = None
    ) -> list[tuple[int, str]]:
        """Return (key, id) of sessions, selected and ordered as by `page`."""
        where, values = _choose(agent, project, since)
        rows = self._engine.query(
            f"SELECT key, id FROM session {where} ORDER BY last DESC NULLS LAST, seq DESC LIMIT :limit OFFSET :offset",
            {**values, "limit": NO_LIMIT if limit is None else limit, "offset": offset},
        )
        return [(int(row[0]), str(row[1])) for row in rows]

    def last_record(self, key: int | None) -> tuple[int, str | None]:
        """Return place and checksum of the last record of a session, or of the store if ``key`` is None; (0, None) without one.

        The checksum covers the records of its chain up to there: those of its session, in a log those of all sessions.
        """
        where = "" if key is None else "WHERE session = :key "
        sql = f"SELECT seq, sum FROM record {where}ORDER BY seq DESC LIMIT 1"
        rows = self._engine.query(sql, {} if key is None else {"key": key})
        return (int(rows[0][0]), rows[0][1]) if rows else (0, None)

    def page(
        self, offset: int, limit: int | None, agent: str | None = None, project: str | None = None, since: float | None = None
    ) -> list[tuple[int, SessionView]]:
        """Return (key, session), latest activity first, without the reserved session.

        Args:
            offset: number of sessions to skip.
            limit: largest number of sessions; None for all.
            agent: select sessions in which this agent acted.
            project: select sessions that worked in this folder, or in a folder of this name.
            since: select sessions with a record from this time on, in seconds since 1970.
        """
        where, values = _choose(agent, project, since)
        rows = self._engine.query(
            f"{_COLUMNS} {where} ORDER BY last DESC NULLS LAST, seq DESC LIMIT :limit OFFSET :offset",
            {**values, "limit": NO_LIMIT if limit is None else limit, "offset": offset},
        )
        return [(int(row[0]), self._view(row)) for row in rows]

    def view(self, key: int) -> SessionView:
        """Return one session."""
        return self._view(only_row(self._engine.query(f"{_COLUMNS} WHERE key = :key", {"key": key})))

    def _view(self, row: Row) -> SessionView:
        from ctxmgr.types.view import SessionView

        key = int(row[0])
        processes = self.processes(key)
        names, values = placeholders(("open", *_FAILED), "status")
        failures = f"SELECT status, count(*) FROM entry WHERE session = :key AND status IN ({names}) GROUP BY status"
        status = dict(self._engine.query(failures, {"key": key, **values}))
        notes = self._engine.query("SELECT count(*) FROM record WHERE session = :key AND kind = 'note'", {"key": key})
        named = json_object(_value(row[4]))
        if (capture := self._capture(key)) is not None:
            named = {**named, "capture": capture}
        outcomes = [process.outcome for process in processes]
        return SessionView(
            session=row[1], workflow=row[2], source=_value(row[3]),
            title=str(named["title"]) if named.get("title") else None, processes=processes, agents=self.agents(key),
            project=str(named["cwd"]) if isinstance(named.get("cwd"), str) else None,
            entries=int(row[5]), open=int(status.get("open", 0)),
            failed=sum(int(status.get(name, 0)) for name in _FAILED),
            events=int(row[8]), notes=int(notes[0][0]), started=_time(row[6]), last=_time(row[7]), live=False,
            outcome=outcomes[-1] if outcomes else None, usage=self.usage(key), meta=named or None,
        )  # fmt: skip

    def head(self, key: int) -> tuple[str | None, str | None]:
        """Return (title, folder) of a session, each None if unknown."""
        meta = only_row(self._engine.query("SELECT meta FROM session WHERE key = :key", {"key": key}))[0]
        named = json_object(_value(meta))
        return str(named["title"]) if named.get("title") else None, text_or_none(named.get("cwd"))

    def _capture(self, key: int) -> Any:
        """Return {published, captured, lost} of the last process that was recorded from an event bus, or None."""
        rows = self._engine.query(
            # With the plus SQLite does not follow the order of places, which would scan all records of an open session.
            "SELECT body FROM record WHERE session = :key "
            "AND seq = (SELECT max(+seq) FROM record WHERE session = :key AND kind = 'sessionEnd')",
            {"key": key},
        )
        return load(rows[0][0]).get("capture") if rows else None

    def agents(self, key: int) -> list[str]:
        """Return the agents that acted in a session, in order of appearance."""
        rows = self._engine.query(
            "SELECT record.body FROM record WHERE record.session = :key AND record.seq IN "
            # Read the names from the first entries' records, because the table has folded names only.
            "(SELECT min(seq) FROM entry WHERE session = :key GROUP BY agent) ORDER BY record.seq",
            {"key": key},
        )
        return [str(load(row[0]).get("agent", "")) for row in rows]

    def processes(self, key: int) -> list[ProcessView]:
        """Return the processes of a session in the order in which they appeared."""
        from ctxmgr.types.view import ProcessView

        rows = self._engine.query(
            "SELECT process, started, outcome FROM process WHERE session = :key ORDER BY seq", {"key": key}
        )
        return [ProcessView(process=row[0] or None, started=row[1], outcome=row[2]) for row in rows]

    def of_process(self, process: str) -> list[str]:
        """Return the ids of the sessions that this process executed (FR-026)."""
        rows = self._engine.query(
            # In the order of the log. In a partial copy, the order of keys would reveal when a session first became visible.
            "SELECT session.id FROM process JOIN session ON session.key = process.session WHERE process.process = :process "
            "ORDER BY process.seq",
            {"process": storable(process)},
        )
        return [str(row[0]) for row in rows] if process else []

    def by_process(self, process: str) -> list[int]:
        """Return the keys of up to three sessions that this process executed, or else a process whose id has this prefix."""
        # First the exact id, because it may be a prefix of another one.
        for condition in ("process.process = :process", "process.process > :process AND process.process < :after"):
            rows = self._engine.query(
                # In the order of the log, as above.
                f"SELECT process.session FROM process WHERE {condition} "
                "GROUP BY process.session ORDER BY min(process.seq) LIMIT 3",
                {"process": storable(process), "after": storable(process) + "\U0010ffff"},
            )
            if rows or not process:
                return [int(row[0]) for row in rows]
        return []

    def of_entry(self, entry_id: str) -> list[int]:
        """Return the keys of up to three sessions with an entry whose id has this prefix.

        The reserved session counts only if there is no other.
        """
        rows = self._engine.query(
            "SELECT DISTINCT record.session, session.id FROM record JOIN session ON session.key = record.session "
            # Three sessions and the reserved one.
            "WHERE record.id >= :id AND record.id < :after AND record.kind = 'entry' LIMIT 4",
            {"id": storable(entry_id), "after": storable(entry_id) + "\U0010ffff"},
        )
        others = [int(row[0]) for row in rows if row[1] != PROJECT]
        return others[:3] or [int(row[0]) for row in rows]

    def others(self, key: int, most: int) -> tuple[Origin, list[Origin]]:
        """Return the origins of a session and of up to ``most`` others, latest activity first.

        If the session's folder is known, sessions of other folders are left out.
        """
        own = Origin(only_row(self._engine.query(f"{_ORIGIN} WHERE key = :key", {"key": key})))
        where, values = "", {"key": key, "project": PROJECT, "most": most}
        if own.folder is not None:
            # Sessions without a known folder stay, because they may be of this one.
            where, values = f" AND coalesce({_FOLDER}, :folder) = :folder", {**values, "folder": own.folder}
        rows = self._engine.query(
            f"{_ORIGIN} WHERE key <> :key AND id <> :project{where} ORDER BY last DESC NULLS LAST, seq DESC LIMIT :most", values
        )
        return own, [Origin(row) for row in rows]

    def first_message(self, key: int) -> Record | None:
        """Return the first message of a person in a session, or None."""
        rows = self._engine.query(
            "SELECT body FROM record WHERE session = :key AND seq = (SELECT seq FROM event WHERE session = :key "
            "AND type IN ('user_message', 'user_message_chunk') ORDER BY seq LIMIT 1)",
            {"key": key},
        )
        return load(rows[0][0]) if rows else None

    def first_words(self, key: int) -> str:
        """Return the text of the first message of a person in a session, or ""."""
        record = self.first_message(key)
        data: Any = None if record is None else record.get("data")
        return text_or_empty(cast("dict[str, Any]", data).get("text") if isinstance(data, dict) else data)

    def usage(self, key: int) -> dict[str, int]:
        """Return the session's tokens: those of each model response, plus those that results and finished entries report."""
        sums = self._engine.query("SELECT sum(input), sum(output) FROM usage WHERE session = :key", {"key": key})[0]
        return {
            name: int(total) for name, total in zip(("inputTokens", "outputTokens"), sums, strict=True) if total is not None
        }

    def holds(self, key: int, kinds: tuple[str, ...]) -> bool:
        """Whether a session has a record of one of these kinds."""
        names = ", ".join(f"'{kind}'" for kind in kinds)
        return bool(
            self._engine.query(f"SELECT 1 FROM record WHERE session = :key AND kind IN ({names}) LIMIT 1", {"key": key})
        )

    def records(self, key: int | None, kinds: tuple[str, ...] = ()) -> Iterator[Record]:
        """Yield the records of a session, or of all if ``key`` is None, in the order of the log, without their checksums."""
        conditions = ["TRUE"]
        if key is not None:
            conditions.append("session = :key")
        if kinds:
            conditions.append("kind IN ({})".format(", ".join(f"'{kind}'" for kind in kinds)))
        sql = f"SELECT body FROM record WHERE {' AND '.join(conditions)} ORDER BY seq"
        for (body,) in self._engine.stream(sql, {} if key is None else {"key": key}):
            yield load(body)

    def read_records_from(self, key: int, index: int, kinds: tuple[str, ...]) -> Iterator[Record]:
        """Yield the records of these kinds in a session, beginning with the entry at an index, in the order of the log."""
        if index <= 0:
            yield from self.records(key, kinds)
            return
        names = ", ".join(f"'{kind}'" for kind in kinds)
        sql = (
            "SELECT body FROM record WHERE session = :key "
            f"AND seq >= (SELECT seq FROM entry WHERE session = :key AND idx = :index) AND kind IN ({names}) ORDER BY seq"
        )
        for (body,) in self._engine.stream(sql, {"key": key, "index": index}):
            yield load(body)

    def find_open_entries(self, key: int, index: int) -> list[tuple[int, Record]]:
        """Return (index, record) of up to 200 newest entries before an index that have no result yet, in order."""
        rows = self._engine.query(
            "SELECT entry.idx, record.body FROM entry JOIN record ON record.seq = entry.seq AND record.session = entry.session "
            "WHERE entry.session = :key AND entry.status = 'open' AND entry.idx < :index ORDER BY entry.idx DESC LIMIT 200",
            {"key": key, "index": index},
        )
        return [(int(row[0]), load(row[1])) for row in reversed(rows)]


def _choose(agent: str | None, project: str | None, since: float | None) -> tuple[str, dict[str, Any]]:
    where = "WHERE id <> :project"
    values: dict[str, Any] = {"project": PROJECT}
    if agent is not None:
        where += " AND EXISTS (SELECT 1 FROM entry WHERE entry.session = session.key AND entry.agent = :agent)"
        values["agent"] = fold(agent)
    if project is not None:
        # The root folder keeps its slash.
        whole = storable(project).rstrip("/") or "/"
        # A name without a slash selects every folder of that name, wherever it is.
        where += f" AND rtrim({_FOLDER}, '/') = :folder" if "/" in whole else f" AND {_LAST_OF_FOLDER} = :folder"
        values["folder"] = whole
    if since is not None:
        where += " AND last >= :since"
        values["since"] = since
    return where, values


# An altered row must not hide all sessions. These functions leave out unreadable values, which `verify` finds.


def _value(text: object) -> Any:
    try:
        return fast_json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None


def _time(seconds: float | None) -> str | None:
    from ctxmgr.log.ids import time_or_none

    return time_or_none(seconds) if isinstance(seconds, int | float) else None
