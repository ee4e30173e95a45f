"""What was said, and by whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import clock
from ctxmgr.cli.views.layout import Column, Span
from ctxmgr.cli.views.one_line import said

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import MessagesResponse
    from ctxmgr.types.view import EventView

_PLAIN = (Column("TIME"), Column("WHO"), Column("TYPE"), Column("AFTER", right=True), Column("TEXT"))
_HUMAN = ("user_message", "user_message_chunk", "interrupt")
_TALK = ("user_message", "user_message_chunk", "message", "agent_message_chunk")
_LONGEST = 40


def show_messages(printer: Printer, response: MessagesResponse) -> None:
    """Show messages; pieces of one streamed message are put together on a terminal."""
    entry = response.entry
    if entry is not None and printer.terminal:
        printer.line(Span(f"at @{entry.index} "), Span(printer.fit(entry.action, 40), "name"))
    if not response.messages:
        printer.hint("Nothing was said here." if entry is not None else "No messages in this session.")
        return
    if not printer.terminal:
        rows = ([event.ts, _who(event), event.type, event.after, said(event.data)] for event in response.messages)
        printer.table(_PLAIN, rows)
        return
    for first, text in _joined(response.messages):
        head = [Span(printer.fit(_who(first), 30), "open" if first.type in _HUMAN else "name")]
        kind = "" if first.type in _TALK else f" {printer.fit(first.type, 30)}"
        after = "" if first.after is None else f"  after @{first.after}"
        printer.line(*head, Span(f"{kind}  {clock(first.ts)}{after}", "dim"))
        left = printer.block(text, indent=4, style="dim" if "thought" in first.type else "", most=_LONGEST)
        if left:
            printer.line(Span(f"{printer.symbols.ellipsis} {left} more lines; --json shows all", "dim"), indent=4)


def _who(event: EventView) -> str:
    return "user" if event.type in _HUMAN else "harness" if event.type == "nudge" else event.agent or "agent"


def _joined(events: Sequence[EventView]) -> Iterator[tuple[EventView, str]]:
    """Yield each message with its first event; chunks of the same kind by the same agent are one message."""
    first: EventView | None = None
    text = ""
    for event in events:
        if first is not None and event.type.endswith("_chunk") and (event.type, event.agent) == (first.type, first.agent):
            text += said(event.data)
            continue
        if first is not None:
            yield first, text
        first, text = event, said(event.data)
    if first is not None:
        yield first, text
