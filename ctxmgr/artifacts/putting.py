"""Store what an agent produced: bytes first, then the version that shows them, then the event that lists it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ctxmgr.access.patterns import quoted
from ctxmgr.artifacts.depending import Dependencies
from ctxmgr.artifacts.guarding import Guard
from ctxmgr.artifacts.healing import heal
from ctxmgr.artifacts.measuring import BINARY, Measure, Measured, told
from ctxmgr.artifacts.names import check_names
from ctxmgr.artifacts.objects import Objects
from ctxmgr.artifacts.recording import Draft, Held, write_version, writing
from ctxmgr.artifacts.sources import AnySource, FileSource, StreamSource, TextSource
from ctxmgr.assemble.kinds import KINDS, TEXT, known_kind
from ctxmgr.errors import Denied, InvalidInput
from ctxmgr.store import Store
from ctxmgr.store.artifacts import ArtifactRow
from ctxmgr.types.artifact_request import NewArtifact, PutRequest

MAX_DESCRIPTION = 10_000
"""Longest description, in characters."""
_BATCH = 16  # from so many artifacts on one sync of everything costs less than one for each


@dataclass(frozen=True, slots=True)
class Done:
    """What a put did: the version that is current now, the artifacts as they stand, and what in them looks like secrets.

    ``secrets`` holds (name, what was found in which lines) of each of them that does.
    """

    version: int
    changed: bool
    rows: list[ArtifactRow]
    secrets: list[tuple[str, str]]


def put(store: Store, guard: Guard, request: PutRequest, stream: BinaryIO | None = None) -> Done:
    """Store artifacts, all or none; what is as it was makes no new version.

    Args:
        store: to store in.
        guard: who asks.
        request: what is to be stored.
        stream: what the path ``-`` means.

    Raises:
        Denied: the asker may not write one of them, whether it is there or not.
        InvalidInput, NotFound, StorageFailed, Busy: each its own reason; nothing was stored.
    """
    _check(guard, request, stream)
    with writing(store) as held:
        known = _known(store, held, request)
        dependencies = Dependencies(store, guard, held.current, request)
        objects = Objects(held.folder, each=len(request.artifacts) < _BATCH)
        taken = [
            _take(objects, item, known.get(item.name), stream, reject=request.secrets == "reject") for item in request.artifacts
        ]
        changed = {
            item.name: _row(request.agent, item, measured, known.get(item.name), held.next)
            for item, measured in zip(request.artifacts, taken, strict=True)
            if not _is_as_it_was(item, measured, known.get(item.name), dependencies)
        }
        if changed:
            objects.settle()
            drafts = [Draft(row, dependencies.of(row, known.get(row.name), changed)) for row in changed.values()]
            write_version(
                store, held, drafts, op="put", author=guard.agent or request.agent, description=request.description
            )  # fmt: skip
        if objects.replaced:  # views made of the bytes that somebody meddled with still show these
            heal(store, held.folder, broken=True)
        now = held.next if changed else held.current or 0
        after = {row.name: row for row in store.artifacts.state(now, request.agent)} if changed else known
    guard.log("artifact put", "write", [(request.agent, item.name) for item in request.artifacts])
    found = zip(request.artifacts, taken, strict=True)
    secrets = [(item.name, told(measured.secrets)) for item, measured in found if measured.secrets]
    return Done(now, bool(changed), [after[item.name] for item in request.artifacts], secrets)


def _known(store: Store, held: Held, request: PutRequest) -> Mapping[str, ArtifactRow]:
    if held.current is None:
        return {}
    if len(request.artifacts) == 1:
        row = store.artifacts.find(request.agent, request.artifacts[0].name, held.current)
        return {} if row is None else {row.name: row}
    return {row.name: row for row in store.artifacts.state(held.current, request.agent)}


def _check(guard: Guard, request: PutRequest, stream: BinaryIO | None) -> None:
    seen: set[str] = set()
    for item in request.artifacts:
        check_names(request.agent, item.name)
        if item.name in seen:
            raise InvalidInput(f"{quoted(item.name)} is given twice", "give each artifact a name of its own")
        seen.add(item.name)
        if (item.content is None) == (item.path is None):
            raise InvalidInput(f"{quoted(item.name)} needs either content or a path", "give one of them")
        kind_named(item.type)
        check_description(item.description)
    check_description(request.description)
    streamed = sum(item.path == "-" for item in request.artifacts)
    if streamed > 1 or (streamed and stream is None):
        raise InvalidInput("there is no stream for each '-'", "one stream can be read, once; give the others as files")
    refused = [(request.agent, item.name) for item in request.artifacts if not guard.writes(request.agent, item.name)]
    if refused:
        guard.log("artifact put", "write", denied=refused)
        owner, name = refused[0]
        raise Denied(f"{guard.agent} may not write the artifact {owner}/{name}", "'ctxmgr access explain' names the rule")


def check_description(text: str | None) -> None:
    """Refuse a description that is no description.

    Raises:
        InvalidInput: it is too long, or holds half a character.
    """
    if text is None:
        return
    if len(text) > MAX_DESCRIPTION:
        raise InvalidInput(f"the text has {len(text):,} characters; the limit is {MAX_DESCRIPTION:,}", "keep it as an artifact")
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text) or "\0" in text:
        raise InvalidInput("the text holds a NUL or half a character", "give whole characters")


def kind_named(word: str | None) -> str | None:
    """Return the type that a word means; None where none was named.

    Raises:
        InvalidInput: it means no known type.
    """
    if word is None:
        return None
    plain = word.strip().lower()
    if plain == BINARY:
        return BINARY
    kind = known_kind(word)
    if kind == TEXT and plain not in (TEXT, "prose", "plain"):
        raise InvalidInput(f"no artifact type is called {quoted(word)}", f"known: {', '.join((*KINDS, BINARY))}")
    return kind


def _source(item: NewArtifact, stream: BinaryIO | None) -> AnySource:
    if item.content is not None:
        return TextSource(item.content)
    return StreamSource(stream) if item.path == "-" and stream is not None else FileSource(item.path or "")


def _take(objects: Objects, item: NewArtifact, known: ArtifactRow | None, stream: BinaryIO | None, *, reject: bool) -> Measured:
    """Return what the content is, once it is kept; what is there already is not written a second time."""
    kind, usual = kind_named(item.type), None if known is None else known.type
    source = _source(item, stream)
    try:
        if known is not None and source.size == known.size:
            measure = Measure(item.name, kind, usual, reject=reject)
            for piece in source.pieces():
                measure.add(piece)
            if measure.digest == known.hash:
                if objects.is_sound(known.hash):
                    return measure.done()
                objects.replaced = True
        return objects.take(Measure(item.name, kind, usual, reject=reject), source)
    finally:
        source.close()


def _row(agent: str, item: NewArtifact, measured: Measured, known: ArtifactRow | None, number: int) -> ArtifactRow:
    return ArtifactRow(
        id=artifact_id(agent, item.name, number, measured.hash),
        version=number,
        agent=agent,
        name=item.name,
        type=measured.type,
        description=_description(item, known),
        hash=measured.hash,
        size=measured.size,
        tokens=measured.tokens,
        counter=measured.counter,
        ts=None,
    )


def _description(item: NewArtifact, known: ArtifactRow | None) -> str | None:
    if item.description is None:
        return None if known is None else known.description
    return item.description or None


def artifact_id(agent: str, name: str, version: int, digest: str) -> str:
    """Return the id of a content under a name as of a version: the same wherever it is made."""
    text = "\0".join((agent, name, str(version), digest))
    return "art_" + hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _is_as_it_was(item: NewArtifact, measured: Measured, known: ArtifactRow | None, dependencies: Dependencies) -> bool:
    return (
        known is not None
        and (measured.hash, measured.type, _description(item, known)) == (known.hash, known.type, known.description)
        and dependencies.are_as_they_were(item, known)
    )
