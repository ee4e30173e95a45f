"""Keys and joins of a store on a server begin with the session: each could lie on one of many servers, undivided.

This is judged by the catalogue of a server and by the statements as the code spells them. What is otherwise is named here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import ctxmgr.store
from ctxmgr.store import open_store
from ctxmgr.store.engine.dialect import TEAM_TABLES

OTHER_KEYS = {
    "record_once": "finds an id in whatever session, and has it once in each: the session is its last column",
    "session_by_id": "gives a session its key: the directory of sessions, asked before any of them is",
    "team_pkey": "one row a team", "team_name_key": "one row a team", "member_pkey": "one row a role",
    "schema_version_pkey": "one row a version",
    "blob_pkey": "contents are known by their hash, whatever session made them: the key begins with the team",
    **dict.fromkeys(
        [*(f"{table}_pkey" for table in TEAM_TABLES if table not in ("lease", "live")), "artifact_agent_name_version_team_key"],
        "the state of a team's project: small, and whole on every server",
    ),
}  # fmt: skip
"""Unique keys that do not begin with a session, and why."""

OTHER_JOINS = {
    "execution.seq = record.seq": "executions are state of the project, whole on every server; the record is of any session",
    "execution.seq = used.seq": "the same",
    "record.seq = package.seq": "packages are state of the project, and their records are of one reserved session",
    "artifact.id = package_item.artifact": "both are state of the project",
    "version.number = line.number": "both are state of the project",
    "given.id = one.id": "the other one is no table: it stands for the arguments of a function",
    "record.seq = session.seq": "a migration to the second version, in which places were unique in the whole store",
}
"""Equalities between two tables that no session stands beside, and why."""

FILES_ONLY = {
    "search/find.py", "search/index.py", "search/index_texts.py", "read_query.py", "engine/schema.py",
    "partial_copy.py", "write/deferred_indexes.py", "log_rows.py", "log_store.py",
}  # fmt: skip
"""Modules whose statements no server is asked."""

_PLACES = r"(?:seq|id|result|note|entry|artifact|number)"
_NAME = r"[\w{}]+"
_LINK = re.compile(rf"\b({_NAME})\.{_PLACES} = ({_NAME})\.{_PLACES}\b")
_TOGETHER = re.compile(rf"\b({_NAME})\.(?:session|key) = ({_NAME})\.(?:session|key)\b")


def loose_links(statement: str) -> list[str]:
    """Return the equalities of places or ids of two tables in a statement whose sessions are not said to be equal."""
    same: dict[str, str] = {}

    def root(name: str) -> str:
        while same.get(name, name) != name:
            name = same[name]
        return name

    for one, other in _TOGETHER.findall(statement):
        same[root(one)] = root(other)
    return [found.group() for found in _LINK.finditer(statement) if root(found[1]) != root(found[2])]


def spelled() -> Iterator[tuple[str, str]]:
    """Yield (module, text) of every text of the store's code that says SELECT, UPDATE, DELETE or JOIN."""
    folder = Path(ctxmgr.store.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(folder))
        if name in FILES_ONLY:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {
            part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node
        }
        for node in ast.walk(tree):
            if node in inner:
                continue
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if re.search(r"\b(SELECT|UPDATE|DELETE|JOIN)\b", text):
                yield name, text


def test_every_unique_key_begins_with_the_session(server_url: str) -> None:
    """The first column of each unique key is the session, but for the few that are named with their reason."""
    open_store(server_url, create=True).close()
    with psycopg.connect(server_url) as connection:
        rows = connection.execute(
            "SELECT relname, pg_get_indexdef(indexrelid, 1, FALSE), indrelid::regclass::text FROM pg_index "
            "JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'ctxmgr'::regnamespace AND indisunique"
        ).fetchall()
    assert len(rows) > 20
    others = {name for name, first, table in rows if first != ("key" if table == "ctxmgr.session" else "session")}
    assert others == OTHER_KEYS.keys()


def test_every_join_carries_the_session() -> None:
    """Wherever a statement leads from one table to another by a place or an id, it names the session of both too."""
    judged = list(spelled())
    links = [link for _, text in judged for link in _LINK.findall(text)]
    assert len(links) > 20
    loose = {(name, link) for name, text in judged for link in loose_links(text) if link not in OTHER_JOINS}
    assert loose == set()
    assert {link for _, text in judged for link in loose_links(text)} == OTHER_JOINS.keys()


@pytest.mark.parametrize(
    ("statement", "loose"),
    [
        ("SELECT 1 FROM entry JOIN record ON record.seq = entry.seq", ["record.seq = entry.seq"]),
        ("SELECT 1 FROM entry JOIN record ON record.seq = entry.seq AND record.session = entry.session", []),
        ("UPDATE entry SET status = 'x' FROM record AS given WHERE entry.seq = given.seq AND given.session = own.key "
         "AND entry.session = own.key", []),
        ("UPDATE entry SET status = 'x' FROM record AS given WHERE entry.seq = given.seq AND given.session = own.key",
         ["entry.seq = given.seq"]),
    ],
)  # fmt: skip
def test_a_join_without_the_session_is_told(statement: str, loose: list[str]) -> None:
    """What the test of all statements looks for is found where it is missing, and not where it is there."""
    assert loose_links(statement) == loose


def test_modules_that_no_server_is_asked_by_are_there() -> None:
    """A module that was moved is not left out by a name that nobody has any more."""
    folder = Path(ctxmgr.store.__file__).parent
    assert {name for name in FILES_ONLY if not (folder / name).is_file()} == set()
