"""Processes of their own that write to a store: they start together, or are killed while they write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

_PREAMBLE = """
import json, os, resource, signal, sys
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import open_store
from tests.builders import entry, steps
location, arguments = sys.argv[1], json.loads(sys.argv[2])
"""

APPEND = (
    _PREAMBLE
    + """
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
store = open_store(location, create=True)
for number in range(arguments["count"]):
    session = arguments["session"] if number % 2 else "shared"
    store.append([entry(session, number, id=f"{arguments['session']}-{number}", process=arguments["session"])])
store.close()
sys.stdout.write("done\\n")
"""
)
"""Opens the store and appends ``count`` entries one by one, by turns to ``shared`` and to its own ``session``."""

KILLED = (
    _PREAMBLE
    + """
acknowledged = []
for cycle in range(arguments["cycles"]):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        store = open_store(location, create=True)
        number = 0
        while True:
            try:
                store.append([entry(f"c{cycle}", 3 * number + place, given="x" * 500) for place in range(3)])
            except CtxmgrError as error:  # a server may still be busy with what a killed writer sent
                if error.kind != "busy":
                    raise
                continue
            os.write(writing, b".")
            number += 1
    os.close(writing)
    seen = 0
    while seen < 3 + cycle:
        acknowledgement = os.read(reading, 1)
        if not acknowledgement:
            sys.exit(f"the writer of cycle {cycle} ended by itself: {os.waitpid(child, 0)[1]}")
        seen += len(acknowledgement)
    os.kill(child, signal.SIGKILL)
    while more := os.read(reading, 4096):
        seen += len(more)
    os.close(reading)
    os.waitpid(child, 0)
    acknowledged.append(seen)
sys.stdout.write(json.dumps(acknowledged) + "\\n")
"""
)
"""Kills a child that appends batches of three entries, ``cycles`` times; prints how many batches each acknowledged."""

SUICIDE = (
    _PREAMBLE
    + """
def records():
    yield from steps("s", ["Bash:new", "Bash:newer"], start=2)
    os.kill(os.getpid(), signal.SIGKILL)
    yield entry("s", 9)
open_store(location).append(records())
"""
)
"""Dies in the middle of a batch."""

FULL = (
    _PREAMBLE
    + """
store = open_store(location)
size = os.path.getsize(location)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # some Pythons keep a compiled module that the limit cut off
resource.setrlimit(resource.RLIMIT_FSIZE, (size + arguments["room"], resource.RLIM_INFINITY))
told = []
for number in range(arguments["first"], arguments["first"] + 60):
    try:
        store.append([entry("s", 2 * number, given="x" * 3000), entry("s", 2 * number + 1, given="y" * 3000)])
        told.append("ok")
    except CtxmgrError as error:
        told.append(error.kind)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append([entry("s", 900)])
store.close()
sys.stdout.write(json.dumps(told) + "\\n")
"""
)
"""Appends pairs of entries into a file that may grow by ``room`` bytes only; prints what each append answered."""

READ = (
    _PREAMBLE
    + """
told = {}
for name, readonly in (("read", True), ("write", False)):
    try:
        store = open_store(location, readonly=readonly)
        told[name] = [record["id"] for record in store.sessions.records(None, ("entry",))]
        if not readonly:
            store.append([entry("s", 900)])
            told[name] = "written"
        store.close()
    except CtxmgrError as error:
        told[name] = error.kind
sys.stdout.write(json.dumps(told) + "\\n")
"""
)
"""Opens a store for reading and for writing; prints the ids it reads, and what writing answers."""


def start(code: str, location: Path, arguments: object = None, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a worker on the store at a path."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", code, str(location), json.dumps(arguments)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(code: str, location: Path, arguments: object = None, prefix: Sequence[str] = ()) -> Any:
    """Run a worker to its end and return what it printed, as JSON."""
    worker = start(code, location, arguments, prefix)
    output, complaint = worker.communicate()
    assert worker.returncode == 0, complaint
    return json.loads(output.splitlines()[-1])


def run_together(code: str, location: Path, arguments: Sequence[object]) -> None:
    """Run workers that begin at the same moment, each with its arguments, to their end."""
    workers = [start(code, location, given) for given in arguments]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
    finally:
        ended = [(*worker.communicate(), worker.returncode) for worker in workers]
    assert ended == [("done\n", "", 0)] * len(workers)
