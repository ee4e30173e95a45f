"""The bench of speed: its histories are valid, its arithmetic is right, its report says what is met, and it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.speed import report
from bench.speed.expected import scan, terms
from bench.speed.figures import GOALS, Findings, Row, Taken, ratio
from bench.speed.harness import OURS, row
from bench.speed.histories import COMMON, PERCENT, RARE, RARE_ACTION, prepared, require_room, write
from bench.speed.peers import Peers
from bench.speed.running import Measured, Program, Scene, rounds_of, side_by_side
from ctxmgr.log.reader import read
from ctxmgr.types.record import check

ROOT = Path(__file__).parents[2]


def test_the_same_history_is_made_each_time(tmp_path: Path) -> None:
    """Two histories of a size are the same, byte for byte."""
    facts = [write(tmp_path / name, 400) for name in ("first", "second")]

    assert facts[0] == facts[1]
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_history_is_a_valid_log(tmp_path: Path) -> None:
    """Every line is a record of format 1 and every sum follows from the one before."""
    facts = write(tmp_path / "log", 6_000)
    damaged: list[str] = []
    lines = list(read(tmp_path / "log", damage=lambda offset, length, reason: damaged.append(reason)))

    assert damaged == []
    assert all(line.sum_ok for line in lines)
    assert len({line.record.get("id") for line in lines}) == len(lines) == facts.records == 6_001
    assert all(check(line.record) for line in lines)
    assert sum(line.record["kind"] == "entry" for line in lines) == facts.entries == pytest.approx(3_600, rel=0.01)
    assert facts.bytes == (tmp_path / "log").stat().st_size == pytest.approx(6_000 * 1_100, rel=0.1)


def test_what_is_planted_is_counted(tmp_path: Path) -> None:
    """The facts of a history say how many records hold each planted word, and where a loop was planted."""
    history = prepared(tmp_path, 6_000)
    facts, text = history.facts, history.path.read_text(encoding="ascii")
    found = scan(history.path, terms(history))

    assert [sum(word in line for line in text.splitlines()) for word in (RARE, PERCENT, COMMON, RARE_ACTION)] == [
        facts.rare, facts.percent, facts.common, facts.rare_action,
    ]  # fmt: skip
    assert (facts.rare, facts.percent, facts.loops, text.count("look for it again")) == (10, 60, 1, 10)
    assert found["rare word"].hits == found["phrase, rare"].hits == found["rare marks"].hits == 10
    assert found["an id"].hits == 1
    assert found["absent"].ids == []


def test_a_history_is_made_once(tmp_path: Path) -> None:
    """A second call takes the files that are there."""
    first = prepared(tmp_path, 200)
    first.path.write_text("kept", encoding="ascii")

    assert prepared(tmp_path, 200) == first
    assert first.path.read_text(encoding="ascii") == "kept"


def test_a_full_disk_is_told_beforehand(tmp_path: Path) -> None:
    """What does not fit is not begun."""
    with pytest.raises(OSError, match="GB of disk are needed"):
        require_room(tmp_path, 10**15)


def test_a_figure_is_the_median_of_the_ratios_of_each_round() -> None:
    """A busy round lengthens both sides and leaves the ratio as it is; a slow peer counts in the rounds that it ran in."""
    ours = [Taken(2, 1), Taken(20, 1), Taken(3, 3), Taken(900, 900)]
    theirs = [Taken(1, 1), Taken(10, 2), Taken(1, 1)]

    assert ratio(ours, theirs) == (2, 1)
    assert ratio(ours, theirs[:1]) == (2, 1)


def test_what_takes_long_runs_less_often() -> None:
    """Quick programs run in all rounds, long ones in few, very long ones no more after the first."""
    assert [rounds_of(seconds, 11, 3) for seconds in (0.1, 5, 60)] == [11, 2, 0]


def test_programs_take_turns(tmp_path: Path) -> None:
    """A round to warm up, then A B A B; one that fails is told with its last words and does not stop the others."""
    diary = tmp_path / "diary"
    words = ["sh", "-c", f'echo $0 >> "{diary}"; echo $0']
    programs = {
        "a": Program([*words, "a"], bytes.split),
        "b": Program([*words, "b"], watched=True),
        "bad": Program(["sh", "-c", "echo no such thing >&2; exit 3"]),
        "gone": Program([str(tmp_path / "gone")]),
    }

    measured = side_by_side(programs, 2, Scene(str(tmp_path), str(tmp_path)))

    assert diary.read_text(encoding="ascii").split() == ["a", "b"] * 3
    assert {name: len(taken) for name, taken in measured.times.items()} == {"a": 2, "b": 2}
    assert measured.answers == {"a": [b"a"]}
    assert measured.failures["bad"] == "exit code 3: no such thing"
    assert "can't be started" in measured.failures["gone"]
    assert measured.times["b"][0].memory > 0


def test_the_memory_of_all_processes_counts(tmp_path: Path) -> None:
    """What a program starts holds memory too: both are counted together."""
    alone = "import time; held = bytearray(60_000_000); time.sleep(0.3)"
    both = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {alone!r}]); {alone}; child.wait()"
    scene = Scene(str(tmp_path), str(tmp_path))

    one, two = (scene.run(Program([sys.executable, "-c", text], watched=True))[0].memory for text in (alone, both))

    assert 60_000_000 < one < 110_000_000
    assert two - one > 55_000_000


def test_a_different_answer_does_not_count() -> None:
    """A row says met or short where both found the same, and WRONG where they did not."""
    times = {OURS: [Taken(1.0, 1.0)], "rg -F": [Taken(10.0, 10.0)]}
    same = row("search", "rare", "rg -F", 2_000_000, Measured(times, {OURS: [1], "rg -F": [1]}), "search.rg")
    other = row("search", "rare", "rg -F", 2_000_000, Measured(times, {OURS: [1], "rg -F": [2]}), "search.rg")
    failed = row("search", "rare", "rg -F", 2_000_000, Measured(times, {}, {"rg -F": "exit code 2"}), "search.rg")

    assert (same.verdict, same.figure) == ("met", 0.1)
    assert (other.verdict, other.wrong) == ("WRONG", "ours found [1], rg -F [2]")
    assert (failed.verdict, failed.missing) == ("", "failed: exit code 2")


def _findings() -> Findings:
    rows = [
        Row("start-up", "--version", "python -c pass", None, 1.05, 1.0, "10 ms", "9.5 ms", goal="start"),
        Row("start-up", "--help", "python -c pass", None, 1.3, 1.0, "12 ms", "9.5 ms", goal="start"),
        Row("search", "rare word", "rg -F", 1_000, 8.0, 8.0, "16 ms", "2 ms", goal="search.rg"),
        Row("search", "rare word", "rg -F", 1_000_000, 0.1, 0.2, "16 ms", "160 ms", goal="search.rg"),
        Row("search", "rare word", "lnav", 1_000_000, goal="search.lnav", missing="not available: neither here nor there"),
        Row("several writers", "4 processes, rate of all", "one writer", None, 0.5, 1.0, goal="writers.rate"),
        Row("page", "20 at 0.9 N", "tail | head", 1_000, 6.0, 6.0, goal="page.tail"),
        Row("detect", "all detectors", "jq -c .id", 1_000_000, 0.1, 0.1, goal="detect", wrong="2 of 5 loops"),
    ]  # fmt: skip
    return Findings(rows, ["a note"], {"list --json": {1_000: 0.01, 1_000_000: 0.012}})


def test_the_report_tells_what_is_met() -> None:
    """The worst figure at the largest size decides; a goal for large histories is not judged on small ones."""
    told = json.loads(report.as_json(_findings(), {}, {}, {}))["goals"]

    assert {key: goal["verdict"] for key, goal in told.items() if goal["verdict"] != "not measured"} == {
        "start": "short", "search.rg": "met", "writers.rate": "short", "page.tail": "from 1,000,000", "detect": "WRONG",
    }  # fmt: skip
    assert told["start"]["figure"] == 1.3
    assert told.keys() == GOALS.keys()


def test_the_report_fits_a_terminal() -> None:
    """No line is longer than 100 columns, and what is missing says why."""
    shown = report.plain(_findings())

    assert max(map(len, shown.splitlines())) <= report.WIDTH
    assert "not available: neither here nor there" in shown
    assert "WRONG: detect, all detectors: 2 of 5 loops" in shown


def test_the_document_holds_every_goal_and_the_curve(tmp_path: Path) -> None:
    """The document has a line for each goal, the figures at each size, the growth, and nothing of this machine's paths."""
    machine = report.machine_of(tmp_path)
    text = report.markdown(_findings(), machine, report.own_versions(), {"lnav": "no such package"})

    assert all(f"| {goal.operation} | {goal.against.replace('|', chr(92) + '|')} |" in text for goal in GOALS.values())
    assert "| search | rare word | rg -F | 8.00 x | 0.1 x |".replace("0.1 x", "0.10 x") in text
    assert "| list --json | 10.0 ms | 12.0 ms |" in text
    assert "| lnav | not available: no such package |" in text
    assert str(tmp_path) not in text
    assert set(machine) == {"date", "processor", "cores", "memory", "file system", "kernel", "load before"}


def test_a_peer_that_is_missing_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed unasked, and what is not there is told."""
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []

    peers = Peers(tmp_path / "peers", ["duckdb", "rg"], install=False, say=said.append)

    assert [peers.has(name) for name in ("duckdb", "rg")] == [False, False]
    assert [peers.why(name) for name in ("duckdb", "rg")] == ["not available: not installed"] * 2
    assert said == []
    assert not (tmp_path / "peers").exists()


@pytest.mark.slow
def test_it_runs_without_any_peer(tmp_path: Path) -> None:
    """A quick run of one part ends well, with a line for each peer that is not there."""
    words = ["--quick", "--sizes", "300", "--rounds", "1", "--only", "search", "--offline", "--json"]
    places = ["--folder", str(tmp_path / "made"), "--peers", str(tmp_path / "peers"), "--write", str(tmp_path / "told.md")]
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "bench.speed", *words, *places]

    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)["rows"]
    assert {row["missing"] for row in rows if row["against"] == "rg -F"} == {"not available: not installed"}
    assert sum(row["figure"] is not None for row in rows) == 6
    assert "300" in (tmp_path / "told.md").read_text(encoding="utf-8")
    assert "search: rare word, store, 300" in ran.stderr
