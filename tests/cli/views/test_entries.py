"""Rows, hits, one entry, messages, notes and snapshots, as people see them."""

from __future__ import annotations

from ctxmgr.cli.views.entries import indexes_text, show_entry, show_hits, show_messages, show_notes, show_rows, show_snapshot
from ctxmgr.types.query import MessagesResponse, Page, SearchHit, ShowSnapshotResponse
from tests.cli import view_samples as s

PAGE = Page.make(0, 20, 2, 2)

READ = s.entry(8, "Read", {"file_path": "src/app.py"})
ROWS = [
    READ,
    s.event("user_message", {"text": "fix the tests\nplease"}, None),
    s.entry(9, "Bash", {"command": "pytest -q"}, "error", notes=[s.note()]),
    s.entry(10, "Task", {"prompt": "look"}, "open", agent="explorer", missing=["parent e77"]),
]


def test_rows_tell_what_was_asked_and_how_it_went() -> None:
    """Entries and events stand in one table with the telling part of the input, notes and what is missing marked."""
    assert s.draw(lambda out: show_rows(out, ROWS, PAGE)).splitlines() == [
        "2026-01-22",
        " @  TIME UTC  AGENT     ACTION        STATUS   INPUT                        TOOK",
        " 8  10:08:00  builder   Read          ● ok     src/app.py                  1.5 s",
        "    10:03:20            user_message           fix the tests⏎please",
        " 9  10:09:00  builder   Bash          ✗ error  ✎1 pytest -q                1.5 s",
        "10  10:10:00  explorer  Task          ○ open   (missing: parent e77) look",
    ]


def test_a_path_is_cut_at_its_beginning() -> None:
    """Of a path that does not fit the end is shown, of a command the beginning."""
    rows = [s.entry(0, "Read", {"file_path": "/home/dev" * 20 + "/app.py"}), s.entry(1, "Bash", {"command": "ls " + "x" * 99})]
    lines = s.draw(lambda out: show_rows(out, rows, PAGE)).splitlines()

    assert "/app.py  1.5 s" in lines[2]
    assert "ls xxx" in lines[3]


def test_an_agent_that_all_rows_share_is_said_once() -> None:
    """With one agent the column goes, and its name stands above the table."""
    lines = s.draw(lambda out: show_rows(out, ROWS[:3], PAGE)).splitlines()

    assert lines[0] == "builder · 2026-01-22"
    assert "AGENT" not in lines[1]


def test_rows_in_a_pipe_have_one_shape() -> None:
    """In a pipe the columns do not depend on the rows, times are whole and the session is named."""
    assert s.draw(lambda out: show_rows(out, ROWS, PAGE), terminal=False).splitlines() == [
        "SESSION   @  TIME UTC              AGENT     ACTION        STATUS   TOOK  NOTES  INPUT",
        "nightly   8  2026-01-22T10:08:00Z  builder   Read          ok      1.5 s         src/app.py",
        "nightly      2026-01-22T10:03:20Z            user_message  event                 fix the tests⏎please",
        "nightly   9  2026-01-22T10:09:00Z  builder   Bash          error   1.5 s      1  pytest -q",
        "nightly  10  2026-01-22T10:10:00Z  explorer  Task          open                  (missing: parent e77) look",
    ]


def test_the_match_is_picked_out_of_its_surroundings() -> None:
    """A hit shows every match marked, whatever its case, and is cut on both sides so that the first is seen."""
    hit = SearchHit(field="input.command", excerpt="x " * 60 + "run pytest -q and PYTEST again" + " y" * 60, row=ROWS[2])
    lines = s.draw(lambda out: show_hits(out, [hit], "pytest", PAGE), colour=True).splitlines()

    assert lines[0] == "\x1b[1m@9\x1b[0m\x1b[31m ✗ \x1b[0m\x1b[1;34mBash\x1b[0m\x1b[2m  builder  10:09:00  input.command\x1b[0m"
    assert "run \x1b[1;7mpytest\x1b[0m -q and \x1b[1;7mPYTEST\x1b[0m again" in lines[1]
    assert lines[1].startswith("      …")
    assert lines[1].endswith("…")


def test_a_query_is_filtered_like_the_text_it_is_found_in() -> None:
    """A match that holds control characters is marked in its visible form."""
    hit = SearchHit(field="output", excerpt="a \x1b[2J b", row=ROWS[2])

    assert "\x1b[1;7m\\x1b[2J\x1b[0m b" in s.draw(lambda out: show_hits(out, [hit], "\x1b[2j", PAGE), colour=True)


def test_a_long_output_tells_how_to_see_all() -> None:
    """One entry shows all its fields; what is cut is counted, with the command that shows it; full and pipes cut nothing."""
    entry = s.entry(3, "Bash", {"command": "ls"}, "error", output="line\n" * 60, error={"type": "Exit", "message": "code 1"},
                    notes=[s.note()], events=2, session="it's")  # fmt: skip
    text = s.draw(lambda out: show_entry(out, entry))

    assert "events   2: ctxmgr messages 'it'\"'\"'s@3'" in text
    assert "  … 20 more lines: ctxmgr show 'it'\"'\"'s@3' --full\n" in text
    assert '\nInput\n  {\n    "command": "ls"\n  }\n\nError\n  Exit: code 1\n' in text
    assert "\nNotes (1)\n✎ n1  #routing  ann  2026-01-22  11:00:00\n    look here\n" in text
    for how in ({"terminal": False}, {"full": True}):
        whole = s.draw(lambda out, how=how: show_entry(out, entry, full="full" in how), terminal="full" in how)
        assert whole.count("  line\n") == 60


def test_pieces_of_a_message_are_put_together() -> None:
    """Streamed chunks read as one message on a terminal and stay one row each in a pipe."""
    pieces = [
        s.event("user_message", {"text": "go"}, None),
        *(
            s.event("agent_message_chunk", {"content": {"type": "text", "text": text}})
            for text in ("I will ", "look.\nThen fix.")
        ),
        s.event("thought", "hmm"),
    ]
    response = MessagesResponse(status="ok", session=s.SESSION, entry=None, messages=pieces, page=PAGE)

    assert s.draw(lambda out: show_messages(out, response)).splitlines() == [
        "user  10:03:20  after @3", "    go", "builder  10:03:20  after @3", "    I will look.", "    Then fix.",
        "builder thought  10:03:20  after @3", "    hmm",
    ]  # fmt: skip
    assert len(s.draw(lambda out: show_messages(out, response), terminal=False).splitlines()) == 5


def test_notes_and_snapshots_name_their_entries() -> None:
    """A note tells who said what about which entries; a snapshot whether it is still what was bundled."""
    notes = s.draw(lambda out: show_notes(out, [s.note(), s.note("old", id="n0", superseded_by="n1", tags=[])]))
    response = ShowSnapshotResponse(snapshot=s.snapshot(), entries=[READ], intact=False)
    snapshot = s.draw(lambda out: show_snapshot(out, response))

    assert notes.startswith("✎ n1  @3-4 @9  #routing  ann  2026-01-22  11:00:00\n    look here\n✎ n0  @3-4 @9")
    assert "    superseded by n1\n" in notes
    assert "── snapshot s1  changed since it was made ──" in snapshot
    assert "\n1 entry\n  @  ACTION  STATUS  INPUT\n  8  Read    ● ok    src/app.py\n" in snapshot


def test_runs_of_indexes_are_drawn_together() -> None:
    """Indexes in a row are told by the first and the last of them."""
    assert indexes_text([3, 4, 5, 9, 11, 12]) == "@3-5 @9 @11-12"
