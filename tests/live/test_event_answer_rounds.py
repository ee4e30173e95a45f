"""What is counted at each call: rounds that repeat, and honest repetition that does not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.clients import AFTER, WATCHER_LOCK, Call, Event, state_folder
from ctxmgr.live.event_answer import Rounds, call_rows, fingerprints, is_circling

FAILED = "Exit code 1\nImportError: No module named calc"


def _event(*calls: tuple[str, object]) -> Event:
    """Return one batch of shell calls with their results."""
    return Event(AFTER, "PostToolBatch", "s", [Call("Bash", {"command": word}, "", result) for word, result in calls])


def _asked(*batches: Event) -> list[int]:
    """Return after which of these batches the detectors would be asked."""
    rounds, asked = Rounds("claude-code", "s", ""), list[int]()
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
    assert path.name.removeprefix("claude-code-").isalnum()
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
