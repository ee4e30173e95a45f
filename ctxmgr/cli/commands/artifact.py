"""``artifact`` and ``version``: contents that agents produce, and versions of all of them together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.invocation import current_agent
from ctxmgr.cli.output import Answer, OutputOptions, answer
from ctxmgr.cli.requests import build, version_number
from ctxmgr.cli.views import artifacts as views
from ctxmgr.cli.views.artifacts import add_warnings, save_content, write_content
from ctxmgr.errors import InvalidInput
from ctxmgr.types.artifact import (
    ArtifactLogRequest,
    CreateVersionRequest,
    DiffRequest,
    GetRequest,
    GetResponse,
    ListArtifactsRequest,
    NewArtifact,
    NewDependency,
    PruneRequest,
    PutRequest,
    Retention,
    RollbackRequest,
)
from ctxmgr.types.base import fault_words, first_fault
from ctxmgr.workspace import Workspace

_HELP = """Keep what agents produce, in versions.

\b
Examples:
  ctxmgr artifact list
  ctxmgr artifact get system_architect/architecture.yaml
  ctxmgr artifact diff system_architect/architecture.yaml
"""
_TYPES = ("required", "optional", "reference")

artifact_app = typer.Typer(no_args_is_help=True, help=_HELP)

Artifact = Annotated[str, typer.Argument(metavar="AGENT/NAME", help="The artifact, by its owner and name.")]
Version = Annotated[str | None, typer.Option("--version", metavar="N", help="Version to read; else the current one.")]


def owner_and_name(text: str) -> tuple[str, str]:
    """Split AGENT/NAME into the owner and the name of an artifact.

    Raises:
        InvalidInput: the owner or the name is missing.
    """
    agent, _, name = text.partition("/")
    if not agent or not name:
        raise InvalidInput(f"{text!r} is no artifact", "write AGENT/NAME, e.g. system_architect/architecture.yaml")
    return agent, name


def artifact_request(text: str, version: int | None) -> GetRequest:
    """Return the request for an artifact given as an id or as AGENT/NAME.

    Raises:
        InvalidInput: the text is neither, or a version is given with an id.
    """
    # An agent may be called ``art_director``. With a slash, the text names an owner and not an id.
    if text.startswith("art_") and "/" not in text:
        if version is not None:
            raise InvalidInput("an id already means one version", "leave out --version, or write AGENT/NAME")
        return GetRequest(id=text)
    agent, name = owner_and_name(text)
    return build(GetRequest, agent=agent, name=name, version=version)


@artifact_app.command("put")
def put(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files to keep; '-' reads stdin.")],
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The agent that produced and owns it; else the one that asks.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the artifact; else the file's.")] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="yaml, markdown, json, code, ...; else by name and content.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", help="Description of the artifact.")] = None,
    depends: Annotated[
        list[str] | None,
        typer.Option(
            "--depends", metavar="AGENT/NAME[:TYPE]",
            help="Artifact that this one is made from; required (by default), optional or reference; repeatable.",
        ),
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Description of the new version.")] = None,
    reject_secrets: Annotated[
        bool, typer.Option("--reject-secrets", help="Store nothing if a text holds what looks like a secret.")
    ] = False,
    allow_secrets: Annotated[
        bool, typer.Option("--allow-secrets", help="Do not warn about text that looks like a secret.")
    ] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:  # fmt: skip
    """Keep files as artifacts, all or none. New content makes one new version; the same content makes none.

    Contents are kept byte for byte and are not masked. A text that holds what looks like a secret is kept with a warning
    that names its kind and line.

    Examples:
      ctxmgr artifact put architecture.yaml --agent system_architect --depends requirements_gatherer/requirements.yaml
      ctxmgr artifact put docs/*.md --agent writer --json
      git diff | ctxmgr artifact put - --agent coder --name change.diff
    """

    def work(workspace: Workspace) -> Answer:
        if name is not None and len(files) > 1:
            raise InvalidInput(f"--name is for one file, not {len(files)}", "leave it out, or put the files one by one")
        needed = None if depends is None else [_dependency(text) for text in depends]
        items = [
            build(
                NewArtifact, name=name if name is not None else _name(file), path=file, type=type_, description=description,
                dependencies=needed,
            )
            for file in files
        ]  # fmt: skip
        secrets = _on_secrets(reject_secrets, allow_secrets)
        asked = build(PutRequest, agent=_owner(agent), artifacts=items, description=message, secrets=secrets)
        done = workspace.artifacts.put(asked, sys.stdin.buffer)
        next_ = [f"ctxmgr artifact get {done.id}"] if done.id else []
        return add_warnings(Answer(done.to_json(), lambda out: views.show_put_response(out, done), next=next_), workspace)

    answer("artifact put", how, work, store=store, create=True)


def _on_secrets(reject: bool, allow: bool) -> str:
    if reject and allow:
        raise InvalidInput("--reject-secrets and --allow-secrets exclude each other", "give one of them")
    return "reject" if reject else "allow" if allow else "warn"


def _owner(agent: str | None) -> str:
    owner = current_agent() if agent is None else agent
    if owner is None:
        raise InvalidInput("--agent is missing", "name the agent that produced the artifact: --agent AGENT")
    return owner


def _name(file: str) -> str:
    if file == "-":
        raise InvalidInput("input from stdin needs a name", "give it one: --name NAME")
    return os.path.basename(os.path.normpath(file))


def _dependency(text: str) -> NewDependency:
    # A name may contain a colon. The text after the last colon counts only if it is a type.
    head, _, kind = text.rpartition(":")
    agent, name = owner_and_name(head if head and kind in _TYPES else text)
    return build(NewDependency, agent=agent, name=name, type=kind if head and kind in _TYPES else None)


@artifact_app.command("get")
def get(
    artifact: Annotated[str, typer.Argument(metavar="AGENT/NAME|ID", help="The artifact: owner and name, or its id.")],
    version: Version = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write the content to.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Print an artifact's content, verified; with --json all its metadata too.

    Examples:
      ctxmgr artifact get system_architect/architecture.yaml
      ctxmgr artifact get system_architect/architecture.yaml --version 2 --as parser_developer --json
      ctxmgr artifact get art_01a1ffcb -o model.bin
    """

    def work(workspace: Workspace) -> Answer:
        request = artifact_request(artifact, version_number(version))
        # JSON holds the content. For a person, a pipe or a file the content is copied in pieces, however large it is.
        if output is None and how.format != "table":
            found = workspace.artifacts.get(request)
            return add_warnings(Answer(found.to_json(), lambda out: views.show_artifact(out, found)), workspace)
        view, content = workspace.artifacts.open(request)
        data = GetResponse(artifact=view).to_json()
        if output is None:
            return add_warnings(Answer(data, lambda out: write_content(out, view, content)), workspace)
        with content:
            save_content(output, content)
        summary = f"{view.size:,} bytes written to {output}"
        return add_warnings(Answer(data, lambda out: out.hint(summary)), workspace)

    answer("artifact get", how, work, store=store)


@artifact_app.command("list")
def list_(
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Only artifacts of this agent.")] = None,
    type_: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only of this type.")] = None,
    version: Version = None,
    offset: o.Offset = 0,
    limit: o.Limit = 100,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the artifacts of a version, the current one unless another is named.

    Examples:
      ctxmgr artifact list --agent system_architect
      ctxmgr artifact list --version 2 --as debugger --json
    """

    def work(workspace: Workspace) -> Answer:
        request = build(
            ListArtifactsRequest, agent=agent, type=type_, version=version_number(version), offset=offset, limit=limit
        )
        found = workspace.artifacts.list(request)
        rows = [view.to_json() for view in found.artifacts]
        done = Answer(rows, lambda out: views.show_artifacts(out, found.artifacts), found.status, found.page)
        return add_warnings(done, workspace)

    answer("artifact list", how, work, store=store)


@artifact_app.command("log")
def log(
    artifact: Artifact,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List every content that an artifact has had, newest first.

    Examples:
      ctxmgr artifact log system_architect/architecture.yaml
    """

    def work(workspace: Workspace) -> Answer:
        agent, name = owner_and_name(artifact)
        found = workspace.artifacts.log(build(ArtifactLogRequest, agent=agent, name=name))
        rows = [view.to_json() for view in found.artifacts]
        return add_warnings(Answer(rows, lambda out: views.show_log(out, found.artifacts)), workspace)

    answer("artifact log", how, work, store=store)


@artifact_app.command("diff")
def diff(
    artifact: Artifact,
    from_: Annotated[str | None, typer.Option("--from", metavar="N", help="Older version; else the content before.")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="N", help="Newer version; else the current one.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show what changed between two versions of an artifact.

    Examples:
      ctxmgr artifact diff system_architect/architecture.yaml
      ctxmgr artifact diff system_architect/architecture.yaml --from 1 --to 3
    """

    def work(workspace: Workspace) -> Answer:
        agent, name = owner_and_name(artifact)
        found = workspace.artifacts.diff(
            build(
                DiffRequest, agent=agent, name=name, from_version=version_number(from_), to_version=version_number(to)
            )
        )  # fmt: skip
        return add_warnings(Answer(found.to_json(), lambda out: views.show_diff(out, found)), workspace)

    answer("artifact diff", how, work, store=store)


_VERSION_HELP = """Versions of what all agents produced.

\b
Examples:
  ctxmgr version list
  ctxmgr version create "after the security review"
"""

version_app = typer.Typer(no_args_is_help=True, help=_VERSION_HELP)


@version_app.command("create")
def create(
    description: Annotated[str | None, typer.Argument(help="Description of the version.")] = None,
    described: Annotated[str | None, typer.Option("--description", "-d", help="Description, as an option.")] = None,
    author: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Author of the version; else the agent that asks.")
    ] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Create a version with the content of the current one.

    Examples:
      ctxmgr version create "after the security review" --by system_architect
    """

    def work(workspace: Workspace) -> Answer:
        if (description is None) == (described is None):
            raise InvalidInput("say once what the version is", 'e.g. ctxmgr version create "after the review"')
        request = build(CreateVersionRequest, description=described if description is None else description, author=author)
        done = workspace.artifacts.create_version(request)
        return add_warnings(Answer(done.to_json(), lambda out: views.show_new_version(out, done)), workspace)

    answer("version create", how, work, store=store, writes=True)


@version_app.command("rollback")
def rollback(
    version: Annotated[str, typer.Argument(metavar="N", help="The version to make current.")],
    reason: Annotated[str, typer.Option("--reason", help="Reason, which is recorded.")],
    author: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Author of the rollback; else the agent that asks.")
    ] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Make another version the current one. Nothing is lost: rolling back to the one before undoes it.

    Examples:
      ctxmgr version rollback 2 --reason "the new architecture broke the parser"
    """

    def work(workspace: Workspace) -> Answer:
        done = workspace.artifacts.rollback(
            build(RollbackRequest, version=version_number(version) or _current(workspace), reason=reason, author=author)
        )
        # Name the command for the way back, because a rollback changes what every agent reads.
        undo = f'ctxmgr version rollback {done.rolled_back_from} --reason "undo"'
        return add_warnings(Answer(done.to_json(), lambda out: views.show_rollback(out, done), next=[undo]), workspace)

    answer("version rollback", how, work, store=store, writes=True)


def _current(workspace: Workspace) -> int | None:
    return next((view.version for view in workspace.artifacts.versions() if view.current), None)


@version_app.command("list")
def list_versions(
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the versions, oldest first.

    Examples:
      ctxmgr version list --json
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.artifacts.versions()
        rows = [view.to_json() for view in found]
        done = Answer(rows, lambda out: views.show_versions(out, found), "ok" if found else "empty")
        return add_warnings(done, workspace)

    answer("version list", how, work, store=store)


@version_app.command("prune")
def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    keep_versions: Annotated[
        int | None, typer.Option("--keep-versions", metavar="N", help="Number of newest versions to keep; else 10.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option("--keep-days", metavar="DAYS", help="Days for which versions are kept; else 30.")
    ] = None,
    always_keep: Annotated[
        list[int] | None, typer.Option("--always-keep", metavar="N", help="Version to keep, else 1; repeatable.")
    ] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Remove old versions. The current one is kept, and any that a snapshot, a package or a continuation names.

    The configuration's table [artifacts] sets keep_versions, keep_days and always_keep.

    Examples:
      ctxmgr version prune --dry-run
      ctxmgr version prune --keep-versions 5 --keep-days 7
    """

    def work(workspace: Workspace) -> Answer:
        # Options override the file of settings, which overrides the defaults.
        retention = build(
            Retention,
            **{
                **retention_settings(workspace.config.artifacts),
                **_given_options(keep_versions=keep_versions, keep_days=keep_days, always_keep=always_keep),
            },
        )
        done = workspace.artifacts.prune(PruneRequest(retention=retention, dry_run=dry_run))
        return add_warnings(Answer(done.to_json(), lambda out: views.show_prune_result(out, done)), workspace)

    # `frees` allows the command to use the reserve, because people prune when the disk is full.
    answer("version prune", how, work, store=store, writes=not dry_run, frees=not dry_run)


def _given_options(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def retention_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the retention settings of the configuration file.

    Raises:
        InvalidInput: a setting is unknown or has a wrong value.
    """
    known = ("keep_versions", "keep_days", "always_keep")
    if unknown := sorted(set(table) - set(known)):
        raise InvalidInput(f"unknown setting artifacts.{unknown[0]}", f"known: {', '.join(known)}")
    try:
        # Strict, because a text in the place of a number is a mistake that should be reported instead of converted.
        Retention.model_validate(dict(table), strict=True)
    except ValueError as error:
        first = first_fault(error)
        raise InvalidInput(f"artifacts.{first['loc'][0]}{fault_words(first)}", "e.g. keep_versions = 10") from None
    return dict(table)
