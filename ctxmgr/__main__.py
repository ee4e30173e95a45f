"""``python -m ctxmgr`` and the ``ctxmgr`` command."""

import sys


def main() -> int:
    """Run the command line and return its exit code; answer ``--version`` before anything is loaded."""
    if sys.argv[1:] not in (["--version"], ["-V"]):
        from ctxmgr.cli import main as run

        return run()
    from ctxmgr import __version__

    try:
        sys.stdout.write(f"ctxmgr {__version__}\n")
        sys.stdout.flush()
    except (OSError, AttributeError):  # a full device, or no stdout at all
        return 5
    return 0


def start() -> None:
    """Run the command line and end the process with its exit code."""
    code = main()
    if "typing" not in sys.modules and not (sys.flags.inspect or sys.gettrace() or sys.getprofile()):
        # Nothing was loaded that has something to do at the end: taking the interpreter down would take longer than a query.
        import os

        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    start()
