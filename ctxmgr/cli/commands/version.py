"""``version``: create, roll back, list and remove versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import build, version_number
from ctxmgr.cli.views import artifacts as views
from ctxmgr.cli.views.artifacts import with_warnings
from ctxmgr.errors import InvalidInput
from ctxmgr.types.artifact import CreateVersionRequest, PruneRequest, Retention, RollbackRequest
from ctxmgr.types.base import first_fault
from ctxmgr.workspace import Workspace

_HELP = """Versions of what all agents produced.

\b
Examples:
  ctxmgr version list
  ctxmgr version create "after the security review"
"""

version_app = typer.Typer(no_args_is_help=True, help=_HELP)


@version_app.command("create")
def create(
    description: Annotated[str | None, typer.Argument(help="What the version is.")] = None,
    described: Annotated[str | None, typer.Option("--description", "-d", help="The same, as an option.")] = None,
    author: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who makes it; else who asks.")] = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Make a version that holds what the current one holds.

    Examples:
      ctxmgr version create "after the security review" --by system_architect
    """

    def work(workspace: Workspace) -> Answer:
        if (description is None) == (described is None):
            raise InvalidInput("say once what the version is", 'e.g. ctxmgr version create "after the review"')
        request = build(CreateVersionRequest, description=described if description is None else description, author=author)
        done = workspace.artifacts.create_version(request)
        return with_warnings(Answer(done.to_json(), lambda out: views.show_created(out, done)), workspace)

    answer("version create", how, work, store=store, writes=True)


@version_app.command("rollback")
def rollback(
    version: Annotated[str, typer.Argument(metavar="N", help="The version to make current.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it is recorded.")],
    author: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who wants it; else who asks.")] = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Make another version the current one. Nothing is lost: rolling back to the one before undoes it.

    Examples:
      ctxmgr version rollback 2 --reason "the new architecture broke the parser"
    """

    def work(workspace: Workspace) -> Answer:
        done = workspace.artifacts.rollback(
            build(RollbackRequest, version=version_number(version) or _current(workspace), reason=reason, author=author)
        )
        undo = f'ctxmgr version rollback {done.rolled_back_from} --reason "undo"'
        return with_warnings(Answer(done.to_json(), lambda out: views.show_rollback(out, done), next=[undo]), workspace)

    answer("version rollback", how, work, store=store, writes=True)


def _current(workspace: Workspace) -> int | None:
    return next((view.version for view in workspace.artifacts.versions() if view.current), None)


@version_app.command("list")
def list_(
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """List the versions, oldest first.

    Examples:
      ctxmgr version list --json
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.artifacts.versions()
        rows = [view.to_json() for view in found]
        done = Answer(rows, lambda out: views.show_versions(out, found), "ok" if found else "empty")
        return with_warnings(done, workspace)

    answer("version list", how, work, store=store)


@version_app.command("prune")
def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    keep_versions: Annotated[
        int | None, typer.Option("--keep-versions", metavar="N", help="Keep this many of the newest; else 10.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", metavar="DAYS", help="Keep those of the last days; else 30.")
    ] = None,
    always_keep: Annotated[
        list[int] | None, typer.Option("--always-keep", metavar="N", help="Keep this version; else 1; repeatable.")
    ] = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Remove old versions. The current one stays, and what a snapshot, a package or a continuation names.

    The configuration's table [artifacts] sets keep_versions, keep_days and always_keep.

    Examples:
      ctxmgr version prune --dry-run
      ctxmgr version prune --keep-versions 5 --keep-days 7
    """

    def work(workspace: Workspace) -> Answer:
        retention = build(
            Retention,
            **{
                **configured(workspace.config.artifacts),
                **_given_options(keep_versions=keep_versions, keep_days=keep_days, always_keep=always_keep),
            },
        )
        done = workspace.artifacts.prune(PruneRequest(retention=retention, dry_run=dry_run))
        return with_warnings(Answer(done.to_json(), lambda out: views.show_pruned(out, done)), workspace)

    answer("version prune", how, work, store=store, writes=not dry_run, frees=not dry_run)


def _given_options(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def configured(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the retention that the configuration file sets.

    Raises:
        InvalidInput: an unknown or wrong setting.
    """
    known = ("keep_versions", "keep_days", "always_keep")
    if unknown := sorted(set(table) - set(known)):
        raise InvalidInput(f"unknown setting artifacts.{unknown[0]}", f"known: {', '.join(known)}")
    try:
        Retention.model_validate(dict(table), strict=True)
    except ValueError as error:
        first = first_fault(error)
        raise InvalidInput(f"artifacts.{first['loc'][0]}: {first['msg']}", "e.g. keep_versions = 10") from None
    return dict(table)
