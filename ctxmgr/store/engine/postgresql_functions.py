"""Functions of a PostgreSQL store on the server: places in the log, appends in one round trip, three names of SQLite's.

A record's place (``seq``) is drawn from a sequence while the row of its session is locked. So places grow in the order of the
commits within a session, and over all sessions they are unique and may have gaps. Transactions of several sessions commit in
any order: who reads all of them stops at ``settled``, behind which something may still appear.
"""

from __future__ import annotations

from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.project_session import ARCHIVED

WRITERS = 0x63746D67
"""The advisory lock that a transaction holds until its end: shared if it appends, alone if it does anything else."""

_PLACES = WRITERS + 1
"""The first half of the advisory locks that say behind which place a transaction that is not over has drawn its own."""

INDEXERS = WRITERS + 2
"""The advisory lock of whoever indexes what was recorded, until the end of the transaction."""

_QUEUES = WRITERS + 3
"""The first half of the advisory locks at which those stand in line who append to one session: at its row each of them would be
woken twice, and would begin before it is its turn."""

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
    "done_at": _NUMBERS, "done_ids": _TEXTS, "done_statuses": _TEXTS, "begun_at": _NUMBERS, "begun": _TEXTS,
}  # fmt: skip
"""What the function ``append`` takes, and of what type: new entries, events and results of some sessions, places from 1 on.

The first six are columns of the sessions, in the order of their ids: what is counted of each, and its last record.
``step`` is every how many rows a milestone stands. ``owners`` and what follows are columns of the records; an owner is the
number of a session, from 1 on. ``open_at`` and ``open_ids`` are of entries without a result among these records; the others
are columns of rows of entries (with their numbers within the session, from 0 on), events, usage, results of earlier entries
and new processes.
"""

# Whoever waited for the session gives it back before the disk is waited for: others stand behind it. The answer is negative
# then, and the client waits by itself.
_CROWDED = """crowded := clock_timestamp() > asked + INTERVAL '500 microseconds';
  IF crowded THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);
  END IF;"""

# Sums are chained here, where the sessions' rows are locked and their last sums are known. Bodies are ASCII. Sessions are made
# before any is locked, both in the order of their ids: so nobody waits in a circle.
_APPEND = f"""CREATE FUNCTION {SCHEMA}.append(
  {", ".join(f"{name} {kind}" for name, kind in APPEND.items())}
) RETURNS BIGINT LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  keys BIGINT[]; entries_before BIGINT[]; events_before BIGINT[]; messages_before BIGINT[];
  totals TEXT[];
  places BIGINT[];
  sums TEXT[] := kinds;
  size INTEGER := cardinality(bodies);
  asked TIMESTAMPTZ := clock_timestamp();
  crowded BOOLEAN;
BEGIN
  PERFORM set_config('lock_timeout', '10s', TRUE), pg_advisory_xact_lock_shared({WRITERS});
  IF cardinality(session_ids) = 1 THEN  -- in several lines at once two could wait for each other
    PERFORM pg_advisory_xact_lock({_QUEUES}, hashtext(session_ids[1]));
  END IF;
  LOOP
    IF (SELECT count(*) FROM {SCHEMA}.session WHERE id = ANY (session_ids)) < cardinality(session_ids) THEN
      IF EXISTS (SELECT 1 FROM unnest(session_ids) AS one(id) JOIN {SCHEMA}.state ON state.name = '{ARCHIVED}' || one.id) THEN
        {_REFUSE_ARCHIVED}
      END IF;
      INSERT INTO {SCHEMA}.session (id) SELECT one.id FROM unnest(session_ids) AS one(id)
        WHERE NOT EXISTS (SELECT 1 FROM {SCHEMA}.session WHERE session.id = one.id) ORDER BY one.id ON CONFLICT DO NOTHING;
    END IF;
    SELECT array_agg(own.key), array_agg(own.entries), array_agg(own.events), array_agg(own.messages), array_agg(own.sum)
      INTO keys, entries_before, events_before, messages_before, totals
      FROM (SELECT key, entries, events, messages, sum FROM {SCHEMA}.session WHERE id = ANY (session_ids)
        ORDER BY id FOR NO KEY UPDATE) AS own;
    EXIT WHEN cardinality(keys) = cardinality(session_ids);
  END LOOP;
  {_CROWDED}
  IF cardinality(open_at) > 0 AND EXISTS (SELECT 1 FROM unnest(open_at, open_ids) AS one(at, id) JOIN {SCHEMA}.record AS given
      ON given.session = keys[owners[one.at]] AND given.id = one.id AND given.kind = 'result') THEN
    RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
  END IF;
  FOR at IN 1 .. size LOOP
    sums[at] := encode(substr(sha256(textsend(coalesce(totals[owners[at]], '') || bodies[at])), 1, 8), 'hex');
    totals[owners[at]] := sums[at];
  END LOOP;
  places := {SCHEMA}.places(size);
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
    INSERT INTO {SCHEMA}.process (session, process, seq)
      SELECT keys[owners[one.at]], one.process, places[one.at] FROM unnest(begun_at, begun) AS one(at, process)
      ON CONFLICT DO NOTHING;
  END IF;
  PERFORM {SCHEMA}.milestones('event', events_before, told, step, keys, owners, places, event_at),
    {SCHEMA}.milestones('message', messages_before, said, step, keys, owners, places, said_at),
    {SCHEMA}.milestones('all', array_agg(own.acts + own.tells), array_agg(own.new_acts + own.new_tells), step, keys, owners,
      places, entry_at || event_at)
    FROM unnest(entries_before, events_before, acted, told) AS own(acts, tells, new_acts, new_tells);
  UPDATE {SCHEMA}.session SET entries = entries + acted[n], events = events + told[n], messages = messages + said[n],
    seq = places[last_at[n]], sum = totals[n], first = least(first, earliest[n]), last = greatest(last, latest[n])
    FROM unnest(keys) WITH ORDINALITY AS one(key, n) WHERE session.key = one.key;
  RETURN CASE WHEN crowded THEN -places[size] ELSE places[size] END;
END $$"""

APPEND_ONE = {
    "session_id": "TEXT", "new_kind": "TEXT", "new_id": "TEXT", "moment": _TIME, "new_body": "TEXT", "step": "BIGINT",
    "new_agent": "TEXT", "new_type": "TEXT", "new_input_type": "TEXT", "new_process": "TEXT", "begins": "BOOLEAN",
    "new_status": "TEXT", "about": "TEXT", "is_said": "BOOLEAN", "read": "BIGINT", "written": "BIGINT",
}  # fmt: skip
"""What the function ``append_one`` takes: the same of one record.

``new_type`` is the action of an entry or the type of an event, ``begins`` tells whether its process may be new.
"""

# The place is drawn anew where the row turns out to be changed by another: it always lies behind that one's.
_APPEND_ONE = f"""CREATE FUNCTION {SCHEMA}.append_one(
  {", ".join(f"{name} {kind}" for name, kind in APPEND_ONE.items())}
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  own {SCHEMA}.session%ROWTYPE;
  acts BIGINT := (new_kind = 'entry')::integer;
  tells BIGINT := (new_kind = 'event')::integer;
  says BIGINT := is_said::integer;
  asked TIMESTAMPTZ := clock_timestamp();
  crowded BOOLEAN;
BEGIN
  -- What is assigned is evaluated in order, and in a fraction of the time of a statement.
  crowded := set_config('lock_timeout', '10s', TRUE) IS NULL OR pg_advisory_xact_lock_shared({WRITERS}) IS NULL
    OR pg_advisory_xact_lock({_QUEUES}, hashtext(session_id)) IS NULL
    OR pg_advisory_xact_lock_shared({_PLACES}, coalesce(pg_sequence_last_value('{SCHEMA}.place'), 0)::bit(32)::integer) IS NULL;
  LOOP
    UPDATE {SCHEMA}.session SET entries = entries + acts, events = events + tells, messages = messages + says,
      seq = nextval('{SCHEMA}.place'), first = least(first, moment), last = greatest(last, moment),
      sum = substr(encode(sha256(convert_to(coalesce(sum, '') || new_body, 'UTF8')), 'hex'), 1, 16)
      WHERE id = session_id RETURNING * INTO own;
    EXIT WHEN FOUND;
    {_NOT_ARCHIVED}
    INSERT INTO {SCHEMA}.session (id) VALUES (session_id) ON CONFLICT DO NOTHING;
  END LOOP;
  {_CROWDED}
  IF new_kind = 'entry' THEN
    IF new_status IS NULL THEN  -- asked by itself: the database is not, where the entry is complete
      IF EXISTS (SELECT 1 FROM {SCHEMA}.record
          WHERE record.id = new_id AND record.kind = 'result' AND record.session = own.key) THEN
        RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
      END IF;
    END IF;
    WITH given AS (
      INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
        VALUES (own.seq, own.key, new_kind, new_id, moment, new_body, own.sum)
    ) INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
      VALUES (own.seq, own.key, own.entries - 1, new_agent, new_type, new_input_type, new_process, moment,
        coalesce(new_status, 'open'), CASE WHEN new_status IS NULL THEN NULL ELSE own.seq END);
    IF begins THEN
      INSERT INTO {SCHEMA}.process (session, process, seq) VALUES (own.key, new_process, own.seq) ON CONFLICT DO NOTHING;
    END IF;
  ELSIF new_kind = 'event' THEN
    WITH given AS (
      INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
        VALUES (own.seq, own.key, new_kind, new_id, moment, new_body, own.sum)
    ) INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
      VALUES (own.seq, own.key, new_type, new_agent, about, nullif(own.entries - 1, -1), moment);
  ELSE
    WITH done AS (
      INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
        VALUES (own.seq, own.key, new_kind, new_id, moment, new_body, own.sum)
    ) UPDATE {SCHEMA}.entry SET status = new_status, result = own.seq FROM {SCHEMA}.record AS given
      WHERE given.id = new_id AND given.kind = 'entry' AND given.session = own.key AND entry.seq = given.seq
        AND entry.session = own.key AND entry.status = 'open';
  END IF;
  IF read IS NOT NULL OR written IS NOT NULL THEN
    INSERT INTO {SCHEMA}.usage (session, seq, input, output) VALUES (own.key, own.seq, read, written);
  END IF;
  IF acts + tells > 0 AND (own.entries + own.events - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone VALUES (own.key, 'all', own.entries + own.events - 1, own.seq);
  END IF;
  IF tells > 0 AND (own.events - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone VALUES (own.key, 'event', own.events - 1, own.seq);
  END IF;
  IF says > 0 AND (own.messages - 1) % step = 0 THEN
    INSERT INTO {SCHEMA}.milestone VALUES (own.key, 'message', own.messages - 1, own.seq);
  END IF;
  RETURN CASE WHEN crowded THEN -own.seq ELSE own.seq END;
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
"""The same in place of those of a former version: of the third, of the fourth, which gives a crowded session back early, and of
the fifth, whose ``append`` takes many sessions. The one before stays beside it, for those that opened the store earlier."""
