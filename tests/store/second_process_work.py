"""Generators that run in a second process: they yield, raise, die, say rubbish, or never end."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator

import ctxmgr
from ctxmgr.store import worker_process


def echo(*items: object) -> Iterator[object]:
    """Yield what was given."""
    yield from items


def counted(items: int) -> Iterator[tuple[int, str]]:
    """Yield so many small things."""
    for number in range(items):
        yield number, f"item {number}"


def raising() -> Iterator[int]:
    """Yield two things, and raise."""
    yield 1
    yield 2
    raise LookupError("no third one")


def killed() -> Iterator[int]:
    """Yield eight things, and be killed."""
    yield from range(8)
    os.kill(os.getpid(), signal.SIGKILL)
    yield 8


def interrupted() -> Iterator[int]:
    """Yield two things, with an interrupt between them."""
    yield 1
    os.kill(os.getpid(), signal.SIGINT)
    yield 2


def interrupting(path: str) -> Iterator[int]:
    """Lock a file, interrupt the process that waits for something, and never yield it."""
    _lock(path)
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(600)
    yield 1


def babbling(rubbish: bytes) -> Iterator[int]:
    """Yield one thing, send something else behind it, and end."""
    yield 1
    frames = iter([rubbish])

    def framed(kind: bytes, value: object) -> bytes:
        del kind, value
        return next(frames, b"")

    setattr(worker_process, "_encode_frame", framed)  # noqa: B010  # what is private there is this module's to spoil
    yield 2


def odd() -> Iterator[object]:
    """Yield something that is no plain data."""
    yield 1
    yield object()


def holding(path: str) -> Iterator[int]:
    """Lock a file, say where this runs, and never end."""
    _lock(path)
    yield os.getpid()
    time.sleep(600)


def _lock(path: str) -> None:
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)


def printing() -> Iterator[str | None]:
    """Print, and yield where the package was imported from."""
    sys.stdout.write("printed")
    sys.stdout.flush()
    os.write(1, b"written")
    os.write(2, b"written")
    yield ctxmgr.__file__
