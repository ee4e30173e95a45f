"""Time of a recovery by rules over 1,000 to 100,000 entries, and until a model's first line of progress.

    python -m bench.recovery.cost [--beside CHECKOUT...]

With other checkouts of this repository, only the prompt of `recover` is measured, with the code here and with that of each, in
turns: processor's time, as a multiple of that of ``python -c pass``.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ctxmgr.log.codec import Record
from ctxmgr.types.operations import AgentRequest, RecoverRequest
from ctxmgr.workspace import Workspace

_SIZES = (1_000, 10_000, 100_000)
_ROUNDS = 5
_LOOP = 30
_BATCH = 5_000
_AGENTS, _ACTIONS = ("planner", "coder", "reviewer"), ("Read", "Bash", "Edit")
_START = datetime(2026, 1, 1, tzinfo=UTC)


def history(path: Path, size: int) -> None:
    """Write a store of one session that worked for long and ends in a loop of thirty identical failures."""
    with Workspace.open(str(path), create=True) as workspace:
        records: list[Record] = [
            {"v": 1, "kind": "session", "session": "s", "ts": _time(0), "process": "p"},
            {
                "v": 1, "kind": "event", "session": "s", "ts": _time(0), "id": "task", "type": "user_message",
                "data": {"text": "make the build of the billing module green"},
            },
        ]  # fmt: skip
        for number in range(size):
            records.append(_worked(number) if number < size - _LOOP else _failed(number))
            if len(records) >= _BATCH:
                workspace.store.append(records)
                records = []
        workspace.store.append(records)


def _worked(number: int) -> Record:
    output = f"line {number} of a module, value {number * 7919 % 10007}"
    return {**_entry(number), "input": {"path": f"src/m{number % 977}.py", "n": number}, "status": "ok", "output": output}


def _failed(number: int) -> Record:
    error = {"type": "ExitCode", "message": "make: *** No rule to make target 'billing'.  Stop."}
    call = {"agent": "coder", "action": "Bash", "input": {"command": "make billing"}}
    return {**_entry(number), **call, "status": "error", "error": error}


def _entry(number: int) -> Record:
    return {
        "v": 1, "kind": "entry", "session": "s", "ts": _time(number), "id": f"e{number}",
        "agent": _AGENTS[number % 3], "action": _ACTIONS[number % 3],
    }  # fmt: skip


def _time(number: int) -> str:
    return (_START + timedelta(seconds=2 * number)).isoformat().replace("+00:00", "Z")


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ctxmgr", *words]


def measured(path: Path) -> tuple[float, float, float]:
    """Return the medians, in seconds, of a recovery in this process, of a request, and of the whole command."""
    asked = AgentRequest(
        session="s", type="INTROSPECT_AGENT_CONTEXT", requester="coder", plan=True,
        reason="I no longer know which target builds the billing module", goal="build billing",
    )  # fmt: skip
    with Workspace.open(str(path), readonly=True) as workspace:
        loop = statistics.median(
            _seconds(lambda: workspace.recover(RecoverRequest(session="s", plan=True))) for _ in range(_ROUNDS)
        )
        request = statistics.median(_seconds(lambda: workspace.request(asked)) for _ in range(_ROUNDS))
    words = _command("recover", "--session", "s", "--plan", "--json", "--store", str(path))
    whole = statistics.median(_seconds(lambda: subprocess.run(words, capture_output=True, check=True)) for _ in range(_ROUNDS))
    return loop, request, whole


def first_byte(path: Path) -> float:
    """Return the median time, in seconds, from the start of a command with a model to its first byte on stderr.

    The model's server takes the request and never answers.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_silent, args=(server,), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        return statistics.median(_until_told(path, url) for _ in range(_ROUNDS))


def _silent(server: socket.socket) -> None:
    held: list[socket.socket] = []
    while True:
        try:
            held.append(server.accept()[0])
        except OSError:
            return


def _until_told(path: Path, url: str) -> float:
    words = _command(
        "recover", "--session", "s", "--store", str(path), "--model", "stub", "--base-url", url, "--timeout", "1", "--json"
    )
    began = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ}) as process:
        assert process.stderr is not None
        process.stderr.read(1)
        took = time.perf_counter() - began
        process.kill()
    return took


def _processor_seconds(words: list[str], checkout: Path) -> float:
    """Return what a command took that is started in a checkout, whose code it therefore loads."""
    # Else each start would compile all modules anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=checkout, capture_output=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside(checkouts: list[Path]) -> None:
    """Print how long each checkout takes to a prompt, nothing kept of an answer."""
    print(f"| entries | {' | '.join(checkout.name for checkout in checkouts)} |")
    print(f"| --- |{' --- |' * len(checkouts)}")
    for size in _SIZES:
        with tempfile.TemporaryDirectory() as folder:
            commands = [[sys.executable, "-c", "pass"]]
            for number, checkout in enumerate(checkouts):
                path = str(Path(folder) / f"{number}.db")
                code = f"from pathlib import Path; from bench.recovery.cost import history; history(Path({path!r}), {size})"
                subprocess.run([sys.executable, "-c", code], cwd=checkout, check=True)
                commands.append(_command("recover", "--session", "s", "--plan", "--prompt", "--store", path))
            rounds = [
                [_processor_seconds(words, place) for words, place in zip(commands, [Path(), *checkouts], strict=True)]
                for _ in range(_ROUNDS)
            ]
        bare, *took = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(f"| {size:,} | {' | '.join(f'{each / bare:.0f}' for each in took)} |", flush=True)


def main() -> None:
    """Print both tables, or the one of several checkouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--beside", nargs="+", type=Path, metavar="CHECKOUT", help="other checkouts, measured in the same run")
    if others := parser.parse_args().beside:
        return beside([Path.cwd(), *(other.resolve() for other in others)])
    bare = statistics.median(
        _seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(_ROUNDS)
    )
    with tempfile.TemporaryDirectory() as folder:
        print("| entries | recover, ms | request, ms | `ctxmgr recover --plan --json`, ms | times `python -c pass` |")
        print("| --- | --- | --- | --- | --- |")
        for size in _SIZES:
            path = Path(folder) / f"{size}.db"
            history(path, size)
            loop, request, whole = measured(path)
            print(f"| {size:,} | {loop * 1e3:,.0f} | {request * 1e3:,.0f} | {whole * 1e3:,.0f} | {whole / bare:.0f} |")
        told = first_byte(Path(folder) / f"{_SIZES[0]}.db")
        print(f"\nWith a model, to the first byte on stderr: {told * 1e3:,.0f} ms ({told / bare:.0f} times `python -c pass`).")


if __name__ == "__main__":
    main()
