"""Functions of a PostgreSQL store on the server: places in the log, an append in one round trip, three names of SQLite's.

A record's place (``seq``) is drawn from a sequence while the row of its session is locked. So places grow in the order of the
commits within a session, and over all sessions they are unique and may have gaps. Transactions of several sessions commit in
any order: who reads all of them stops at ``settled``, behind which something may still appear.
"""

from __future__ import annotations

from ctxmgr.store.engine.spelling import SCHEMA
from ctxmgr.store.reserved import ARCHIVED

WRITERS = 0x63746D67
"""The advisory lock that a transaction holds until its end: shared if it appends, alone if it does anything else."""

_PLACES = WRITERS + 1
"""The first half of the advisory locks that say behind which place a transaction that is not over has drawn its own."""

INDEXERS = WRITERS + 2
"""The advisory lock of whoever indexes what was recorded, until the end of the transaction."""

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
_NOT_ARCHIVED = f"""IF EXISTS (SELECT 1 FROM {SCHEMA}.state WHERE name = '{ARCHIVED}' || session_id) THEN
      RAISE EXCEPTION 'the session was archived' USING ERRCODE = '{REFUSED}';
    END IF;"""

_TEXTS, _NUMBERS, _TIME = "TEXT[]", "BIGINT[]", "DOUBLE PRECISION"
APPEND = {
    "session_id": "TEXT", "kinds": _TEXTS, "ids": _TEXTS, "moments": f"{_TIME}[]", "bodies": _TEXTS,
    "earliest": _TIME, "latest": _TIME, "unfinished": _TEXTS, "step": "BIGINT",
    "entry_at": _NUMBERS, "agents": _TEXTS, "actions": _TEXTS, "input_types": _TEXTS, "processes": _TEXTS,
    "statuses": _TEXTS, "results": _NUMBERS,
    "event_at": _NUMBERS, "types": _TEXTS, "speakers": _TEXTS, "abouts": _TEXTS, "afters": _NUMBERS, "said_at": _NUMBERS,
    "used_at": _NUMBERS, "reads": _NUMBERS, "writes": _NUMBERS,
    "done_at": _NUMBERS, "done_ids": _TEXTS, "done_statuses": _TEXTS, "begun_at": _NUMBERS, "begun": _TEXTS,
}  # fmt: skip
"""What the function ``append`` takes, and of what type: new entries, events and results of one session, places from 1 on.

``unfinished`` are the ids of entries without a result among these records, ``step`` every how many rows a milestone stands;
``entry_at`` and what follows are columns of rows of entries, events, usage, results of earlier entries and new processes.
"""

# Whoever waited for the session gives it back before the disk is waited for: others stand behind it. The answer is negative
# then, and the client waits by itself.
_CROWDED = """crowded := clock_timestamp() > asked + INTERVAL '500 microseconds';
  IF crowded THEN
    PERFORM set_config('synchronous_commit', 'off', TRUE);
  END IF;"""

# Sums are chained here, where the session's row is locked and its last sum is known. Bodies are ASCII.
_APPEND = f"""CREATE FUNCTION {SCHEMA}.append(
  {", ".join(f"{name} {kind}" for name, kind in APPEND.items())}
) RETURNS BIGINT LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  own {SCHEMA}.session%ROWTYPE;
  places BIGINT[];
  sums TEXT[] := kinds;
  total TEXT;
  size INTEGER := cardinality(bodies);
  acted INTEGER := cardinality(entry_at);
  told INTEGER := cardinality(event_at);
  asked TIMESTAMPTZ := clock_timestamp();
  crowded BOOLEAN;
BEGIN
  PERFORM set_config('lock_timeout', '10s', TRUE), pg_advisory_xact_lock_shared({WRITERS});
  LOOP
    SELECT * INTO own FROM {SCHEMA}.session WHERE id = session_id FOR NO KEY UPDATE;
    EXIT WHEN FOUND;
    {_NOT_ARCHIVED}
    INSERT INTO {SCHEMA}.session (id) VALUES (session_id) ON CONFLICT DO NOTHING;
  END LOOP;
  {_CROWDED}
  IF cardinality(unfinished) > 0 AND EXISTS (SELECT 1 FROM {SCHEMA}.record
      WHERE record.id = ANY (unfinished) AND record.kind = 'result' AND record.session = own.key) THEN
    RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
  END IF;
  total := own.sum;
  FOR at IN 1 .. size LOOP
    total := substr(encode(sha256(convert_to(coalesce(total, '') || bodies[at], 'UTF8')), 'hex'), 1, 16);
    sums[at] := total;
  END LOOP;
  places := {SCHEMA}.places(size);
  INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
    SELECT one.seq, own.key, one.kind, one.id, one.ts, one.body, one.sum
    FROM unnest(places, kinds, ids, moments, bodies, sums) AS one(seq, kind, id, ts, body, sum);
  IF acted > 0 THEN
    INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
      SELECT places[one.at], own.key, own.entries + one.number - 1, one.agent, one.action, one.input_type, one.process,
        moments[one.at], one.status, places[one.result]
      FROM unnest(entry_at, agents, actions, input_types, processes, statuses, results) WITH ORDINALITY
        AS one(at, agent, action, input_type, process, status, result, number);
  END IF;
  IF told > 0 THEN
    INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
      SELECT places[one.at], own.key, one.type, one.agent, one.entry,
        coalesce(own.entries + one.after, nullif(own.entries - 1, -1)), moments[one.at]
      FROM unnest(event_at, types, speakers, abouts, afters) AS one(at, type, agent, entry, after);
  END IF;
  IF cardinality(used_at) > 0 THEN
    INSERT INTO {SCHEMA}.usage (session, seq, input, output)
      SELECT own.key, places[one.at], one.input, one.output FROM unnest(used_at, reads, writes) AS one(at, input, output);
  END IF;
  IF cardinality(done_at) > 0 THEN
    UPDATE {SCHEMA}.entry SET status = one.status, result = places[one.at]
      FROM unnest(done_at, done_ids, done_statuses) AS one(at, id, status), {SCHEMA}.record AS given
      WHERE given.id = one.id AND given.kind = 'entry' AND given.session = own.key AND entry.seq = given.seq
        AND entry.session = own.key AND entry.status = 'open';
  END IF;
  IF cardinality(begun) > 0 THEN
    INSERT INTO {SCHEMA}.process (session, process, seq)
      SELECT own.key, one.process, places[one.at] FROM unnest(begun_at, begun) AS one(at, process) ON CONFLICT DO NOTHING;
  END IF;
  PERFORM {SCHEMA}.milestones(own.key, 'all', own.entries + own.events, step, places, entry_at || event_at),
    {SCHEMA}.milestones(own.key, 'event', own.events, step, places, event_at),
    {SCHEMA}.milestones(own.key, 'message', own.messages, step, places, said_at);
  UPDATE {SCHEMA}.session SET entries = entries + acted, events = events + told, messages = messages + cardinality(said_at),
    seq = places[size], sum = total, first = least(first, earliest), last = greatest(last, latest) WHERE key = own.key;
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
  PERFORM set_config('lock_timeout', '10s', TRUE), pg_advisory_xact_lock_shared({WRITERS}),
    pg_advisory_xact_lock_shared({_PLACES}, last_value::bit(32)::integer) FROM {SCHEMA}.place;
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
  INSERT INTO {SCHEMA}.record (seq, session, kind, id, ts, body, sum)
    VALUES (own.seq, own.key, new_kind, new_id, moment, new_body, own.sum);
  IF new_kind = 'entry' THEN
    IF new_status IS NULL THEN  -- asked by itself: the database is not, where the entry is complete
      IF EXISTS (SELECT 1 FROM {SCHEMA}.record
          WHERE record.id = new_id AND record.kind = 'result' AND record.session = own.key) THEN
        RAISE EXCEPTION 'a result was there before its entry' USING ERRCODE = '{REFUSED}';
      END IF;
    END IF;
    INSERT INTO {SCHEMA}.entry (seq, session, idx, agent, action, input_type, process, ts, status, result)
      VALUES (own.seq, own.key, own.entries - 1, new_agent, new_type, new_input_type, new_process, moment,
        coalesce(new_status, 'open'), CASE WHEN new_status IS NULL THEN NULL ELSE own.seq END);
    IF begins THEN
      INSERT INTO {SCHEMA}.process (session, process, seq) VALUES (own.key, new_process, own.seq) ON CONFLICT DO NOTHING;
    END IF;
  ELSIF new_kind = 'event' THEN
    INSERT INTO {SCHEMA}.event (seq, session, type, agent, entry, after, ts)
      VALUES (own.seq, own.key, new_type, new_agent, about, nullif(own.entries - 1, -1), moment);
  ELSE
    UPDATE {SCHEMA}.entry SET status = new_status, result = own.seq FROM {SCHEMA}.record AS given
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

# Of the rows of a series, the first of which has ``number`` before it.
_MILESTONES = f"""CREATE FUNCTION {SCHEMA}.milestones(
  owner BIGINT, series TEXT, number BIGINT, step BIGINT, places BIGINT[], rows BIGINT[]
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF (number + cardinality(rows) - 1) / step * step >= number AND cardinality(rows) > 0 THEN
    INSERT INTO {SCHEMA}.milestone (session, series, number, seq)
      SELECT owner, milestones.series, milestones.number + one.before, places[one.at]
      FROM (SELECT at, row_number() OVER (ORDER BY at) - 1 AS before FROM unnest(rows) AS at) AS one
      WHERE (milestones.number + one.before) % step = 0;
  END IF;
END $$"""

PLACED = (_DRAW, _SETTLED, _MILESTONES, _APPEND, _APPEND_ONE)
"""Those that came with the second version of the tables."""

RENEWED = tuple(each.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) for each in PLACED)
"""The same in place of those of a former version: of the third, and of the fourth, which gives a crowded session back early."""
