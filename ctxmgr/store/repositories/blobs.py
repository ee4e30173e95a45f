"""The contents of artifacts on a server: bytes in pieces, by the hash of the whole, each team's own."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from ctxmgr.errors import Busy
from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.engine.postgresql_functions import BLOB_WRITERS
from ctxmgr.store.engine.postgresql_schema import PIECE
from ctxmgr.store.text_normalisation import storable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ctxmgr.store.engine.postgresql import PostgresqlEngine

# Row-level security says the same; named here too, the team is the beginning of the key, for a superuser as well.
_OWN = f"team = {SCHEMA}.own_team()"
_SUMS = f"SELECT encode(sha256(content), 'hex') FROM blob WHERE {_OWN} AND hash = :hash ORDER BY piece"
_PIECES = f"SELECT content FROM blob WHERE {_OWN} AND hash = :hash ORDER BY piece"
_SIZES = f"SELECT hash, sum(octet_length(content))::bigint FROM blob WHERE {_OWN} AND hash = ANY(:hashes) GROUP BY hash"
_ADD = "INSERT INTO blob (hash, piece, content) VALUES (:hash, :piece, :content) ON CONFLICT DO NOTHING"
# Not those that are right: another writer may have listed them, if this one lost its lock or is dead and this comes late.
_REMOVE_WRONG = (
    f"DELETE FROM blob WHERE {_OWN} AND hash = :hash AND NOT EXISTS "
    "(SELECT 1 FROM unnest(CAST(:sums AS TEXT[])) WITH ORDINALITY AS wanted(sum, number) "
    "WHERE wanted.number = blob.piece + 1 AND wanted.sum = encode(sha256(blob.content), 'hex'))"
)
_REMOVE_UNNAMED = (
    f"DELETE FROM blob WHERE {_OWN} AND NOT EXISTS "
    "(SELECT 1 FROM artifact WHERE artifact.hash = blob.hash AND artifact.team = blob.team)"
)
_MOST_PIECES = 16  # of a content that the server puts together to make its hash, in its memory
_WHOLE = (
    f"SELECT hash, encode(sha256(string_agg(content, ''::bytea ORDER BY piece)), 'hex') = hash FROM blob WHERE {_OWN} "
    f"GROUP BY hash HAVING count(*) <= {_MOST_PIECES}"
)
# A transaction that only holds a lock sees nothing and keeps nothing from being tidied up, so it may last.
_HOLD = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0"
_TRY = f"SELECT pg_try_advisory_xact_lock({BLOB_WRITERS}, {SCHEMA}.own_team()::integer)"
_SHORTEST_WAIT, _LONGEST_WAIT = 0.02, 0.5


class Blobs:
    """The contents of the team's artifacts. What is there is never changed, only added and removed."""

    def __init__(self, engine: PostgresqlEngine) -> None:
        self._engine = engine

    @contextmanager
    def writer_lock(self, timeout: float) -> Generator[None]:
        """Be the only one of the team who writes artifacts, on whatever machine.

        The lock may be lost with its connection. So whoever lists a version checks, in that transaction, that all is as it was.

        Raises:
            Busy: another process holds it for longer than ``timeout`` seconds.
        """
        end, wait = time.monotonic() + timeout, _SHORTEST_WAIT
        with self._engine.apart() as connection:
            while True:
                connection.execute(_HOLD)
                if connection.execute(_TRY.encode()).fetchall()[0][0]:
                    break
                # Who waits gives the connection back to a pooler, which might have none left for the one that is waited for.
                connection.execute("ROLLBACK")
                if time.monotonic() + wait > end:
                    raise Busy(
                        f"the artifacts of {self._engine.path} are being written by another process",
                        f"they stayed locked for {timeout:g} s; try again",
                    )
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            try:
                yield
            finally:
                with suppress(Exception):  # else it is given back when the server notices that the connection has ended
                    connection.execute("ROLLBACK")

    def sums(self, digest: str) -> list[str]:
        """Return the hash of each piece of a content, as the server has it now; none where it is not there."""
        return [str(row[0]) for row in self._engine.query(_SUMS, {"hash": storable(digest)})]

    def pieces(self, digest: str) -> Iterator[bytes]:
        """Yield a content, unverified, in pieces of a megabyte; all of one state of the store."""
        for (content,) in self._engine.stream(_PIECES, {"hash": storable(digest)}, at_once=2):
            yield bytes(content)

    def sizes(self, digests: Iterable[str]) -> dict[str, int]:
        """Return hash -> bytes that are there, of those contents that are."""
        asked = sorted({storable(digest) for digest in digests})
        return {str(digest): int(size) for digest, size in self._engine.query(_SIZES, {"hashes": asked})}

    def add(self, digest: str, pieces: Iterable[bytes], sums: list[str]) -> None:
        """Keep a content in place of what else is there under its hash.

        Args:
            digest: its hash.
            pieces: of a megabyte each, the last one of what is left.
            sums: the hash of each piece.
        """
        self._engine.execute(_REMOVE_WRONG, {"hash": digest, "sums": sums})
        # One after the other, so that neither side holds the whole; nothing names it yet.
        for number, piece in enumerate(pieces):
            self._engine.execute(_ADD, {"hash": digest, "piece": number, "content": piece})

    def remove_unnamed(self) -> None:
        """Remove every content that no version shows."""
        # Alone: who lists a version has looked, in such a transaction too, whether all that it shows is there.
        with self._engine.transaction():
            self._engine.execute(_REMOVE_UNNAMED)

    def sound(self, digests: Iterable[str]) -> set[str]:
        """Return those of these contents that are there with the bytes that their hashes promise."""
        judged = {str(digest): bool(whole) for digest, whole in self._engine.query(_WHOLE)}
        return {each for each in digests if (judged[each] if each in judged else self._is_sound(each))}

    def _is_sound(self, digest: str) -> bool:
        found = sha256()
        for piece in self.pieces(digest):
            found.update(piece)
        return found.hexdigest() == digest


def split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces as they are kept: of a megabyte each, at least one, and only the last one is shorter."""
    rest = b""
    for piece in pieces:
        rest += piece
        while len(rest) > PIECE:
            yield rest[:PIECE]
            rest = rest[PIECE:]
    yield rest
