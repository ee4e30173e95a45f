"""What the URL of a server may say, what is shown of it, and what libpq is told."""

from __future__ import annotations

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.store import open_store
from ctxmgr.store.engine.postgresql_url import connection_options, prepares, printable_location

SECRET = "gehe/im"


@pytest.mark.parametrize(
    ("location", "printed"),
    [
        ("postgresql://me:gehe%2Fim@db/x", "postgresql://me@db/x"),
        (
            "postgresql://me@db:5433/x?password=gehe/im&sslmode=require",
            "postgresql://me@db:5433/x?password=***&sslmode=require",
        ),
        ("postgresql:///x?host=/run/pg&sslpassword=gehe/im", "postgresql:///x?host=/run/pg&sslpassword=***"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("history.db", "history.db"),
        ("postgresql://[::bad", "postgresql://***"),
        ("postgresql://me:pa/gehe/im@db/x", "postgresql://***"),
        ("postgresql://me:12?gehe/im@db/x", "postgresql://***"),
        ("postgresql://me:p@a#gehe/im@db/x", "postgresql://***"),
        ("postgresql:///x?host=@abstract", "postgresql:///x?host=%40abstract"),
        ("postgresql://me:gehe/x", "postgresql://me:***/x"),
        ("postgresql://u@[::1]:5,db:gehe/x", "postgresql://u@[::1]:5,db:***/x"),
        ("postgresql://u@[::1]/x", "postgresql://u@[::1]/x"),
        ("host=db user=me password=gehe/im", "***"),
        ("user=me password = 'gehe/im'", "***"),
        ("postgresql:me:gehe/im@db/x", "***"),
    ],
)
def test_a_url_is_shown_without_secrets(location: str, printed: str) -> None:
    """Whatever way a password came into a URL, it is not printed."""
    assert printable_location(location) == printed


@pytest.mark.parametrize(
    "location",
    ["postgresql://me:gehe%2Fim@db/x", "postgresql://db/x?password=gehe/im", "postgresql://me:@db/x?sslpassword=gehe/im"],
)
def test_a_password_in_a_url_is_refused(location: str) -> None:
    """A URL with a password is not used, and the refusal says where passwords belong without repeating it."""
    with pytest.raises(InvalidInput, match="names a password") as refused:
        open_store(location)
    assert SECRET not in f"{refused.value.message}{refused.value.hint}"
    assert "PGPASSFILE" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("location", "mode"),
    [
        ("postgresql://db.example/x", "verify-full"), ("postgresql://10.0.0.7/x", "verify-full"),
        ("postgresql://localhost,db.example/x", "verify-full"), ("postgresql://db.example/x?sslmode=require", "require"),
        ("postgresql://localhost/x", None), ("postgresql://127.0.0.1/x", None), ("postgresql:///x?host=/run/pg", None),
        ("postgresql:///x", None), ("postgresql://localhost/x?hostaddr=203.0.113.5", "verify-full"),
        ("postgresql:///x?hostaddr=203.0.113.5", "verify-full"), ("postgresql:///x?hostaddr=127.0.0.1", None),
    ],
)  # fmt: skip
def test_beyond_this_machine_the_server_has_to_prove_its_name(location: str, mode: str | None) -> None:
    """Off the loopback TLS with a verified name is the default; only who says otherwise has it otherwise."""
    assert connection_options(location).get("sslmode") == mode


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("postgresql://localhost/x", None), ("postgresql://db1.example,db2.example/x", "read-write"),
        ("postgresql:///x?host=/run/a,/run/b", "read-write"),
        ("postgresql://db1.example,db2.example/x?target_session_attrs=any", "any"),
    ],
)  # fmt: skip
def test_of_several_hosts_the_one_that_can_be_written_is_taken(location: str, wanted: str | None) -> None:
    """A replica is not taken for the primary server, unless the URL says so."""
    assert connection_options(location).get("target_session_attrs") == wanted


@pytest.mark.parametrize("location", ["postgresql://db/x?nonsense=1", "postgresql:///x?port"])
def test_what_libpq_cant_read_is_refused(location: str) -> None:
    """A URL that names no database as libpq takes it is invalid input."""
    with pytest.raises(InvalidInput):
        open_store(location)


@pytest.mark.parametrize(
    ("location", "prepared", "given"),
    [
        ("postgresql:///x?prepare=1", True, "postgresql:///x"), ("postgresql:///x?prepare=1&port=1", True, "postgresql:///x?port=1"),
        ("postgresql:///x?port=1&prepare=1", True, "postgresql:///x?port=1"),
        ("postgresql:///x?prepare=0", False, "postgresql:///x"), ("postgresql:///x", None, "postgresql:///x"),
    ],
)  # fmt: skip
def test_a_url_says_whether_statements_are_prepared(location: str, prepared: bool | None, given: str) -> None:
    """libpq, which does not know the word, is not told of it."""
    assert prepares(location) is prepared
    assert connection_options(location) == connection_options(given)


def test_variables_of_libpq_count_as_what_the_url_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of a variable leaves this machine too; a service says itself which of its hosts and how."""
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.5")
    assert connection_options("postgresql://localhost/x")["sslmode"] == "verify-full"
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.5,203.0.113.6")
    assert connection_options("postgresql://localhost/x")["target_session_attrs"] == "read-write"
    monkeypatch.setenv("PGSERVICE", "own")
    assert not {"sslmode", "target_session_attrs"} & set(connection_options("postgresql://db1.example,db2.example/x"))
