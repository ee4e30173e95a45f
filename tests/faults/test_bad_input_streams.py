"""Hard surroundings: huge lines, full and read-only disks, closed pipes, odd terminals; each as a process of its own."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from ctxmgr.log import codec
from tests import builders as b
from tests.cli.console import LIMIT, command, lines, make_history, process, records, run
from tests.history.logs import LOGS, ORIGINAL, ROLLOUT, bring_in, by_session, fresh

pytestmark = pytest.mark.usefixtures("history")

MEGABYTE = 1 << 20
MEASURED = """
import sys
from ctxmgr.cli import main
code = main()
sys.stdout.flush()
status = open("/proc/self/status").read()
sys.stderr.write(status.split("VmHWM:")[1].split()[0])
sys.exit(code)
"""
"""Runs the command line and then tells the most memory it held, in KiB; what the starting process held does not count."""


def _memory(*arguments: str, out: IO[bytes] | int = subprocess.PIPE, given: Path | None = None) -> tuple[int, int, bytes]:
    """Return the exit code, the most memory held in MB, and the output of a command."""
    with (given or Path(os.devnull)).open("rb") as stdin:
        argv = [sys.executable, "-c", MEASURED, *arguments]
        ran = subprocess.run(argv, stdin=stdin, stdout=out, stderr=subprocess.PIPE, timeout=LIMIT, check=False)
    return ran.returncode, int(ran.stderr.split()[-1]) // 1024, ran.stdout


def _huge(place: Path, before: bytes, after: bytes) -> Path:
    with place.open("wb") as stream:
        stream.write(before + b'{"v":1,"kind":"event","session":"s","id":"huge","type":"message","data":"')
        for _ in range(300):
            stream.write(b"x" * MEGABYTE)
        stream.write(b'"}\n' + after)
    return place


@pytest.mark.long
@pytest.mark.parametrize("form", ["ctxmgr", "codex", "claude-code"])
def test_a_line_of_300_mb_needs_no_memory(form: str, tmp_path: Path) -> None:
    """A line of 300 MB is reported as damage, the rest is imported, and memory stays within 150 MB of the usual."""
    own = lines(b.entry("s", 0)).encode(), lines(b.result("s", 0)).encode()
    whole = {"codex": ROLLOUT, "claude-code": ORIGINAL}.get(form, ROLLOUT).read_bytes().splitlines(keepends=True)
    before, after = own if form == "ctxmgr" else (b"".join(whole[:20]), b"".join(whole[20:]))
    (tmp_path / "small.jsonl").write_bytes(before + after)
    _, usual, _ = _memory("import", str(tmp_path / "small.jsonl"), "--store", str(tmp_path / "small.db"))
    log = _huge(tmp_path / "huge.jsonl", before, after)
    code, most, out = _memory("import", str(log), "--json", "--store", str(tmp_path / "store.db"))
    report = json.loads(out)["data"]
    places = [("list", "--store", str(log), "--json"), ("verify", "--store", str(log))] if form == "ctxmgr" else []
    for place in places:
        found, held, _ = _memory(*place)
        assert (found, held - usual < 150) == (5 if place[0] == "verify" else 0, True)
    log.unlink()

    assert most - usual < 150
    assert (code, report["damaged"], report["entries"]) == (
        8 if form == "ctxmgr" else 0,
        1,
        {"ctxmgr": 1, "codex": 8}.get(form, 6),
    )
    assert report["files"][0]["damaged"][0]["length"] >= 300 * MEGABYTE


@pytest.mark.slow
def test_a_huge_line_on_stdin_needs_no_memory(tmp_path: Path) -> None:
    """A line of 300 MB on stdin is refused, the records before it are kept, and memory stays within 150 MB of the usual."""
    _, usual, _ = _memory("record", "--store", str(tmp_path / "small.db"))
    log = _huge(tmp_path / "huge.jsonl", lines(b.entry("s", 0)).encode(), b"")
    code, most, out = _memory("record", "--json", "--store", str(tmp_path / "store.db"), given=log)
    log.unlink()

    assert (code, json.loads(out)["error"]["message"][:13]) == (2, "stdin line 2 ")
    assert most - usual < 150
    assert run("list", "--json", "--store", str(tmp_path / "store.db")).envelope["page"]["total"] == 1


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "arguments", [("list",), ("trace", "--json"), ("export", "--all-sessions"), ("schema", "record"), ("--help",)]
)
def test_a_full_device_as_output(arguments: tuple[str, ...]) -> None:
    """Output that can't be written is one line on stderr and exit code 5, whatever was to be written."""
    with Path("/dev/full").open("wb") as full:
        ran = process(*arguments, out=full)

    assert (ran.code, ran.err) == (5, "ctxmgr: can't write the output: no space left\n")


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "arguments", [("list",), ("export", "--all-sessions"), ("detect", "--all-sessions", "--exit-zero"), ("--help",)]
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_reader_that_goes_away(arguments: tuple[str, ...], size: str, history: Path) -> None:
    """Output into a pipe whose reader has gone, e.g. ``| head -1``, ends quietly with exit code 0."""
    if size == "large":
        text = "x" * 200_000
        run("record", given=lines(*(b.event("healthy", number, "message", text) for number in range(50, 60))))
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        if size == "large":
            running.stdout.read(10)
        running.stdout.close()
        assert running.stderr is not None
        err = running.stderr.read()
        assert (running.wait(timeout=LIMIT), err) == (0, b"")


def test_a_reader_that_goes_away_does_not_change_a_verdict() -> None:
    """What a command found stands in its exit code, though nobody reads its output."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb", closefd=True) as gone:
        assert process("detect", "-s", "looping", out=gone).code == 10


@pytest.mark.cases(1)
@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_closed_stream(stream: int, history: Path) -> None:
    """A command whose stdin, stdout or stderr is closed does its work; no file takes the closed stream's place."""
    before = history.read_bytes()[:100]
    for arguments, code in (
        (("list", "--json"), 0),
        (("show", "@99"), 3),
        (("note", "add", "0", "-m", "x"), 0),
        (("record",), 0),
    ):
        ran = process(*arguments, limits=lambda: os.close(stream), given=b"" if stream else None)
        assert (ran.code, "Traceback" in ran.err) == (code, False)

    assert run("note", "list", "--json").envelope["page"]["total"] == 2
    assert (history.read_bytes()[:16], run("verify").code) == (before[:16], 0)


def test_nobody_hears_an_error() -> None:
    """When stderr can't be written, the exit code still says what happened."""
    with Path("/dev/full").open("wb") as full:
        for arguments, code in ((("show", "@99"), 3), (("list", "--nosuch"), 2), (("detect", "-s", "hung"), 11)):
            ran = subprocess.run(command(*arguments), stderr=full, stdout=subprocess.DEVNULL, check=False, timeout=LIMIT)
            assert ran.returncode == code


ODD = [
    {"LC_ALL": "C", "COLUMNS": "20"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "10000"},
    {"PYTHONIOENCODING": "latin-1", "TERM": "dumb"}, {"PYTHONIOENCODING": "ascii:strict", "NO_COLOR": "1", "FORCE_COLOR": "1"},
    {"COLUMNS": "x", "TERM": "", "LANG": "nowhere"},
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("env", ODD, ids=[" ".join(f"{name}={value}" for name, value in env.items()) for env in ODD])
def test_odd_terminals_and_locales(env: dict[str, str]) -> None:
    """No locale, encoding, width or terminal changes the data, adds colour to a pipe, or ends in a fault."""
    run("record", given=lines(b.event("healthy", 77, "message", {"text": "naïve 漢字 🚀 \ud800"}, after=9)))
    plain, odd = run("list", "--kind", "all", "--json"), process("list", "--kind", "all", "--json", env=env)
    shown = process("messages", env=env)

    assert odd == plain
    assert (shown.code, shown.err, "\x1b" in shown.out) == (0, "", False)
    assert shown.out.count("\n") == 4


def _isolated(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with a file system view of its own, where the machine allows that; else skip."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0 or subprocess.run([unshare, "-m", "true"], check=False).returncode:
        pytest.skip("needs a mount namespace of its own (unshare -m as root)")
    argv = [unshare, "-m", "sh", "-c", script, "sh", sys.executable, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)


READ_ONLY = """
mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" || exit 99
cd "$2"; shift_() { "$@"; echo "code $?"; }
run() { shift_ "$python" -m ctxmgr "$@" 2>&1; }
python=$1
run list --json --store history.db
run verify --store history.db
run list --json --store log.jsonl
run note add 0 -m x --store history.db
run note add 0 -m x --store log.jsonl
run import log.jsonl --store new.db
run export -o out.jsonl --store history.db
"""


def test_a_read_only_folder(tmp_path: Path) -> None:
    """In a read-only folder everything can be read, and whatever would write ends with exit code 5; nothing changes."""
    place = tmp_path / "place"
    place.mkdir()
    make_history(place / "history.db")
    run("export", "--all-sessions", "--store", str(place / "history.db"), "-o", str(place / "log.jsonl"))
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    ran = _isolated(READ_ONLY, place)

    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stdout.splitlines() if line.startswith("code ")] == ["code 0"] * 3 + ["code 5"] * 4
    assert "Traceback" not in ran.stdout
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.name in before} == before


FULL = """
mount -t tmpfs -o size=600k none "$2" || exit 99
"$1" -m ctxmgr import "$3" --store "$2/$4"; echo "code $?"
"$1" -m ctxmgr verify --store "$2/$4"; echo "code $?"
"$1" -m ctxmgr export --all-sessions --store "$2/$4" -o "$5"
"$1" -m ctxmgr export --all-sessions --store "$2/$4" -o "$2/part.jsonl"; echo "code $?"
mount -o remount,size=9m "$2"
"$1" -m ctxmgr import "$3" --store "$2/$4"; echo "code $?"
"$1" -m ctxmgr export --all-sessions --store "$2/$4" -o "$6"
ls "$2"
"""


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """A disk that fills up during an import ends it with exit code 5; whole sessions are kept; with space it goes on."""
    place, kept, final = tmp_path / "place", tmp_path / "kept.jsonl", tmp_path / "final.jsonl"
    place.mkdir()
    ran = _isolated(FULL, place, LOGS, "history.db", kept, final)
    whole = fresh(tmp_path, "whole.db")
    bring_in(whole, LOGS)
    expected = by_session(whole)

    codes = [line for line in ran.stdout.splitlines() if line.startswith("code ")]
    assert (codes[0], codes[1], codes[3]) == ("code 5", "code 0", "code 8"), ran.stderr
    assert "no space left" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert _sessions(final) == expected
    some = _sessions(kept)
    assert some == {session: expected[session] for session in some}
    assert ".part" not in ran.stdout


def _sessions(log: Path) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for line in log.read_bytes().splitlines():
        record = json.loads(line)
        record.pop("sum")
        found.setdefault(str(record["session"]), []).append(record)
    return found


def _no_bigger_than(size: int) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.cases(1)
@pytest.mark.parametrize("suffix", ["db", "jsonl"])
@pytest.mark.parametrize("size", [0, 60_000])
def test_files_that_may_not_grow(suffix: str, size: int, tmp_path: Path) -> None:
    """Where files may not grow beyond a limit, a write ends with exit code 5, and what is stored stays whole and readable."""
    store = tmp_path / f"store.{suffix}"
    given = lines(*(b.event("s", number, "message", "x" * 900) for number in range(400))).encode()
    ran = process("record", "--store", str(store), given=given, limits=_no_bigger_than(size))

    assert (ran.code, "Traceback" in ran.err) == (5, False)
    if store.exists() and store.stat().st_size:
        assert run("verify", "--store", str(store)).code in (0, 3, 5)
        again = run("record", "--store", str(store), "--json", given=given)
        assert (again.code, sum(again.envelope["data"].values())) == (0, 400)
        assert run("verify", "--store", str(store)).code == 0


def test_an_export_that_may_not_grow(tmp_path: Path) -> None:
    """An export that can't be written whole ends with exit code 5 and leaves no file."""
    ran = process("export", "--all-sessions", "-o", str(tmp_path / "out.jsonl"), limits=_no_bigger_than(10))

    assert (ran.code, "Traceback" in ran.err) == (5, False)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_ctrl_c_leaves_no_half_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that is interrupted while it writes ends with exit code 130 and leaves no file behind."""
    seal = codec.seal
    written: list[int] = []

    def interrupted(body: bytes, total: str) -> bytes:
        written.append(len(list(tmp_path.glob(".out.jsonl.*.part"))))
        if len(written) == 4:
            raise KeyboardInterrupt
        return seal(body, total)

    monkeypatch.setattr(codec, "seal", interrupted)
    ran = run("export", "--all-sessions", "-o", str(tmp_path / "out.jsonl"))

    assert (ran.code, ran.out, ran.err, written) == (130, "", "", [1, 1, 1, 1])
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_the_small_history_is_whole() -> None:
    """The history that the tests of this module stand on is complete and sound."""
    data = run("verify", "--json").envelope["data"]
    assert (data["records"], data["damaged"]) == (len(records()), [])
