"""The URL of a PostgreSQL store: its options, its printable form, and the safe defaults of a connection.

A URL must not contain a password, because other users can read command lines and settings. libpq finds the password in
``~/.pgpass`` (``PGPASSFILE``), in a service (``PGSERVICE``) or in ``PGPASSWORD``.
"""

from __future__ import annotations

import os
import re

from ctxmgr.base.paths import is_url
from ctxmgr.errors import InvalidInput

SCHEMES = ("postgresql://", "postgres://")
"""Prefixes of the URL of a PostgreSQL store."""

_SECRET = ("password", "sslpassword", "passfile", "scram_client_key", "scram_server_key", "oauth_client_secret")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Parameters and variables in which libpq looks for hosts and addresses.
_PLACES = (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"))
_OURS = {"application_name": "ctxmgr", "connect_timeout": "10", "client_encoding": "utf8"}
# With these settings a connection notices within half a minute that its peer has vanished.
_ALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "20000"}


def driver_missing(error: ImportError, purpose: str, needed: str, extra: str) -> InvalidInput:
    """Return the error for a driver that is not installed or can't be loaded.

    Raises:
        ImportError: a module other than the driver is missing.
    """
    if error.name == needed:
        return InvalidInput(f"{purpose} need {needed}", f"pip install 'ctxmgr-cli[{extra}]'")
    if error.name is not None:
        raise error
    # The package is installed, but not a library that it needs. Its error says which.
    return InvalidInput(
        f"{purpose} need {needed}, which can't be loaded: {' '.join(str(error).split())}", f"pip install 'ctxmgr-cli[{extra}]'"
    )


def is_server(location: str) -> bool:
    """Whether a location is the URL of a server."""
    return location.startswith(SCHEMES)


def printable_location(location: str) -> str:
    """Return a location in printable form: without passwords and other secrets that a URL may contain."""
    scheme, found, rest = location.partition("://")
    if not found:
        return "***" if is_url(location) else location
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    try:
        parts = urlsplit(location)
        if parts.netloc and "@" in rest[len(parts.netloc) :]:
            raise ValueError("what looks like the host may be the beginning of a password")
        user, at, host = parts.netloc.rpartition("@")
        # In a URL without a host, a password may stand in place of the port.
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
    """Whether a URL says to prepare statements (``prepare=1``) or not (any other value); None if it says neither."""
    found = _PREPARING.search(location)
    return None if found is None else found[2] == "1"


def connection_options(location: str) -> dict[str, str]:
    """Return the connection parameters of a URL for libpq, with our defaults.

    Raises:
        InvalidInput: the location is not the URL of a PostgreSQL database, contains a password, or has a port that is not a
            number.
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
    return {**_OURS, **_ALIVE, **_default_tls(given), **_primary(given), **given}


def _names_service(given: dict[str, str]) -> bool:
    return bool(given.get("service") or os.environ.get("PGSERVICE"))


def _places(given: dict[str, str], name: str, variable: str) -> list[str]:
    return [place for place in (given.get(name) or os.environ.get(variable) or "").split(",") if place]


def _primary(given: dict[str, str]) -> dict[str, str]:
    """Return the parameter that selects the writable host among several; after a fail-over it is another one."""
    # By default libpq takes the first host that answers, which may be a read-only replica.
    several = any(len(_places(given, *names)) > 1 for names in _PLACES)
    chosen = "target_session_attrs" in given or os.environ.get("PGTARGETSESSIONATTRS") or _names_service(given)
    return {"target_session_attrs": "read-write"} if several and not chosen else {}


def _default_tls(given: dict[str, str]) -> dict[str, str]:
    """Return our TLS parameters if the user set none: a server on another machine must prove its name."""
    if "sslmode" in given or os.environ.get("PGSSLMODE") or _names_service(given):
        return {}
    # Both host and hostaddr count, because libpq connects to the address if there is one.
    hosts = [host for names in _PLACES for host in _places(given, *names)]
    # Unix sockets of this machine have a path or, on Linux, an abstract name ("@"). Without a host libpq uses one of them.
    if all(host.startswith(("/", "@")) or host in _LOOPBACK for host in hosts):
        return {}
    known = given.get("sslrootcert") or os.environ.get("PGSSLROOTCERT")
    own = os.path.exists(os.path.join(os.path.expanduser("~"), ".postgresql", "root.crt"))
    return {"sslmode": "verify-full"} if known or own else {"sslmode": "verify-full", "sslrootcert": "system"}
