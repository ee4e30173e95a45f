"""Lines of the browser's screens: each exactly fits its width, tells what counts most, and steers nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from rich.style import Style

from ctxmgr.cli.browse import lines
from ctxmgr.cli.browse.history import Judgement
from ctxmgr.cli.browse.lines import Line, Timeline, entry_lines, hit_row, judged_lines, session_head, session_row, strip
from ctxmgr.cli.views.layout import Span
from ctxmgr.cli.views.safe_text import cells, safe
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import SessionVerdict
from ctxmgr.types.query import MessagesResponse, Page, SearchHit
from tests.cli import view_samples as s

HOSTILE = "\x1b[31mred\x1b]52;c;eA==\x07 [bold]loud[/] \u202eabc\u200b\x9b2J \ud800 \n短い名前"
WIDTHS = (20, 60, 80, 110, 200)


def text(line: Iterable[Span]) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)


def styled(line: Iterable[Span], style: str) -> list[str]:
    """Return the pieces of a line in a style."""
    return [span.text for span in line if span.style == style]


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw everything at noon of the day of the samples."""
    noon = parse_time("2026-01-22T12:00:00Z") or 0.0
    monkeypatch.setattr(lines.time, "time", lambda: noon)


def judged(verdict: SessionVerdict | None = None) -> Judgement:
    """Return what the detectors say of a loop of two calls in four rounds, the first of them resolved."""
    finding, entries = s.cycle(4)
    old, more = s.repetition(3)
    finding = finding.model_copy(update={"id": "f9"})
    found = [old.model_copy(update={"resolved": "e20"}), finding]
    known = {entry.id: entry for entry in [*more, *entries]}
    return Judgement(verdict or SessionVerdict(session=s.SESSION, verdict="loop", findings=found), known, None, "")


HIT = SearchHit(row=s.entry(7, HOSTILE, {"command": HOSTILE}, agent=HOSTILE), field="input", excerpt=HOSTILE)
ROWS: dict[str, Callable[[int], Line]] = {
    "session": lambda width: session_row(s.session(session=HOSTILE, title=HOSTILE, outcome=HOSTILE), width),
    "unjudged": lambda width: session_row(
        s.session(verdict=None, last_progress=None, last=None, title=None, workflow=None), width
    ),
    "hit": lambda width: hit_row(HIT, "\x1b[31m", width, several=True),
    "hit of one session": lambda width: hit_row(HIT, "loud", width, several=False),
    "entry": lambda width: Timeline([HOSTILE, "b"]).row(s.entry(3, HOSTILE, {"command": HOSTILE}, agent=HOSTILE), None, width),
    "overview": lambda width: Timeline(total=5).overview(4, width),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_wider_than_the_screen_or_steers_it(name: str, width: int) -> None:
    """Whatever was recorded, a row has one line, printable, and fits as far as its fixed columns leave room."""
    line = ROWS[name](width)
    shown = text(line)

    assert safe(shown) == shown
    assert cells(text([Span(piece.text) for piece in strip(line, width)])) == width
    if width >= 80:
        assert cells(shown) <= width


def test_a_strip_has_the_width_and_the_styles_of_its_line() -> None:
    """Short lines are filled, long ones cut, the style of the whole line is under that of each piece."""
    line = [Span("ok", "ok"), Span(" plain"), Span(" odd", "no such style")]
    made = list(strip(line, 16, under=Style(bgcolor="blue")))

    assert "".join(piece.text for piece in made) == "ok plain odd    "
    assert made[0].style == Style.parse("green on blue")
    assert {str(piece.style) for piece in made[1:]} == {"on blue"}
    assert "".join(piece.text for piece in strip(line, 4)) == "ok p"


def test_a_session_tells_its_verdict_age_and_title() -> None:
    """What is wrong is said in words where nothing loops; without progress the last record tells the age."""
    stuck = session_row(s.session(session="0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5b"), 80)
    failing = s.session(verdict="healthy", summary="no loop found, 3 failures in a row", live=True, last_progress=None)
    unjudged = session_row(s.session(verdict=None), 80)

    assert text(stuck) == "0199a7b3     ✗ loop         1,320  40 min ago failed    Fix the tests"
    assert styled(stuck, "loop") == ["✗ loop"]
    assert "○ 3 failures in a row" in text(session_row(failing, 120))
    assert styled(session_row(failing, 120), "warn") == ["○ 3 failures in a row"]
    assert " 3 min ago live" in text(session_row(failing, 120))
    assert "… " in text(unjudged)
    assert text(session_row(s.session(title=None, workflow=None), 80)).endswith("builder, explorer")


def test_a_hit_says_where_it_is_and_marks_the_match() -> None:
    """The session stands there only where several are searched; the match is marked whatever its case."""
    hit = SearchHit(row=s.entry(7, "Bash", {"command": "make ALL"}), field="input", excerpt="make ALL of it")

    one, several = hit_row(hit, "all", 80, several=False), hit_row(hit, "all", 80, several=True)
    assert text(one).startswith("     @7 Bash           input ")
    assert text(several).startswith("nightly           @7 Bash")
    assert styled(one, "match") == styled(several, "match") == ["ALL"]
    assert styled(hit_row(HIT, "\x1b[31m", 120, several=False), "match") == ["\\x1b[31m"]
    event = hit.model_copy(update={"row": s.event("message", {"text": "all"}, after=4)})
    assert text(hit_row(event, "all", 80, several=False)).startswith("     @4 message ")


def test_an_entry_stands_in_the_column_of_its_agent() -> None:
    """Each agent has a column, in the order in which they appear; from eight on they share the last."""
    timeline = Timeline(["main", "scout"])
    first = text(timeline.row(s.entry(3, "Bash", {"command": "ls"}, agent="main"), None, 80))
    second = text(timeline.row(s.entry(4, "Bash", {"command": "ls"}, "error", agent="scout"), None, 80))
    timeline.row(new := s.entry(5, "Bash", {"command": "ls"}, "open", agent="new"), None, 80)
    third = text(timeline.row(new, None, 80))

    assert [row[20:].partition(" Bash")[0].strip() for row in (first, second, third)] == ["●·", "·✗", "··○"]
    assert timeline.agents == ["main", "scout", "new"]
    rows = [text(timeline.row(s.entry(6, "Bash", {}, agent=f"a{number}"), None, 80)) for number in range(20)]
    assert "·······● " in rows[-1]
    assert first.endswith("1.5 s")


def test_a_pause_is_named_and_the_time_of_a_call_is_none() -> None:
    """From a minute on it is told how long nothing happened; a call that took long is no pause, nor is a gap between pages."""
    timeline, before = Timeline(["builder"]), s.entry(3, "Bash", {"command": "ls"}, duration_ms=0.0)
    later = s.entry(4, "Bash", {"command": "make"}, ts="2026-01-22T10:09:00Z")

    assert "(6 min later) make" in text(timeline.row(later, before, 80))
    assert "later" not in text(timeline.row(later, before.model_copy(update={"duration_ms": 330_000.0}), 80))
    assert "later" not in text(timeline.row(later.model_copy(update={"ts": "2026-01-22T10:03:59Z"}), before, 80))
    for odd in (before.model_copy(update={"index": 2}), before.model_copy(update={"ts": "noon"}), None):
        assert "later" not in text(timeline.row(later, odd, 80))


def test_the_rounds_of_a_loop_are_numbered_where_they_begin() -> None:
    """Each round has its number at its first call and a bar beside the others; what is resolved is drawn dimly and below."""
    timeline = Timeline(["builder"], total=40)
    timeline.take(judged())
    begins = [place for place, (_, first, _) in timeline.places.items() if first]

    assert [timeline.places[place][:2] for place in (12, 13, 14, 15)] == [(1, True), (1, False), (1, False), (2, True)]
    assert begins == [12, 15, 18, 21]
    assert {style for _, _, style in timeline.places.values()} == {"loop"}
    assert timeline.spans == [(12, 14, "dim"), (12, 23, "loop")]
    row = timeline.row(s.entry(15, "Bash", {}), None, 80)
    assert styled(row, "loop") == ["2"]
    timeline.take(Judgement(None, {}, None, ""))
    assert (timeline.places, timeline.spans) == ({}, [])


def test_the_next_trouble_follows_the_last_by_the_first() -> None:
    """A key leads from trouble to trouble, round and round; without any it leads nowhere."""
    timeline = Timeline(spans=[(30, 35, "loop"), (12, 14, "dim"), (12, 23, "loop")])

    assert [timeline.find_next_trouble(index) for index in (0, 12, 29, 30, 99)] == [12, 30, 30, 12, 12]
    assert Timeline().find_next_trouble(5) is None


def test_the_overview_shows_trouble_and_the_cursor() -> None:
    """The session as one line: where its findings lie, and where one is, also at the very end and in a session of none."""
    timeline = Timeline(spans=[(50, 99, "loop")], total=100)
    line = timeline.overview(99, 22)

    assert len(line) == 21
    assert [span.style for span in line[1:11]] == ["dim"] * 10
    assert [span.style for span in line[11:]] == ["loop"] * 9 + ["strong"]
    assert styled(timeline.overview(0, 22), "strong") == [line[-1].text]
    assert len(Timeline(total=0).overview(0, 3)) == 5


def test_the_head_says_how_a_session_stands() -> None:
    """While it is judged it says so; then verdict, calls, failures and agents, and whose entry is chosen."""
    session = s.session(session="nightly", failed=0, agents=["builder"])
    waiting = session_head(session, None, None, 100, follows=False)
    full = session_head(s.session(live=True), judged(), s.entry(9, "Bash", {}), 140, follows=False)

    assert text(waiting[0]) == " nightly  judging it…  1,320 calls"
    assert text(full[0]) == " nightly  ✗ loop  1,320 calls, 3 failed by 2 agents  live  @9 builder"
    assert "following" in text(session_head(session, None, None, 100, follows=True)[0])
    narrow = session_head(s.session(title=HOSTILE), judged(), None, 20, follows=True)
    assert max(cells(text(line)) for line in narrow) <= 20
    assert all(safe(text(line)) == text(line) for line in narrow)
    named = session_head(s.session(), judged(), s.entry(9, "Bash", {}, agent=HOSTILE), 140, follows=False)
    assert safe(text(named[0])) == text(named[0])


def test_why_there_is_no_answer_stands_first() -> None:
    """What keeps a person from an answer is read before the findings; without a record nothing is said of them."""
    found = judged()
    used_up = Judgement(found.verdict, found.entries, None, "all attempts are used up")

    assert text(judged_lines(used_up, 80)[0]) == "all attempts are used up"
    assert text(judged_lines(found, 80)[0]) != ""
    assert [text(line) for line in judged_lines(Judgement(None, {}, None, "why"), 80)] == ["Nothing is recorded here."]
    answered = [text(line) for line in judged_lines(Judgement(found.verdict, found.entries, s.continuation(), ""), 80)]
    assert any("Prompt for planner (y copies it)" in line for line in answered)


def test_a_long_value_is_cut_before_it_is_laid_out() -> None:
    """Much would hold the screen up: what is left out is counted, and all of it is there when it is asked for."""
    entry = s.entry(3, "Bash", {"command": "ls"}, output="x" * 500_000)
    short, whole = ([text(line) for line in entry_lines(entry, None, 80, full=full)] for full in (False, True))

    assert sum(map(len, short)) < 40_000
    assert "480,000 more characters" in "".join(short)
    assert sum(line.count("x") for line in whole) >= 500_000


def test_messages_of_an_entry_stand_below_it() -> None:
    """They have a heading with their number; without any there is none."""
    said = [s.event("message", {"text": "I look."}), s.event("message", {"text": "Done."}, id="v2")]
    answer = MessagesResponse(
        status="ok", session=s.SESSION, entry=s.entry(3, "Bash", {}), messages=said, page=Page.make(0, 20, 2, 2)
    )

    shown = [text(line) for line in entry_lines(s.entry(3, "Bash", {}), answer, 80, full=False)]
    assert any("Messages (2)" in line for line in shown)
    assert any("I look." in line for line in shown)
    silent = entry_lines(s.entry(3, "Bash", {}), answer.model_copy(update={"messages": []}), 80, full=False)
    assert not any("Messages" in text(line) for line in silent)
