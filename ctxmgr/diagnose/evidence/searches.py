"""What a search command looks for, and where: the arguments of grep, rg, ag, ack, git grep, find, fd and locate."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import split_command
from ctxmgr.text.patterns import word_set

_MOST_COMMAND, _MOST_PARTS = 4_000, 20
_GREPS = frozenset(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "fd", "fdfind", "locate"))
_WITH_VALUE = {"rg": "efgtTABCmMrjdE", "ag": "ABCmG", "ack": "ABCm", "fd": "etEdcSj", "fdfind": "etEdcSj", "locate": "nl"}
"""The short options that take a value; of any other program, those of grep."""
_OF_GREP = "efABCmdD"
_LONG_WITH_VALUE = word_set(
    "--include --exclude --exclude-dir --glob --iglob --type --type-not --file --max-count --context --after-context "
    "--before-context --ignore --max-depth --depth --regexp --extension --color --colour --sort --max-columns --threads"
)
_NAMES = word_set("-name -iname -path -ipath -wholename -regex -iregex")
_RUNNERS = word_set("xargs sudo command time timeout env nice exec ! do then if while")
_SEARCHES_ALL = frozenset(("rg", "ag", "ack", "fd", "fdfind"))


class Search(NamedTuple):
    """The patterns of a search and the places in which it looks; without places, it reads its input."""

    patterns: tuple[str, ...]
    places: tuple[str, ...]


@lru_cache(1_000)
def parse_searches(command: str) -> tuple[Search, ...]:
    """Return the searches in a command, in their order."""
    return tuple(found for words in _split(command[:_MOST_COMMAND]) if (found := _parse(words)) is not None)


def _split(command: str) -> Iterator[Sequence[str]]:
    """Yield the commands within a command as words. A sign between quotes separates nothing."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=";|&\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, ""
    try:
        words = list(reader)
    except ValueError:  # an unclosed quote: the command was cut
        yield from split_command(command)
        return
    part: list[str] = []
    for word in words:
        if word and not word.strip(";|&\n"):
            yield part
            part = []
        # `2>/dev/null` and the like are no words of the command.
        elif not word.lstrip("0123456789").startswith((">", "<")):
            part.append(word)
    yield part


def _parse(words: Sequence[str]) -> Search | None:
    heads = [word.lstrip("(").rpartition("/")[2] for word in words[:8]]
    if heads[:2] == ["git", "grep"]:
        return _parse_grep("git grep", words[2:])
    start = next((place for place, head in enumerate(heads) if head in _GREPS), None)
    # Only what runs another program, or sets a variable for it, may stand before it.
    if start is not None and (start == 0 or heads[0] in _RUNNERS or "=" in words[0]):
        return _parse_grep(heads[start], words[start + 1 :])
    return _parse_find(words[1:]) if heads[:1] == ["find"] else None


def _parse_grep(program: str, words: Sequence[str]) -> Search:
    short = _WITH_VALUE.get(program, _OF_GREP)
    patterns, plain, names = list[str](), list[str](), list[str]()
    is_recursive = program in _SEARCHES_ALL or program == "git grep"
    rest = iter(words)
    for word in rest:
        if word == "--":
            plain += rest
        elif word.startswith("--"):
            option, has_value, value = word.partition("=")
            is_recursive |= option in ("--recursive", "--dereference-recursive")
            # The patterns of fd may be globs.
            takes = option in _LONG_WITH_VALUE and not (option == "--glob" and program.startswith("fd"))
            value = value if has_value else next(rest, "") if takes else ""
            patterns += [value] if option == "--regexp" and value else []
            names += [value] if option == "--glob" and value else []
        elif word.startswith("-") and len(word) > 1:
            place = next((at for at, letter in enumerate(word[1:], 1) if letter in short), 0)
            is_recursive |= bool({"r", "R"} & set(word[1 : place or len(word)])) and program not in _SEARCHES_ALL
            value = (word[place + 1 :] or next(rest, "")) if place else ""
            patterns += [value] if place and word[place] == "e" and value and not program.startswith("fd") else []
            names += [value] if place and word[place] == "g" and value else []
        else:
            plain.append(word)
    # A list of files is searched by their names.
    if "--files" in words:
        patterns = names
    elif not patterns:
        patterns, plain = plain[:1], plain[1:]
    if program == "locate":
        return Search(tuple(patterns + plain), ("/",))
    return Search(tuple(patterns), tuple(plain or (["."] if is_recursive else [])))


def _parse_find(words: Sequence[str]) -> Search:
    end = next((place for place, word in enumerate(words) if word.startswith(("-", "(", "!", "\\("))), len(words))
    names = [value for option, value in pairwise(words) if option in _NAMES]
    run = next((place for place, word in enumerate(words) if word in ("-exec", "-execdir")), None)
    inner = _parse(words[run + 1 :]) if run is not None else None
    return Search(inner.patterns if inner is not None else tuple(names), tuple(words[:end]) or (".",))
