"""Measure how long the server of tools takes to answer the handshake, beside Python that does nothing and the SDK's import.

    python -m bench.mcp --rounds 10

The three are started in turn, so that they meet the same load; what counts is the ratio of their medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from ctxmgr.store import open_store

_CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
HELLO = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _CLIENT}).encode() + b"\n"


def _answered(command: list[str]) -> float:
    """Return the seconds from the start of a server to its first answer."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        line = server.stdout.readline()
        took = time.perf_counter() - start
        server.stdin.close()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "ctxmgr"
    return took


def _ran(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds: int = parser.parse_args().rounds
    taken: dict[str, list[float]] = {"Python alone": [], "import of the SDK": [], "server answers": []}
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "history.db")
        with closing(open_store(store, create=True)):
            """Make it."""
        for _ in range(rounds):
            taken["Python alone"].append(_ran([sys.executable, "-I", "-S", "-c", "pass"]))
            taken["import of the SDK"].append(_ran([sys.executable, "-c", "import mcp.server.mcpserver"]))
            taken["server answers"].append(_answered([sys.executable, "-m", "ctxmgr", "mcp", "--store", store, "--read-only"]))
    alone = statistics.median(taken["Python alone"])
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        print(f"{name:18} least {1000 * min(seconds):6.0f} ms   median {1000 * middle:6.0f} ms   ratio {middle / alone:5.1f}")


if __name__ == "__main__":
    main()
