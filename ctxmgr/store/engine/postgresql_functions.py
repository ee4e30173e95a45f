"""Functions of a PostgreSQL store on the server: places in the log, appends in one round trip, three names of SQLite's.

A record's place (``seq``) is drawn from a sequence while the row of its session is locked. So places grow in the order of the
commits within a session, and over all sessions they are unique and may have gaps. Transactions of several sessions commit in
any order: who reads all of them stops at ``settled``, behind which something may still appear.
"""

from __future__ import annotations

from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.project_session import ARCHIVED

# The letters "ctmg": all programs of a database share these numbers.
WRITERS = 0x63746D67
"""The advisory lock that a transaction holds until its end: shared if it appends, alone if it does anything else."""

_PLACES = WRITERS + 1
"""The first half of the advisory locks that say behind which place a transaction that is not over has drawn its own."""

INDEXERS = WRITERS + 2
"""The advisory lock of whoever indexes what was recorded, until the end of the transaction."""

_QUEUES = WRITERS + 3
"""The first half of the advisory locks at which those stand in line who append to one session: at its row each of them would be
woken twice, and would begin before it is its turn."""

BLOB_WRITERS = WRITERS + 4
"""The first half of the advisory locks, one a team, of whoever writes artifacts, on a connection that does nothing else."""

REFUSED = "CM001"
"""The SQLSTATE of an append that has to be done step by step: a result was there before its entry."""

# Bodies hold what JSON allows and PostgreSQL does not, e.g. \\u0000: then there is no value.
JSON = (
    f"""CREATE FUNCTION {SCHEMA}.json_valid(body TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN body::json IS NOT NULL; EXCEPTION WHEN OTHERS THEN RETURN FALSE; END $$""",
    f"""CREATE FUNCTION {SCHEMA}.json_extract(body TEXT, path TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN body::json #>> string_to_array(substr(path, 3), '.'); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$""",
    f"""CREATE FUNCTION {SCHEMA}.json_type(body TEXT, path TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN CASE json_typeof(body::json #> string_to_array(substr(path, 3), '.')) WHEN 'string' THEN 'text' ELSE 'other' END;
EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$""",
)

# The lock is taken before the places are drawn, and names one before all of them.
_DRAW = f"""CREATE FUNCTION {SCHEMA}.places(how_many BIGINT) RETURNS BIGINT[] LANGUAGE plpgsql AS $$
DECLARE behind BIGINT;
BEGIN
  SELECT last_value INTO behind FROM {SCHEMA}.place;
  PERFORM pg_advisory_xact_lock_shared({_PLACES}, behind::bit(32)::integer);
  RETURN (SELECT array_agg(nextval('{SCHEMA}.place')) FROM generate_series(1, how_many));
END $$"""

# The same as an expression, which is evaluated in a fraction of the time of a statement.
_NAME_PLACE = (
    f"pg_advisory_xact_lock_shared({_PLACES}, coalesce(pg_sequence_last_value('{SCHEMA}.place'), 0)::bit(32)::integer)"
)

# The end is read before the locks: who draws in between draws behind that end.
_SETTLED = f"""CREATE FUNCTION {SCHEMA}.settled() RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE ending BIGINT; ahead BIGINT;
BEGIN
  SELECT last_value INTO ending FROM {SCHEMA}.place;
  SELECT coalesce(max((ending - objid::bigint) & 4294967295), 0) INTO ahead FROM pg_locks
    WHERE locktype = 'advisory' AND classid = {_PLACES} AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
  RETURN ending - ahead;
END $$"""

# The appender that goes on step by step says where the session is.
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
"""What the function ``append`` takes, and of what type: new records of some sessions, places from 1 on.

The first six are columns of the sessions, in the order of their ids: what is counted of each, and its last record.
``step`` is every how many rows a milestone stands. ``owners`` and what follows are columns of the records; an owner is the
number of a session, from 1 on. ``open_at`` and ``open_ids`` are of entries without a result among these records; the others
are columns of rows of entries (with their numbers within the session, from 0 on), events, usage, results of earlier entries,
new processes, the end of one of these or, without a name, of all, what is told of sessions (by their numbers), and notes: the
entries and tags that they name, and the notes that they supersede. ``sums`` are those of the records if the last ones of the
sessions are ``sums_before``, empty where there is none; else they are made here.
"""

# Few have to wait, and only who waits needs a limit: to set one takes a tenth of the time of an append. The rows of sessions
# are beyond it, for whoever has locked them is held to limits of its own.
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

# Whoever waited for the session gives it back before the disk is waited for: others stand behind it. The answer says so, and
# the client waits by itself.
_CROWDED = """crowded := clock_timestamp() > asked + INTERVAL '1 millisecond';
  IF crowded THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);
  END IF;"""

# Of the rows of a series, of which one session has ``before`` and gets ``more``, those that stand at a milestone.
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

# Sums are chained where the sessions' rows are locked and their last sums are known: here, or by a client that knew these, for
# a server may need three times as long. Bodies are ASCII. Sessions are made before any is locked, both in the order of their
# ids: so nobody waits in a circle; in several lines at once two could, so only one session has a line.
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
"""What the function ``append_one`` takes: the same of one record.

``new_type`` is the action of an entry or the type of an event, ``begins`` tells whether its process may be new.
"""

# What an append of one record does is one statement: each costs as much to begin as three rows in an index.
# The place is drawn anew where the row turns out to be changed by another: it always lies behind that one's.
_OWN = f"""WITH own AS (
      UPDATE {SCHEMA}.session SET entries = entries + acts, events = events + tells, messages = messages + says,
        seq = nextval('{SCHEMA}.place'), first = least(first, moment), last = greatest(last, moment),
        sum = CASE WHEN coalesce(sum, '') = sum_before THEN new_sum
          ELSE encode(substr(sha256(textsend(coalesce(sum, '') || new_body)), 1, 8), 'hex') END
        WHERE id = session_id RETURNING key, seq, entries, events, messages, sum
    ), given AS (
      INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
        SELECT own.seq, own.key, new_kind, new_id, moment, new_body, own.sum FROM own
    ), derived AS ({{derived}})
    SELECT own.* INTO made FROM own;"""

_ONE_ENTRY = _OWN.format(derived=f"""
      INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
        SELECT own.seq, own.key, own.entries - 1, new_agent, new_type, new_input_type, new_process, moment,
          coalesce(new_status, 'open'), CASE WHEN new_status IS NULL THEN NULL ELSE own.seq END FROM own
    """)  # fmt: skip
_ONE_EVENT = _OWN.format(derived=f"""
      INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
        SELECT own.seq, own.key, new_type, new_agent, about, nullif(own.entries - 1, -1), moment FROM own
    """)  # fmt: skip

# Its entry may have come while the session was waited for: so it is looked for in a statement of its own.
_ONE_RESULT = _OWN.format(derived="SELECT 1")
_DONE = f"""UPDATE {SCHEMA}.entry SET status = new_status, result = made.seq FROM {SCHEMA}.record AS given
        WHERE given.id = new_id AND given.kind = 'entry' AND given.session = made.key AND entry.seq = given.seq
          AND entry.session = made.key AND entry.status = 'open';"""

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
      IF EXISTS (SELECT 1 FROM {SCHEMA}.record
          WHERE record.id = new_id AND record.kind = 'result' AND record.session = made.key) THEN
        RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
      END IF;
    END IF;
    IF begins THEN
      INSERT INTO {SCHEMA}.process (session, process, seq) VALUES (made.key, new_process, made.seq) ON CONFLICT DO NOTHING;
    END IF;
  ELSIF tells = 0 THEN
    {_DONE}
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

# Of the rows of a series, of which each session has some ``before`` and ``adds`` some: few appends pass a milestone.
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
"""Those that came with the second version of the tables."""

RENEWED = tuple(each.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) for each in PLACED)
"""The same in place of those of a former version: of the third, of the fourth, which gives a crowded session back early, of the
fifth, whose ``append`` takes many sessions, of the sixth, which is told the sums, and of the seventh, whose ``append`` begins
with less. Those before stay beside them, for those that opened the store earlier."""
