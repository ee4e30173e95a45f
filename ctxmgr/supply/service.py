"""Context packages as one asker may have them: the facade of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.project.guarding import Guard
from ctxmgr.store import Store
from ctxmgr.store.artifacts import ArtifactRow
from ctxmgr.supply.improving import Improver
from ctxmgr.types.supplying import (
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
    from ctxmgr.supply.assembling import Desk


class Supply:
    """Packages, what is in them and why, and what agents need, of a store.

    Args:
        source: the store itself.
        seen: what the asker may see of its history; the same store for the operator.
        guard: who asks.
        improver: writes better summaries, where one is configured.
    """

    def __init__(self, source: Store, seen: Store, guard: Guard, improver: Improver | None = None) -> None:
        self._source = source
        self._seen = seen
        self._guard = guard
        self._improver = improver

    def improved_by(self, improver: Improver) -> Supply:
        """Return the same, with better summaries where this one writes any."""
        return Supply(self._source, self._seen, self._guard, improver)

    def assemble(self, request: AssembleRequest) -> AssembleResponse:
        """Return the package of an agent, and record it; see `ctxmgr.supply.assembling.assemble_context`."""
        from ctxmgr.supply.assembling import assemble_context

        return assemble_context(self._desk(), request)

    def request_items(self, request: RequestItemsRequest) -> RequestItemsResponse:
        """Return what an agent asks for besides; see `ctxmgr.supply.pulling.request_items`."""
        from ctxmgr.supply.pulling import request_items

        return request_items(self._desk(), request)

    def why(self, request: WhyRequest) -> Why:
        """Say what became of an item in a package; see `ctxmgr.supply.explaining.why`."""
        from ctxmgr.supply.explaining import why

        return why(self._source, self._seen, self._guard, request)

    def change_needs(self, request: ChangeNeedsRequest) -> NeedsChanged:
        """Set needs and take others away; see `ctxmgr.supply.needs.change_needs`."""
        from ctxmgr.supply.needs import change_needs

        return change_needs(self._source, self._guard, request)

    def list_needs(self, request: ListNeedsRequest) -> ListNeedsResponse:
        """Return needs; see `ctxmgr.supply.needs.list_needs`."""
        from ctxmgr.supply.needs import list_needs

        return list_needs(self._source, self._guard, request)

    def _desk(self) -> Desk:
        from ctxmgr.artifacts.reading import open_content
        from ctxmgr.supply.assembling import Desk

        def content(row: ArtifactRow) -> bytes:
            with open_content(self._source, row) as opened:
                return opened.read()

        return Desk(self._source, self._guard, self._seen, content, self._improver)
