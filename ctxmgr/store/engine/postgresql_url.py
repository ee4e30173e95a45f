"""The URL of a PostgreSQL store: what it may say, how it is shown, and how a connection is made safe.

A password is never taken from it: command lines and settings are read by others. libpq finds it in ``~/.pgpass``
(``PGPASSFILE``), in a service (``PGSERVICE``) or in ``PGPASSWORD``.
"""

from __future__ import annotations

import os
import re

from ctxmgr.base.paths import is_url
from ctxmgr.errors import InvalidInput

SCHEMES = ("postgresql://", "postgres://")
"""How the URL of a PostgreSQL store begins."""

_SECRET = ("password", "sslpassword", "passfile", "scram_client_key", "scram_server_key", "oauth_client_secret")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Where libpq looks for hosts and addresses.
_PLACES = (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"))
_OURS = {"application_name": "ctxmgr", "connect_timeout": "10", "client_encoding": "utf8"}
# A peer that went away without a word is noticed within half a minute.
_ALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "20000"}


def driver_missing(error: ImportError, purpose: str, needed: str, extra: str) -> InvalidInput:
    """Return what is raised where a driver is not installed, or can't be loaded.

    Raises:
        ImportError: another module is what is missing.
    """
    if error.name == needed:
        return InvalidInput(f"{purpose} need {needed}", f"pip install 'ctxmgr-cli[{extra}]'")
    if error.name is not None:
        raise error
    # The package is there, and the library that it needs is not: it tells so itself.
    return InvalidInput(
        f"{purpose} need {needed}, which can't be loaded: {' '.join(str(error).split())}", f"pip install 'ctxmgr-cli[{extra}]'"
    )


def is_server(location: str) -> bool:
    """Whether a location is the URL of a server."""
    return location.startswith(SCHEMES)


def printable_location(location: str) -> str:
    """Return a location as it may be printed: without passwords, and without what else a URL can hide."""
    scheme, found, rest = location.partition("://")
    if not found:
        return "***" if is_url(location) else location
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    try:
        parts = urlsplit(location)
        if parts.netloc and "@" in rest[len(parts.netloc) :]:
            raise ValueError("what looks like the host may be the beginning of a password")
        user, at, host = parts.netloc.rpartition("@")
        # Where the host was forgotten a password stands in the place of its port.
        host = _PORT.sub(lambda found: found[0] if found[1].isdecimal() else ":***", host)
        query = [(name, "***" if name.lower() in _SECRET else value) for name, value in parse_qsl(parts.query, True)]
        return (
            urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, urlencode(query, safe="/*,:"), ""))
            if parts.netloc
            else f"{parts.scheme}://{parts.path}" + (f"?{urlencode(query, safe='/*,:')}" if query else "")
        )
    except ValueError:
        return f"{scheme}://***"


_PORT = re.compile(r":([^\]\[:,]+)(?=,|$)")
_PREPARING = re.compile(r"([?&])prepare=([^&]*)(&|$)")


def prepares(location: str) -> bool | None:
    """Whether a URL says that statements are prepared on its connections, or are not; None where it says nothing."""
    found = _PREPARING.search(location)
    return None if found is None else found[2] == "1"


def connection_options(location: str) -> dict[str, str]:
    """Return what libpq is told for a URL.

    Raises:
        InvalidInput: it is no URL of a PostgreSQL database, or it names a password; or a port is no number.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    if printable_location(location).endswith("://***"):
        raise InvalidInput(
            f"{printable_location(location)} has an @ behind the host", "take a password out of it; else write %40"
        )
    try:
        known = _PREPARING.sub(lambda found: found[1] if found[3] else "", location)  # libpq does not know it
        given = {name: str(value) for name, value in conninfo_to_dict(known).items() if value is not None}
    except ProgrammingError:
        raise InvalidInput(
            f"{printable_location(location)} is no URL that libpq can read",
            "e.g. postgresql://user@host/database?sslmode=verify-full",
        ) from None
    if any(given.get(name) for name in ("password", "sslpassword")):
        raise InvalidInput(
            f"{printable_location(location)} names a password, which others on this machine could read",
            "take it out of the URL and put it into ~/.pgpass (PGPASSFILE) or a service file (PGSERVICE)",
        )
    if not all(port.isdecimal() for port in _places(given, "port", "PGPORT")):
        raise InvalidInput(
            f"{printable_location(location)} has a port that is not a number",
            "e.g. postgresql://user@host:5432/database, or PGPORT=5432; a password belongs into ~/.pgpass (PGPASSFILE)",
        )
    return {**_OURS, **_ALIVE, **_encrypted(given), **_primary(given), **given}


def _names_service(given: dict[str, str]) -> bool:
    return bool(given.get("service") or os.environ.get("PGSERVICE"))


def _places(given: dict[str, str], name: str, variable: str) -> list[str]:
    return [place for place in (given.get(name) or os.environ.get(variable) or "").split(",") if place]


def _primary(given: dict[str, str]) -> dict[str, str]:
    """Return how one of several hosts is chosen: after a fail-over the one that can be written is another."""
    # Where nobody says which host: libpq takes the first that answers, which may be a copy that can only be read.
    several = any(len(_places(given, *names)) > 1 for names in _PLACES)
    chosen = "target_session_attrs" in given or os.environ.get("PGTARGETSESSIONATTRS") or _names_service(given)
    return {"target_session_attrs": "read-write"} if several and not chosen else {}


def _encrypted(given: dict[str, str]) -> dict[str, str]:
    """Return how a connection is secured where nobody said so: beyond this machine the server must prove its name."""
    if "sslmode" in given or os.environ.get("PGSSLMODE") or _names_service(given):
        return {}
    # Of both: libpq connects to an address, where one is told, and not to the host of that name.
    hosts = [host for names in _PLACES for host in _places(given, *names)]
    # Sockets of this machine: by a path, or by an abstract name of Linux. Without any host libpq takes one of these.
    if all(host.startswith(("/", "@")) or host in _LOOPBACK for host in hosts):
        return {}
    known = given.get("sslrootcert") or os.environ.get("PGSSLROOTCERT")
    own = os.path.exists(os.path.join(os.path.expanduser("~"), ".postgresql", "root.crt"))
    return {"sslmode": "verify-full"} if known or own else {"sslmode": "verify-full", "sslrootcert": "system"}
