"""What becomes of options that several commands share: ``--set``, and times as people write them."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.cli.requests import build, merge_settings, moment, option_name, parse_settings, read_argument
from ctxmgr.errors import InvalidInput
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.types.query import SearchRequest
from tests import builders as b
from tests.builders import write
from tests.cli.console import make_history, run
from tests.frontends import run_json

NOON = b.START + 7_200.0


_COMMANDS = Path(__file__).parents[2] / "ctxmgr/cli/commands"


def _declared(annotation: ast.expr | None, known: dict[str, list[str]]) -> list[str] | None:
    """Return the names of an option or argument as it is declared; None for a parameter that is neither."""
    if isinstance(annotation, ast.Name | ast.Attribute):
        return known.get(annotation.id if isinstance(annotation, ast.Name) else annotation.attr)
    calls = [part for part in ast.walk(annotation) if isinstance(part, ast.Call)] if annotation is not None else []
    for call in calls:
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if kind == "Option":
            names = [str(part.value) for part in call.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            return [name for each in names for name in each.split("/")]
        if kind == "Argument":
            shown = [
                word.value.value for word in call.keywords if word.arg == "metavar" and isinstance(word.value, ast.Constant)
            ]
            return re.findall("[A-Z]+", str(shown[0])) if shown else []
    return None


def _declarations(tree: ast.Module, known: dict[str, list[str]]) -> dict[str, list[str]]:
    found = dict(known)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names = _declared(node.value, found)
            found |= {} if names is None else {node.targets[0].id: names}
    return found


def _built(path: Path, known: dict[str, list[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (request, field, names of the parameter that gives its value) of each request that a command builds."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = _declarations(tree, known)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        every = [*function.args.args, *function.args.kwonlyargs]
        named = {each.arg: _declared(each.annotation, own) for each in every}
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
            if not (isinstance(call.func, ast.Name) and call.func.id == "build" and isinstance(call.args[0], ast.Name)):
                continue
            for word in [word for word in call.keywords if word.arg is not None]:
                used = [
                    part.id for part in ast.walk(word.value) if isinstance(part, ast.Name) and named.get(part.id) is not None
                ]
                names = [name for each in used for name in (named[each] or [each.upper()])]
                if names and word.arg is not None:
                    yield call.args[0].id, word.arg, names


def test_a_dash_reads_the_text_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line end is removed, a limit counts it, and any other argument is itself."""
    for typed, read in (("a\n\n", "a\n"), ("a", "a"), ("", "")):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert read_argument("-") == read
    monkeypatch.setattr("sys.stdin", io.StringIO("ab\n"))
    assert read_argument("-", 3) == "ab"
    monkeypatch.setattr("sys.stdin", io.StringIO("ab\n"))
    with pytest.raises(InvalidInput, match="more than 2 characters"):
        read_argument("-", 2)
    assert read_argument("a\n", 1) == "a\n"


def test_messages_call_each_field_what_the_command_line_calls_it() -> None:
    """Every request that a command builds: its fields are named as the option or the argument that gives their value."""
    shared = _declarations(ast.parse((_COMMANDS.parent / "options.py").read_text(encoding="utf-8")), {})
    built = [each for path in sorted(_COMMANDS.glob("*.py")) for each in _built(path, shared)]
    wrong = [
        (request, field, option_name(request, field), names)
        for request, field, names in built
        if not set(option_name(request, field).split(" or ")) <= {*names, "the text"}
    ]

    assert len(built) > 100
    assert wrong == []


def _line_id(value: tuple[str, ...] | str) -> str:
    """Return the beginning of a command line."""
    return " ".join(value)[:40] if isinstance(value, tuple) else ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("access", "allow", "dev", "bogus", "x"), "TYPE must be 'artifact', 'context' or 'history'"),
        (("context", "request", "dev"), "ITEM must not be empty"),
        (("context", "assemble", "z", "--goal-dir", "/nonexist"), "--goal-dir '/nonexist' is no folder"),
        (("version", "create", ""), "DESCRIPTION must not be empty"),
        (("goal", "record", "", "--args", "{}", "--result", "ok"), "NAME must not be empty"),
        (("goal", "add", "x", "--subtask", "a" * 5_000), "--subtask must have at most 4,000 characters, and has 5,000"),
    ],
    ids=_line_id,
)
def test_a_refused_value_is_named_as_it_was_given_and_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...], said: str
) -> None:
    """No words of a validator, no name of a field, and a long value is not repeated whole."""
    monkeypatch.chdir(tmp_path)
    run("goal", "start", "g")
    run("context", "set", "key", "value", "--create")
    ran = run(*line)

    assert (ran.code, ran.err.splitlines()[0]) == (2, f"ctxmgr: {said}")
    assert len(ran.err) < 400


def test_options_become_a_table() -> None:
    """Numbers, lists, quoted names and single actions are spelled as in the configuration file."""
    found = parse_settings(
        ["repeat_rounds=4", 'pollers=["wait"]', 'actions."my tool".repeat_rounds=5', "actions.Bash.exempt=true"]
    )

    assert found == {
        "repeat_rounds": 4,
        "pollers": ["wait"],
        "actions": {"my tool": {"repeat_rounds": 5}, "Bash": {"exempt": True}},
    }


def test_options_come_before_the_file() -> None:
    """An option replaces the file's setting of its name and leaves the others, those of single actions included."""
    file = {"repeat_rounds": 3, "stall_seconds": 60, "actions": {"Bash": {"poller": True}}}

    assert merge_settings(file, ["repeat_rounds=4", "actions.Bash.repeat_rounds=9"]) == {
        "repeat_rounds": 4,
        "stall_seconds": 60,
        "actions": {"Bash": {"poller": True, "repeat_rounds": 9}},
    }
    assert file["repeat_rounds"] == 3


@pytest.mark.parametrize("odd", ["repeat_rounds", "=4", "repeat_rounds=", "a b=1", ""])
def test_what_is_no_setting_is_named(odd: str) -> None:
    """An option without a name or a value is refused, except that nothing at all sets nothing."""
    if odd == "":
        assert parse_settings([odd]) == {}
        return
    with pytest.raises(InvalidInput, match="is no setting"):
        parse_settings([odd])


def test_a_threshold_decides_what_is_found(store: Store) -> None:
    """Three identical rounds are a loop by default and none with a threshold of four."""
    write(store, "run", ["Bash:ls -> same"] * 3)
    where = ["--json", "--store", store.location]

    assert run_json(["detect", *where])[0] == 10
    assert run_json(["detect", "--set", "repeat_rounds=4", *where])[0] == 0
    code, envelope = run_json(["detect", "--set", "repeat_rounds=1", *where])
    assert (code, envelope["error"]["kind"]) == (2, "invalid")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", NOON), ("90s", NOON - 90), ("2h", b.START), ("15 m", NOON - 900), ("7D", NOON - 604_800),
        ("1w", NOON - 604_800), ("2026-01-22T10:00:00Z", b.START), (" 2026-01-22T11:00:00+01:00 ", b.START), ("9999999w", 0.0),
    ],
)  # fmt: skip
def test_times_as_people_write_them(text: str, seconds: float) -> None:
    """A time is RFC 3339 or a span before now."""
    assert parse_time(moment(text, NOON)) == pytest.approx(seconds)


def test_days_begin_at_midnight_here() -> None:
    """Today and yesterday begin at midnight of this machine's time zone."""
    midnight = datetime.fromtimestamp(NOON).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)

    assert parse_time(moment("today", NOON)) == midnight.timestamp()
    assert parse_time(moment("Yesterday", NOON)) == (midnight - timedelta(days=1)).timestamp()


@given(st.text(max_size=20) | st.from_regex(r"[0-9]{0,9}\s?[a-z]?", fullmatch=True))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    """Whatever is typed either becomes an RFC 3339 time or is refused as invalid input."""
    try:
        found = moment(text, NOON)
    except InvalidInput:
        found = None

    assert found is None or parse_time(found) is not None
    assert found is not None or parse_time(text.strip()) is None


@pytest.mark.usefixtures("history")
@pytest.mark.requirement("FR-025", "US2-3", "R-03")
def test_a_time_range_is_half_open() -> None:
    """``--since`` includes its own moment, ``--until`` does not, for every query."""
    wish = ("--since", b.at(1), "--until", b.at(2), "-s", "healthy", "--json")

    assert [row["index"] for row in run("list", *wish).envelope["data"]] == [1]
    assert [row["index"] for row in run("trace", *wish).envelope["data"]] == [1]
    assert [hit["row"]["index"] for hit in run("search", "make", *wish).envelope["data"]] == [1]


@pytest.mark.parametrize("option", ["--max", "--limit", "-n"])
def test_a_fault_names_an_option_that_there_is(option: str, tmp_path: Path) -> None:
    """The field of a request may be spelled otherwise than the option that sets it."""
    ran = run("search", "x", option, "0", "--store", str(make_history(tmp_path / "h.db")))
    assert (ran.code, ran.err.splitlines()[0]) == (2, "ctxmgr: --limit must be at least 1")


def test_a_fault_of_an_argument_names_no_option() -> None:
    """An argument has no option to name."""
    with pytest.raises(InvalidInput, match=r"^QUERY must be text$"):
        build(SearchRequest, query=["x"])
