"""SQL as both SQLite and PostgreSQL take it, and what PostgreSQL spells otherwise.

Statements are written once, in SQLite's spelling where the two differ: it runs on what everybody has, and no
time is spent on translating for it. `postgresql` returns what PostgreSQL is asked instead, and keeps it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# PostgreSQL refuses SQLite's ``LIMIT -1``.
NO_LIMIT = 2**62
"""The limit of a page that has none."""


def replace_statement(table: str, key: str, others: str) -> str:
    """Return the statement that inserts a row, or replaces the one with this key.

    Args:
        table: its name.
        key: the columns of a unique key, separated by ", ".
        others: all others.
    """
    columns = f"{key}, {others}"
    values = ", ".join(f":{name}" for name in columns.split(", "))
    changes = ", ".join(f"{name} = excluded.{name}" for name in others.split(", "))
    return f"INSERT INTO {table} ({columns}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes}"


KEEP_STATE = replace_statement("state", "name", "value")

SCHEMA = "ctxmgr"
"""Of a PostgreSQL database, where everything of ours is: names are qualified, for nothing is set for a connection."""

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
"""Tables of a PostgreSQL store that have a column ``team``, and their keys within one team."""

_FUNCTIONS = {
    # SQLite takes a number for a truth value, PostgreSQL does not.
    "instr": "0 < strpos",
    **{name: f"{SCHEMA}.{name}" for name in ("json_valid", "json_extract", "json_type", "places", "settled")},
}
_spelled: dict[str, bytes] = {}
_MOST = 4096
_tokens: re.Pattern[str] | None = None


def postgresql(sql: str) -> bytes:
    """Return a statement as psycopg and PostgreSQL take it.

    Names are qualified, placeholders are psycopg's, and what SQLite is told of its indexes is left out.
    """
    found = _spelled.get(sql)
    if found is None:
        if len(_spelled) >= _MOST:
            # Lists of any length make any number of statements.
            _spelled.clear()
        spelled = _pattern().sub(_replace, sql)
        if sql.startswith("INSERT INTO ") and sql.split(" ", 3)[2] in TEAM_TABLES:
            # On a server these keys hold within one team.
            spelled = spelled.replace("ON CONFLICT (", "ON CONFLICT (team, ")
        found = _spelled[sql] = spelled.encode()
    return found


def _pattern() -> re.Pattern[str]:
    global _tokens  # made when the first statement is translated: most processes translate none
    if _tokens is None:
        import re

        _tokens = re.compile(
            # Texts come first, so that nothing in them is taken for a name; so does the sign of a cast, which begins like one.
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
