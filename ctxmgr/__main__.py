"""``python -m ctxmgr`` and the ``ctxmgr`` command."""

import sys


def main() -> None:
    """Run the command line; answer ``--version`` before anything is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ctxmgr import __version__

        try:
            sys.stdout.write(f"ctxmgr {__version__}\n")
            sys.stdout.flush()
        except (OSError, AttributeError):  # a full device, or no stdout at all
            sys.exit(5)
        return
    from ctxmgr.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
