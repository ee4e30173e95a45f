"""Functions of a PostgreSQL store that run on the server.

They draw places in the log, append in one round trip, and stand in for three JSON functions of SQLite.

A record's place (``seq``) is drawn from a sequence while the row of its session is locked. Within a session, places therefore
grow in the order of the commits. Over all sessions they are unique and may have gaps. Transactions of different sessions
commit in any order, so a reader of all sessions must stop at ``settled()``: records may still appear behind it.
"""

from __future__ import annotations

import re

from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.project_session import ARCHIVED

# The letters "ctmg". All programs that use a database share the numbers of advisory locks.
WRITERS = 0x63746D67
"""The advisory lock that a writing transaction holds until its end: shared if it only appends, exclusive otherwise."""

_PLACES = WRITERS + 1
"""First key of the advisory locks of transactions that drew places. The second key is the last place drawn before theirs."""

INDEXERS = WRITERS + 2
"""The advisory lock of a transaction that adds records to the search index."""

_QUEUES = WRITERS + 3
"""First key of the advisory locks on which appenders to one session queue. If they queued on the session row instead,
PostgreSQL would wake each of them twice, and they would start before it is their turn."""

BLOB_WRITERS = WRITERS + 4
"""The first half of the advisory locks, one a team, of whoever writes artifacts, on a connection that does nothing else."""

REFUSED = "CM001"
"""The SQLSTATE of an append that the client has to repeat step by step, e.g. because a result precedes its entry."""

# A body may hold JSON that PostgreSQL rejects, e.g. \\u0000. These functions then return FALSE or NULL.
JSON = (
    f"""CREATE FUNCTION {SCHEMA}.json_valid(body TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN body::json IS NOT NULL; EXCEPTION WHEN OTHERS THEN RETURN FALSE; END $$""",
    f"""CREATE FUNCTION {SCHEMA}.json_extract(body TEXT, path TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN body::json #>> string_to_array(substr(path, 3), '.'); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$""",
    f"""CREATE FUNCTION {SCHEMA}.json_type(body TEXT, path TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN CASE json_typeof(body::json #> string_to_array(substr(path, 3), '.')) WHEN 'string' THEN 'text' ELSE 'other' END;
EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$""",
)

# The lock is taken before the places are drawn, so the place that it names precedes all of them.
_DRAW = f"""CREATE FUNCTION {SCHEMA}.places(how_many BIGINT) RETURNS BIGINT[] LANGUAGE plpgsql AS $$
DECLARE behind BIGINT;
BEGIN
  SELECT last_value INTO behind FROM {SCHEMA}.place;
  PERFORM pg_advisory_xact_lock_shared({_PLACES}, behind::bit(32)::integer);
  RETURN (SELECT array_agg(nextval('{SCHEMA}.place')) FROM generate_series(1, how_many));
END $$"""

# The same lock as an expression: PL/pgSQL evaluates one in a fraction of the time of a statement.
_NAME_PLACE = (
    f"pg_advisory_xact_lock_shared({_PLACES}, coalesce(pg_sequence_last_value('{SCHEMA}.place'), 0)::bit(32)::integer)"
)

# The end is read before the locks, because a transaction that draws in between draws behind that end.
_SETTLED = f"""CREATE FUNCTION {SCHEMA}.settled() RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE ending BIGINT; ahead BIGINT;
BEGIN
  SELECT last_value INTO ending FROM {SCHEMA}.place;
  SELECT coalesce(max((ending - objid::bigint) & 4294967295), 0) INTO ahead FROM pg_locks
    WHERE locktype = 'advisory' AND classid = {_PLACES} AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
  RETURN ending - ahead;
END $$"""

# The client then appends step by step, which reports where the archived session is.
_REFUSE_ARCHIVED = f"""RAISE EXCEPTION 'the session was archived' USING ERRCODE = '{REFUSED}';"""
_NOT_ARCHIVED = f"""IF EXISTS (SELECT 1 FROM {SCHEMA}.state WHERE name = '{ARCHIVED}' || session_id) THEN
      {_REFUSE_ARCHIVED}
    END IF;"""

_TEXTS, _NUMBERS, _TIME = "TEXT[]", "BIGINT[]", "DOUBLE PRECISION"
APPEND = {
    "session_ids": _TEXTS, "earliest": f"{_TIME}[]", "latest": f"{_TIME}[]", "acted": _NUMBERS, "told": _NUMBERS,
    "said": _NUMBERS, "last_at": _NUMBERS, "step": "BIGINT",
    "owners": _NUMBERS, "kinds": _TEXTS, "ids": _TEXTS, "moments": f"{_TIME}[]", "bodies": _TEXTS,
    "open_at": _NUMBERS, "open_ids": _TEXTS,
    "entry_at": _NUMBERS, "numbers": _NUMBERS, "agents": _TEXTS, "actions": _TEXTS, "input_types": _TEXTS,
    "processes": _TEXTS, "statuses": _TEXTS, "results": _NUMBERS,
    "event_at": _NUMBERS, "types": _TEXTS, "speakers": _TEXTS, "abouts": _TEXTS, "afters": _NUMBERS, "said_at": _NUMBERS,
    "used_at": _NUMBERS, "reads": _NUMBERS, "writes": _NUMBERS,
    "done_at": _NUMBERS, "done_ids": _TEXTS, "done_statuses": _TEXTS,
    "begun_at": _NUMBERS, "begun": _TEXTS, "begun_when": _TEXTS, "ended_at": _NUMBERS, "ended": _TEXTS, "outcomes": _TEXTS,
    "described": _NUMBERS, "workflows": _TEXTS, "sources": _TEXTS, "metas": _TEXTS,
    "noted_at": _NUMBERS, "noted": _TEXTS, "tagged_at": _NUMBERS, "tags": _TEXTS,
    "succeeded_at": _NUMBERS, "succeeded": _TEXTS, "successors": _TEXTS,
    "sums_before": _TEXTS, "sums": _TEXTS,
}  # fmt: skip
"""The parameters of the function ``append`` and their types: new records of some sessions, each table as arrays of columns.

Names that end in ``_at`` hold positions of records in this batch, from 1 on.

- ``session_ids`` to ``last_at`` describe the sessions, in the order of their ids: times, counts and the last record of each.
- ``step`` is the number of rows from one milestone to the next.
- ``owners`` to ``bodies`` describe the records; an owner is the position of a session, from 1 on.
- ``open_at`` and ``open_ids`` name the entries whose result is not in this batch.
- The columns after them are rows of entries (``numbers`` count a session's new ones from 0), events, usage, results of earlier
  entries, new processes, the end of a process (or of all, without a name), workflow, source and meta of sessions, and notes
  (their entries, their tags, the notes that they supersede).
- ``sums`` are the records' checksums if the sessions' last ones are ``sums_before`` (empty for a new session). If not, the
  function calculates them.
"""

# Only an appender that has to wait gets a lock timeout, because setting one takes a tenth of the time of an append. Waiting for
# session rows needs no timeout here: the transactions that lock them have limits of their own.
_STAND_IN_LINE = f"""IF NOT (pg_try_advisory_xact_lock_shared({WRITERS}) AND {{alone}}) THEN
    PERFORM set_config('lock_timeout', '10s', TRUE), pg_advisory_xact_lock_shared({WRITERS});
    {{waiting}}
  END IF;"""
_LINE_OF_ONE = _STAND_IN_LINE.format(
    alone=f"pg_try_advisory_xact_lock({_QUEUES}, hashtext(session_id))",
    waiting=f"PERFORM pg_advisory_xact_lock({_QUEUES}, hashtext(session_id));",
)
_LINE_OF_BATCH = _STAND_IN_LINE.format(
    alone=f"cardinality(session_ids) = 1 AND pg_try_advisory_xact_lock({_QUEUES}, hashtext(session_ids[1]))",
    waiting=f"""IF cardinality(session_ids) = 1 THEN
      PERFORM pg_advisory_xact_lock({_QUEUES}, hashtext(session_ids[1]));
    END IF;""",
)

# An appender that had to wait commits without waiting for the disk, so that the appenders behind it can go on. The answer says
# so ("-"), and the client waits for the disk itself.
_CROWDED = """crowded := clock_timestamp() > asked + INTERVAL '1 millisecond';
  IF crowded THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);
  END IF;"""

# Add the milestones of one series of one session that had ``before`` rows and gets ``more``.
_MARK = f"""IF {{more}} > 0 AND ({{before}} + {{more}} - 1) / step * step >= {{before}} THEN
      INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
        SELECT keys[1], '{{series}}', number, places[({{rows}})[number - ({{before}}) + 1]]
        FROM generate_series(({{before}} + step - 1) / step * step, {{before}} + {{more}} - 1, step) AS number;
    END IF;"""
_MARKS_OF_ONE = "\n    ".join((
    _MARK.format(series="event", before="events_before[1]", more="told[1]", rows="event_at"),
    _MARK.format(series="message", before="messages_before[1]", more="said[1]", rows="said_at"),
    _MARK.format(
        series="all", before="(entries_before[1] + events_before[1])", more="(acted[1] + told[1])",
        rows="CASE told[1] WHEN 0 THEN entry_at ELSE ARRAY(SELECT at FROM unnest(entry_at || event_at) AS at ORDER BY at) END",
    ),
))  # fmt: skip

_COUNTED = (
    "entries = entries + acted[{0}], events = events + told[{0}], messages = messages + said[{0}], seq = places[last_at[{0}]], "
    "sum = sums[last_at[{0}]], first = least(first, earliest[{0}]), last = greatest(last, latest[{0}])"
)

# Checksums are chained while the sessions' rows are locked: by the client if it knew their last checksums, else here, which
# may take three times as long. Bodies are ASCII. Sessions are created before any is locked, both in the order of their ids, so
# there is no deadlock. Queues of several sessions at once could deadlock, so only a batch of one session joins a queue.
_APPEND = f"""CREATE FUNCTION {SCHEMA}.append(
  {", ".join(f"{name} {kind}" for name, kind in APPEND.items())}
) RETURNS TEXT LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  keys BIGINT[]; entries_before BIGINT[]; events_before BIGINT[]; messages_before BIGINT[];
  totals TEXT[];
  places BIGINT[];
  size INTEGER := cardinality(bodies);
  asked TIMESTAMPTZ := clock_timestamp();
  again BOOLEAN := FALSE; crowded BOOLEAN; foreseen BOOLEAN;
BEGIN
  {_LINE_OF_BATCH}
  LOOP
    IF again OR cardinality(session_ids) > 1 THEN
      IF (SELECT count(*) FROM {SCHEMA}.session WHERE id = ANY (session_ids)) < cardinality(session_ids) THEN
        IF EXISTS (SELECT 1 FROM unnest(session_ids) AS one(id) JOIN {SCHEMA}.state ON state.name = '{ARCHIVED}' || one.id) THEN
          {_REFUSE_ARCHIVED}
        END IF;
        INSERT INTO {SCHEMA}.session (id) SELECT one.id FROM unnest(session_ids) AS one(id)
          WHERE NOT EXISTS (SELECT 1 FROM {SCHEMA}.session WHERE session.id = one.id) ORDER BY one.id ON CONFLICT DO NOTHING;
      END IF;
    END IF;
    IF cardinality(session_ids) = 1 THEN
      SELECT ARRAY[key], ARRAY[entries], ARRAY[events], ARRAY[messages], ARRAY[coalesce(sum, '')]
        INTO keys, entries_before, events_before, messages_before, totals
        FROM {SCHEMA}.session WHERE id = session_ids[1] FOR NO KEY UPDATE;
    ELSE
      SELECT array_agg(own.key), array_agg(own.entries), array_agg(own.events), array_agg(own.messages),
          array_agg(coalesce(own.sum, ''))
        INTO keys, entries_before, events_before, messages_before, totals
        FROM (SELECT key, entries, events, messages, sum FROM {SCHEMA}.session WHERE id = ANY (session_ids)
          ORDER BY id FOR NO KEY UPDATE) AS own;
    END IF;
    EXIT WHEN cardinality(keys) = cardinality(session_ids);
    again := TRUE;
  END LOOP;
  {_CROWDED}
  IF cardinality(open_at) > 0 THEN  -- asked by itself: the database is not, where no entry is open
    IF EXISTS (SELECT 1 FROM unnest(open_at, open_ids) AS one(at, id) JOIN {SCHEMA}.record AS given
        ON given.session = keys[owners[one.at]] AND given.id = one.id AND given.kind = 'result') THEN
      RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
    END IF;
  END IF;
  foreseen := totals = sums_before;
  IF NOT foreseen THEN
    FOR at IN 1 .. size LOOP
      sums[at] := encode(substr(sha256(textsend(totals[owners[at]] || bodies[at])), 1, 8), 'hex');
      totals[owners[at]] := sums[at];
    END LOOP;
  END IF;
  again := {_NAME_PLACE} IS NULL;
  places := ARRAY(SELECT nextval('{SCHEMA}.place') FROM generate_series(1, size));
  INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
    SELECT places[at], keys[owners[at]], kinds[at], ids[at], moments[at], bodies[at], sums[at]
    FROM generate_series(1, size) AS at;
  IF cardinality(entry_at) > 0 THEN
    INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
      SELECT places[at], keys[owners[at]], entries_before[owners[at]] + numbers[n], agents[n], actions[n], input_types[n],
        processes[n], moments[at], statuses[n], places[results[n]]
      FROM unnest(entry_at) WITH ORDINALITY AS one(at, n);
  END IF;
  IF cardinality(event_at) > 0 THEN
    INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
      SELECT places[at], keys[owners[at]], types[n], speakers[n], abouts[n],
        coalesce(entries_before[owners[at]] + afters[n], nullif(entries_before[owners[at]] - 1, -1)), moments[at]
      FROM unnest(event_at) WITH ORDINALITY AS one(at, n);
  END IF;
  IF cardinality(used_at) > 0 THEN
    INSERT INTO {SCHEMA}.usage (session, seq, input, output)
      SELECT keys[owners[at]], places[at], reads[n], writes[n] FROM unnest(used_at) WITH ORDINALITY AS one(at, n);
  END IF;
  IF cardinality(done_at) > 0 THEN
    UPDATE {SCHEMA}.entry SET status = one.status, result = places[one.at]
      FROM unnest(done_at, done_ids, done_statuses) AS one(at, id, status), {SCHEMA}.record AS given
      WHERE given.session = keys[owners[one.at]] AND given.id = one.id AND given.kind = 'entry' AND entry.seq = given.seq
        AND entry.session = given.session AND entry.status = 'open';
  END IF;
  IF cardinality(begun_at) > 0 THEN
    INSERT INTO {SCHEMA}.process AS held (session, process, seq, started)
      SELECT keys[owners[one.at]], one.process, places[one.at], one.moment
      FROM unnest(begun_at, begun, begun_when) AS one(at, process, moment)
      ON CONFLICT (session, process) DO UPDATE SET started = excluded.started
        WHERE held.started IS NULL AND excluded.started IS NOT NULL;
  END IF;
  IF cardinality(ended_at) > 0 THEN
    UPDATE {SCHEMA}.process SET outcome = outcomes[1]
      WHERE session = keys[owners[ended_at[1]]] AND (ended[1] IS NULL OR process.process = ended[1]);
    IF NOT FOUND THEN
      INSERT INTO {SCHEMA}.process (session, process, seq, outcome)
        VALUES (keys[owners[ended_at[1]]], coalesce(ended[1], ''), places[ended_at[1]], outcomes[1]);
    END IF;
  END IF;
  IF cardinality(described) > 0 THEN
    UPDATE {SCHEMA}.session AS own SET workflow = coalesce(own.workflow, one.workflow),
        source = coalesce(own.source, one.source), meta = coalesce(own.meta, one.meta)
      FROM unnest(described, workflows, sources, metas) AS one(owner, workflow, source, meta) WHERE own.key = keys[one.owner];
  END IF;
  IF cardinality(noted_at) > 0 THEN
    INSERT INTO {SCHEMA}.note_entry (session, entry, note)
      SELECT keys[owners[one.at]], one.entry, places[one.at] FROM unnest(noted_at, noted) AS one(at, entry)
      ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(tagged_at) > 0 THEN
    INSERT INTO {SCHEMA}.note_tag (session, tag, note)
      SELECT keys[owners[one.at]], one.tag, places[one.at] FROM unnest(tagged_at, tags) AS one(at, tag)
      ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(succeeded_at) > 0 THEN
    INSERT INTO {SCHEMA}.superseded (session, note, successor)
      SELECT keys[owners[one.at]], one.note, one.successor
      FROM unnest(succeeded_at, succeeded, successors) AS one(at, note, successor) ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(keys) = 1 THEN
    {_MARKS_OF_ONE}
    UPDATE {SCHEMA}.session SET {_COUNTED.format("1")} WHERE key = keys[1];
  ELSE
    PERFORM {SCHEMA}.milestones('event', events_before, told, step, keys, owners, places, event_at),
      {SCHEMA}.milestones('message', messages_before, said, step, keys, owners, places, said_at),
      {SCHEMA}.milestones('all', array_agg(own.acts + own.tells), array_agg(own.new_acts + own.new_tells), step, keys, owners,
        places, entry_at || event_at)
      FROM unnest(entries_before, events_before, acted, told) AS own(acts, tells, new_acts, new_tells);
    UPDATE {SCHEMA}.session SET {_COUNTED.format("n")}
      FROM unnest(keys) WITH ORDINALITY AS one(key, n) WHERE session.key = one.key;
  END IF;
  RETURN CASE WHEN crowded THEN '-' ELSE '+' END || CASE WHEN foreseen THEN '' ELSE array_to_string(totals, ',') END;
END $$"""


APPEND_ONE = {
    "session_id": "TEXT", "new_kind": "TEXT", "new_id": "TEXT", "moment": _TIME, "new_body": "TEXT", "step": "BIGINT",
    "new_agent": "TEXT", "new_type": "TEXT", "new_input_type": "TEXT", "new_process": "TEXT", "begins": "BOOLEAN",
    "new_status": "TEXT", "about": "TEXT", "is_said": "BOOLEAN", "read": "BIGINT", "written": "BIGINT",
    "sum_before": "TEXT", "new_sum": "TEXT",
}  # fmt: skip
"""The parameters of the function ``append_one`` and their types: one record.

``new_type`` is the action of an entry or the type of an event. ``begins`` says whether its process may be new.
"""

# The rows of one record, of which ``own`` tells its session. The function and the quick statements below write the same ones.
_RECORD_ROW = f"""INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
        SELECT own.seq, own.key, new_kind, new_id, moment, new_body, own.sum FROM own"""
_ENTRY_ROW = f"""INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
        SELECT own.seq, own.key, own.entries - 1, new_agent, new_type, new_input_type, new_process, moment,
          coalesce(new_status, 'open'), CASE WHEN new_status IS NULL THEN NULL ELSE own.seq END FROM own"""
_EVENT_ROW = f"""INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
        SELECT own.seq, own.key, new_type, new_agent, about, nullif(own.entries - 1, -1), moment FROM own"""
_DONE = f"""UPDATE {SCHEMA}.entry SET status = new_status, result = {{own}}.seq FROM {{beside}}{SCHEMA}.record AS given
        WHERE given.id = new_id AND given.kind = 'entry' AND given.session = {{own}}.key AND entry.seq = given.seq
          AND entry.session = {{own}}.key AND entry.status = 'open'"""
_RESULT_BEFORE = f"""EXISTS (SELECT 1 FROM {SCHEMA}.record
          WHERE record.id = new_id AND record.kind = 'result' AND record.session = {{own}}.key)"""

# One statement appends one record, because starting a statement costs as much as three rows in an index.
# If another transaction changed the session row meanwhile, PostgreSQL evaluates nextval again, so the place lies behind that
# transaction's.
_OWN = f"""WITH own AS (
      UPDATE {SCHEMA}.session SET entries = entries + acts, events = events + tells, messages = messages + says,
        seq = nextval('{SCHEMA}.place'), first = least(first, moment), last = greatest(last, moment),
        sum = CASE WHEN coalesce(sum, '') = sum_before THEN new_sum
          ELSE encode(substr(sha256(textsend(coalesce(sum, '') || new_body)), 1, 8), 'hex') END
        WHERE id = session_id RETURNING key, seq, entries, events, messages, sum
    ), given AS (
      {_RECORD_ROW}
    ), derived AS (
      {{derived}}
    )
    SELECT own.* INTO made FROM own;"""

# The entry of a result may have been committed while this append waited for the session. Only a new statement can see it.
_ONE_ENTRY, _ONE_EVENT, _ONE_RESULT = (_OWN.format(derived=rows) for rows in (_ENTRY_ROW, _EVENT_ROW, "SELECT 1"))

_APPEND_ONE = f"""CREATE FUNCTION {SCHEMA}.append_one(
  {", ".join(f"{name} {kind}" for name, kind in APPEND_ONE.items())}
) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
  made RECORD;
  acts BIGINT := (new_kind = 'entry')::integer;
  tells BIGINT := (new_kind = 'event')::integer;
  says BIGINT := is_said::integer;
  asked TIMESTAMPTZ := clock_timestamp();
  crowded BOOLEAN;
BEGIN
  -- What is assigned is evaluated in order, and in a fraction of the time of a statement.
  {_LINE_OF_ONE}
  crowded := {_NAME_PLACE} IS NULL;
  LOOP
    IF new_kind = 'entry' THEN
      {_ONE_ENTRY}
    ELSIF new_kind = 'event' THEN
      {_ONE_EVENT}
    ELSE
      {_ONE_RESULT}
    END IF;
    EXIT WHEN FOUND;
    {_NOT_ARCHIVED}
    INSERT INTO {SCHEMA}.session (id) VALUES (session_id) ON CONFLICT DO NOTHING;
  END LOOP;
  {_CROWDED}
  IF acts > 0 THEN
    IF new_status IS NULL THEN  -- asked by itself: the database is not, where the entry is complete
      IF {_RESULT_BEFORE.format(own="made")} THEN
        RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
      END IF;
    END IF;
    IF begins THEN
      INSERT INTO {SCHEMA}.process (session, process, seq) VALUES (made.key, new_process, made.seq) ON CONFLICT DO NOTHING;
    END IF;
  ELSIF tells = 0 THEN
    {_DONE.format(own="made", beside="")};
  END IF;
  IF read IS NOT NULL OR written IS NOT NULL THEN
    INSERT INTO {SCHEMA}.usage (session, seq, input, output) VALUES (made.key, made.seq, read, written);
  END IF;
  IF acts + tells > 0 AND (made.entries + made.events - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
      VALUES (made.key, 'all', made.entries + made.events - 1, made.seq);
  END IF;
  IF tells > 0 AND (made.events - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
      VALUES (made.key, 'event', made.events - 1, made.seq);
  END IF;
  IF says > 0 AND (made.messages - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
      VALUES (made.key, 'message', made.messages - 1, made.seq);
  END IF;
  RETURN CASE WHEN crowded THEN '-' ELSE '+' END || CASE WHEN made.sum = new_sum THEN '' ELSE made.sum END;
END $$"""

# What nearly every append of one record comes to, as a statement of its own: nobody waits, nobody else wrote in the session
# since the client did, and no milestone is due. If not, it finds no row and changes nothing, and the client calls the function.
# Since the checksum is still the client's own, all of the session was committed before this statement began, so it sees results
# and entries that came before. The locks are taken before any row is looked for.
_QUICK = f"""WITH own AS (
    UPDATE {SCHEMA}.session SET {{counted}}seq = nextval('{SCHEMA}.place'), first = least(first, moment),
        last = greatest(last, moment), sum = new_sum
      WHERE id = session_id AND sum = sum_before AND {{only}} AND (SELECT pg_try_advisory_xact_lock_shared({WRITERS})
        AND pg_try_advisory_xact_lock({_QUEUES}, hashtext(session_id)) AND {_NAME_PLACE} IS NOT NULL)
      RETURNING key, seq, entries, sum
  ), derived AS ({{derived}})
  {_RECORD_ROW}"""
_NO_MARK = "(entries + events) % step <> 0"
_QUICK_ENTRY = {"counted": "entries = entries + 1, ", "derived": _ENTRY_ROW}
_QUICK_STATEMENTS = {
    "entry": _QUICK.format(only=_NO_MARK, **_QUICK_ENTRY),
    "open": _QUICK.format(only=f"{_NO_MARK} AND NOT {_RESULT_BEFORE.format(own='session')}", **_QUICK_ENTRY),
    "event": _QUICK.format(
        counted="events = events + 1, messages = messages + is_said::integer, ",
        only=f"{_NO_MARK} AND events % step <> 0 AND (NOT is_said OR messages % step <> 0)",
        derived=_EVENT_ROW,
    ),
    "result": _QUICK.format(counted="", only="TRUE", derived=_DONE.format(own="own", beside="own, ")),
}


def _numbered(statement: str) -> bytes:
    """Return a statement with its parameters, which are those of `APPEND_ONE`, as numbers."""
    numbers = {name: f"${number}" for number, name in enumerate(APPEND_ONE, 1)}
    return re.sub("|".join(rf"\b{name}\b" for name in numbers), lambda found: numbers[found.group()], statement).encode()


QUICK = {kind: (f"ctxmgr_{kind}".encode(), _numbered(statement)) for kind, statement in _QUICK_STATEMENTS.items()}
"""Name and text of the statements that append one plain record, by its kind: ``entry`` (with its status), ``open`` (an entry
without), ``event`` and ``result``. They take the parameters `APPEND_ONE`. They add one row to ``record``, or change nothing."""

# Add the milestones of one series of several sessions: session i had ``before[i]`` rows and gets ``adds[i]``. The function
# first tests whether any milestone is reached, because few appends reach one.
_MILESTONES = f"""CREATE FUNCTION {SCHEMA}.milestones(
  series TEXT, before BIGINT[], adds BIGINT[], step BIGINT, keys BIGINT[], owners BIGINT[], places BIGINT[], rows BIGINT[]
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM unnest(before, adds) AS one(had, more) WHERE more > 0 AND (had + more - 1) / step * step >= had) THEN
    INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
      SELECT keys[one.owner], milestones.series, before[one.owner] + one.number, places[one.at]
      FROM (SELECT at, owners[at] AS owner, row_number() OVER (PARTITION BY owners[at] ORDER BY at) - 1 AS number
        FROM unnest(rows) AS at) AS one
      WHERE (before[one.owner] + one.number) % step = 0;
  END IF;
END $$"""

PLACED = (_DRAW, _SETTLED, _MILESTONES, _APPEND, _APPEND_ONE)
"""The functions that version 2 of the tables added."""

RENEWED = tuple(each.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) for each in PLACED)
"""The same functions, replacing those of a former version. Version 4 releases a crowded session early, version 5 appends to
many sessions at once, version 6 gets the checksums from the client, and in version 7 ``append`` starts with less. Functions
with other parameters stay beside them, for clients that opened the store earlier."""
