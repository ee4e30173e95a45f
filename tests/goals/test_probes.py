"""Probes see what is there and say when they can't; odd files and commands cost neither time nor memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.goals import probes
from ctxmgr.goals.probes import ProbeOutcome
from ctxmgr.types.goal import Probe


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("def add(a, b):\n    return a + b  # ä\n", "utf-8")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "turn").symlink_to("turn")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.requirement("H-probes")
@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("pkg", True), ("pkg/__init__.py", True), ("pipe", True), ("nothing", False), ("pkg/__init__.py/x", False),
        ("gone", False), ("turn", None), ("a\0b", None), ("a" * 5_000, None), ("/dev/null", True),
    ],
)  # fmt: skip
def test_a_path_is_there_or_not_or_cannot_be_seen(folder: Path, path: str, holds: bool | None) -> None:
    """Existence is a matter of the file system; what it refuses to say is unknown, with the reason."""
    seen = probes.exists(folder, path)

    assert seen.holds is holds
    assert seen.why


@pytest.mark.requirement("H-probes")
@pytest.mark.parametrize(
    ("path", "text", "holds"),
    [
        ("pkg/__init__.py", "def add(", True), ("pkg/__init__.py", "# ä", True), ("pkg/__init__.py", "sub", False),
        ("nothing", "x", False), ("gone", "x", False), ("pkg", "x", None), ("pipe", "x", None), ("/dev/zero", "x", None),
        ("turn", "x", None), ("a\0b", "x", None), ("pkg/__init__.py", "\ud800", False),
    ],
)  # fmt: skip
def test_a_file_contains_a_text_or_not_or_cannot_be_read(folder: Path, path: str, text: str, holds: bool | None) -> None:
    """Only plain files are searched; a pipe is never waited for, a device never opened."""
    assert probes.contains(folder, path, text).holds is holds


def test_a_text_is_found_across_the_pieces_a_file_is_read_in(tmp_path: Path) -> None:
    """A text that straddles two reads of a binary file is found."""
    (tmp_path / "big").write_bytes(b"\0" * (1024 * 1024 - 3) + b"needle" + b"\xff" * 99)

    assert probes.contains(tmp_path, "big", "needle").holds is True


def test_a_huge_file_is_searched_to_a_limit_and_in_little_memory(tmp_path: Path) -> None:
    """Of 10 GB the first 64 MiB are read, piece by piece; whether the text comes later is unknown."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10_000_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = probes.contains(tmp_path, "huge", "needle")

    assert (seen.holds, seen.why) == (None, "huge: not in its first 64 MiB, and no more is read")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


@pytest.mark.requirement("H-probes")
@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("pass", ProbeOutcome(True, "exit code 0")),
        ("raise SystemExit(3)", ProbeOutcome(False, "exit code 3")),
        ("import os; os.kill(os.getpid(), 9)", ProbeOutcome(False, "ended by signal 9")),
        ("import sys; sys.exit(sys.stdin.read() != '')", ProbeOutcome(True, "exit code 0")),
        ("print('x' * 10_000_000)", ProbeOutcome(True, "exit code 0")),
    ],
)
def test_a_command_holds_by_its_exit_code(tmp_path: Path, code: str, seen: ProbeOutcome) -> None:
    """The exit code alone counts; there is nothing to read, and what is written goes nowhere."""
    assert probes.ends_well(tmp_path, [sys.executable, "-c", code]) == seen


@pytest.mark.requirement("H-probes")
def test_a_command_runs_in_the_folder_and_without_a_shell(tmp_path: Path) -> None:
    """Relative paths start at the folder; signs of a shell are plain text."""
    (tmp_path / "a;b").touch()

    assert probes.ends_well(tmp_path, ["test", "-f", "a;b"]).holds is True
    assert probes.ends_well(tmp_path, ["test", "-f", "*"]).holds is False


@pytest.mark.parametrize("argv", [["no-such-command-here"], [], ["a\0b"], ["."]])
def test_a_command_that_cannot_run_is_unknown(tmp_path: Path, argv: list[str]) -> None:
    """What can't be run says nothing about the world."""
    assert probes.ends_well(tmp_path, argv).holds is None


@pytest.mark.slow
def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    """After its time a command and what it started are gone, and the answer is unknown."""
    code = "import os, subprocess; p = subprocess.Popen(['sleep', '600']); open('pid', 'w').write(str(p.pid)); p.wait()"
    seen = probes.ends_well(tmp_path, [sys.executable, "-c", code], seconds=3)

    assert seen == ProbeOutcome(None, "not done after 3 s")
    child = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(200):  # a killed process is there until it is its turn
        if not _runs(child):
            break
        time.sleep(0.05)
    assert not _runs(child)


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_probe_is_checked_by_its_kind(folder: Path) -> None:
    """Each kind asks its own question; a command is not run unless commands are allowed, and then by its own code."""
    ran = Probe(name="ran", kind="command", argv=[sys.executable, "-c", "open('ran', 'w'); raise SystemExit(3)"], code=3)
    asked = [
        Probe(name="pkg_exists", kind="fileExists", path="pkg"),
        Probe(name="has_sub", kind="fileContains", path="pkg/__init__.py", text="def sub("),
        ran,
    ]
    found = probes.check_all(asked, folder)

    assert [(result.name, result.ok) for result in found] == [("pkg_exists", True), ("has_sub", False), ("ran", None)]
    assert not (folder / "ran").exists()
    assert probes.check(ran, folder, commands=True).ok is True
    assert (folder / "ran").exists()


@pytest.mark.parametrize("name", ["a b", "a:✓", "-x", "a" * 65, "é", "a\n"])
def test_a_name_is_one_word(name: str) -> None:
    """A probe's name can't break the line it stands in."""
    with pytest.raises(InvalidInput, match="no name of a probe"):
        probes.require_sound(Probe(name=name, kind="fileExists", path="x"))


@pytest.mark.parametrize(
    "probe",
    [
        Probe(name="p", kind="fileExists"),
        Probe(name="p", kind="fileContains", text="x"),
        Probe(name="p", kind="fileContains", path="x"),
        Probe(name="p", kind="command"),
        Probe(name="p", kind="command", argv=[" "]),
    ],
)
def test_a_probe_that_lacks_something_is_refused_and_never_raises_when_checked(probe: Probe, tmp_path: Path) -> None:
    """What its kind needs is asked for when a probe is made; one from a damaged state is checked without a crash."""
    with pytest.raises(InvalidInput, match="names no"):
        probes.require_sound(probe)
    assert probes.check(probe, tmp_path, commands=True).name == "p"
