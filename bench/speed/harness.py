"""What every measurement stands on: where things lie, how ours is started, and how a comparison becomes rows."""

from __future__ import annotations

import compileall
import hashlib
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ctxmgr
from bench.speed.figures import PYTHON, Findings, Row, duration, median, ratio
from bench.speed.histories import History
from bench.speed.peers import Peers
from bench.speed.running import Answer, Measured, Program, Scene, side_by_side
from ctxmgr.store.engine.disposable_files import BESIDE

ROOT = Path(ctxmgr.__file__).parents[1]
OURS = "ctxmgr"
SHORT = 10_000
"""Records; of longer histories a quick run leaves out what takes long."""


@dataclass(slots=True)
class Bench:
    """One run of all measurements.

    Attributes:
        folder: histories, stores, and what is made of them by peers lie there and stay.
        rounds: of each comparison; quick: leave out what takes long.
        say: hears of each step.
    """

    folder: Path
    peers: Peers
    rounds: int
    quick: bool
    say: Callable[[str], None]
    scene: Scene
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def at(cls, folder: Path, empty: str, peers: Peers, rounds: int, *, quick: bool, say: Callable[[str], None]) -> Bench:
        """Lay out the folder; the package is compiled, as an installer does. Programs run in the empty one."""
        folder.mkdir(parents=True, exist_ok=True)
        compileall.compile_dir(Path(ctxmgr.__file__).parent, quiet=1)
        for old in (*folder.glob("log-*"), *folder.glob("*.db*")):
            if product() not in old.name:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        scene = Scene(empty, str(folder / "cache"))
        return cls(folder, peers, rounds, quick, say, scene)

    def ours(self, *words: str, answer: Answer | None = None) -> Program:
        """Return the command line of ours as an installer makes it, with these arguments."""
        script = self.folder / "ctxmgr"
        if not script.exists():
            lines = [f"#!{sys.executable}", "import sys", "from ctxmgr.__main__ import start", "sys.exit(start())", ""]
            script.write_text("\n".join(lines), "utf-8")
            script.chmod(0o755)
        # The first line of a script can't name an interpreter in a folder with a blank in its name.
        started = [sys.executable, str(script)] if " " in sys.executable else [str(script)]
        return Program([*started, *words], answer, {"PYTHONPATH": str(ROOT)})

    def bare_python(self) -> Program:
        """Return Python that does nothing, in the same surroundings."""
        return Program([sys.executable, "-c", "pass"], None, {"PYTHONPATH": str(ROOT)})

    def script(self, text: str, *arguments: str, answer: Answer | None = None) -> Program:
        """Return a program of Python in the peers' environment."""
        return Program([str(self.peers.python), "-c", text, *arguments], answer)

    def peer(self, name: str, *words: str, answer: Answer | None = None, codes: tuple[int, ...] = (0,)) -> Program:
        """Return a peer's program with these arguments."""
        return Program([self.peers.program(name), *words], answer, self.peers.environment(), codes=codes)

    def store_of(self, history: History) -> Path:
        """Return the place of our store of a history; see `importing.stored`."""
        return self.folder / f"{history.path.stem}-{product()}.db"

    @property
    def few(self) -> int:
        """In how many rounds to run what takes seconds."""
        return 1 if self.quick else min(self.rounds, 5)

    def log_of(self, history: History) -> Path:
        """Return the log to be read in place: in a folder of its own, since its index lies beside it."""
        place = self.folder / f"log-{product()}-{history.size}" / history.path.name
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            place.hardlink_to(history.path)
        return place

    def index_of(self, history: History) -> Path:
        """Return the folder of the log's index."""
        return self.log_of(history).parent / BESIDE

    def in_turn(self, programs: Mapping[str, Program], rounds: int = 0) -> Measured:
        """Run programs side by side, those that take long only once when there is no time."""
        return side_by_side(programs, rounds or self.rounds, self.scene, 1 if self.quick else 3)

    def compare(self, part: str, history: History | None, what: str, rivals: Rivals) -> Measured:
        """Run ours and the others in turn; add a row for each of the others."""
        self.say(f"{part}: {what}" + (f", {history.size:,}" if history else ""))
        programs = {OURS: rivals.ours, **rivals.programs}
        measured = self.in_turn(programs, rivals.rounds)
        size = history.size if history else None
        for name in rivals.programs:
            self.findings.rows.append(row(part, what, name, size, measured, rivals.goals.get(name, "")))
        for name, why in rivals.missing.items():
            self.findings.rows.append(Row(part, what, name, size, goal=rivals.goals.get(name, ""), missing=why))
        return measured


@dataclass(slots=True)
class Rivals:
    """Ours, what it is compared with, and the goal of each comparison.

    Attributes:
        missing: names of those that are not there, and why.
        rounds: if other than the bench's.
    """

    ours: Program
    programs: dict[str, Program] = field(default_factory=lambda: dict[str, Program]())
    goals: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    missing: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    rounds: int = 0

    def add(self, bench: Bench, needs: str, name: str, make: Callable[[], Program], goal: str = "") -> None:
        """Add a peer when the package or program that it needs is there."""
        self.goals[name] = goal
        if bench.peers.has(needs):
            self.programs[name] = make()
        else:
            self.missing[name] = bench.peers.why(needs)

    def with_python(self, bench: Bench, goal: str = "") -> None:
        """Add Python that does nothing."""
        self.programs[PYTHON] = bench.bare_python()
        self.goals[PYTHON] = goal


def row(
    part: str, what: str, other: str, size: int | None, measured: Measured, goal: str, *, own: str = OURS, label: str = ""
) -> Row:
    """Return the row that compares two of the programs that were measured; a figure counts when both found the same."""
    label = label or other
    if own in measured.failures:
        return Row(part, what, label, size, goal=goal, wrong=measured.failures[own])
    if other in measured.failures:
        return Row(part, what, label, size, goal=goal, missing=f"failed: {measured.failures[other]}")
    wrong = ""
    if own in measured.answers and other in measured.answers and measured.answers[own] != measured.answers[other]:
        wrong = f"ours found {_shortly(measured.answers[own])}, {label} {_shortly(measured.answers[other])}"
    mine, theirs = measured.times[own], measured.times[other]
    figures = ratio(mine, theirs)
    return Row(
        part, what, label, size, figures.wall, figures.cpu, duration(median(mine)), duration(median(theirs)),
        goal=goal, wrong=wrong,
    )  # fmt: skip


def _shortly(answer: object) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."


_product: list[str] = []


def product() -> str:
    """Return what changes when the product does: what was made by another one is made anew."""
    if not _product:
        digest = hashlib.sha256()
        for path in sorted(Path(ctxmgr.__file__).parent.rglob("*.py")):
            digest.update(path.read_bytes())
        _product.append(digest.hexdigest()[:8])
    return _product[0]


class Progress:
    """Says on stderr what is being measured: one line that is written anew on a terminal, else a line each."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = 0

    def __call__(self, text: str) -> None:
        """Tell of a step."""
        line = f"{time.monotonic() - self._began:6.0f} s  {text}"[:99]
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line:{self._shown}}")
            self._shown = len(line)
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write(f"\r{'':{self._shown}}\r")


def folder_size(place: Path) -> int:
    """Return the bytes of a file with the files that SQLite keeps beside it, or of all files in a folder."""
    if place.is_dir():
        return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in place.parent.glob(f"{place.name}*"))


def remove(*places: Path) -> None:
    """Remove files with what SQLite and DuckDB keep beside them, and folders."""
    for place in places:
        if place.is_dir():
            shutil.rmtree(place)
        for suffix in ("", "-wal", "-shm", "-journal", ".wal"):
            Path(f"{place}{suffix}").unlink(missing_ok=True)
