"""SQL for both SQLite and PostgreSQL, and the translation for PostgreSQL.

Statements are written once, in SQLite's dialect. Everybody has SQLite, and it then needs no time for a translation.
`postgresql` returns the translated statement and caches it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# PostgreSQL refuses SQLite's ``LIMIT -1``.
NO_LIMIT = 2**62
"""The value of ``LIMIT`` for a page without a limit."""


def replace_statement(table: str, key: str, others: str) -> str:
    """Return the statement that inserts a row, or replaces the row with the same key.

    Args:
        table: the name of the table.
        key: the columns of a unique key, separated by ", ".
        others: the other columns, separated by ", ".
    """
    columns = f"{key}, {others}"
    values = ", ".join(f":{name}" for name in columns.split(", "))
    changes = ", ".join(f"{name} = excluded.{name}" for name in others.split(", "))
    return f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes}"


KEEP_STATE = replace_statement("state", "name", "value")

SCHEMA = "ctxmgr"
"""The PostgreSQL schema of our tables. Statements name it, because we set nothing (like ``search_path``) for a connection."""

TABLES = (
    "session", "process", "record", "entry", "event", "note_entry", "note_tag", "superseded", "usage", "milestone", "lease",
    "imported", "state", "version", "artifact", "dependency", "context_key", "access_rule", "need", "execution", "package",
    "package_item", "summary", "search_text", "schema_version", "live", "team", "member", "blob",
)  # fmt: skip
"""Every table of a PostgreSQL store."""

TEAM_TABLES = {
    "lease": "session", "live": "session, process", "imported": "path", "state": "name", "version": "number",
    "artifact": "id", "dependency": "artifact, target", "context_key": "key",
    "access_rule": "agent, resource, pattern, permission", "need": "agent, pattern", "execution": "seq", "package": "id",
    "package_item": "package, artifact", "summary": "hash, strategy, counter",
}  # fmt: skip
"""Tables of a PostgreSQL store with a column ``team``, and their keys within one team."""

_FUNCTIONS = {
    # SQLite accepts a number as a condition, PostgreSQL does not.
    "instr": "0 < strpos",
    **{name: f"{SCHEMA}.{name}" for name in ("json_valid", "json_extract", "json_type", "places", "settled")},
}
_spelled: dict[str, bytes] = {}
_MOST = 4096
_tokens: re.Pattern[str] | None = None


def postgresql(sql: str) -> bytes:
    """Return a statement in the dialect of PostgreSQL and psycopg.

    Table names get the schema, placeholders become those of psycopg, and hints for SQLite's indexes are removed.
    """
    found = _spelled.get(sql)
    if found is None:
        if len(_spelled) >= _MOST:
            # Lists of values of different lengths make different statements, so their number has no limit.
            _spelled.clear()
        spelled = _pattern().sub(_replace, sql)
        if sql.startswith("INSERT INTO ") and sql.split(" ", 3)[2] in TEAM_TABLES:
            # On a server these keys are unique within one team only.
            spelled = spelled.replace("ON CONFLICT (", "ON CONFLICT (team, ")
        found = _spelled[sql] = spelled.encode()
    return found


def _pattern() -> re.Pattern[str]:
    global _tokens  # compiled at first use, because most processes translate no statement
    if _tokens is None:
        import re

        _tokens = re.compile(
            # String literals and the cast operator ``::`` come first, so that neither is mistaken for a name.
            r"(?P<text>'[^']*')|::|:(?P<name>[A-Za-z_]\w*)|(?P<place>\?)|(?P<percent>%)"
            r"|(?P<hint>\s*\b(?:NOT\s+INDEXED|INDEXED\s+BY\s+\w+))|\b(?P<cross>CROSS\s+)(?=JOIN\b)"
            rf"|\b(?P<before>FROM|JOIN|INTO|UPDATE)\s+(?P<table>{'|'.join(TABLES)})\b"
            rf"|\b(?P<called>{'|'.join(_FUNCTIONS)})(?=\()"
        )
    return _tokens


def _replace(found: re.Match[str]) -> str:
    kind, whole = found.lastgroup, found.group()
    if kind == "text":
        return whole.replace("%", "%%")
    if kind == "name":
        return f"%({found['name']})s"
    if kind == "table":
        return f"{found['before']} {SCHEMA}.{found['table']}"
    if kind == "called":
        return _FUNCTIONS[found["called"]]
    return {"place": "%s", "percent": "%%", "hint": "", "cross": ""}.get(str(kind), whole)
