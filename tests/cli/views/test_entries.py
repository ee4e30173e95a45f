"""Sessions, rows, hits, one entry, messages, notes, the continuation and the import report, as people see them."""

from __future__ import annotations

from ctxmgr.cli.commands.import_export import show_import
from ctxmgr.cli.commands.recover import show_continuation
from ctxmgr.cli.views.entries import indexes_text, show_entry, show_hits, show_messages, show_notes, show_rows, show_snapshot
from ctxmgr.cli.views.sessions import show_sessions
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.query import MessagesResponse, Page, SearchHit, ShowSnapshotResponse
from ctxmgr.types.route import DoNotRepeat, Fact
from tests.cli import view_samples as s

NOW = parse_time("2026-01-22T12:00:00Z") or 0.0
PAGE = Page.of(0, 20, 2, 2)
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
        " @  TIME      AGENT     ACTION        STATUS   INPUT                        TOOK",
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
        "SESSION   @  TIME                  AGENT     ACTION        STATUS   TOOK  NOTES  INPUT",
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


CONTINUATION = """\
✗ the same error 4 times

── continue with planner  PROCEED ──────────────────────────────────────────────
planner gave builder its task.
Its text: ctxmgr recover --session nightly --last --prompt  (1.2 k tokens by
chars/4, only what is new since c0)
For a program: --json; 'data.continuation.returnTo' holds exactly one request.

Task
  make the tests pass

Where things stand
  The tests fail because the package is not installed.

What is known
  verified  pytest exits with 1  [@12 e13]
  unknown   what e77 said is gone  [e77]

Do not repeat
  ✗ Bash  pytest  ×4  [@12]
    → exit 1

Try instead
  → pip install -e .  (worked at @4)  [e4]

Last words of the person
  fix the tests
  and nothing else

About this answer
  session        nightly
  asked by       the run is stuck
  reason         builder ran the same failing command 4 times
  finding        repetition ×4
  started at     @12
  last progress  e11
  not sent to    builder
  routed by      what the history shows
  written by     the rules (the model had no answer that counts)
  attempt        1
  kept as        c1
  evidence       ctxmgr snapshot show s1
  notes          1 note: n1
"""


def test_a_continuation_is_a_page_to_read_and_paste() -> None:
    """The page leads with what is wrong and who continues; the evidence follows, and how the answer came about."""
    assert s.draw(lambda out: show_continuation(out, s.continuation(), {"e12": 12})) == CONTINUATION


def test_the_page_says_nothing_twice() -> None:
    """The task has its heading, and an entry that a fact names in its words is not cited behind it."""
    goal = "make the tests pass"
    facts = [
        Fact(text=f'The task as a person gave it: "{goal}"', entries=["ev1"], label="recorded"),
        Fact(text="About the trouble (@12, builder, ok)", entries=["e12"], label="recorded"),
    ]
    answer = s.continuation(goal=goal, context=s.continuation().context.model_copy(update={"facts": facts}))
    shown = s.draw(lambda out: show_continuation(out, answer, {"e12": 12}))

    assert shown.count(goal) == 1
    assert "About the trouble (@12, builder, ok)\n" in shown


def test_failures_without_a_loop_have_a_headline() -> None:
    """The page of a run that only failed begins with that, and not with an empty line."""
    found = Diagnosis(kind="knownError", cause="It fails.", next_step="Mend it.", check="", confidence="low", evidence=())
    answer = s.continuation(loop=None, diagnosis=found, reason="no loop was found, but 3 failures in a row")

    assert s.draw(lambda out: show_continuation(out, answer)).startswith("✗ no loop was found, but 3 failures in a row\n")


def test_a_long_quote_takes_two_lines_on_a_terminal_and_is_whole_in_a_pipe() -> None:
    """The page stays short for a reader; nothing is cut for a program."""
    outcome = " ".join(f"word{number}" for number in range(100))
    answer = s.continuation(do_not_repeat=[DoNotRepeat(action="Bash", input="ls", times=4, outcome=outcome, entries=["e12"])])

    shown = s.draw(lambda out: show_continuation(out, answer))
    _, _, after = shown.partition("Do not repeat\n")
    lines = after.partition("\n\n")[0].splitlines()

    assert len(lines) == 3
    assert lines[2].endswith("…")
    assert max(map(len, lines)) <= 80
    assert outcome in s.draw(lambda out: show_continuation(out, answer), terminal=False)


def test_an_import_tells_what_it_did_not_understand() -> None:
    """The report gives totals, the files when they are few, unknown types with counts, and damage with its place."""
    text = s.draw(lambda out: show_import(out, s.import_report()), width=100)

    assert "two      claude-code    1,000    321       3     1   1.2 M  logs/b.jsonl\n" in text
    assert "Not understood: 0.15% of 2,000 records\n  COUNT  TYPE\n      3  odd\n" in text
    assert "\n  logs/b.jsonl\n    damaged: 40 bytes at 12: not JSON\n    skipped: too large\n" in text


def test_an_import_of_many_files_names_the_troubled_ones() -> None:
    """Of many files a terminal shows those in which something was wrong; a pipe shows all."""
    good, bad = s.import_report().files
    many = s.import_report(files=[*([good] * 20), bad])

    assert s.draw(lambda out: show_import(out, many)).count("logs/a.jsonl") == 0
    assert s.draw(lambda out: show_import(out, many), terminal=False).count("logs/a.jsonl") == 20


def test_runs_of_indexes_are_drawn_together() -> None:
    """Indexes in a row are told by the first and the last of them."""
    assert indexes_text([3, 4, 5, 9, 11, 12]) == "@3-5 @9 @11-12"
