"""``formats``: the formats of logs that can be read."""

from __future__ import annotations

from ctxmgr.cli.output import Answer, Shown, answer_alone
from ctxmgr.cli.views import formats as views
from ctxmgr.history.formats import format_views


def formats(*, how: Shown) -> None:
    """List the formats that are read, where each agent keeps its logs, and what they tell.

    A log is recognised by its content, whatever it is called; compressed ones too. Where a format tells nothing of errors or
    of times, loops are found by what the calls returned, and stalls are not judged.

    Examples:
      ctxmgr formats
      ctxmgr formats --json
    """

    def work() -> Answer:
        rows = format_views()
        return Answer([row.to_json() for row in rows], lambda out: views.show_formats(out, rows))

    answer_alone("formats", how, work)
