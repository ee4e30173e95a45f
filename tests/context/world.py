"""A project in few words: artifacts put by their events, rules, needs; contents in a dictionary that counts its reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.rules import Rules
from ctxmgr.context import assembly
from ctxmgr.context import service as requests
from ctxmgr.context.assembly import PackageService, assemble_context
from ctxmgr.context.candidates import Improver
from ctxmgr.errors import Damaged
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.store import Store
from ctxmgr.store.project_session import KEY, NEEDS, PROJECT, RULES, VERSION
from ctxmgr.store.repositories.shared_state import ArtifactRow
from ctxmgr.text.tokens import ESTIMATE, Counter, content_kind
from ctxmgr.types.context_package import (
    AssembleRequest,
    AssembleResponse,
    ItemExplanation,
    RequestItemsRequest,
    RequestItemsResponse,
    WhyRequest,
)
from ctxmgr.types.project_state import AgentNeed, ChangeNeedsRequest, NeedChangeResult
from tests import builders as b

NOW = "2026-01-31T12:00:00Z"
PROSE = "The first sentence says it. The second one adds something to that.\n\n"


@dataclass
class World:
    """A store with a project in it.

    Attributes:
        contents: hash -> bytes of each artifact; ``reads`` are the hashes that were read.
        service: of the last question, for what it counted.
    """

    store: Store
    contents: dict[str, bytes] = field(default_factory=lambda: dict[str, bytes]())
    reads: list[str] = field(default_factory=lambda: list[str]())
    improver: Improver | None = None
    clock: Callable[[], str] = lambda: NOW
    service: PackageService | None = None
    _events: int = 0
    _version: int = 0

    def record(self, kind: str, data: dict[str, Any]) -> None:
        """Append an event of the reserved session."""
        self._events += 1
        self.store.append([b.build("event", PROJECT, NOW, id=f"event-{self._events}", type=kind, data=data)])

    def put(
        self, owner: str, name: str, content: str | bytes, *, depends: Sequence[tuple[str, str]] = (), kind: str | None = None,
        counter: Counter = ESTIMATE,
    ) -> str:  # fmt: skip
        """Put an artifact in a new version and return its id; ``depends`` are (OWNER/NAME, type)."""
        return self.put_all([(owner, name, content, kind, depends)], counter)[0]

    def put_all(
        self,
        given: Sequence[tuple[str, str, str | bytes, str | None, Sequence[tuple[str, str]]]],
        counter: Counter = ESTIMATE,
    ) -> list[str]:
        """Put several artifacts in one new version and return their ids."""
        parent, self._version = self._version or None, self._version + 1
        rows: list[dict[str, Any]] = []
        for owner, name, content, kind, depends in given:
            raw = content if isinstance(content, bytes) else content.encode()
            digest = hashlib.sha256(raw).hexdigest()
            self.contents[digest] = raw
            text = raw.decode("utf-8", "replace")
            kind = kind or content_kind(name, text)
            identity = "art_" + hashlib.sha256(f"{owner}/{name}/{self._version}".encode()).hexdigest()[:16]
            links = [
                {"id": self.id_of(target), "agent": target.partition("/")[0], "name": target.partition("/")[2], "type": type_}
                for target, type_ in depends
            ]
            rows.append(
                {
                    "id": identity, "agent": owner, "name": name, "type": kind, "hash": digest, "size": len(raw),
                    "tokens": counter.count(text, kind), "counter": counter.name, "dependencies": links,
                }
            )  # fmt: skip
        self.record(VERSION, {"version": self._version, "parent": parent, "op": "put", "artifacts": rows})
        return [row["id"] for row in rows]

    def id_of(self, path: str) -> str:
        """Return the id of OWNER/NAME as it stands, or one that nothing has."""
        owner, _, name = path.partition("/")
        current = self.store.artifacts.current()
        row = None if current is None else self.store.artifacts.find(owner, name, current)
        return "art_" + "0" * 16 if row is None else row.id

    def keys(self, **values: Any) -> None:
        """Set context keys."""
        self.record(KEY, {"changes": [{"key": key, "value": value, "type": "json"} for key, value in values.items()]})

    def rule(self, agent: str, resource: str, pattern: str, permission: str = "read", priority: int = 100) -> None:
        """Put an access rule in force."""
        self.record(
            RULES,
            {"set": [{"agent": agent, "resourceType": resource, "pattern": pattern, "permission": permission,
                      "priority": priority}]},
        )  # fmt: skip

    def need(self, agent: str, pattern: str, need: str = "required", **more: Any) -> None:
        """Say what an agent needs, unchecked, as an imported record may."""
        self.record(NEEDS, {"set": [{"agent": agent, "pattern": pattern, "need": need, **more}]})

    def change_needs(
        self, *add: AgentNeed, remove: Sequence[tuple[str, str]] = (), asker: str | None = None
    ) -> NeedChangeResult:
        """Say what agents need, as the command does."""
        return requests.change_needs(
            self.store, AccessGuard(self.store, asker), ChangeNeedsRequest(add=list(add), remove=list(remove))
        )

    def open_service(self, asker: str | None = None) -> PackageService:
        """Return the service for an asker."""
        seen = self.store if asker is None else FilteredStore(self.store, asker, Rules(self.store.shared.rules()))
        self.service = PackageService(self.store, AccessGuard(self.store, asker), seen, self.read, self.improver, self.clock)
        return self.service

    def assemble(self, agent: str = "dev", tokens: int = 10_000, *, asker: str | None = None, **more: Any) -> AssembleResponse:
        """Assemble a package."""
        return assemble_context(self.open_service(asker), AssembleRequest(agent=agent, max_tokens=tokens, **more))

    def request(self, *items: str, agent: str = "dev", asker: str | None = None, **more: Any) -> RequestItemsResponse:
        """Ask for more."""
        return requests.request_items(self.open_service(asker), RequestItemsRequest(agent=agent, items=list(items), **more))

    def why(self, item: str, *, asker: str | None = None, **more: Any) -> ItemExplanation:
        """Ask why."""
        service = self.open_service(asker)
        return assembly.explain_item(self.store, service.visible, service.guard, WhyRequest(item=item, **more))

    def read(self, row: ArtifactRow) -> bytes:
        """Return the bytes of an artifact, verified."""
        self.reads.append(row.hash)
        content = self.contents.get(row.hash)
        if content is None or hashlib.sha256(content).hexdigest() != row.hash:
            raise Damaged("its content is not what was put", "put it again")
        return content


def got(made: AssembleResponse) -> dict[str, str]:
    """Return what each item got, by OWNER/NAME."""
    return {f"{one.source}/{one.name}": one.got for one in made.decisions if one.rule != "duplicate"}
