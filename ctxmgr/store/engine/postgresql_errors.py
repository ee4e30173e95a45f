"""Translate errors of PostgreSQL into ours: failed connections, and errors of statements.

libpq reports a failed connection as text only, with one reason for each address that it tried. An error of a statement has an
SQLSTATE. Neither contains a password.
"""

from __future__ import annotations

import re

import psycopg

from ctxmgr.errors import Busy, Conflict, CtxmgrError, Damaged, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.engine.postgresql_schema import no_store

_BUSY = ("40001", "40P01", "55P03", "57014", "53300", "57P03")
_LOST = ("08", "57P01", "57P02")
_FULL = ("53100", "53200", "58")

_ATTEMPT = re.compile(r"^- host: (.*?), port: (.*?), hostaddr: .*?: ", re.MULTILINE)
_ADDRESS = re.compile(r'connection to server (?:at|on socket) "(.*?)"(?: \(.*?\))?(?:,( port \d+))? failed: ')
_UNKNOWN = re.compile(r"failed to resolve host '(.*)': \[Errno -?\d+\] (.*)")

# Messages of libpq, psycopg, a server or PgBouncer: (pattern, error, message, hint). The first matching row counts.
_NO_CONNECTION: tuple[tuple[str, type[CtxmgrError], str, str], ...] = (
    (
        r"^(bad|invalid|weak|nested|negative) |^could not (match|parse) |path .* is too long"
        r"|^(syntax error in |definition of )?service |^require_auth "
        r"|^unrecognized configuration parameter|^unsupported startup parameter",
        InvalidInput, "{} can't be used: {}", "correct it in the URL, or in the variable (PG...) or service file that says it",
    ),
    (
        r"too many|connection slots|no more connections|starting up|shutting down|recovery mode|not (yet )?accepting",
        Busy, "{} takes no connection now: {}", "try again in a moment",
    ),
    (
        r"root certificate",
        StorageFailed, "{} can't be checked: {}",
        "name a readable file of root certificates with ?sslrootcert=FILE, or those of this machine with ?sslrootcert=system",
    ),
    (
        r"certificate verify failed",
        StorageFailed, "{} did not prove who it is: {}",
        "name the root that signed its certificate with ?sslrootcert=FILE; if that is right, the certificate may have expired",
    ),
    (
        r"does not match host name",
        StorageFailed, "{} did not prove who it is: {}", "call the server by a name that its certificate has",
    ),
    (
        r"does not support SSL",
        StorageFailed, "{} can't be reached over TLS: {}",
        "have TLS turned on there (ssl = on); ?sslmode=disable goes without, for networks in which nobody else can listen",
    ),
    (
        r"private key|^could not (read|open) certificate|valid client certificate",
        Denied, "{} can't be shown your certificate: {}",
        "name it with ?sslcert=FILE, and with ?sslkey=FILE its key, which nobody else may read",
    ),
    (
        r'^role ".*" does not exist|^no such user',
        Denied, "{} does not let you in: {}",
        "name your role in the URL, postgresql://ROLE@HOST/DATABASE, or have the server's administrator make it:"
        " CREATE ROLE name LOGIN",
    ),
    (r"not permitted to log in", Denied, "{} does not let you in: {}", "have an administrator allow it: ALTER ROLE name LOGIN"),
    (
        r"permission denied for database",
        Denied, "{} does not let you in: {}", "have the owner of the database allow it: GRANT CONNECT ON DATABASE name TO role",
    ),
    (
        r"authentication failed|no password supplied|pg_hba\.conf|permission",
        Denied, "{} does not let you in: {}", "check the role, and its password in ~/.pgpass (PGPASSFILE)",
    ),
    (
        r'^database ".*" does not exist|^no such database',
        NotFound, "{}: {}", "create the database first, e.g. with createdb",
    ),
    ("", StorageFailed, "{} can't be reached: {}", "check host, port and network; local logs go on without it"),
)  # fmt: skip


def connection_error(place: str, error: psycopg.Error) -> CtxmgrError:
    """Return our error for a connection that could not be made."""
    if error.sqlstate is not None:
        return statement_error(place, error)
    reasons = _reasons(str(error))
    pattern, kind, text, hint = next(row for row in _NO_CONNECTION if any(re.search(row[0], reason) for reason in reasons))
    with_places = len(reasons) > 1 or not pattern
    told = [f"{reason} ({', '.join(places)})" if places and with_places else reason for reason, places in reasons.items()]
    return kind(text.format(place, "; ".join(told)), hint)


def _reasons(said: str) -> dict[str, dict[str, None]]:
    """Return the reasons why no connection was made, one line each, with the addresses to which each applies."""
    reasons: dict[str, dict[str, None]] = {}
    # For several hosts psycopg repeats the last reason above a list of all.
    first, *attempts = _ATTEMPT.split(said)
    found = [(f"{host} port {port}".replace("'", ""), text) for host, port, text in zip(*[iter(attempts)] * 3, strict=True)]
    for address, text in found or [("", first)]:
        before, *answers = _ADDRESS.split(re.sub("^connection (failed|is bad): ", "", text))
        for place, port, reason in [(address, "", before)] * bool(before) + list(zip(*[iter(answers)] * 3, strict=True)):
            # Further lines hold questions and advice.
            line = _UNKNOWN.sub(r"\2 (\1)", reason.strip().partition("\n")[0].removeprefix("FATAL:").strip())
            reasons.setdefault(line, {}).update({f"{place}{port or ''}": None} if place else {})
    return reasons


def statement_error(place: str, error: psycopg.Error) -> CtxmgrError:
    """Return our error for an error of the server. Leave out its details, because they quote stored values."""
    state = error.sqlstate or ""
    said = error.diag.message_primary or " ".join(str(error).split())
    if state in _BUSY:
        return Busy(f"{place} is busy: {said}", "try again in a moment")
    if state.startswith(_LOST) or (not state and isinstance(error, psycopg.OperationalError)):
        return StorageFailed(
            f"the connection to {place} was lost: {said}", "run it again: what was stored already is known by its ids"
        )
    if state == "42501" or state.startswith("28"):
        if said.endswith(f" {SCHEMA}"):  # the schema itself, so the role was granted nothing in this store
            return Denied(f"{place}: {said}", "have its owner run 'ctxmgr store grant ROLE --team NAME'")
        return Denied(f"{place}: {said}", "ask whoever owns the database for the role that may do this")
    if state == "25006":
        return StorageFailed(f"{place} can't be written now: {said}", "name the primary server, or wait for the fail-over")
    if state in ("42P01", "3F000"):
        return no_store(place)
    if state in ("42703", "42883", "42P10"):  # a column, function or key that an older version of the tables does not have
        return StorageFailed(
            f"{place} has tables of another version of ctxmgr: {said}", "have its owner run 'ctxmgr store migrate'"
        )
    if state == "23505":
        return Conflict(f"{place}: {said}")
    if state == "54000":
        return InvalidInput(
            f"{place} can't find by so long a name again: {said}",
            "give sessions, ids, agents, actions and tags less than 2,700 bytes",
        )
    if state.startswith(_FULL):
        return StorageFailed(f"{place} has no room or can't use its disk: {said}", "tell whoever runs the server")
    if state.startswith("XX0"):
        return Damaged(f"{place} is damaged: {said}", "tell whoever runs the server; 'ctxmgr verify' checks every record")
    return Damaged(f"{place}: {said} ({state})", "this may be a bug in ctxmgr; 'ctxmgr verify' checks the store")
