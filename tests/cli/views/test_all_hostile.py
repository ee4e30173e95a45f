"""Every view with hostile text in every field: nothing steers the terminal, wraps a row or gets lost in a pipe."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import pytest
from markdown_it import MarkdownIt
from pydantic import ValidationError

from ctxmgr.cli.commands.annotations import show_episodes, show_reflection
from ctxmgr.cli.commands.config import show_setting_details
from ctxmgr.cli.commands.history import show_rows as show_query
from ctxmgr.cli.commands.history import show_stats
from ctxmgr.cli.commands.import_export import show_import
from ctxmgr.cli.commands.recover import show_continuation
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.text_formats import MarkdownPrinter
from ctxmgr.cli.views.entries import show_entry, show_hits, show_messages, show_notes, show_rows, show_snapshot, show_snapshots
from ctxmgr.cli.views.findings import show_findings
from ctxmgr.cli.views.sessions import show_sessions
from ctxmgr.types.analysis import SqlResponse, StatsResponse, StatsRow
from ctxmgr.types.base import Shape
from ctxmgr.types.query import MessagesResponse, Page, SearchHit, ShowSnapshotResponse
from ctxmgr.types.setup import SettingView
from tests.cli import view_samples as s

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_Shape = TypeVar("_Shape", bound=Shape)

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
HIDDEN = "".join(
    map(chr, [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD, 0x180E, 0x3164])
)
SEQUENCES = "\x1b]0;owned\x07\x1b]8;;http://x\x1b\\\x1b]52;c;eA==\x07\x1b[2J\x1b[H\x1bP1$r\x1b\\\x9b2J\x9d0;owned\x9c\x1b_x\x1b\\\x1b]0;open"
PILE = "e" + "\u0301" * 300
WIDE = "漢字🚀⚠️🇩🇪👩🏽‍🚀"
MARKUP = "[/red]:smile:[link=x]"
HOSTILE = MARKUP + CONTROLS + HIDDEN + SEQUENCES + PILE + WIDE + "\ud800\U000e0041" + "x" * 200

NOW = 1769083200.0
PAGE = Page.make(0, 20, 2, 2)


def poisoned(shape: _Shape, text: str) -> _Shape:
    """Return the shape with every text in it replaced, as far as its type allows; keys of free objects stay."""
    data = shape.model_dump(mode="python", by_alias=False)
    kept = shape
    for path in list(_leaves(data)):
        before = _put(data, path, text)
        try:
            kept = type(shape).model_validate(data)
        except ValidationError:
            _put(data, path, before)
    return kept


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, str):
        return [path]
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(cast("dict[Any, Any]", value).items())
    elif isinstance(value, list):
        pairs = list(enumerate(cast("list[Any]", value)))
    return [leaf for key, inner in pairs for leaf in _leaves(inner, (*path, key))]


def _put(data: Any, path: Sequence[Any], text: str) -> str:
    for key in path[:-1]:
        data = data[key]
    before = str(data[path[-1]])
    data[path[-1]] = text
    return before


def views(text: str) -> dict[str, Callable[[Printer], object]]:
    """Return every view, drawing answers that hold this text wherever a text can stand."""
    entry = poisoned(s.entry(3, "Bash", {"command": "ls"}, "error", error={"type": "E", "message": "m"}, output=["o", {}],
                             notes=[s.note()], missing=["parent e9"], turn="t", step="st", parent="p", task="t", input_type="i",
                             usage={"u": "x"}, meta={"m": "x"}, events=2), text)  # fmt: skip
    events = [poisoned(s.event(kind, {"text": "hello"}), text) for kind in ("user_message", "agent_message_chunk", "odd")]
    event = s.event("user_message", {"content": [{"type": "text", "text": text}]}, agent=text)
    rows = [entry, *events, event]
    hits = [SearchHit(field=text, excerpt=text, row=row) for row in rows]
    snapshot = poisoned(s.snapshot(), text)
    episodes = [poisoned(s.episode(supersedes="m0", links=["l"], missing=["m"], around=[entry]), text)]
    notes = [poisoned(s.note(superseded_by="n2", links=["l"], missing=["m"], supersedes="n0"), text)]
    sessions = [poisoned(s.session(), text), s.session(session=text, source=text)]
    messages = MessagesResponse(status="ok", session=text, entry=entry, messages=[*events, event], page=PAGE)
    stats = StatsRow(key=text, calls=3, failed=1, open=1, input_tokens=5, output_tokens=None, seconds=0.5)
    setting = SettingView(
        name="n", value="v", default=None, origin="user", file="f", about="a", option="o", variable="v", project="free"
    )
    return {
        "sessions": lambda out: show_sessions(out, sessions, PAGE, NOW),
        "rows": lambda out: show_rows(out, rows, PAGE),
        "hits": lambda out: show_hits(out, hits, text[:8], PAGE),
        "entry": lambda out: show_entry(out, entry),
        "messages": lambda out: show_messages(out, messages),
        "notes": lambda out: show_notes(out, notes),
        "snapshots": lambda out: show_snapshots(out, [snapshot]),
        "snapshot": lambda out: show_snapshot(out, ShowSnapshotResponse(snapshot=snapshot, entries=[entry], intact=False)),
        "episodes": lambda out: show_episodes(out, episodes),
        "reflection": lambda out: show_reflection(out, poisoned(s.reflection(), text)),
        "findings": lambda out: _findings(out, text),
        "continuation": lambda out: show_continuation(out, poisoned(s.continuation(target=text), text)),
        "query": lambda out: show_query(out, SqlResponse(columns=["a", text], rows=[[text, 1], [None, 2.5]])),
        "stats": lambda out: show_stats(out, StatsResponse(by="action", rows=[stats], total=stats)),
        "settings": lambda out: show_setting_details(out, [poisoned(setting, text)]),
        "import": lambda out: show_import(out, poisoned(s.import_report(unknown={text: 3}), text)),
    }


def _findings(out: Printer, text: str) -> None:
    for finding, entries in (s.repetition(), s.cycle(), s.stall()):
        told = finding.model_copy(
            update={
                "id": text, "reason": text, "scope": finding.scope.model_copy(update={"agent": text}),
                "evidence": {**finding.evidence, "error": text, "result": {"message": text}},
            }
        )  # fmt: skip
        evil = [
            entry.model_copy(update={"session": text, "action": text, "input": {"command": text}, "agent": text, "ts": text})
            for entry in entries
        ]
        show_findings(out, [s.verdict(told, session=text)], {entry.id: entry for entry in evil})
        show_findings(out, [s.verdict(told, session=text)], {})
        gone = told.model_copy(
            update={"first": text, "last": text, "members": [text], "last_progress": text, "raised_at": text}
        )
        show_findings(out, [s.verdict(gone.model_copy(update={"evidence": {}, "resolved": text}), session=text)], {})


NAMES = list(views("x"))
OWN_COLOURS = re.compile(r"\x1b\[(?:[0-9]{1,2}(?:;[0-9]{1,2})?)m")


def _allowed(text: str) -> bool:
    bare = OWN_COLOURS.sub("", text).replace("\n", "")
    return all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for char in bare)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("terminal", [True, False])
def test_no_text_steers_the_terminal(name: str, terminal: bool) -> None:
    """Whatever is recorded, a view writes printable characters, line ends and its own colours, nothing else."""
    text = s.draw(views(HOSTILE)[name], terminal=terminal, colour=terminal, width=200)

    assert _allowed(text.replace("\t", "") if not terminal else text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_row_wraps(name: str, width: int) -> None:
    """Every line a view draws takes one line of a screen, wide signs included, and the title of the window stays."""
    text = s.draw(views(HOSTILE)[name], width=width, colour=True)

    assert len(s.screen_lines(text, width)) > 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("terminal", [True, False])
def test_markup_is_shown_as_it_is(name: str, terminal: bool) -> None:
    """Text that looks like markup, links or emoji names is shown letter by letter."""
    text = s.draw(views(MARKUP)[name], terminal=terminal, width=200)

    assert MARKUP in text


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_is_never_cut(name: str) -> None:
    """In a pipe every text is written whole, however long, without an escape byte."""
    text = s.draw(views("<" + "long " * 100 + ">")[name], terminal=False)

    assert text.count("<long ") == text.count("long >") > 0
    assert "…" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("terminal", [True, False])
def test_narrow_encodings_do_not_crash(name: str, encoding: str, terminal: bool) -> None:
    """On a stream without Unicode the same view is drawn in ASCII."""
    text = s.draw(views(HOSTILE)[name], encoding=encoding, terminal=terminal)

    assert text.isascii()
    assert _allowed(text.replace("\t", ""))


@pytest.mark.parametrize(
    "odd",
    [None, 10**400, float("nan"), [], {}, [[[{"a": None}]]], {"command": {"command": 3}}, {"command": ["a", 1]}, True, "\n \n"],
)
def test_odd_values_are_drawn(odd: Any) -> None:
    """Whatever JSON stands where text is expected, the views draw something and raise nothing."""
    entry = s.entry(0, "", odd, output=odd, error=odd, usage=odd, meta=odd, turn=odd, step=odd, duration_ms=float("inf"))
    finding = s.repetition()[0].model_copy(update={"evidence": dict.fromkeys(("indexes", "steps", "error", "openCalls"), odd)})
    hung = s.stall()[0].model_copy(update={"evidence": {"stalledSeconds": odd, "limitSeconds": odd, "openCalls": [odd]}})
    for terminal in (True, False):
        out = io.StringIO()
        printer = Printer(out, out, terminal=terminal)
        show_entry(printer, entry)
        show_rows(printer, [entry, s.event("x", odd)], None)
        show_findings(printer, [s.verdict(finding, hung)], {"e12": entry})
        show_sessions(printer, [s.session(source=odd, last="never", last_progress="soon")], None, NOW)
        assert len(out.getvalue().splitlines()) > 20


def test_empty_answers_say_what_to_do_next() -> None:
    """An answer without rows writes no data and names a command or reason on the stream for talk."""
    report = s.import_report(files=[], unchanged=0)
    empty: list[Callable[[Printer], None]] = [
        lambda out: show_sessions(out, [], Page.make(0, 20, 0, 0), NOW), lambda out: show_rows(out, [], Page.make(0, 20, 0, 0)),
        lambda out: show_rows(out, [], Page.make(40, 20, 0, 30)), lambda out: show_hits(out, [], "x", None),
        lambda out: show_notes(out, []), lambda out: show_snapshots(out, []), lambda out: show_findings(out, [], {}),
        lambda out: show_messages(out, MessagesResponse(status="empty", session=None, entry=None, messages=[], page=PAGE)),
        lambda out: show_import(out, report), lambda out: show_episodes(out, []),
        lambda out: show_reflection(out, s.reflection(episodes=[])),
    ]  # fmt: skip
    for view in empty:
        out, talk = io.StringIO(), io.StringIO()
        view(Printer(out, talk, terminal=True))
        assert out.getvalue() == ""
        assert re.search(r"ctxmgr|--|there are|No messages", talk.getvalue())


@pytest.mark.parametrize("name", NAMES)
def test_recorded_text_is_no_markdown(name: str) -> None:
    """In Markdown no recorded text becomes a link, a picture, HTML or a heading, and nothing steers a terminal."""
    marked = (
        HOSTILE + "\n# head\n[a](javascript:b) ![c](//d) <img src=e> `f` | g *h* _i_ ~~j~~ <https://k>"
        " http://l www.m @n a@o.p #12 &lt;\n```\n- l\n```\n"
    )
    out = io.StringIO()
    printer = MarkdownPrinter(out, io.StringIO())
    views(marked)[name](printer)
    printer.finish()
    text = out.getvalue()

    assert _allowed(text.replace("\t", ""))
    # An empty comment shows as nothing, and keeps an address or a name from being a link.
    assert not re.search(r"https?://\w|\bwww\.\w|(?<!\w)@\w", re.sub(r"(?m)^(`{3,})\n.*?^\1$", "", text, flags=re.DOTALL))
    parsed = _MARKDOWN.parse(text.replace("<!-- -->", ""))
    tokens = [inner for token in parsed for inner in (token, *(token.children or []))]
    assert {token.type for token in tokens} & {"link_open", "image", "html_inline", "html_block", "em_open", "s_open"} == set()
    assert [token for token in tokens if token.type == "heading_open" and token.tag == "h1"] == []
