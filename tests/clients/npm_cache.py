"""Programs from npm in a cache of their own, which tests of ours share and nothing else sees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxmgr" / "clients"
"""Asked for here, before a test's own home hides the user's."""

BIN = CACHE / "node_modules" / ".bin"
PATH = f"{BIN}{os.pathsep}{os.environ['PATH']}"

_NODE = "node@22"
"""The packages silently fall back to older versions under an older Node."""


def install(packages: Sequence[str], programs: Sequence[str]) -> None:
    """Install packages unless their programs are there already.

    Raises:
        subprocess.CalledProcessError: npm failed.
    """
    if all((BIN / name).exists() for name in ("node", *programs)):
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([*npm, _NODE], check=True, timeout=600)
    subprocess.run([*npm, *packages], check=True, timeout=900, env={**os.environ, "PATH": PATH})
