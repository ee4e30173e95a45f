"""Document an answer in the history: notes on the entries it rests on, and a snapshot of them (US12)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.history.annotating import note_record, snapshot_record
from ctxmgr.recover.brief import Brief
from ctxmgr.recover.quoting import named, quoted
from ctxmgr.recover.target import Target
from ctxmgr.recover.trouble import sentence
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.query import AddNoteRequest, CreateSnapshotRequest
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest
from ctxmgr.types.view import EntryView
from ctxmgr.wire import Record


def trail(
    store: Store,
    key: int,
    brief: Brief,
    request: ContextRequest,
    finding: Finding | None,
    target: Target,
    summary: str,
) -> list[Record]:
    """Return the records of notes and snapshot, not yet written.

    Every entry that was used carries a note that says why; the routing is noted at the newest of them.
    """
    evidence = _ids(brief.members)
    context = [name for name in _ids(_context(brief)) if name not in evidence]
    used = [*evidence, *context]
    records: list[Record] = []

    def note(entries: list[str], content: str, tag: str) -> None:
        if entries:
            asked = AddNoteRequest(
                session=request.session, entry_ids=entries, author=CONTEXT_MANAGER, content=content, tags=["recovery", tag]
            )
            records.append(note_record(store, key, asked))

    if finding is not None:
        note(evidence or used[-1:], f"Evidence of {finding.kind} {finding.id}: {sentence(brief, finding)}", "diagnostic")
    why = "what was done, changed or failed outside it" if finding else "what the answer to a request for context rests on"
    note(context, f"Kept in the context for {named(target.agent)}: {why}.", "selection")
    place = evidence[-1:] or _ids(brief.latest)[-1:] or used[-1:]
    note(place, f"Routed to {named(target.agent)}: {target.reason}. Asked because: {quoted(request.reason)}", "routing")
    if used:
        bundle = CreateSnapshotRequest(
            session=request.session,
            entry_ids=used,
            summary=summary,
            reasoning=f"entries that a continuation for {named(target.agent)} rests on",
        )
        records.append(snapshot_record(store, key, bundle))
    return records


def _context(brief: Brief) -> Sequence[EntryView]:
    single = [entry for entry in (brief.last_success, brief.launcher) if entry is not None]
    return [*single, *brief.changed, *brief.relevant, *brief.failures, *brief.agents, *brief.latest]


def _ids(entries: Sequence[EntryView]) -> list[str]:
    return list(dict.fromkeys(entry.id for entry in entries))
