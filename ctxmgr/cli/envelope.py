"""Output of all commands: the envelope of JSON answers, lines, errors, messages on stderr."""

from __future__ import annotations

import os
import sys

from ctxmgr.cli.invocation import at_words, global_options
from ctxmgr.log import fast_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ctxmgr.cli.terminal import ProgressMeter
    from ctxmgr.errors import CtxmgrError
    from ctxmgr.store import Store


def envelope(
    command: str,
    status: str,
    data: Any,
    page: dict[str, Any] | None = None,
    warnings: Sequence[str] = (),
    following: Sequence[str] = (),
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the one envelope of all JSON answers (design section 5)."""
    return {
        "schema": "ctxmgr/1", "command": command, "status": status, "data": data, "page": page,
        "warnings": list(warnings), "next": list(following), "error": error,
    }  # fmt: skip


def ascii_json(value: Any, indent: int | None = None) -> str:
    """Return JSON in ASCII, which is safe for any terminal and encoding."""
    if indent is None:
        return fast_json.dumps(value)
    import json

    # JSON does not escape DEL, the one control character in ASCII output.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent, default=str).replace("\x7f", "\\u007f")


def write_json(value: Any, finished: Callable[[str], str] | None = None) -> None:
    """Write a value as JSON in one line, or indented on a terminal. ``finished`` may change the text before it is written."""
    text = ascii_json(value, indent=2 if sys.stdout.isatty() else None)
    write_lines([text if finished is None else finished(text)])


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout."""
    for line in lines:
        sys.stdout.write(line + "\n")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the words of a command line ask for JSON. Used for errors that occur before the options are parsed."""
    # The words after "--" belong to the command line of another program.
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    named = [own[place + 1] for place, word in enumerate(own[:-1]) if word == "--format"]
    named += [word.removeprefix("--format=") for word in own if word.startswith("--format=")]
    if "--json" in own or "--jq" in own or any(word.startswith("--jq=") for word in own):
        return True
    # The last --format counts, as in the parser.
    return (named[-1] if named else os.environ.get("CTXMGR_FORMAT")) in ("json", "ndjson")


def report_error(command: str, form: str, error: CtxmgrError) -> int:
    """Report an error as JSON or as text, and return its exit code."""
    from ctxmgr.cli.exits import find_exit
    from ctxmgr.errors import NoSession

    if isinstance(error, NoSession):
        error.hint = f"{error.hint}{_as_path(error.named)}"
    error.message, error.hint = without_secrets(error.message) or "", without_secrets(error.hint)
    if form in ("json", "ndjson"):
        body = {"kind": error.kind, "message": error.message, "hint": error.hint, "retryable": error.retryable}
        write_json(envelope(command, "error", None, error=body))
    else:
        say(f"ctxmgr: {error.message}" + (f"\n  {error.hint}" if error.hint else ""), always=True)
    return int(find_exit(error.kind))


def _as_path(named: str) -> str:
    """Return an addition to the hint if the name of a session may be meant as a path. A folder needs ``./`` before its name."""
    if os.path.isdir(named):
        return f"; for the folder of this name write ./{named}"
    return "; there is no file of this name either" if "." in named or os.sep in named else ""


def without_secrets(text: str | None) -> str | None:
    """Return a message with secrets masked: it may quote the command line, and build systems keep output for years."""
    if text is None:
        return None
    from ctxmgr.log.mask_prefilter import mask

    # Encode as JSON first: the masks work on lines of a log, in which quotation marks are escaped.
    line = ascii_json(text).encode("ascii")
    shown = mask(line)
    return text if shown is line else str(fast_json.loads(shown.decode("ascii")))


def say(text: str, *, always: bool = False) -> None:
    """Write a message to stderr, unless ``--quiet`` was given; ``always`` is for errors.

    Every line is filtered. A closed stderr is not an error.
    """
    if global_options.quiet and not always:
        return
    from ctxmgr.cli.views.safe_text import safe

    try:
        sys.stderr.write("".join(f"{at_words(safe(line), sys.stderr)}\n" for line in text.split("\n")))
    except UnicodeEncodeError:  # any encoding can hold the escapes of JSON
        sys.stderr.write("".join(f"{ascii_json(safe(line))[1:-1]}\n" for line in text.split("\n")))
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # buffered text would fail again at exit


def tell_session(store: Store, asked: str | None, used: str | None) -> None:
    """Say on stderr which session is used, if the user named none and there are several."""
    # Only for a person: a program finds the session in the answer, and counting sessions costs a query.
    if asked is None and used is not None and sys.stderr.isatty() and (count := store.sessions.count()) > 1:
        say(f"session {used} (the latest of {count}; --session chooses another)")


class IndexProgress:
    """Show the progress of indexing a log. The meter is loaded at the first report."""

    __slots__ = ("_pace",)

    words = ("indexing the log", "MB", 1_000_000)

    def __init__(self) -> None:
        self._pace: ProgressMeter | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report progress, in the unit that ``words`` names, e.g. bytes."""
        if self._pace is None:
            from ctxmgr.cli.terminal import ProgressMeter

            self._pace = ProgressMeter(*self.words)
        self._pace(done, total)


class JudgeProgress(IndexProgress):
    """Show how many sessions have been judged."""

    __slots__ = ()

    words = ("judging sessions", "sessions", 1)


# Fewer records are read before a person notices, so a warning would only disturb.
_MANY_UNINDEXED = 32_768


def slow_search(unindexed: int) -> tuple[list[str], list[str]]:
    """Return (warnings, next commands) for a search that read so many records without the index."""
    if unindexed < _MANY_UNINDEXED:
        return [], []
    read = f"{unindexed:,} records are not indexed for searching, so they are read each time; 'ctxmgr index' indexes them"
    return [read], ["ctxmgr index"]
