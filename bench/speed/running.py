"""Run programs side by side: whole processes, start-up included, in turn, their output read from a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.speed import watching
from bench.speed.figures import Taken

Answer = Callable[[bytes], object]
"""Returns what a program found, from its output, in a form that can be compared with that of others."""

_KEPT = 64_000_000  # bytes of output, of which an answer is made
_LONG, _VERY_LONG = 4.0, 20.0


class ProgramError(Exception):
    """A program did not do what it should."""


class Program(NamedTuple):
    """One program with its arguments.

    Attributes:
        words: the command line.
        answer: see `Answer`; None where nothing is compared.
        environment: what is set for it beside what is set for all.
        before: run ahead of it, not measured.
        codes: exit codes that are good.
        watched: take the most memory too, at the cost of a few milliseconds.
        folder: to run in; that of the scene unless told.
    """

    words: list[str]
    answer: Answer | None = None
    environment: Mapping[str, str] = {}
    before: Callable[[], object] | None = None
    codes: tuple[int, ...] = (0,)
    watched: bool = False
    folder: str | None = None


@dataclass(slots=True)
class Measured:
    """What programs took, and answered at their first run; those that failed, and why."""

    times: dict[str, list[Taken]] = field(default_factory=lambda: dict[str, list[Taken]]())
    answers: dict[str, object] = field(default_factory=lambda: dict[str, object]())
    failures: dict[str, str] = field(default_factory=lambda: dict[str, str]())


class Scene:
    """Where programs run: an empty folder that no settings reach, an environment without any of this machine."""

    def __init__(self, folder: str, cache: str) -> None:
        self.folder = folder
        keep = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
        self.environment = {**keep, "HOME": folder, "XDG_CACHE_HOME": cache, "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def run(self, program: Program) -> tuple[Taken, bytes]:
        """Run a program to its end.

        Raises:
            ProgramError: it can't be started, or its exit code is none of the good ones.
        """
        if program.before is not None:
            program.before()
        memory = os.path.join(self.folder, "memory")
        words = [sys.executable, "-S", "-E", watching.__file__, memory, *program.words] if program.watched else program.words
        with tempfile.TemporaryFile() as errors:
            began = time.perf_counter()
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**self.environment, **program.environment},
                    cwd=program.folder or self.folder,
                )
            except OSError as error:
                raise ProgramError(f"can't be started: {error.strerror}") from None
            output = _all_of(process)
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in program.codes:
                errors.seek(0)
                last = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                raise ProgramError(f"exit code {process.returncode}: {(last or ['no message'])[0][:200]}")
        most = 0
        if program.watched:
            with open(memory, encoding="ascii") as stream:
                most = int(stream.read())
        return Taken(wall, used.ru_utime + used.ru_stime, most), output


def _all_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    chunks: list[bytes] = []
    length = 0
    with process.stdout as stream:
        while chunk := os.read(stream.fileno(), 1 << 20):
            length += len(chunk)
            if length <= _KEPT:
                chunks.append(chunk)
    return b"".join(chunks)


def rounds_of(seconds: float, rounds: int, few: int) -> int:
    """Return in how many rounds what takes so long is run: all, few with the one that warms up, or no other than that."""
    return rounds if seconds <= _LONG else min(rounds, few) - 1 if seconds <= _VERY_LONG else 0


def side_by_side(programs: Mapping[str, Program], rounds: int, scene: Scene, few: int = 3) -> Measured:
    """Run programs in turn (A B C A B C).

    A first round warms the caches and takes the answers. It counts for what takes long: that is run ``few`` times in all,
    or once.
    """
    measured = Measured()
    turns: dict[str, int] = {}
    for name, program in programs.items():
        try:
            taken, output = scene.run(program)
            if program.answer is not None:
                measured.answers[name] = program.answer(output)
        except (ProgramError, ValueError, LookupError, TypeError) as error:
            why = str(error) if isinstance(error, ProgramError) else f"answer not understood: {error!r}"
            measured.failures[name] = why[:200]
            continue
        turns[name] = rounds_of(taken.wall, rounds, few)
        measured.times[name] = [] if turns[name] == rounds else [taken]
    for turn in range(rounds):
        for name, most in turns.items():
            if turn < most and name not in measured.failures:
                try:
                    measured.times[name].append(scene.run(programs[name])[0])
                except ProgramError as error:
                    measured.failures[name] = str(error)
    return measured
