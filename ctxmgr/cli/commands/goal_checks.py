"""``goal probe``, ``compare`` and ``recover``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.commands import goal_common as c
from ctxmgr.cli.commands.goal_common import AllowCommands, Dir, goal_app, probe_app
from ctxmgr.cli.output import Answer, Shown, say
from ctxmgr.cli.requests import build
from ctxmgr.cli.views import goal_answers as views
from ctxmgr.errors import InvalidInput
from ctxmgr.goals import probes as checks
from ctxmgr.goals.comparison import compare as compared
from ctxmgr.goals.service import Goals
from ctxmgr.goals.state_files import HISTORY
from ctxmgr.types.goal import DEFAULT_CHARS, BriefRequest, GoalState, Probe, ProbeView, RecoverAnswer
from ctxmgr.types.operations import ModelRequest, RecoverRequest
from ctxmgr.types.route import Continuation
from ctxmgr.workspace import Workspace


@probe_app.command("add")
def probe_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One word for the brief, e.g. pkg_exists.")],
    what: Annotated[
        list[str] | None, typer.Argument(metavar="[-- PROGRAM ARG...]", help="A command, without a shell.", show_default=False)
    ] = None,
    exists: Annotated[str | None, typer.Option("--exists", metavar="PATH", help="This path is there.")] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help="The file that --contains looks into.")] = None,
    text: Annotated[str | None, typer.Option("--contains", metavar="TEXT", help="The file holds this text.")] = None,
    code: Annotated[int, typer.Option("--code", help="The exit code that counts, of a command.")] = 0,
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """Add a named check: a path exists, a file contains a text, a command ends with an exit code.

    Commands run only where you allow it: with --allow-commands, CTXMGR_ALLOW_COMMANDS=1, 'allow_commands = true' under
    [goal] in your own config.toml, or in the project's file when you trust it ('ctxmgr trust').

    Examples:
      ctxmgr goal probe add pkg_exists --exists mathx/__init__.py
      ctxmgr goal probe add has_add --file mathx/__init__.py --contains "def add("
      ctxmgr goal probe add tests_pass -- python -m pytest -q
    """

    def work() -> Answer:
        if (exists is not None) + (file is not None or text is not None) + bool(what) != 1:
            raise InvalidInput(
                "a probe looks for one thing", "--exists PATH, --file PATH --contains TEXT, or -- PROGRAM ARG..."
            )
        kind = "command" if what else "fileExists" if exists is not None else "fileContains"
        probe = build(Probe, name=name, kind=kind, path=exists or file, text=text, argv=what or [], code=code)
        checks.require_sound(probe)
        with c.opened(dir_) as goals:
            done = c.changed(goals.add_probe(probe))
        done.draw = lambda out: views.show_probes(out, [ProbeView(**dict(probe))])
        done.next = ["ctxmgr goal probe check"]
        return done

    c.answer("probe add", how, work)


@probe_app.command("list")
def probe_list(
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """List the probes, and what they last saw.

    Examples:
      ctxmgr goal probe list
    """

    def work() -> Answer:
        with c.opened(dir_) as goals:
            state = goals.state()
        return _probes(state)

    c.answer("probe list", how, work)


@probe_app.command("check")
def probe_check(
    allow_commands: AllowCommands = False,
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """Ask all probes now; what they see stands in the brief from then on.

    Examples:
      ctxmgr goal probe check
      ctxmgr goal probe check --allow-commands --json
    """

    def work() -> Answer:
        with c.opened(dir_, commands=c.may_run(allow_commands, dir_)) as goals:
            state = goals.check_probes().state
        c.tell_untrusted(state)
        return _probes(state)

    c.answer("probe check", how, work)


def _probes(state: GoalState) -> Answer:
    """Return the probes of a goal, one row each, with what they last saw."""
    seen = {result.name: result for result in state.probe_state}
    rows = [
        ProbeView(**dict(probe), ok=seen[probe.name].ok, detail=seen[probe.name].detail)
        if probe.name in seen
        else ProbeView(**dict(probe))
        for probe in state.probes
    ]
    return Answer(
        [row.to_json() for row in rows], lambda out: views.show_probes(out, rows), "ok" if rows else "empty",
        warnings=c.warnings(state),
    )  # fmt: skip


@goal_app.command("compare")
def compare(
    max_chars: Annotated[int, typer.Option("--max-chars", metavar="N", help="Of the brief.")] = DEFAULT_CHARS,
    counter: Annotated[
        str, typer.Option("--counter", metavar="NAME", help="estimate; or o200k_base, cl100k_base with the tokens extra.")
    ] = "estimate",
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """Compare the brief with the whole history and with its last ten messages: how much shorter, and what it still holds.

    Examples:
      ctxmgr goal compare
      ctxmgr goal compare --max-chars 600 --json
    """

    def work() -> Answer:
        from ctxmgr.text.tokens import counter_by_name

        chosen = counter_by_name(counter)
        with c.opened(dir_) as goals:
            state, text = goals.state(), goals.brief(build(BriefRequest, max_chars=max_chars)).text
            found = compared(goals.records(), state, text, chosen.count, chosen.name)
        return Answer(found.to_json(), lambda out: views.show_comparison(out, found), warnings=c.warnings(state))

    c.answer("compare", how, work)


@goal_app.command("recover")
def recover(
    plan: o.Plan = False,
    force: Annotated[bool, typer.Option("--force", help="Ask though nothing is wrong.")] = False,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    llm_mode: o.LlmMode = None,
    no_llm: o.NoLlm = False,
    timeout: o.Timeout = None,
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """Get a goal that is stuck going again: one continuation of its own history, which the goal takes up at once.

    Blocks of the guard are lifted. A session without a goal is recovered by 'ctxmgr recover'.

    Exit codes: 0 one continuation, 20 a person is needed, 21 nothing is wrong.

    Examples:
      ctxmgr goal recover
      ctxmgr goal recover --plan
    """

    def work() -> Answer:
        asked = build(ModelRequest, name=model, base_url=base_url, mode=llm_mode, off=no_llm, seconds=timeout)
        with c.opened(dir_) as goals:
            before = goals.state()
            stuck = before.goal.status == "blocked" or bool(before.blocked_actions) or before.current is None
            request = build(
                RecoverRequest, session=before.goal.session, force=force or stuck, plan=plan, goal=goals.source(), model=asked
            )
            continuation = recovered(goals, request)
            after = None if plan else goals.apply(continuation.to_json()).state
        found = RecoverAnswer(continuation=continuation, state=after)

        return Answer(
            found.to_json(), lambda out: views.show_recovery(out, found), warnings=c.warnings(after or before),
            next=[] if plan else ["ctxmgr goal brief"],
        )  # fmt: skip

    c.answer("recover", how, work)


def recovered(goals: Goals, request: RecoverRequest) -> Continuation:
    """Return a continuation for the goal's own history, worked out on a copy: the history is for its owner to write.

    Raises:
        CtxmgrError: as `Workspace.recover`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ctxmgr-goal-") as folder,
        Workspace.open(os.path.join(folder, "history.db"), create=True, folder=Path(goals.root)) as workspace,
    ):
        workspace.import_logs([Path(goals.folder) / HISTORY], home=Path(folder))
        found = workspace.recover(request, say).continuation
    # What it wrote beside the continuation stays in the copy, so that nothing may refer to it.
    return found.model_copy(update={"snapshot": None, "notes": []})
