"""What is counted at each call: rounds that repeat, and honest repetition that does not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.clients import AFTER, WATCHER_LOCK, Call, Event, state_folder
from ctxmgr.detect.text.comparison import PATH_KEYS
from ctxmgr.detect.text.fingerprints import mask_ticks, mask_volatile
from ctxmgr.detect.text.vocabulary import classify
from ctxmgr.live.event_answer import EDITS, FILES, Rounds, call_rows, fingerprints, is_circling, letter_fingerprints

FAILED = "Exit code 1\nImportError: No module named calc"


def _event(*calls: tuple[str, object]) -> Event:
    """Return one batch of shell calls with their results."""
    return Event(AFTER, "PostToolBatch", "s", [Call("Bash", {"command": word}, "", result) for word, result in calls])


def _asked(*batches: Event) -> list[int]:
    """Return after which of these batches the detectors would be asked."""
    rounds, asked = Rounds("claude-code", "s", ""), list[int]()
    rounds.append(("u",))
    for place, event in enumerate(batches):
        rounds.append(*call_rows(event))
        if (row := rounds.worth_asking(len(event.calls))) is not None:
            asked.append(place)
            rounds.append(("t", "1", row[2]))
    return asked


@pytest.mark.requirement("R-06")
def test_the_third_identical_round_is_worth_a_look() -> None:
    """One call three times, two calls in turn, and a batch: each at its third complete round, and then anew."""
    ping, pong = ("ls", "gone"), ("pwd", "here")

    assert _asked(*[_event(("test", FAILED))] * 7) == [2, 5]
    assert _asked(*[_event(ping), _event(pong)] * 3) == [5]
    assert _asked(*[_event(ping, pong)] * 3) == [2]


def test_a_failing_call_counts_across_other_steps() -> None:
    """The same failure a third time is worth a look whatever lies between; a success only when it keeps coming back."""
    others = [_event((f"look at {name}", name)) for name in ("mail", "logs", "hosts", "ports", "users")]

    between = [each for other in others for each in (_event(("test", FAILED)), other)]
    assert _asked(*between) == [4]
    assert _asked(*[each for other in others for each in (_event(("status", "clean")), other)]) == []


@pytest.mark.requirement("R-07")
def test_what_changes_is_no_round() -> None:
    """A result that says something else, and a call of something else, end a row of rounds."""
    words = ["zero", "one third", "half", "most of it", "nothing left", "ready"]

    assert _asked(*[_event(("build status", f"{word} of it is built")) for word in words]) == []
    assert _asked(*[_event((f"show {word}", f"it says {word}")) for word in words]) == []


def _read(path: str, text: str) -> Event:
    return Event(AFTER, "PostToolBatch", "s", [Call("Read", {"file_path": path}, "", text)])


@pytest.mark.requirement("R-07")
def test_files_that_differ_in_a_number_are_no_round() -> None:
    """Numbered files with contents of their own, and one change after another, are never worth a look."""
    changes = [
        Event(AFTER, "", "s", [Call("Edit", {"file_path": "a", "old_string": f"{n}", "new_string": f"{n + 1}"}, "", "Done.")])
        for n in range(20)
    ]

    assert _asked(*[_read(f"/p/f{n}.py", f"     1\tx = {n}\n") for n in range(40)]) == []
    assert _asked(*[_event((f"cat f{n}.py", f"x = {n}")) for n in range(40)]) == []
    assert _asked(*changes) == []


@pytest.mark.parametrize(
    "events",
    [
        [_read(f"/p/f{n}.py", "x = 1") for n in range(3)],
        [_read(f"/p/f{n}.py", f"File f{n}.py does not exist.") for n in range(3)],
        [_read(f"/p/f{n}.py", f"read in 0.{n} s") for n in range(3)],
        [_read(f"/p/f{n}.py", f'{{"id": {n}}}') for n in range(3)],
        [_event((f"sed -n {n}0,{n + 1}0p a.py", f"x = {n}")) for n in range(3)],
        [Event(AFTER, "", "s", [Call("get_plan", {"id": f"P{n}"}, "", f"Plan P{n}")]) for n in range(3)],
        [*[_read(f"/p/f{n}.py", f"x = {n}") for n in (1, 2)], _read("/p/f1.py", "x = 1")],
        [_read(f"/p/f{n}.py", f"x = {n}") for n in (1, 1, 2)],
    ],
)  # fmt: skip
def test_what_only_the_detectors_can_compare_is_worth_a_look(events: list[Event]) -> None:
    """The same answer, one that may be a failure, one with a time or an id, an unknown field, and a call made before."""
    assert _asked(*events) == [2]


def test_a_change_made_to_and_fro_is_worth_a_look() -> None:
    """A change that was made before is no news, although each differs from the one before it."""
    change = [
        Event(AFTER, "", "s", [Call("Edit", {"file_path": "a", "old_string": old, "new_string": new}, "", "Done.")])
        for old, new in (("1", "2"), ("2", "1"))
    ]

    assert _asked(*change * 2) == [2]


@pytest.mark.parametrize(
    "text",
    [
        "401 Unauthorized", "You are not logged in", "session expired", "login required", "Prompt is too long: 210000 tokens",
        "maximum context reached", "Permission to use Read has been withheld", "Blocked by a hook",
        "The user doesn't want this", "this requires approval", "vetoed", "no such tool", "Tool foo does not exist",
        "command timed out after 2 m", "fatal: bad object", "NullPointerException: x", "panic: y", "AssertionError: 1",
    ],
)  # fmt: skip
def test_what_the_detectors_may_take_for_an_error_is_compared_by_them(text: str) -> None:
    """Such words in an answer keep the count from deciding, because the client does not say whether a call failed."""
    assert letter_fingerprints(Call("Read", {"file_path": "a"}, "", text), "") == ()


@pytest.mark.parametrize(
    "text", ["1.52 s", "3ms", "0x7f3a9b", "12:04:55", "2026-01-02", "uptime 88114", "battery: 81", "req_8a", "pid=4", "4b825dc"]
)
def test_what_the_detectors_blur_is_compared_by_them(text: str) -> None:
    """An answer with a part that they blur may equal another one."""
    assert mask_ticks(mask_volatile(f"it took {text}", ids=True)) != f"it took {text}"
    assert letter_fingerprints(Call("Read", {"file_path": "a"}, "", f"it took {text}"), "") == ()


def test_the_count_knows_files_and_changes_as_the_detectors_do() -> None:
    """Another number in one of these fields names another file, and these actions change something."""
    assert set(FILES) <= PATH_KEYS
    assert {classify(action, "", "") for action in EDITS} == {"mutation"}


def test_durations_and_ids_are_no_change() -> None:
    """What a test prints about its time, and what varies in an id, does not hide a loop."""
    assert _asked(*[_event(("test", f"1 failed in 0.{n}s, id 7f{n}ab")) for n in (12, 3, 456)]) == [2]


@pytest.mark.requirement("R-08")
def test_the_word_of_a_person_starts_the_count_anew() -> None:
    """What was done before it counts no more."""
    rounds = Rounds("claude-code", "s", "")
    rounds.append(*call_rows(_event(("test", FAILED))), *call_rows(_event(("test", FAILED))), ("u",))
    rounds.append(*call_rows(_event(("test", FAILED))))

    assert len(rounds.calls_since_told()) == 1
    assert rounds.worth_asking(1) is None


def test_what_the_detectors_deny_is_asked_less_and_less() -> None:
    """After each denial one more round must come before they are asked again."""
    rounds, asked = Rounds("claude-code", "s", ""), list[int]()
    for place in range(1, 19):
        rounds.append(*call_rows(_event(("poll", "still running"))))
        if (row := rounds.worth_asking(1)) is not None:
            asked.append(place)
            rounds.append(("n", row[1], row[3]))

    assert asked == [3, 5, 8, 12, 17]


def test_after_the_last_telling_nobody_is_asked_until_a_person_speaks() -> None:
    """An agent that goes on then is told nothing more, so its calls cost no look."""
    rounds, asked = Rounds("claude-code", "s", ""), list[int]()
    for place in range(1, 31):
        if place == 21:
            rounds.append(("u",))
        rounds.append(*call_rows(_event(("test", FAILED))))
        if (row := rounds.worth_asking(1)) is not None:
            asked.append(place)
            rounds.append(("t", "1", row[2]))

    assert asked == [3, 6, 9, 23, 26, 29]


def test_a_refusal_holds_once_and_while_nothing_new_is_done() -> None:
    """A refused call is let through after it was refused, after something new, and after the word of a person."""
    exact = fingerprints(Call("Bash", {"command": "test"}, ""))[1]
    rounds = Rounds("claude-code", "s", "")
    rounds.append(*call_rows(_event(("test", FAILED))), ("t", "2", exact), ("d", exact))
    assert rounds.is_refused(exact)
    assert not rounds.is_refused("0" * 12)

    rounds.append(*call_rows(_event(("test", FAILED))))
    assert rounds.is_refused(exact)
    rounds.append(*call_rows(_event(("write calc.py", "done"))))
    assert not rounds.is_refused(exact)

    rounds.append(("d", exact), ("x", exact))
    assert not rounds.is_refused(exact)
    rounds.append(("s", exact), ("x", exact))
    assert rounds.is_refused(exact)
    rounds.append(("u",))
    assert not rounds.is_refused(exact)


def test_a_description_is_no_part_of_a_command() -> None:
    """How an agent words what a command is for is left out; of other actions every field counts."""
    first = Call("Bash", {"command": "test", "description": "run it"}, "")
    second = Call("Bash", {"description": "again", "command": "test"}, "")

    assert fingerprints(first) == fingerprints(second)
    assert fingerprints(Call("Task", {"description": "x"}, "")) != fingerprints(Call("Task", {"description": "y"}, ""))


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "\0", "x" * 5000, "\ud800", ""])
def test_a_session_never_names_a_place(name: str) -> None:
    """Whatever a client calls its session, its file is a digest in the state folder, for the user alone."""
    rounds = Rounds("claude-code", name, name)
    rounds.append(("u",))

    path = Path(rounds.path)
    assert path.parent == Path(state_folder())
    assert path.name.removeprefix("claude-code-").replace("-", "").isalnum()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_file_stays_small_and_old_ones_go() -> None:
    """A long session keeps its last rows; files of sessions that ended weeks ago are removed when another one begins."""
    old, held = Path(state_folder()) / "old.told", Path(state_folder()) / WATCHER_LOCK
    old.parent.mkdir(parents=True)
    for path in (old, held):
        path.touch()
        os.utime(path, (1, 1))
    rounds = Rounds("claude-code", "long", "")
    for _ in range(30):
        rounds.append(*call_rows(_event(*[("test", FAILED)] * 100)))

    assert (old.exists(), held.exists()) == (False, True)
    assert os.path.getsize(rounds.path) <= 70_000
    assert rounds.rows[-1][0] == "c"
    assert all(len(row) == 5 for row in rounds.rows)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    """Somebody else's file is neither read nor written through a link."""
    rounds = Rounds("claude-code", "s", "")
    rounds.append(("u",))
    target = tmp_path / "mine"
    target.write_text("kept")
    os.unlink(rounds.path)
    os.symlink(target, rounds.path)

    with pytest.raises(OSError, match="symbolic link"):
        rounds.append(("u",))
    with pytest.raises(OSError, match="symbolic link"):
        rounds.read()
    assert target.read_text() == "kept"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"), st.booleans()), min_size=1, max_size=30))
def test_three_equal_blocks_at_the_end_are_always_seen(calls: list[tuple[str, str, bool]]) -> None:
    """Whatever came before, three equal blocks of up to six calls at the end are circles."""
    rows = [["c", call, call, result, "1" if failed else "0"] for call, result, failed in calls]

    assert is_circling([*rows, *rows[-6:] * 3])
