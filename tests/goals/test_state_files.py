"""The state file follows the history, and whatever becomes of it, the history makes it anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import Damaged
from ctxmgr.goals import state_files
from ctxmgr.goals.repository import GoalRepository
from ctxmgr.log.journal import read
from ctxmgr.types.goal import BlockRequest, ResumeRequest, StartRequest
from tests.goals.scene import act, bare, begun, contents, done, open_goals, sealed, stored

Damage = Callable[[Path], object]


def _edit(path: Path) -> None:
    path.write_text(path.read_text().replace('"pending"', '"done"', 1))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _older(path: Path) -> None:
    path.write_bytes((path.parent / state_files.PREVIOUS).read_bytes())


def _edited_and_sealed(path: Path) -> None:
    """Make it whole, but of a history that is not this one."""
    body = json.loads(path.read_text())
    body["history"]["sum"] = "0" * 16
    path.write_text(sealed(body))


def _negative_length(path: Path) -> None:
    body = json.loads(path.read_text())
    body["history"]["bytes"] = -100
    path.write_text(sealed(body))


def _child_named(name: str) -> Damage:
    """Return damage that gives the last task another id, as a checkout may hold it."""

    def damage(path: Path) -> None:
        body = json.loads(path.read_text())
        body["goal"]["children"][-1]["id"] = name
        path.write_text(sealed(body))

    return damage


DAMAGE: dict[str, Damage] = {
    "edited by hand": _edit,
    "cut off": _cut,
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * 500),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe{}"),
    "another document": lambda path: path.write_text('{"v":1}'),
    "nested too deep": lambda path: path.write_text("[" * 100_000),
    "of another history": _edited_and_sealed,
    "of less than no history": _negative_length,
    "a task that is its own goal": _child_named("goal"),
    "a task that stands twice": _child_named("t1"),
    "a task of nothing": _child_named(""),
    "a link": lambda path: (path.rename(path.with_name("elsewhere")), path.symlink_to(path.with_name("elsewhere"))),
}


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """Return a folder in which some work was done."""
    goals = begun(tmp_path)
    for number in range(5):
        act(goals, "look", {"n": number})
    done(goals)
    act(goals, "edit", {"path": "b"}, "error: no such file")
    return tmp_path


@pytest.mark.requirement("H-damage", "R-19")
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_set_aside_and_made_anew(lived: Path, damage: Damage) -> None:
    """Whatever happened to the state file, the state is read right, the file kept under another name, and that said."""
    expected = bare(open_goals(lived).state())
    path = lived / ".agent_context" / state_files.STATE
    damage(path)
    spoilt = path.read_bytes()

    goals = open_goals(lived)
    assert bare(goals.state()) == expected
    assert any("state.json" in each for each in goals.warnings)
    answer = goals.resume()

    assert "state.json" in answer.rebuilt
    aside = lived / ".agent_context" / "state.json.damaged-1"
    assert aside.read_bytes() == spoilt
    assert any("set aside" in each for each in goals.warnings)
    assert bare(open_goals(lived).state()) == expected
    assert open_goals(lived).warnings == []
    again = contents(lived)
    open_goals(lived).resume()
    assert contents(lived) == again


@pytest.mark.requirement("H-damage")
@pytest.mark.parametrize(
    "missing", [[state_files.STATE], [state_files.PREVIOUS], [state_files.STATE, state_files.PREVIOUS], [state_files.LOOPS]]
)
def test_missing_files_are_made_anew(lived: Path, missing: list[str]) -> None:
    """Without its derived files a goal is what its history says, and the next change writes them again."""
    expected = bare(open_goals(lived).state())
    for name in missing:
        (lived / ".agent_context" / name).unlink()

    assert bare(open_goals(lived).state()) == expected
    act(open_goals(lived), "look", {"n": 99})
    assert (lived / ".agent_context" / state_files.STATE).exists()
    assert (lived / ".agent_context" / state_files.LOOPS).exists()


@pytest.mark.requirement("R-19")
def test_an_older_generation_is_caught_up_with(lived: Path) -> None:
    """A state file of an earlier generation is a beginning: the rest is folded in from the history."""
    expected = bare(open_goals(lived).state())
    _older(lived / ".agent_context" / state_files.STATE)

    goals = open_goals(lived)
    assert bare(goals.state()) == expected
    assert goals.resume().replayed > 0


@pytest.mark.requirement("R-19", "H-state")
def test_the_state_names_what_it_includes(lived: Path) -> None:
    """The state file names its generation and the records, bytes and last sum of the history; the one before is kept."""
    body = stored(lived)
    lines = list(read(lived / ".agent_context" / state_files.HISTORY))
    previous = json.loads((lived / ".agent_context" / state_files.PREVIOUS).read_text())

    assert body["history"] == {
        "records": len(lines), "bytes": os.path.getsize(lived / ".agent_context" / state_files.HISTORY), "sum": lines[-1].total,
        "modified": (lived / ".agent_context" / state_files.HISTORY).stat().st_mtime_ns, "broken": None,
    }  # fmt: skip
    assert previous["generation"] == body["generation"] - 1
    assert all(line.sum_ok for line in lines)
    assert body["goal"]["children"][0]["children"][0]["status"] == "done"


@pytest.mark.requirement("H-history")
def test_the_history_is_the_log_of_the_recorder(lived: Path) -> None:
    """Every action is an entry of log format 1 that names its attempt, and the other doors read it."""
    from ctxmgr.types.record import check
    from ctxmgr.workspace import Workspace

    records = [check(line.record) for line in read(lived / ".agent_context" / state_files.HISTORY)]
    entries = [each for each in records if each["kind"] == "entry"]
    assert [each["task"] for each in entries] == ["t1.1/1"] * 5 + ["t1.2/1"]
    assert entries[-1]["status"] == "error"
    with Workspace.open(str(lived / ".agent_context" / state_files.HISTORY)) as workspace:
        from ctxmgr.types.query import ListRequest

        rows = workspace.list(ListRequest()).rows
        assert [row.action for row in rows if row.kind == "entry"] == ["look"] * 5 + ["edit"]


def test_a_torn_tail_costs_nothing(lived: Path) -> None:
    """Half a record at the end of the history is skipped, said, and left where it is; the work goes on behind it."""
    expected = bare(open_goals(lived).state())
    path = lived / ".agent_context" / state_files.HISTORY
    with path.open("ab") as stream:
        stream.write(b'{"v":1,"kind":"entry","session":"x","id":"half')
    goals = open_goals(lived)
    assert bare(goals.state()) == expected
    assert any("torn" in each for each in goals.warnings)
    act(goals, "look", {"n": 50})

    assert b'"id":"half\n' in path.read_bytes()
    assert [each.action for each in open_goals(lived).state().actions][-1] == "look"


def test_a_history_that_was_edited_is_said(lived: Path) -> None:
    """A record that was changed by hand is taken as it stands, and its broken sum is a warning after a full replay."""
    path = lived / ".agent_context" / state_files.HISTORY
    path.write_bytes(path.read_bytes().replace(b'"n":3', b'"n":7', 1))
    for name in (state_files.STATE, state_files.PREVIOUS):
        (lived / ".agent_context" / name).unlink()
    goals = open_goals(lived)
    goals.state()

    assert any("sum does not match" in each for each in goals.warnings)


DAMAGED_RECORDS: dict[str, tuple[bytes, bytes]] = {
    "a member renamed": (b'"kind":"event"', b'"kinX":"event"'),
    "a value changed": (b'"n":3', b'"n":7'),
    "a line that is no JSON": (b'{"v":1,"kind":"entry"', b'{"v":1;"kind":"entry"'),
}


@pytest.mark.requirement("H-damage")
@pytest.mark.parametrize(("old", "new"), DAMAGED_RECORDS.values(), ids=DAMAGED_RECORDS)
def test_damage_in_what_the_state_includes_is_said_at_every_call(lived: Path, old: bytes, new: bytes) -> None:
    """A record that is changed behind the state's back is told by each later call, though nobody reads it again."""
    path = lived / ".agent_context" / state_files.HISTORY
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    expected = bare(open_goals(lived).state())

    for number in range(3):
        goals = open_goals(lived)
        assert "is damaged: sum does not match at byte" in " ".join(goals.state().warnings)
        act(goals, "look", {"n": 60 + number})
        assert "is damaged" in " ".join(goals.warnings)
    assert expected["goal"] == {**bare(open_goals(lived).state())["goal"], "tasks": expected["goal"]["tasks"]}
    assert isinstance(stored(lived)["history"]["broken"], int)


def test_a_changed_last_record_is_said(lived: Path) -> None:
    """The last record, to whose sum no other is chained, is compared with the sum that the state names."""
    path = lived / ".agent_context" / state_files.HISTORY
    head, _, tail = path.read_bytes().rpartition(b"no such file")
    path.write_bytes(head + b"no suck file" + tail)

    assert "is damaged" in " ".join(open_goals(lived).state().warnings)


def test_a_holder_tells_of_damage_in_the_middle_of_its_work(tmp_path: Path) -> None:
    """A process that keeps the goal hears of a byte that was changed in place, at its next change."""
    goals = begun(tmp_path, hold=True)
    act(goals, "look", {"n": 1})
    act(goals, "look", {"n": 2})
    path = tmp_path / ".agent_context" / state_files.HISTORY
    with path.open("r+b") as stream:
        stream.seek(path.read_bytes().index(b'"n":1'))
        stream.write(b'"n":4')
    act(goals, "look", {"n": 3})

    assert "is damaged" in " ".join(goals.warnings)


@pytest.mark.requirement("H-flat")
def test_a_history_is_checked_again_only_when_somebody_else_wrote_to_it(lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untouched history is not read again; a touched one is read once, and one beyond the limit is told without reading."""
    checks: list[int] = []
    check = GoalRepository._check_again  # pyright: ignore[reportPrivateUsage]

    def counted(self: GoalRepository, part: state_files.HistoryExtent) -> None:
        checks.append(part.bytes)
        check(self, part)

    monkeypatch.setattr(GoalRepository, "_check_again", counted)
    path = lived / ".agent_context" / state_files.HISTORY
    for number in range(3):
        act(open_goals(lived), "look", {"n": 70 + number})
        open_goals(lived).brief()
    assert checks == []

    os.utime(path)
    assert open_goals(lived).state().warnings == []
    act(open_goals(lived), "look", {"n": 80})
    assert len(checks) == 2
    assert open_goals(lived).state().warnings == []
    assert len(checks) == 2

    monkeypatch.setattr("ctxmgr.goals.repository._MAX_CHECKED", 100)
    os.utime(path)
    assert "too long to be checked at each step" in " ".join(open_goals(lived).state().warnings)
    act(open_goals(lived), "look", {"n": 81})
    assert open_goals(lived).state().warnings == []


def test_a_history_that_was_mended_is_believed_again(lived: Path) -> None:
    """Once the bytes are what they were, nothing is said of damage."""
    path = lived / ".agent_context" / state_files.HISTORY
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"n":3', b'"n":7', 1))
    act(open_goals(lived), "look", {"n": 90})
    added = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + added)

    assert open_goals(lived).state().warnings == []
    act(open_goals(lived), "look", {"n": 91})
    assert stored(lived)["history"]["broken"] is None


def test_a_state_file_of_an_earlier_version_is_read(lived: Path) -> None:
    """Without the time of the history's last change, which 0.2.0 did not write, the file is taken and the history checked."""
    path = lived / ".agent_context" / state_files.STATE
    body = json.loads(path.read_text())
    for name in ("modified", "broken"):
        del body["history"][name]
    path.write_text(sealed(body))

    assert open_goals(lived).state().warnings == []
    act(open_goals(lived), "look", {"n": 95})
    assert stored(lived)["history"]["modified"] is not None


@pytest.mark.requirement("H-damage")
@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
def test_a_state_without_its_history_is_no_empty_folder(lived: Path, empty: bool) -> None:
    """Where a state file knows a goal that the history does not hold, all say so, and only ``replace`` begins anew."""
    path = lived / ".agent_context" / state_files.HISTORY
    path.write_bytes(b"") if empty else path.unlink()
    before = contents(lived)
    requests: list[Callable[[], object]] = [
        lambda: open_goals(lived).state(), lambda: open_goals(lived).brief(), lambda: open_goals(lived).resume(),
        lambda: act(open_goals(lived), "look"), lambda: open_goals(lived).start(StartRequest(goal="brand new")),
        lambda: open_goals(lived).start(StartRequest(goal=None)),
        lambda: open_goals(lived).block(BlockRequest(id="t1", reason="x")),
    ]  # fmt: skip
    for request in requests:
        with pytest.raises(Damaged, match="the saved state knows one: 'Create mathx'") as refused:
            request()
        assert ("holds no goal" if empty else "is missing") in refused.value.message
        assert "--replace" in (refused.value.hint or "")
        assert contents(lived) == before

    open_goals(lived).start(StartRequest(goal="brand new", replace=True))
    assert open_goals(lived).state().goal.description == "brand new"
    assert (lived / ".agent_context" / "state.json.damaged-1").exists()


def test_a_shorter_history_is_read_anew(lived: Path) -> None:
    """When the history has lost its end, the state that included it is not believed."""
    path = lived / ".agent_context" / state_files.HISTORY
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    goals = open_goals(lived)

    assert goals.state().actions_total == 5
    assert goals.warnings
    goals.resume(ResumeRequest())
    assert open_goals(lived).state().actions_total == 5


def test_files_are_private(lived: Path) -> None:
    """The folder is 0700 and every file 0600."""
    folder = lived / ".agent_context"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}


def test_secrets_are_masked_everywhere(tmp_path: Path) -> None:
    """A secret in an argument is in none of the files, and what lives in memory is what a replay finds."""
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    goals = begun(tmp_path)
    act(goals, "push", {"token": secret})

    assert all(secret.encode() not in body for body in contents(tmp_path).values())
    assert bare(goals.state()) == bare(open_goals(tmp_path).state())


def test_a_full_disk_is_a_warning_once_the_history_has_it(lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the state file can't be written the change counts all the same, and the next one writes it."""
    goals = open_goals(lived)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        assert act(goals, "look", {"n": 60})
    assert any("No space left" in each for each in goals.warnings)
    assert bare(open_goals(lived).state()) == bare(goals.state())
    act(goals, "look", {"n": 61})
    assert stored(lived)["history"]["records"] == len(list(read(lived / ".agent_context" / state_files.HISTORY)))
