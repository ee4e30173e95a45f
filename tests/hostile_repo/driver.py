"""Run command lines one after the other in one folder, each in a fork: ``driver.py COMMANDS.json`` prints how each ended.

The folder of this file is taken off the path first, so that nothing but the installed program is imported.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

sys.path[0:1] = []


def control() -> None:
    """Do what no command may, so that the tracer shows that it sees it: start, write, connect."""
    import socket
    import subprocess

    subprocess.run(["true"], check=True)
    Path(os.environ["CTXMGR_TRACE_OUTSIDE"], "new").write_text("x", "utf-8")
    with socket.socket() as asked:
        asked.settimeout(0.2)
        asked.connect_ex(("127.0.0.1", 9))


def _run(words: list[str], seconds: int) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        code = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            if words == ["control"]:
                control()
                code = 0
            else:
                from ctxmgr.cli import main

                sys.argv = ["ctxmgr", *words]
                code = main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException:  # a fault is what the caller looks for
            code = 99
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    from ctxmgr.cli import build_app

    build_app()  # loaded once, for all forks
    for name in ("cli.fast.dispatch", "cli.fast.rows", "cli.fast.detection", "recover.recovery", "recover.service"):
        import_module(f"ctxmgr.{name}")

    given = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.stdout.write(json.dumps([_run(words, 2 if words[0] == "watch" else 20) for words in given]))
