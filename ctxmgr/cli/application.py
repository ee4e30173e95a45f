"""The typer application: the root command and its subcommands, each imported from its own module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, cast, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from ctxmgr.cli import COMMANDS, GROUPS, OPERATOR_ONLY, declarations, invocation, report_failure
from ctxmgr.cli import options as o
from ctxmgr.cli.command_line import read
from ctxmgr.cli.envelope import end, take_output_options
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.fast.dispatch import command_by_name, run_command
from ctxmgr.cli.fast.table import TABLE
from ctxmgr.cli.invocation import OUTPUT, quiet, set_agent
from ctxmgr.errors import InvalidInput
from ctxmgr.text.patterns import lazy_pattern

invocation.disable_plugins()

# A full stop ends a sentence before a capital, a quoted command or an option, but not in ``e.g. 42``.
_SENTENCE = lazy_pattern(r"(?<=[.])\s+(?=[A-Z'-])")
_HELP = "Show this help, or that of a command: ctxmgr help note add."


def _set_agent(context: typer.Context, option: object, value: str | None) -> str | None:
    return set_agent(value)


class Command(TyperCommand):
    """A command that gets the option ``--as`` if it has ``--store`` and does not declare ``--as`` itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        named = {name for parameter in self.params for name in parameter.opts}
        # Added here for all commands. A command without it would show an agent everything that the operator may see.
        if "--store" in named and "--as" not in named:
            place = next(number for number, parameter in enumerate(self.params) if "--store" in parameter.opts)
            self.params.insert(
                place + 1,
                TyperOption(
                    param_decls=["--as", "as_agent"], type=str, default=None, callback=_set_agent, expose_value=False,
                    metavar="AGENT", help="Act as this agent; its access rules apply.",
                    show_default=False,
                ),
            )  # fmt: skip


def _first_sentence(command: Any) -> str:
    # Only the first paragraph, without the backspaces that make typer keep line ends.
    text = " ".join((command.help or "").partition("\n\n")[0].replace("\b", "").split())
    return _SENTENCE.split(text, maxsplit=1)[0]


class Group(TyperGroup):
    """A group of commands. Its help shows the first sentence of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, one below the other."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(command)) for name, command in self.commands.items()])


class CommandLine(TyperGroup):
    """The root command. It reports a wrong command line in the form of all other errors."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in groups, by what a person wants to do."""
        sentences = {name: _first_sentence(command) for name, command in self.commands.items()} | {"help": _HELP}
        for title, names in GROUPS.items():
            if rows := [(name, sentences[name]) for name in names if name in sentences]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def main(
        self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, is_read: bool = False, **options: Any
    ) -> Any:
        """Run the command line. In standalone mode exit the process, otherwise return the exit code (None for 0).

        ``is_read`` says that `command_line.read` has prepared the words already.
        """
        # Reading the words again would find no global options, and would reset the ones found the first time.
        words = list(args) if is_read and args is not None else read(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, *rest, standalone_mode=False, **options)
        try:
            code = super().main(words, *rest, standalone_mode=False, **options)
        except declarations.Exit as end:
            code = end.exit_code
        except TyperException as error:
            code = _report_misuse(error, words)
        except SystemExit:
            # typer exits by itself only if the reader of the output is gone.
            code = quiet(Exit.OK)
        sys.exit(code if isinstance(code, int) else int(Exit.OK))


def _report_misuse(error: TyperException, arguments: Sequence[str]) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help itself
        typer.echo(error.format_message(), err=True)
        return error.exit_code
    # Without the name of the program, which may be "python -m ctxmgr". The envelope names the command alone, e.g. "note add".
    path = list[str]()
    while context is not None and context.parent is not None:
        path.insert(0, context.info_name)
        context = context.parent
    # Messages of ctxmgr end without a full stop. An argument is named as in the help.
    message = _ARGUMENT.sub(lambda found: found[0].upper(), error.format_message().removesuffix("."))
    if (unknown := _UNKNOWN.fullmatch(message)) and (meant := _near_commands(path, unknown[1])):
        message += f". Did you mean {' or '.join(repr(each) for each in meant)}?"
    fault = InvalidInput(message, f"see '{' '.join(['ctxmgr', *path])} --help'")
    return report_failure(fault, arguments, " ".join(path))


_ARGUMENT = lazy_pattern(r"(?<=^Missing argument )'[a-z_]+'$")
_UNKNOWN = lazy_pattern(r"No such command '([^']{1,40})'")
_VERBS = (("show", "get", "view", "cat"), ("list", "ls"), ("add", "create", "new", "put", "set"), ("remove", "delete", "rm"))
"""Verbs for one thing. Groups of commands differ in the one that they use."""


def _near_commands(path: Sequence[str], word: str) -> list[str]:
    """Return up to three commands that an unknown one may mean: of the same sense in its group, an option, or spelled alike."""
    from difflib import get_close_matches

    commands = [*TABLE, *(name for name in COMMANDS if name not in TABLE)]
    verbs = [verb for each in _VERBS if word in each for verb in each]
    if same := [name for verb in verbs if (name := " ".join([*path, verb])) in commands]:
        return same[:1]
    if options := [f"{name} --{word}" for name in TABLE if f'"--{word}"' in TABLE[name]]:
        return options[:1]
    # In a group its own name is no likeness: "note qqq" does not mean "note".
    within = {name.removeprefix(start): name for name in commands if name.startswith(start := " ".join([*path, ""]).lstrip())}
    return [within[each] for each in get_close_matches(word, within, 3, 0.65)]


def build(only: str | None = None) -> typer.Typer:
    """Return the typer application. ``only`` loads a single command; an unknown name loads all of them."""
    set_agent(None)  # tests and the demo build several command lines in one process
    app = typer.Typer(
        name="ctxmgr",
        cls=CommandLine,
        no_args_is_help=True,
        # typer's own completion would start the whole command line at each key press; see `completion`.
        add_completion=False,
        rich_markup_mode=None,
        # A traceback by rich would show local values, which may hold recorded text.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name, (module, attribute) in COMMANDS.items():
        if only in (None, name) or only not in COMMANDS:
            command: Any = getattr(import_module(f"ctxmgr.cli.{module}"), attribute)
            kind = TyperCommand if name in OPERATOR_ONLY else Command
            if isinstance(command, declarations.Typer | typer.Typer):
                app.add_typer(_group(command, kind), name=name)
            else:
                app.command(name, cls=kind, help=_help(command))(typer_command(command))
    return app


def _group(declared: Any, kind: type[TyperCommand]) -> typer.Typer:
    """Return a group and its inner groups as typer groups, with the help text and the class of every command."""
    # A module may declare its group with typer itself, see `declarations`.
    if isinstance(declared, typer.Typer):
        made, inner = typer.Typer(cls=Group), [(str(each.name), each.typer_instance) for each in declared.registered_groups]
        made.info = declared.info
        made.info.cls = Group
    else:
        made, inner = typer.Typer(cls=Group, **declared.options), declared.registered_groups
    for part in declared.registered_commands:
        made.command(part.name, cls=kind, help=_help(part.callback))(typer_command(part.callback))
    for name, group in inner:
        made.add_typer(_group(group, kind), name=name)
    return made


def _help(command: Any) -> str:
    """Return a command's docstring for typer; a lone backspace before the examples makes typer keep their lines."""
    return inspect.cleandoc(command.__doc__ or "").replace("Examples:\n", "\b\nExamples:\n")


def root(
    folder: str | None = typer.Option(None, "-C", metavar="DIR", help="Run as if started in this folder."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only the answer and errors."),
    no_color: bool = typer.Option(False, "--no-color", help="Print no colours; NO_COLOR does the same."),
    no_pager: bool = typer.Option(False, "--no-pager", help="Show long answers without a pager."),
    version: bool = typer.Option(False, "--version", "-V", help="Print the version."),
) -> None:
    """See where agent workflows go in circles or hang, and get them going again.

    Start with 'ctxmgr import' and 'ctxmgr sessions', or with the log of a run: 'ctxmgr detect run.jsonl'. Output
    options and --store may also come before the command. 'ctxmgr schema exits' explains the exit codes.
    """
    if version:
        from ctxmgr import __version__

        sys.stdout.write(f"ctxmgr {__version__}\n")
        raise typer.Exit


_HOW, _DECLARED = "how", "ctxmgr.cli.declarations"


def typer_command(command: Any) -> Any:
    """Return a command in the form that typer needs, with typer's own declarations and with output options in place of ``how``.

    A command with a parameter ``how: OutputOptions`` gets the options ``--json``, ``--format``, ``--fields``, ``--jq`` and
    ``--raw``. They are declared once, in `ctxmgr.cli.options.OUTPUT`.
    """
    if command is None:
        return None
    signature = inspect.signature(command, eval_str=True)
    is_shown = _HOW in signature.parameters

    @wraps(command)
    def run(**given: Any) -> None:
        name = _name(command)
        if name is not None:
            end(run_command(*name, given))
            return
        if is_shown:
            given[_HOW] = take_output_options(given)
        command(**given)

    output = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None if OUTPUT[name].valued else False, annotation=annotation
        )
        for name, annotation in o.OUTPUT.items()
        if is_shown
    ]
    own = [parameter for name, parameter in signature.parameters.items() if name != _HOW]
    parameters = [each.replace(annotation=_typer_annotation(each.annotation)) for each in (*own, *output)]
    # typer reads both the signature and the annotations, so both must hold typer's declarations.
    changed: Any = run
    changed.__signature__ = signature.replace(parameters=parameters)
    changed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _name(function: Any) -> tuple[str, Any] | None:
    """Return the name and declaration of the quick command that a function declares; None for any other function."""
    found = ((name, command_by_name(name)) for name in TABLE)
    place = function.__module__, function.__qualname__
    return next((each for each in found if each[1] and each[1]["quick"] and tuple(each[1]["function"]) == place), None)


def _typer_annotation(annotation: Any) -> Any:
    """Return an annotation with our declarations replaced by typer's."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *declared = get_args(annotation)
    return Annotated[(kind, *map(_typer_declaration, declared))]


def _typer_declaration(declared: Any) -> Any:
    kind = cast("type[Any]", type(declared))
    return getattr(typer, kind.__name__)(*declared.words, **declared.options) if kind.__module__ == _DECLARED else declared
