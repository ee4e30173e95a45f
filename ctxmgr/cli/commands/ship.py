"""``ship``: bring local logs to a store that many machines share."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, Shown, answer_without_store, say
from ctxmgr.cli.views.layout import Span
from ctxmgr.config import load_config
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.history.shipping import Progress, Service, Shipper, as_shown, noted
from ctxmgr.paths import STORE_VARIABLE, nearest_store

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer


def ship(
    logs: Annotated[
        list[Path] | None, typer.Argument(metavar="[LOG...]", help="Logs and databases of ctxmgr; else the nearest .ctxmgr.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep shipping what is recorded, until interrupted.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="Polling interval, with --follow.")] = 1.0,
    status: Annotated[bool, typer.Option("--status", help="Only show how far each log is; contacts no store.")] = False,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything leaves this machine.")] = True,
    trust_project: o.TrustProject = False,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Copy the records of local logs to another store, each once; agents keep writing to the log and never wait.

    It can be ended at any time, and goes on where the store is. Several at once do no harm. --store is where the records
    go, a URL or a path; other agents' logs are for 'ctxmgr import'.

    Examples:
      ctxmgr ship --store postgresql://ctxmgr@db.example/history
      ctxmgr ship run.jsonl --follow --store postgresql://ctxmgr@db.example/history
      ctxmgr ship --status --json
    """

    def work() -> Answer:
        if not (math.isfinite(every) and every > 0):
            raise InvalidInput(f"--every {every:g} is no time", "seconds above 0")
        if status:
            return _progress_answer(noted())
        target = _target(store)
        paths = [str(path) for path in logs or ()] or [nearest_store(os.getcwd())]
        _require_apart(paths, target)
        shippers = [Shipper(path, target, as_shown(target), trusted=trust_project) for path in paths]
        with closing(Service(shippers, target, masked=mask)) as service:
            if follow:
                _follow(service, every)
            else:
                service.once()
        return _progress_answer([shipper.progress for shipper in shippers])

    answer_without_store("ship", how, work)


def _target(store: str | None) -> str:
    target = store or os.environ.get(STORE_VARIABLE) or load_config(Path.cwd()).store
    if not target:
        raise InvalidInput("no store to ship to", "name it: --store postgresql://USER@HOST/DATABASE")
    return target


def _require_apart(paths: list[str], target: str) -> None:
    if any(os.path.realpath(path) == os.path.realpath(target) for path in paths):
        raise InvalidInput(f"{target} can't be shipped to itself", "name another store with --store")


def _follow(service: Service, every: float) -> None:
    """Ship until somebody ends it: by Ctrl-C or SIGTERM, in order."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def told(error: CtxmgrError | None, wait: float) -> None:
        say("ctxmgr: shipping again" if error is None else f"ctxmgr: {error.message}; the next try is in {wait:.1f} s")

    before = signal.signal(signal.SIGTERM, end)
    try:
        service.follow(every, told)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress_answer(found: list[Progress]) -> Answer:
    rows: list[dict[str, Any]] = [each.to_json() for each in found]
    warnings: list[str] = []
    for each in found:
        if each.left_out:
            warnings.append(
                f"{each.source}: {each.left_out:,} records of the project's own state were left out; "
                "--trust-project takes them along"
            )
        if each.changed or each.refused:
            warnings.append(
                f"{each.source}: {each.changed:,} records are known with other content, {each.refused:,} can't be stored"
            )
    failed = any(each.error for each in found)
    return Answer(
        rows, lambda out: show_progress(out, found), "partial" if failed else "ok" if rows else "empty", warnings=warnings,
        code=Exit.OK,
    )  # fmt: skip


def show_progress(printer: Printer, rows: Sequence[Progress]) -> None:
    """Show what was brought where, what is left, and why the last try failed."""
    if not rows:
        printer.hint("nothing was shipped from this machine yet: 'ctxmgr ship --store URL'")
    for row in rows:
        unit = row.to_json()["unit"]
        left = f"{row.lag:,} of {row.size:,} {unit} left" if row.lag else "all shipped"
        printer.line(f"{row.source} -> {row.target}: ", Span(left, "warn" if row.lag else "ok"), hang=2)
        printer.line(f"  {row.added:,} records added, {row.known:,} known already; last at {row.shipped or 'no time yet'}")
        if row.error is not None:
            printer.line("  ", Span(f"failing since {row.since}: {row.error}", "error"), hang=4)
