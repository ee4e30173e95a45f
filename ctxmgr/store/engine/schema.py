"""The tables of a store, as numbered migrations.

``record`` is the source of truth: one row for each record of the log, with the body as it was written. All other tables are
derived from it. They hold names that filters compare (agent, action, input type, tag) folded by
`ctxmgr.store.text_normalisation.fold`.
"""

from __future__ import annotations

from ctxmgr.store.project_session import CHAINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LATEST = 5
READABLE = 4
"""The oldest version that can be read without a migration."""

_FIRST = """
CREATE TABLE session (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow TEXT, source TEXT, meta TEXT,
  entries INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, first REAL, last REAL);
CREATE TABLE process (
  session INTEGER NOT NULL REFERENCES session(key), process TEXT NOT NULL, seq INTEGER NOT NULL,
  started TEXT, outcome TEXT, PRIMARY KEY (session, process)) WITHOUT ROWID;
CREATE TABLE record (
  seq INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session(key), kind TEXT NOT NULL, id TEXT NOT NULL,
  ts REAL, body TEXT NOT NULL, sum TEXT);
CREATE UNIQUE INDEX record_once ON record (session, kind, id);
CREATE INDEX record_by_id ON record (id, kind);
CREATE INDEX record_in_order ON record (session, seq);
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY REFERENCES record(seq), session INTEGER NOT NULL, idx INTEGER NOT NULL,
  agent TEXT NOT NULL, action TEXT NOT NULL, input_type TEXT, process TEXT,
  ts REAL, status TEXT NOT NULL, result INTEGER, UNIQUE (session, idx));
CREATE INDEX entry_by_action ON entry (session, action, idx);
CREATE INDEX entry_by_agent ON entry (session, agent, idx);
CREATE INDEX entry_by_status ON entry (session, status, idx);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY REFERENCES record(seq), session INTEGER NOT NULL, type TEXT NOT NULL, agent TEXT,
  entry TEXT, after INTEGER, ts REAL);
CREATE INDEX event_in_order ON event (session, seq);
CREATE INDEX event_by_entry ON event (session, entry) WHERE entry IS NOT NULL;
CREATE TABLE note_entry (
  session INTEGER NOT NULL, entry TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (session, entry, note)) WITHOUT ROWID;
CREATE TABLE note_tag (
  session INTEGER NOT NULL, tag TEXT NOT NULL, note INTEGER NOT NULL,
  PRIMARY KEY (session, tag, note)) WITHOUT ROWID;
CREATE TABLE superseded (
  session INTEGER NOT NULL, note TEXT NOT NULL, successor TEXT NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE TABLE folded (seq INTEGER PRIMARY KEY REFERENCES record(seq), text TEXT NOT NULL);
CREATE TABLE lease (session TEXT PRIMARY KEY, holder TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE imported (
  path TEXT PRIMARY KEY, format TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL,
  head TEXT NOT NULL, session TEXT NOT NULL, report TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE damage (offset INTEGER PRIMARY KEY, length INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

# The current state of the project, derived from the records of the reserved session (`ctxmgr.store.project_session`).
_PROJECT = """
CREATE TABLE version (
  number INTEGER PRIMARY KEY, parent INTEGER, seq INTEGER NOT NULL, op TEXT NOT NULL, description TEXT, author TEXT, ts TEXT,
  pruned TEXT);
CREATE TABLE artifact (
  id TEXT PRIMARY KEY, version INTEGER NOT NULL, agent TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
  description TEXT, hash TEXT NOT NULL, size INTEGER NOT NULL, tokens INTEGER NOT NULL, counter TEXT NOT NULL, ts TEXT,
  UNIQUE (agent, name, version)) WITHOUT ROWID;
CREATE INDEX artifact_by_version ON artifact (version);
CREATE INDEX artifact_by_hash ON artifact (hash);
CREATE TABLE dependency (
  artifact TEXT NOT NULL, target TEXT NOT NULL, agent TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
  PRIMARY KEY (artifact, target)) WITHOUT ROWID;
CREATE TABLE context_key (
  key TEXT PRIMARY KEY, value TEXT NOT NULL, type TEXT NOT NULL, description TEXT, author TEXT, ts TEXT) WITHOUT ROWID;
CREATE TABLE access_rule (
  agent TEXT NOT NULL, resource TEXT NOT NULL, pattern TEXT NOT NULL, permission TEXT NOT NULL, priority INTEGER NOT NULL,
  ts TEXT, PRIMARY KEY (agent, resource, pattern, permission)) WITHOUT ROWID;
CREATE TABLE need (
  agent TEXT NOT NULL, pattern TEXT NOT NULL, need TEXT NOT NULL, max_tokens INTEGER, use_summary INTEGER NOT NULL,
  priority INTEGER NOT NULL, PRIMARY KEY (agent, pattern)) WITHOUT ROWID;
CREATE TABLE execution (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, agent TEXT NOT NULL, task TEXT, sprint TEXT, version INTEGER);
CREATE INDEX execution_by_id ON execution (id);
CREATE TABLE package (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, agent TEXT NOT NULL, task TEXT, ts TEXT) WITHOUT ROWID;
CREATE TABLE package_item (
  package TEXT NOT NULL, artifact TEXT NOT NULL, PRIMARY KEY (package, artifact)) WITHOUT ROWID;
CREATE INDEX package_of_artifact ON package_item (artifact);
CREATE TABLE summary (
  hash TEXT NOT NULL, strategy TEXT NOT NULL, counter TEXT NOT NULL, text TEXT NOT NULL, tokens INTEGER NOT NULL,
  original_tokens INTEGER NOT NULL, lossless INTEGER NOT NULL, PRIMARY KEY (hash, strategy, counter)) WITHOUT ROWID;
"""

# Version 3 drops the table of folded texts, because texts are now folded when they are compared. The unique index finds an id
# in any session. ``record_aside`` finds the few records that are not entries, results or events. Token counts are read
# from a record once, when it is appended.
_LEAN = """
DROP TABLE folded;
DROP TABLE IF EXISTS search_word;
DROP TABLE IF EXISTS search_term;
DROP TABLE IF EXISTS search_gram;
DROP TABLE IF EXISTS search_open;
DROP TABLE IF EXISTS search_state;
DROP INDEX record_once;
DROP INDEX record_by_id;
CREATE UNIQUE INDEX record_once ON record (id, kind, session);
CREATE INDEX record_aside ON record (session, kind, seq) WHERE kind = 'note' OR kind = 'snapshot' OR kind = 'continuation'
  OR kind = 'session' OR kind = 'sessionEnd';
CREATE TABLE usage (
  session INTEGER NOT NULL, seq INTEGER NOT NULL, input INTEGER, output INTEGER, PRIMARY KEY (session, seq)) WITHOUT ROWID;
INSERT INTO usage SELECT session, seq, input, output FROM (
  SELECT session, seq, CASE json_type(used, '$.inputTokens') WHEN 'integer' THEN used ->> '$.inputTokens' END AS input,
    CASE json_type(used, '$.outputTokens') WHEN 'integer' THEN used ->> '$.outputTokens' END AS output FROM (
      SELECT session, seq, json_extract(body, CASE kind WHEN 'event' THEN '$.data' ELSE '$.usage' END) AS used FROM record
      WHERE json_valid(body) AND ((kind = 'event' AND json_extract(body, '$.type') = 'usage')
        OR (kind IN ('entry', 'result') AND instr(body, '"usage":{'))))
  WHERE json_valid(used)) WHERE abs(input) < 1099511627776 OR abs(output) < 1099511627776
"""

_MESSAGES = (
    "type IN ('user_message', 'user_message_chunk', 'message', 'agent_message_chunk', 'thought', 'agent_thought_chunk', "
    "'nudge', 'interrupt', 'compaction', 'error')"
)

# Rows are counted when they are appended, so a page can say how many there are and start reading near its first row.
# A milestone holds the place in the log of every 128th row of a series (`ctxmgr.store.write.batch.STEP`); ``number`` rows of
# the series precede it. The series "all" has entries and events, "message" the events of
# `ctxmgr.types.plain_records.MESSAGE_TYPES`. If these types change, a new migration has to count again.
_COUNTED = f"""
CREATE TABLE milestone (
  session INTEGER NOT NULL, series TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY (session, series, number)) WITHOUT ROWID;
ALTER TABLE session ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
UPDATE session SET events = (SELECT count(*) FROM event WHERE event.session = session.key),
  messages = (SELECT count(*) FROM event WHERE event.session = session.key AND {_MESSAGES});
INSERT INTO milestone SELECT session, series, number, seq FROM (
  SELECT session, series, seq, row_number() OVER (PARTITION BY session, series ORDER BY seq) - 1 AS number FROM (
    SELECT session, 'all' AS series, seq FROM entry UNION ALL SELECT session, 'all', seq FROM event
    UNION ALL SELECT session, 'event', seq FROM event
    UNION ALL SELECT session, 'message', seq FROM event WHERE {_MESSAGES}))
WHERE number % 128 = 0
"""

# The tables of spec 003 as views (ruling 30), for people and programs that read a store with SQL. They are read-only, and
# ctxmgr itself does not use them. A body that is damaged and no longer JSON gives nulls.
_BODY = "CASE WHEN json_valid({0}.body) THEN {0}.body END"
_OWN, _DONE = _BODY.format("own"), _BODY.format("done")

_VIEWS = f"""
CREATE VIEW project_context AS
  SELECT key, CASE type WHEN 'string' THEN json_extract(value, '$') ELSE value END AS value, type AS value_type, description,
    coalesce(author, 'system') AS updated_by, ts AS updated_at FROM context_key WHERE key <> 'context_version'
  UNION ALL SELECT 'context_version', value, 'integer', 'The current version of the context.', 'system', NULL FROM state
    WHERE name = 'project.version';
CREATE VIEW artifacts AS
  SELECT id, agent AS agent_id, type AS artifact_type, name, description,
    'objects/' || substr(hash, 1, 2) || '/' || substr(hash, 3) AS file_path, hash AS file_hash, version,
    tokens AS token_count, ts AS created_at FROM artifact;
CREATE VIEW artifact_dependencies AS
  SELECT artifact AS artifact_id, target AS depends_on_artifact_id, type AS dependency_type FROM dependency;
CREATE VIEW context_versions AS
  SELECT number AS version, description, coalesce(author, 'system') AS created_by, ts AS created_at, parent AS parent_version
  FROM version;
CREATE VIEW execution_history AS
  SELECT id, agent_id, task_id, sprint_id, CASE status WHEN 'open' THEN 'started' WHEN 'ok' THEN 'completed' ELSE 'failed' END
    AS status, context_version, json_extract(given, '$.input.artifacts') AS input_artifacts,
    json_extract(given, '$.input.tokenCount') AS input_token_count,
    json_extract(made, '$.output.artifacts') AS output_artifacts,
    json_extract(made, '$.output.tokenCount') AS output_token_count, json_extract(given, '$.ts') AS started_at,
    CASE WHEN status <> 'open' THEN strftime('%Y-%m-%dT%H:%M:%fZ', began + json_extract(made, '$.durationMs') / 1000.0,
      'unixepoch') END AS completed_at,
    json_extract(made, '$.durationMs') / 1000.0 AS duration_seconds, json_extract(made, '$.error.message') AS error_message
  FROM (SELECT execution.id AS id, execution.agent AS agent_id, execution.task AS task_id, execution.sprint AS sprint_id,
      execution.version AS context_version, entry.status AS status, entry.ts AS began, {_OWN} AS given, {_DONE} AS made
    FROM execution JOIN entry ON entry.seq = execution.seq JOIN record AS own ON own.seq = execution.seq
    LEFT JOIN record AS done ON done.seq = entry.result);
CREATE VIEW access_control AS
  SELECT row_number() OVER (ORDER BY priority, agent, resource, pattern, permission) AS id, agent AS agent_id,
    resource AS resource_type, pattern AS resource_pattern, permission, priority, ts AS created_at FROM access_rule;
CREATE VIEW context_summaries AS
  SELECT artifact_id, summary, summary_token_count, original_token_count,
    1.0 * summary_token_count / max(original_token_count, 1) AS compression_ratio, NULL AS created_at
  FROM (SELECT artifact.id AS artifact_id, summary.text AS summary, summary.tokens AS summary_token_count,
      summary.original_tokens AS original_token_count,
      row_number() OVER (PARTITION BY artifact.id ORDER BY summary.strategy DESC, summary.counter) AS place
    FROM artifact JOIN summary ON summary.hash = artifact.hash) WHERE place = 1;
CREATE VIEW agent_context_requirements AS
  SELECT agent AS agent_id, pattern AS required_artifact_pattern, need AS requirement_type, max_tokens, use_summary, priority
  FROM need
"""

# Checksums used to form one chain over all sessions. Records up to the place in ``state`` are still verified as that chain;
# behind it each session has a chain of its own.
_OWN_CHAINS = f"""
ALTER TABLE session ADD COLUMN sum TEXT;
UPDATE session SET sum = (SELECT sum FROM record WHERE record.session = session.key ORDER BY record.seq DESC LIMIT 1);
INSERT INTO state (name, value) SELECT '{CHAINED}', max(seq) FROM record HAVING max(seq) > 0
"""

_LINES = """
CREATE TABLE line (
  seq INTEGER PRIMARY KEY, session INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, ts REAL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL);
CREATE UNIQUE INDEX line_once ON line (id, kind, session);
CREATE INDEX line_in_order ON line (session, seq);
CREATE INDEX line_aside ON line (session, kind, seq) WHERE kind = 'note' OR kind = 'snapshot' OR kind = 'continuation'
  OR kind = 'session' OR kind = 'sessionEnd'
"""

LINES_AS_RECORDS = (
    "CREATE TEMP VIEW record AS SELECT seq, session, kind, id, ts, log_body(offset, length) AS body, "
    "log_sum(offset, length) AS sum FROM main.line"
)
"""The view that replaces the table ``record`` in the index of a log, for one connection. It reads bodies from the log."""

DERIVED = (
    "usage", "milestone", "note_entry", "note_tag", "superseded", "event", "entry", "record", "process", "session", "damage",
    "state", "imported", "version", "artifact", "dependency", "context_key", "access_rule", "need", "execution", "package",
    "package_item",
)  # fmt: skip
"""Every table of an index that is derived from a log, in an order in which they can be emptied."""

SCRIPTS = (
    ("001_first", _FIRST),
    ("002_project", _PROJECT),
    ("003_lean", f"{_LEAN.rstrip()};\n{_COUNTED}"),
    ("004_views", _VIEWS),
    ("005_own_chains", _OWN_CHAINS),
)
"""Name and SQL of each migration, in order."""


def apply(database: Any) -> None:
    """Apply the missing migrations to a sqlite_utils Database. Runs inside a transaction and nests by savepoints."""
    from sqlite_utils import Migrations

    migrations = Migrations("ctxmgr")
    for name, script in SCRIPTS:
        migrations(name=name)(_runner(script))
    migrations.apply(database)


def _runner(script: str) -> Callable[[Any], None]:
    def run(db: Any) -> None:
        for statement in _statements(script):
            db.execute(statement)

    return run


def make(execute: Callable[[str], object]) -> None:
    """Create all tables in a database that is never migrated, without sqlite_utils and its list of applied migrations."""
    for _, script in SCRIPTS:
        for statement in _statements(script):
            execute(statement)


def make_lines(execute: Callable[[str], object]) -> None:
    """Create the table with the offsets of a log's lines, in the index of that log."""
    for statement in _statements(_LINES):
        execute(statement)


def _statements(script: str) -> list[str]:
    # One statement at a time: executescript would commit the transaction that this runs in.
    return [statement for statement in script.split(";\n") if statement.strip()]
