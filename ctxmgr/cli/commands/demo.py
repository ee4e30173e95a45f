"""``demo``: the main job on a recorded run of a real coding agent that went in circles."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli.invocation import global_options
from ctxmgr.cli.output import OutputOptions, fail
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import Conflict, StorageFailed
from ctxmgr.paths import replace_file

_RUN = "projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"

STEPS: tuple[tuple[str, Sequence[str]], ...] = (
    ("Read the log that a coding agent left on disk", ("import", "{log}")),
    ("Which runs are there, and which of them is stuck?", ("sessions",)),
    ("Where does it go in circles, and since when?", ("detect", "--exit-zero")),
    ("What were its last steps?", ("list", "--newest-first", "--limit", "6")),
    ("One continuation request that gets it going again", ("recover",)),
)


def demo(
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Only write the recorded run to a file, to try things on it."),
    ] = None,
) -> None:
    """Show the main use on a recorded run of a real coding agent that went in circles.

    Works on a copy in a temporary folder, which is removed at the end.

    Examples:
      ctxmgr demo
      ctxmgr demo --save run.jsonl
    """
    from ctxmgr.cli import build_app

    if save is not None:
        _save(save, _recorded_run().read_bytes())
        return

    wished = [
        "--no-pager",
        *(["--no-color"] if not global_options.colour else []),
        *(["--quiet"] if global_options.quiet else []),
    ]
    folder = Path(tempfile.mkdtemp(prefix="ctxmgr-demo-"))
    log = folder / Path(_RUN).name
    try:
        log.write_bytes(_recorded_run().read_bytes())
        for title, command in STEPS:
            sys.stdout.write(f"\n# {title}\n$ ctxmgr {' '.join(command).format(log=log.name)}\n")
            sys.stdout.flush()
            arguments = [*wished, *(part.format(log=log) for part in command), "--store", str(folder / "history.db")]
            code = build_app(command[0])(arguments, standalone_mode=False)
            if code:
                raise typer.Exit(int(code))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _save(path: Path, run: bytes) -> None:
    try:
        if path.exists() and path.read_bytes() != run:
            fail("demo", OutputOptions(), Conflict(f"{path} exists already and holds something else", "name another file"))
        replace_file(path, run)
    except OSError as error:
        fail("demo", OutputOptions(), StorageFailed(f"can't write {path}: {error.strerror}", "choose another place"))
    sys.stdout.write(f"{safe(str(path))}\n")


def _recorded_run() -> Path:
    """Return the recorded run: inside the installed package, or among the fixtures of a checkout."""
    packaged = Path(__file__).parents[1] / "demo_run.jsonl"
    return packaged if packaged.exists() else Path(__file__).parents[3] / "fixtures" / "demo" / "claude-code" / _RUN
