"""Recover small recorded runs with a real small model on this machine, and report how that went as it is.

    python -m bench.llm [--threads N] [--folder DIR] [--write FILE]

FILE gets the report as Markdown; without it nothing is written.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.llm.histories import HISTORIES, write
from bench.llm.packages import SOURCES, WEIGHTS, SetUpError, default_folder
from bench.llm.probe import proof
from bench.llm.report import rates, single
from bench.llm.server import Server, running, set_up
from bench.llm.trial import LIMIT_SECONDS, MODES, Outcome, recover
from ctxmgr import __version__


def main() -> int:
    """Set up, run everything, print the report; exit code 1 when an answer was not valid in form."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where model and server are kept")
    parser.add_argument("--write", type=Path, help="file for the report")
    options = parser.parse_args()
    try:
        binary, model = set_up(options.folder)
        with running(binary, model, threads=options.threads) as server:
            http = proof(server)
            outcomes = list(_outcomes(server))
    except SetUpError as failed:
        print(failed, file=sys.stderr)
        return 1
    text = "\n".join(_report(http, outcomes, options.threads)) + "\n"
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 1 if any(outcome.faults for outcome in outcomes) else 0


def _outcomes(server: Server) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="ctxmgr-llm-") as folder:
        for mode in MODES:
            store = write(Path(folder) / f"{mode}.db", HISTORIES)
            for history in HISTORIES:
                outcome = recover(server, history, mode, store)
                print(f"{mode} {history.name}: {outcome.seconds:.1f} s", file=sys.stderr)
                yield outcome


def _report(http: list[str], outcomes: list[Outcome], threads: int) -> list[str]:
    return [
        "# A real small model in the loop",
        "",
        f"Made by `python -m bench.llm --write bench/llm/RESULTS.md` with ctxmgr {__version__} on "
        f"{datetime.now(UTC).date().isoformat()}, Python {platform.python_version()}, {threads} thread(s) for the model. "
        f"Server: llama-server of {SOURCES.name} {SOURCES.version} on the loopback address. Model: SmolLM2-135M-Instruct "
        f"Q4_1 of {WEIGHTS.name} {WEIGHTS.version}. It is there to prove the way to a model and back, not to judge well: "
        "it is one of the smallest instruct models there are.",
        "",
        "## By plain HTTP",
        "",
        *http,
        "",
        "## Through `ctxmgr recover`",
        "",
        f"{len(HISTORIES)} recorded runs in each mode, at most {LIMIT_SECONDS:.0f} s for the model. Valid in form: exit code "
        "0, exactly one branch, a fallback marked with its reason, the history unchanged, only signed notes, snapshots and one "
        "continuation written. Right: the model's answer counted and cites the entry that answers the question beyond what "
        "the rules cite, or adds nothing where no entry does.",
        "",
        *rates(outcomes),
        "",
        *single(outcomes),
    ]


if __name__ == "__main__":
    sys.exit(main())
