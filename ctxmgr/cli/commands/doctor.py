"""``doctor`` and ``demo``: check the installation, and try the commands with a recorded run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.artifacts.version_folders import check_artifacts
from ctxmgr.base.paths import replace_file
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit, find_exit
from ctxmgr.cli.invocation import global_options
from ctxmgr.cli.output import Answer, OutputOptions, answer_without_store, fail
from ctxmgr.cli.views.layout import GAP, Span, plural
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.config import find_store
from ctxmgr.errors import Conflict, InvalidInput, StorageFailed
from ctxmgr.history.health import (
    check_cache,
    check_config,
    check_extras,
    check_logs,
    check_program,
    check_settings,
    check_shipping,
    check_store,
)
from ctxmgr.live.installation import check_clients
from ctxmgr.recover.model.config import KEY_VARIABLE, MODEL_VARIABLE, ModelChoice, describe, resolve
from ctxmgr.recover.routes import check_routes
from ctxmgr.types.setup import Check

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer


def doctor(
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    llm_mode: o.LlmMode = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Check what ctxmgr depends on here: versions, store, configuration, and what a recovery would send where.

    Changes nothing, and contacts nothing but a store that is on a server. Exit codes: 0 in order (warnings too), 5 the store is
    damaged or can't be used, else the code that other commands would end with.

    Examples:
      ctxmgr doctor
      ctxmgr doctor --store history.jsonl --json
      ctxmgr doctor --model ollama:qwen3
    """

    def work() -> Answer:
        checks = list(_checks(store, model, base_url, llm_mode))
        failed = [check for check in checks if check.level == "fail"]
        return Answer(
            [check.to_json() for check in checks],
            lambda out: show_checks(out, checks, Counter(check.level for check in checks)),
            "partial" if failed else "ok",
            code=_exit(failed),
        )

    answer_without_store("doctor", how, work)


def _checks(store: str | None, model: str | None, base_url: str | None, llm_mode: str | None) -> Iterator[Check]:
    folder, home = Path.cwd(), Path.home()
    yield from check_program()
    config, settings_checks = check_config(folder)
    yield settings_checks
    yield from check_settings(config, os.environ)
    yield check_routes(config)
    for check in check_store(store, folder, os.environ, config):
        yield check
        if check.name in ("store.damage", "store.server"):  # these checks ran on a store that could be opened
            yield from check_artifacts(find_store(folder, os.environ, config)[0] if store is None else store)
    yield from check_shipping()
    yield check_cache(os.environ, home)
    yield check_logs(os.environ, home)
    yield from check_clients(folder, os.environ)
    yield from check_extras()
    yield from check_model(model, base_url, llm_mode, os.environ, config.model, config.find_file("recover.model"))


def _exit(failed: list[Check]) -> Exit:
    """Return the code for a faulty store if it is among the failures, else that of the first failure."""
    codes = [find_exit(check.kind or "") for check in failed]
    # A script must not overlook a damaged store, whatever else is wrong.
    return Exit.STORE if Exit.STORE in codes else codes[0] if codes else Exit.OK


_STYLES = {"ok": "ok", "info": "dim", "warn": "warn", "fail": "error"}


def show_checks(printer: Printer, checks: Sequence[Check], counts: Mapping[str, int]) -> None:
    """Show every check. In a pipe, the level is a word and the count goes to the stream for talk."""
    symbols = printer.symbols
    signs = {"ok": symbols.healthy, "info": symbols.unknown, "warn": symbols.open, "fail": symbols.error}
    words = signs if printer.terminal else {level: level for level in _STYLES}
    first = max(map(len, words.values())) + len(GAP)
    second = max((len(check.name) for check in checks), default=0) + len(GAP)
    for check in checks:
        sign = Span(words[check.level].ljust(first), _STYLES[check.level])
        style = _STYLES[check.level] if check.level in ("warn", "fail") else ""
        printer.line(sign, Span(check.name.ljust(second), "dim"), Span(check.finding, style), hang=first + second)
        if check.hint:
            printer.line(" " * (first + second), Span(check.hint, "dim"), hang=first + second + 2)
    if counts.get("fail"):
        printer.hint(f"{plural(counts['fail'], 'failure')}, {plural(counts.get('warn', 0), 'warning')}")
    elif counts.get("warn"):
        printer.hint(plural(counts["warn"], "warning"))
    else:
        printer.hint("everything is in order")


_KEY_ENDING = "_API_KEY"


def check_model(
    flag: str | None,
    base_url: str | None,
    mode: str | None,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    config: Path | None,
) -> Iterator[Check]:
    """Yield checks of the model: which one a recovery would ask and why, what it would send, and unused keys.

    Args:
        flag: value of ``--model``.
        base_url: value of ``--base-url``.
        mode: value of ``--llm-mode``.
        environment: environment of the process.
        table: ``[recover.model]`` of the configuration file.
        config: path of that file.
    """
    try:
        choice = resolve(flag, base_url, mode, environment, table)
    except InvalidInput as error:
        yield Check(name="model", level="fail", finding=error.message, hint=error.hint, kind=error.kind)
        return
    if choice is None:
        finding = "none: recovery goes by rules only; nothing leaves this machine"
        yield Check(name="model", level="ok", finding=finding, detail={"model": None, "chosenBy": None})
    else:
        yield _check_choice(choice, _choice_source(flag, environment, config), environment)
        yield _check_extent(choice)
        yield from _missing_extras()
    yield from _keys(environment)


def _choice_source(flag: str | None, environment: Mapping[str, str], config: Path | None) -> str:
    if flag is not None:
        return "--model"
    return MODEL_VARIABLE if environment.get(MODEL_VARIABLE) else str(config)


def _check_choice(choice: ModelChoice, chosen_by: str, environment: Mapping[str, str]) -> Check:
    place = describe(choice, environment)
    # On this machine nobody else can read it, encrypted or not.
    unsafe = place.leaves and not place.encrypted
    return Check(
        name="model", level="warn" if unsafe else "ok", finding=f"{place.text} (chosen by {chosen_by})",
        hint="anyone on the way can read it: use an https address" if unsafe else None,
        detail={"model": place.model, "provider": place.provider or None, "chosenBy": chosen_by, "host": place.host,
                "leavesMachine": place.leaves, "encrypted": place.encrypted, "mode": choice.mode,
                "keySet": choice.api_key is not None},
    )  # fmt: skip


def _check_extent(choice: ModelChoice) -> Check:
    """Describe how much of the history a recovery would send at most."""
    detail: dict[str, Any] = {"mode": choice.mode, "seconds": choice.seconds, "maxTokens": choice.max_tokens,
                              "maxCharacters": choice.max_characters}  # fmt: skip
    if choice.mode == "lead":
        finding = (
            f"one question with the brief of the rules and the entries that may answer it, up to {choice.max_characters:,} "
            "characters, only where the rules found no answer"
        )
    else:
        detail |= {"maxRequests": choice.max_requests}
        finding = (
            f"the brief of the rules, and up to {choice.max_characters:,} characters of history that it asks for, "
            f"in at most {choice.max_requests} requests"
        )
    return Check(name="model.sent", level="info", finding=f"{finding}; {choice.seconds:g} s in all", detail=detail)


def _missing_extras() -> Iterator[Check]:
    # Only looked for, because importing it would take longer than all other checks.
    if find_spec("pydantic_ai") is None:
        yield Check(
            name="model.extra", level="fail", finding="a model is named, but what is needed to ask it is not installed",
            hint="pip install 'ctxmgr-cli[llm]'", kind=InvalidInput.kind,
        )  # fmt: skip


def _keys(environment: Mapping[str, str]) -> Iterator[Check]:
    """Name the providers' keys in the environment, never their values. A key alone chooses no model."""
    names = sorted(name for name, value in environment.items() if name.endswith(_KEY_ENDING) and name != KEY_VARIABLE and value)
    if names:
        finding = f"{', '.join(names)} in the environment: a key alone never chooses a model"
        yield Check(name="model.keys", level="info", finding=finding, detail={"names": names})


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
        typer.Option("--save", metavar="FILE", help="Only write the recorded run to this file, to try commands on."),
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
            # Run by the whole command line in this process, so that the demo shows the same output as for a user.
            code = build_app(command[0])(arguments, standalone_mode=False)
            if code:
                raise typer.Exit(int(code))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _save(path: Path, run: bytes) -> None:
    try:
        # Saving the run twice is fine, but a user's file is never overwritten.
        if path.exists() and path.read_bytes() != run:
            fail("demo", OutputOptions(), Conflict(f"{path} exists already and holds something else", "name another file"))
        replace_file(path, run)
    except OSError as error:
        fail("demo", OutputOptions(), StorageFailed(f"can't write {path}: {error.strerror}", "choose another place"))
    sys.stdout.write(f"{safe(str(path))}\n")


def _recorded_run() -> Path:
    """Return the path of the recorded run."""
    # The wheel carries a copy of it. A checkout has it only among its fixtures.
    packaged = Path(__file__).parents[1] / "demo_run.jsonl"
    return packaged if packaged.exists() else Path(__file__).parents[3] / "fixtures" / "demo" / "claude-code" / _RUN
