"""The table of sessions, as people see it and as a pipe gets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.views.sessions import show_sessions
from ctxmgr.log.ids import parse_time
from ctxmgr.types.query import Page
from tests import builders as b
from tests.cli import view_samples as s
from tests.cli.console import make_history, watched

NOW = parse_time("2026-01-22T12:00:00Z") or 0.0
PAGE = Page.make(0, 20, 2, 2)
FIRST, SECOND = "0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5b", "0199a7b3-1c2d-7e4f-8aff-0c1d2e3f4a5b"


def test_the_stuck_session_is_seen_at_once() -> None:
    """Each session takes one row: a short id that stays unambiguous, the verdict, the last progress in words."""
    rows = [
        s.session(session=FIRST), s.session(session=SECOND, verdict="healthy", findings=0, agents=["codex"], entries=7),
        s.session(session="nightly-refactor", verdict=None, last_progress=None, title=None),
    ]  # fmt: skip

    assert s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), width=110).splitlines() == [
        "SESSION                 VERDICT    ENTRIES    PROGRESS  AGENT       TITLE          STATE   SOURCE",
        "0199a7b3-1c2d-7e4f-8a9  ✗ loop ×2    1,320  40 min ago  builder +1  Fix the tests  failed  claude-code",
        "0199a7b3-1c2d-7e4f-8af  ✓ healthy        7  40 min ago  codex       Fix the tests  failed  claude-code",
        "nightly-refactor        –            1,320   3 min ago  builder +1  wf             failed  claude-code",
        "",
        "1 of 3 sessions stuck.",
    ]
    assert f"{FIRST}  loop ×2" in s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), terminal=False)


def test_a_long_verdict_leaves_room_for_the_title() -> None:
    """Titles tell sessions apart: the verdict is cut before them, with "3 failures in a row" in full."""
    rows = [
        s.session(session="one", verdict="healthy", findings=0, summary="no loop found, no action recorded, ended in an error"),
        s.session(session="two", verdict="healthy", findings=0, summary="no loop found, 3 failures in a row"),
    ]

    shown = s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), width=80).splitlines()

    assert max(map(len, shown)) <= 80
    assert ("○ no action recorded…" in shown[1], "○ 3 failures in a row" in shown[2]) == (True, True)
    assert all("Fix the tests" in row for row in shown[1:3])


HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]nightly[/red]\u202egnp\nsecond row"
WIDE = {
    80: """\
SESSION        VERDICT    ENTRIES    PROGRESS  AGENT     TITLE              STA…
\\x1b[2…nd row  ✗ loop ×2    1,320  40 min ago  builder…  Fix the tests      fai…
0199a7b3       ✓ healthy        7  40 min ago  codex     Round the totals…  fai…
refactor       ✗ hung          12  40 min ago            wf                 live
plain          –            1,320   3 min ago  builder…  Fix the tests

2 of 4 sessions stuck.
""",
    120: """\
SESSION                           VERDICT    ENTRIES    PROGRESS  AGENT     PROJECT       TITLE             STA…  SOURCE
\\x1b[2J\\x1b]0;ow…egnp⏎second row  ✗ loop ×2    1,320  40 min ago  builder…  invoice-tool  Fix the tests     fai…  claud…
0199a7b3                          ✓ healthy        7  40 min ago  codex     短い名前      Round the total…  fai…  claud…
refactor                          ✗ hung          12  40 min ago                          wf                live  claud…
plain                             –            1,320   3 min ago  builder…                Fix the tests

2 of 4 sessions stuck.
""",
}


@pytest.mark.parametrize("width", WIDE)
def test_each_session_is_one_row_at_any_width(width: int) -> None:
    """What can be spared goes where there is no room; a hostile name is shown by its codes and moves nothing."""
    rows = [
        s.session(session=HOSTILE, project="/home/dev/invoice-tool"),
        s.session(session=SECOND, verdict="healthy", findings=0, agents=["codex"], entries=7, project="/home/dev/短い名前",
                  title="Round the totals as finance wants them, half to even, and tell which invoices change"),
        s.session(session="refactor", verdict="hung", findings=1, live=True, outcome=None, agents=[], entries=12, title=None),
        s.session(session="plain", verdict=None, last_progress=None, source=None, outcome=None),
    ]  # fmt: skip
    drawn = s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), width=width)

    assert drawn == WIDE[width]
    assert len(s.screen_lines(drawn, width)) == 7
    assert "\\x1b[2J\\x1b]0;owned\\x07[red]nightly[/red]\\u202egnp⏎second row" in s.draw(
        lambda out: show_sessions(out, rows, PAGE, NOW), terminal=False
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize("width", [80, 120])
def test_people_see_it_on_their_terminal(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ctxmgr sessions`` asks the terminal for its width and judges every session; no recorded name reaches it as it is."""
    place = make_history(tmp_path / "history.db", *b.steps(HOSTILE, ["Bash:ls -> same"] * 4))
    for name, value in (("COLUMNS", str(width)), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    code, shown = watched("sessions", "--store", str(place), "--no-pager")
    rows = s.screen_lines(shown, width)

    assert code == 0
    assert rows[0].split()[:4] == ["SESSION", "VERDICT", "ENTRIES", "PROGRESS"]
    verdicts = {
        row.split()[0][:7]: next(word for word in row.split() if word in ("loop", "hung", "healthy")) for row in rows[1:5]
    }
    assert verdicts == {"\\x1b[2J": "loop", "looping": "loop", "hung": "hung", "healthy": "healthy"}
    assert rows[-1] == "3 of 4 sessions stuck."
    assert "\x1b" not in shown
