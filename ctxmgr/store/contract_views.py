"""The tables of spec 003 as views of ours, for people and programs that read a store with SQL (ruling 30).

They can only be read, and nothing here reads them. Bodies of records that are no JSON any more give nulls.
"""

from __future__ import annotations

_BODY = "CASE WHEN json_valid({0}.body) THEN {0}.body END"
_OWN, _DONE = _BODY.format("own"), _BODY.format("done")

VIEWS = f"""
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
"""Statements, one behind the other."""
