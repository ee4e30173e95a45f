"""Values as they are sent to a server: it reads the binary arrays as what they were made of."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import pq

from ctxmgr.store.engine.postgresql_values import pack_values, server_text

_KINDS = {"TEXT[]": 1009, "BIGINT[]": 1016, "DOUBLE PRECISION[]": 1022, "BIGINT": 20}


@pytest.mark.parametrize(
    ("kind", "values", "spelled"),
    [
        ("TEXT[]", [], "{}"),
        ("TEXT[]", ["a", None, "é", b"as sent", ""], '{a,NULL,é,"as sent",""}'),
        ("TEXT[]", ["same"] * 3, "{same,same,same}"),
        ("TEXT[]", [None] * 3, "{NULL,NULL,NULL}"),
        ("TEXT[]", ("NULL",), '{"NULL"}'),
        ("BIGINT[]", (), "{}"),
        ("BIGINT[]", (1, -1, 2**62), "{1,-1,4611686018427387904}"),
        ("BIGINT[]", [None, 5, None], "{NULL,5,NULL}"),
        ("DOUBLE PRECISION[]", [], "{}"),
        ("DOUBLE PRECISION[]", [0.5, 2, -1e300], "{0.5,2,-1e+300}"),
        ("DOUBLE PRECISION[]", [None, 1.5], "{NULL,1.5}"),
        ("BIGINT", 0, "0"),
        ("BIGINT", 128, "128"),
    ],
)
def test_a_server_reads_what_was_packed(admin: psycopg.Connection[Any], kind: str, values: Any, spelled: str) -> None:
    """Empty columns, columns of one value, and columns with holes among them."""
    formats = [pq.Format.TEXT if kind == "BIGINT" else pq.Format.BINARY]
    found = admin.pgconn.exec_params(
        f"SELECT $1::{kind}::text".encode(), pack_values([kind], [values]), [_KINDS[kind]], formats
    )
    assert found.get_value(0, 0) == spelled.encode()


def test_a_text_is_spelled_without_nul() -> None:
    """A NUL and the first of the characters that spell it; any other text is sent as it is."""
    assert [server_text(text).decode() for text in ("\0", "\ufdd0", "aé\ufdd1")] == ["\ufdd0\ufdd1", "\ufdd0\ufdd2", "aé\ufdd1"]
