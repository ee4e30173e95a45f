"""Statements as SQLite takes them are spelled for PostgreSQL."""

from __future__ import annotations

import pytest

from ctxmgr.store.engine.dialect import postgresql, replace_statement


@pytest.mark.parametrize(
    ("shared", "asked"),
    [
        ("SELECT body FROM record WHERE id = :id", "SELECT body FROM ctxmgr.record WHERE id = %(id)s"),
        ("SELECT ':id', 50 % 2 FROM entry NOT INDEXED", "SELECT ':id', 50 %% 2 FROM ctxmgr.entry"),
        (
            "SELECT 1 FROM entry INDEXED BY entry_by_agent CROSS JOIN record ON TRUE",
            "SELECT 1 FROM ctxmgr.entry JOIN ctxmgr.record ON TRUE",
        ),
        ("SELECT instr(body, 'x%') FROM line", "SELECT 0 < strpos(body, 'x%%') FROM line"),
        ("INSERT INTO usage VALUES (?, ?)", "INSERT INTO ctxmgr.usage VALUES (%s, %s)"),
        ("UPDATE entry SET status = :a", "UPDATE ctxmgr.entry SET status = %(a)s"),
    ],
)  # fmt: skip
def test_statements_are_spelled_for_the_server(shared: str, asked: str) -> None:
    """Names are qualified, placeholders are the driver's, hints for SQLite go, and what stands in quotes stays."""
    assert postgresql(shared).decode() == asked


def test_a_row_is_replaced_by_its_key() -> None:
    """The one spelling of "insert or replace" names the key and every other column."""
    assert replace_statement("t", "a, b", "c, d") == (
        "INSERT INTO t (a, b, c, d) VALUES (:a, :b, :c, :d) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c, d = excluded.d"
    )
