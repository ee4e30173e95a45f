"""Shell completion: the scripts for the shells, and the candidates for a word."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import COMMANDS
from ctxmgr.cli import declarations as typer
from ctxmgr.cli.fast.dispatch import find_command
from ctxmgr.cli.fast.table import TABLE
from ctxmgr.errors import InvalidInput

if TYPE_CHECKING:
    from ctxmgr.cli.fast.dispatch import Command


# Each script calls ctxmgr with the words typed so far and gets one candidate per line, with its meaning after a tab. The
# line ``:files`` asks the shell to complete file names too.
_BASH = r"""_ctxmgr() {
  local IFS=$'\n' line
  COMPREPLY=()
  while read -r line; do
    if [[ $line == :files ]]; then compopt -o default; else COMPREPLY+=("${line%%$'\t'*}"); fi
  done < <("${COMP_WORDS[0]}" completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ctxmgr ctxmgr
"""

# zsh separates a word from its meaning by a colon, so colons in words are escaped. ``-V`` keeps our order. The last line
# works both in a file that zsh loads by itself and in one that is sourced.
_ZSH = r"""#compdef ctxmgr
_ctxmgr() {
  local -a offered
  local line files=0
  while IFS= read -r line; do
    if [[ $line == :files ]]; then files=1; else offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); fi
  done < <("${words[1]}" completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#offered} )) && _describe -V ctxmgr offered
  (( files )) && _files
}
if [[ $funcstack[1] == _ctxmgr ]]; then _ctxmgr "$@"; else compdef _ctxmgr ctxmgr; fi
"""

_FISH = r"""function __ctxmgr_words
  set -l words (commandline -opc) (commandline -ct)
  command ctxmgr completion --words $words[2..-1] 2>/dev/null | string match -v ':files'
end
function __ctxmgr_files
  set -l words (commandline -opc) (commandline -ct)
  command ctxmgr completion --words $words[2..-1] 2>/dev/null | string match -q ':files'
end
complete -c ctxmgr -f
complete -c ctxmgr -a '(__ctxmgr_words)'
complete -c ctxmgr -n __ctxmgr_files -F
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Your shell.")],
) -> None:
    """Print the script that lets a shell complete commands, options, sessions and settings.

    Examples:
      ctxmgr completion bash >> ~/.bashrc
      ctxmgr completion zsh > ~/.zfunc/_ctxmgr
      ctxmgr completion fish > ~/.config/fish/completions/ctxmgr.fish
    """
    if shell not in SCRIPTS:
        raise InvalidInput(f"no completion for the shell {shell!r}", f"ctxmgr completion {' | '.join(SCRIPTS)}")
    sys.stdout.write(SCRIPTS[shell])


FILES = ":files"
"""The candidate that makes the shell complete file names."""

_ROOT = ("-C", "--quiet", "--no-color", "--no-pager", "--version", "--help")
_CHOICES = {
    "format_": ("table", "json", "ndjson", "md", "csv", "tsv"),
    "status": ("ok", "error", "denied", "interrupted", "open"),
    "kind": ("entry", "event", "all"),
    "by": ("action", "agent", "model", "day", "session", "status"),
    "type_": ("introspect", "proceed"),
    "shell": ("bash", "zsh", "fish"),
}
_SESSIONS = frozenset({"session", "target", "address"})
_MAX_SESSIONS = 200  # a list that a person can look through and that a shell can wait for


def completions(words: Sequence[str]) -> list[str]:
    """Return the candidates for the last word; a tab and a meaning may follow each of them.

    Recorded text is filtered as on a terminal. Candidates with blanks or special characters of the shell are left out.
    """
    *before, last = words or [""]
    # Skip global options before the command. Only -C has a value.
    while before[:1] and before[0].startswith("-"):
        before = before[2 if before[0] == "-C" else 1 :]
    if before[:1] == ["help"]:
        before = before[1:]
    return [each for each in _offers(before, last) if each.startswith(last) or each == FILES]


def _offers(before: list[str], last: str) -> Iterator[str]:
    found = find_command(before)
    if found is None:
        yield from _names(before, last)
        return
    name, command, words = found
    waiting = _open_option(command, words)
    if waiting is not None:
        yield from _values(name, waiting)
    elif last.startswith("-"):
        yield from sorted(option for option in command["options"] if option.startswith("--"))
        yield from ("--quiet", "--no-color", "--no-pager", "--help")
    else:
        yield from _values(name, _argument(command, words))


def _names(before: list[str], last: str) -> Iterator[str]:
    """Yield the words that can come next in the name of a command."""
    if not before and last.startswith("-"):
        yield from _ROOT
        return
    names = [name.split() for name in TABLE]
    depth = len(before)
    parts = dict.fromkeys(name[depth] for name in names if name[:depth] == before and len(name) > depth)
    known = [name for name in COMMANDS if name in parts] if not before else list(parts)
    yield from known
    if not before:
        # "help" is not in the table of commands, but may be the first word.
        yield "help"


def _open_option(command: Command, words: list[str]) -> str | None:
    """Return the parameter of the option that still needs its value, or None."""
    if not words or words[-1] not in command["options"]:
        return None
    parameter, kind = command["options"][words[-1]]
    return None if kind.endswith("flag") else parameter


def _argument(command: Command, words: list[str]) -> str:
    """Return the name of the next argument, or an empty text if the command takes no more."""
    given, skip = 0, False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = word in command["options"] and not command["options"][word][1].endswith("flag")
        else:
            given += 1
    arguments = [name for name, _ in command["arguments"]]
    if given < len(arguments):
        return arguments[given]
    return arguments[-1] if arguments and command["many"] else ""


def _values(command: str, parameter: str) -> Iterator[str]:
    if parameter in _CHOICES:
        yield from _CHOICES[parameter]
    elif parameter in _SESSIONS:
        yield from _sessions()
        yield FILES
    elif parameter == "command" and command == "schema":
        yield from TABLE
    elif parameter == "name" and command in ("install", "uninstall", "hook"):
        from ctxmgr.clients import CLIENTS

        yield from CLIENTS
    elif parameter == "name" and command.startswith("config "):
        from ctxmgr.config import SETTINGS

        # ``detect`` is the table of thresholds, which are separate settings.
        yield from (name for name in SETTINGS if name != "detect")
    elif parameter:
        yield FILES


def _sessions() -> Iterator[str]:
    """Yield the ids of the latest sessions with their titles, and nothing if the store can't be read."""
    from ctxmgr.cli.views.safe_text import safe
    from ctxmgr.errors import CtxmgrError
    from ctxmgr.types.operations import SessionsRequest
    from ctxmgr.workspace import Workspace

    try:
        with Workspace.open(readonly=True) as workspace:
            # Without verdicts, because the shell waits for this at every key press.
            found = workspace.sessions(SessionsRequest(limit=_MAX_SESSIONS, judge=False)).sessions
    except (CtxmgrError, OSError):  # a message would appear in the middle of the line that the user types
        return
    for session in found:
        # The shell would split any other id into words, or run parts of it.
        if session.session.replace("-", "").replace("_", "").replace(".", "").isalnum() and session.session.isascii():
            yield f"{session.session}\t{safe(session.title or session.workflow, limit=60)}"
