"""Context packages as one agent may have them; start reading here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.access.guard import AccessGuard
from ctxmgr.context.summary_provider import Improver
from ctxmgr.store import Store
from ctxmgr.store.repositories.artifacts import ArtifactRow
from ctxmgr.types.context_request import (
    AssembleRequest,
    AssembleResponse,
    ChangeNeedsRequest,
    ListNeedsRequest,
    ListNeedsResponse,
    NeedsChanged,
    RequestItemsRequest,
    RequestItemsResponse,
    Why,
    WhyRequest,
)

if TYPE_CHECKING:
    from ctxmgr.context.assembly import PackageService


class Supply:
    """Packages, what is in them and why, and what agents need, of a store.

    Args:
        source: the store itself.
        seen: what the asker may see of its history; the same store for the operator.
        guard: who asks.
        improver: writes better summaries, where one is configured.
    """

    def __init__(self, source: Store, seen: Store, guard: AccessGuard, improver: Improver | None = None) -> None:
        self._source = source
        self._seen = seen
        self._guard = guard
        self._improver = improver

    def improved_by(self, improver: Improver) -> Supply:
        """Return the same, with better summaries where this one writes any."""
        return Supply(self._source, self._seen, self._guard, improver)

    def assemble(self, request: AssembleRequest) -> AssembleResponse:
        """Return the package of an agent, and record it; see `ctxmgr.context.assembly.assemble_context`."""
        from ctxmgr.context.assembly import assemble_context

        return assemble_context(self._desk(), request)

    def request_items(self, request: RequestItemsRequest) -> RequestItemsResponse:
        """Return what an agent asks for besides; see `ctxmgr.context.on_demand.request_items`."""
        from ctxmgr.context.on_demand import request_items

        return request_items(self._desk(), request)

    def why(self, request: WhyRequest) -> Why:
        """Say what became of an item in a package; see `ctxmgr.context.explanation.why`."""
        from ctxmgr.context.explanation import why

        return why(self._source, self._seen, self._guard, request)

    def change_needs(self, request: ChangeNeedsRequest) -> NeedsChanged:
        """Set needs and take others away; see `ctxmgr.context.needs.change_needs`."""
        from ctxmgr.context.needs import change_needs

        return change_needs(self._source, self._guard, request)

    def list_needs(self, request: ListNeedsRequest) -> ListNeedsResponse:
        """Return needs; see `ctxmgr.context.needs.list_needs`."""
        from ctxmgr.context.needs import list_needs

        return list_needs(self._source, self._guard, request)

    def _desk(self) -> PackageService:
        from ctxmgr.artifacts.content import open_content
        from ctxmgr.context.assembly import PackageService

        def content(row: ArtifactRow) -> bytes:
            with open_content(self._source, row) as opened:
                return opened.read()

        return PackageService(self._source, self._guard, self._seen, content, self._improver)
