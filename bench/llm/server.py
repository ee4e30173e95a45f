"""An OpenAI-compatible server with a small model on a free port of the loopback address, for as long as it is needed.

    python -m bench.llm.server [--threads N] [--set-up-only] [COMMAND...]

Sets up what is missing (see `bench.llm.packages`), starts the server, and stops it at the end, also when interrupted. A
COMMAND runs with CTXMGR_LLM_URL and CTXMGR_LLM_NAME set; without one the server runs until it is interrupted.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bench.llm.build import server_binary
from bench.llm.packages import MODEL_NAME, SetUpError, default_folder, model_file

HOST = "127.0.0.1"
URL_VARIABLE, NAME_VARIABLE = "CTXMGR_LLM_URL", "CTXMGR_LLM_NAME"
CONTEXT_TOKENS = 8_192
START_SECONDS = 60.0
_TRIES = 3
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Attributes:
        base_url: ends in ``/v1``.
        model: the name that it answers to.
        pid: of its process.
        load_seconds: from its start until it was ready to answer.
    """

    base_url: str
    model: str
    pid: int
    load_seconds: float


def set_up(folder: Path) -> tuple[Path, Path]:
    """Return the server's executable and the model's file, both made when they are not there.

    Raises:
        SetUpError: saying what is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return server_binary(folder), model_file(folder)


@contextmanager
def running(binary: Path, model: Path, *, threads: int = 1) -> Generator[Server]:
    """Run the server while the block runs.

    One thread is steadier than two where other processes share the cores.

    Raises:
        SetUpError: it does not start; its last words are quoted.
    """
    log = binary.with_name("server.log")
    process, port, load = _started(binary, model, threads, log)
    try:
        yield Server(f"http://{HOST}:{port}/v1", MODEL_NAME, process.pid, load)
    finally:
        _stop(process)


def _started(binary: Path, model: Path, threads: int, log: Path) -> tuple[subprocess.Popen[bytes], int, float]:
    for _ in range(_TRIES):  # the port may be taken between its choice and the server's start
        port = _free_port()
        command = [
            str(binary), "--model", str(model), "--alias", MODEL_NAME, "--host", HOST, "--port", str(port), "--offline",
            "--threads", str(threads), "--threads-batch", str(threads), "--ctx-size", str(CONTEXT_TOKENS),
            "--parallel", "1", "--jinja", "--no-ui",
        ]  # fmt: skip
        began = time.monotonic()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, preexec_fn=_tie(), start_new_session=True
            )
        try:
            if _ready(process, port):
                return process, port, time.monotonic() - began
        except BaseException:
            _stop(process)
            raise
        _stop(process)
    raise SetUpError(f"the server does not start:\n{log.read_text('utf-8', 'replace')[-1500:]}")


def _tie() -> Callable[[], None] | None:
    """Return what makes the server end with the process that started it, even when that one is killed (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_DIES_WITH_PARENT, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _ready(process: subprocess.Popen[bytes], port: int) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback is nothing for a proxy
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with opener.open(f"http://{HOST}:{port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> int:
    """Set up, start, run the command or wait, stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where model and server are kept")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set-up-only", action="store_true", help="fetch and build what is missing, start nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="runs while the server does")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        binary, model = set_up(options.folder)
        print(f"set up in {options.folder}", file=sys.stderr)
        return 0 if options.set_up_only else _serve(binary, model, options.threads, options.command)
    except SetUpError as failed:
        print(failed, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _serve(binary: Path, model: Path, threads: int, command: list[str]) -> int:
    with running(binary, model, threads=threads) as server:
        print(f"{server.base_url}  {server.model}, ready after {server.load_seconds:.1f} s", file=sys.stderr)
        if not command:
            signal.pause()
        settings = {URL_VARIABLE: server.base_url, NAME_VARIABLE: server.model}
        return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
