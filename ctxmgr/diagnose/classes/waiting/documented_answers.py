"""What a record says of a program that waits for an answer: an option, the file with a password, its question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, last_command, split_command
from ctxmgr.diagnose.evidence.durations import without_wrappers
from ctxmgr.diagnose.evidence.messages import forbids
from ctxmgr.diagnose.evidence.texts import ORDERS, contains_word, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_ASKS_NOTHING = lazy_pattern(
    r"--?(?:y|yes|assume-yes|no-?input|non-?interactive|batch|force-copy|auto-approve|confirm|no-?prompt|no-?confirm|defaults?)"
)
"""Options that answer all questions in advance."""
_OPTION = lazy_pattern(r"(?<![\w-])--?[a-zA-Z][\w-]{0,30}(?::\w{2,10})?(?![\w])")
_OF_TERMINAL = lazy_pattern(
    r"(?i)\b(?:terminal|tty|stdin|(?:non-)?interactive\w*|unattended|prompts?|prompted|asks?|asked|questions?|confirm\w*)\b"
)
_PASSWORD = lazy_pattern(r"(?i)pass(?:word|phrase|code)|\b(?:store|key)pass\b|\bPIN\b")
_FILE = lazy_pattern(
    r"(?<![\w./~:-])((?:~?/)?(?:[\w@+-][\w.@+-]*/){0,8}(?:\.[A-Za-z][\w-]{2,40}|[\w@+-]{1,60}\.[A-Za-z][\w.-]{0,20}))(?![\w/])"
)
_WORD = lazy_pattern(r"[A-Za-z0-9]{3,40}")
_GENERAL = word_set("the and for from with file files path out name key password pass passphrase mode export input")
_SECRET_NAME = lazy_pattern(r"(?i)^[./~]|pass|secret|cred|token|\bpw")
_READS = lazy_pattern(
    r"(?i)\b(?:cat|head|tail|less|more|sed|grep|rg|awk|man|help|read|view|open|show|fetch|get|docs?|usage)\b|--?help|^read|-h\b"
)
_MOST_LINES, _MOST_LINE, _LEAST_SHARED = 400, 400, 1


class Documented(NamedTuple):
    """What a line of a document names, with the call that showed it."""

    name: str
    line: str
    entry: EntryView


def avoids_questions(option: str) -> bool:
    """Whether an option is a usual one that answers all questions in advance, such as `--yes` or `-auto-approve`."""
    return _ASKS_NOTHING.fullmatch(option) is not None


def find_documented_option(evidence: Evidence, entry: EntryView) -> Documented | None:
    """Return an option that a document shows with the program of a call, that the call lacks, and that keeps it from asking.

    The line names the program and another word of the call, and the option says yes to everything, or the line is about
    questions and terminals.
    """
    for words in map(without_wrappers, split_command(command_of(entry))):
        program = words[0].rpartition("/")[2] if words else ""
        own = {word.partition("=")[0] for word in words[1:]}
        tried = {word.partition("=")[0] for each in _list_attempts(evidence, entry, program) for word in each}
        if len(program) < 2 or not own:
            continue
        for other, line in _list_lines(evidence, entry):
            if (
                not contains_word(program, line)
                or forbids(line) is not None
                or not any(contains_word(each, line) for each in own)
            ):
                continue
            lacking = [name for name in dict.fromkeys(_OPTION.findall(line)) if name not in tried]
            silent = next((name for name in lacking if _ASKS_NOTHING.fullmatch(name)), None)
            if silent is None and len(lacking) == 1 and _OF_TERMINAL.search(line):
                silent = lacking[0]
            if silent is not None:
                return Documented(silent, line, other)
    return None


def find_password_file(evidence: Evidence, entry: EntryView) -> Documented | None:
    """Return the file in which a document says the password is that a call asks for.

    The line shares a word with the call, such as the ending of the file that is made, and names one file.
    """
    words = {each.casefold() for each in _WORD.findall(command_of(entry))} - _GENERAL
    for other, line in _list_lines(evidence, entry):
        if _PASSWORD.search(line) is None or forbids(line) is not None:
            continue
        shared = {each.casefold() for each in _WORD.findall(line)} & words
        files = [name for name in dict.fromkeys(_FILE.findall(line)) if plain_name(name) and name not in command_of(entry)]
        # The name of a host has a dot as well.
        files = [name for name in files if _SECRET_NAME.search(name) or contains_word("file", line)]
        if len(shared) >= _LEAST_SHARED and len(files) == 1:
            return Documented(files[0], line, other)
    return None


def _list_attempts(evidence: Evidence, entry: EntryView, program: str) -> Iterator[list[str]]:
    """Yield the words of the calls of a program that were tried without a success."""
    for each in [entry, *evidence.entries_before(entry.index)]:
        if each.status != "ok":
            yield from (words for words in split_command(command_of(each)) if program in " ".join(words))


def _list_lines(evidence: Evidence, entry: EntryView) -> Iterator[tuple[EntryView, str]]:
    """Yield the lines that looks before a call have shown, newest look first. What fetches and runs something is left out."""
    for other in evidence.latest_before(entry.index):
        if other.status != "ok" or not _READS.search(f"{other.action} {call_input(other)}"):
            continue
        for line in evidence.text(other).split("\n")[:_MOST_LINES]:
            if len(line) <= _MOST_LINE and not ORDERS.search(line):
                yield other, line.strip()


_ASKED = lazy_pattern(
    r"(?P<asked>[A-Z][\w ,'/-]{3,60}[?:]?\s{0,2}[\[(](?i:y|yes|n|no)/(?i:y|yes|n|no)[\])](?:\s?\[\w{1,10}\])?)\s?[:?]?"
)
"""A question as a program asks it on a terminal, with the answers that it takes."""
_HIDES = lazy_pattern(r"\|\s*(?:tail|grep|sort|wc|head|sed|awk|cut|uniq|jq)\b|>{1,2} ?[\w./~-]+")
"""What takes the output of a program and shows nothing of it before its end."""
_GIVES_INPUT = lazy_pattern(r"\b(?:yes|echo|printf)\b[^|;&]*\||<|\bexpect\b")
_INTERPRETERS = word_set("php python python3 node ruby perl bash sh npx env time")
_MOST_TEXT, _MOST_BELOW = 12_000, 6


def find_recorded_question(evidence: Evidence, entry: EntryView) -> tuple[Documented, str] | None:
    """Return a question that another output shows below the program of a call, and what hides the call's own output.

    The program is named by two words, its name and its verb, or by the name of a script.
    """
    command = command_of(entry)
    words, hidden = last_command(_REDIRECTED.sub("", command)), _HIDES.search(_JOINED.sub("", command))
    names = [word.rpartition("/")[2] for word in words if not word.startswith("-") and "=" not in word]
    names = [name for name in names if name not in _INTERPRETERS][:2]
    answered = _GIVES_INPUT.search(command) or any(avoids_questions(word) or word in ("-n", "-f", "--force") for word in words)
    if hidden is None or answered or not names or (len(names) < 2 and not _SCRIPT.search(names[0])):
        return None
    for other in evidence.latest_before(entry.index):
        lines = evidence.text(other)[:_MOST_TEXT].split("\n") if evidence.has_succeeded(other) else []
        for place, line in enumerate(lines):
            below = "\n".join(lines[place : place + _MOST_BELOW]) if all(contains_word(name, line) for name in names) else ""
            if (match := _ASKED.search(below)) is not None and not ORDERS.search(match["asked"]):
                asked_in = below[below.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
                return Documented(match["asked"], asked_in.strip(), other), hidden.group(0)
    return None


_JOINED, _REDIRECTED = lazy_pattern(r"\d?>&\d"), lazy_pattern(r"\d?>{1,2} ?[\w./&~-]+")
_SCRIPT = lazy_pattern(r"\w[._-]\w")
