"""``python -m ctxmgr`` and the ``ctxmgr`` command."""

import sys


def main() -> int:
    """Run the command line and return its exit code. Answer ``--version`` before loading anything."""
    if sys.argv[1:] not in (["--version"], ["-V"]):
        from ctxmgr.cli import main as run

        return run()
    from ctxmgr import __version__

    try:
        sys.stdout.write(f"ctxmgr {__version__}\n")
        sys.stdout.flush()
    except (OSError, AttributeError):  # a full device, or no stdout
        return 5
    return 0


def start() -> None:
    """Run the command line and exit with its code."""
    code = main()
    if "typing" not in sys.modules and not (sys.flags.inspect or sys.gettrace() or sys.getprofile()):
        # No loaded module needs cleanup at exit, and shutting down the interpreter would take longer than a query.
        import os

        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    start()
