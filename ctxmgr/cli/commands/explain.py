"""``detect --explain INDEX``: what each detector made of one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.address import parse
from ctxmgr.cli.detector_options import merged
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import tell_session
from ctxmgr.cli.views.explanation import show_explanation
from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.explanation import explain as explained
from ctxmgr.types.explanation import ExplainRequest

if TYPE_CHECKING:
    from ctxmgr.workspace import Workspace

COMMAND = "detect explain"


def explain(
    address: str,
    session: str | None,
    store: str | None,
    settings: list[str] | None,
    how: Shown,
    *,
    beside: list[str],
) -> None:
    """Show what the detectors thought of the entry at an address; exit 0 when it exists.

    Args:
        address: ``42``, ``SESSION@42``, ``@-1``, or an entry id.
        session: the one that ``--session`` names.
        store: path of the store, if one was named.
        settings: what ``--set`` gave.
        how: the answer is wanted.
        beside: options that were given and have no meaning here.
    """

    def work(workspace: Workspace) -> Answer:
        if beside:
            raise InvalidInput(f"--explain can't be combined with {beside[0]}", "it is about one entry")
        place = parse(address, session)
        request = ExplainRequest(session=place.session, index=place.index, entry_id=place.entry_id)
        found = explained(workspace.store, request, merged(dict(workspace.config.detect), settings))
        tell_session(workspace, place.session, found.entry.session)
        return Answer(found.to_json(), lambda out: show_explanation(out, found))

    answer(COMMAND, how, work, store=store)
