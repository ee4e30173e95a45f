"""Build llama.cpp's server from its sources with cmake, once; no part of the build downloads anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.llm.packages import SOURCES, SetUpError, unpacked_sources

_FLAGS = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_CCACHE": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",  # it would be fetched from a hub of models
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
}
_TARGET = "llama-server"


def server_binary(folder: Path, jobs: int = 2) -> Path:
    """Return the server's executable, built when it is not there; that takes some ten minutes on two cores.

    Raises:
        SetUpError: the sources or the tools to build them can't be had, or the build fails.
    """
    place = folder / f"{_TARGET}-{SOURCES.version}"
    if _runs(place):
        return place
    missing = [names[0] for names in (("cmake",), ("g++", "clang++", "c++")) if not any(map(shutil.which, names))]
    if missing:
        raise SetUpError(f"building the server needs {' and '.join(missing)} (on Debian: apt install cmake g++)")
    sources = unpacked_sources(folder)
    built = folder / "build"
    began = time.monotonic()
    print(f"building {_TARGET} {SOURCES.version} with {jobs} jobs; the log is {folder / 'build.log'}", file=sys.stderr)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    flags = [f"-D{name}={value}" for name, value in _FLAGS.items()]
    with (folder / "build.log").open("wb") as log:
        for command in (
            ["cmake", "-S", str(sources), "-B", str(built), *generator, *flags],
            ["nice", "-n", "10", "cmake", "--build", str(built), "--target", _TARGET, "--parallel", str(jobs)],
        ):
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                raise SetUpError(f"{' '.join(command[:3])} ... failed; see {folder / 'build.log'}")
    part = shutil.copy2(built / "bin" / _TARGET, folder / f"{_TARGET}.part")
    Path(part).rename(place)
    shutil.rmtree(built)
    shutil.rmtree(sources.parent)
    (folder / SOURCES.file).unlink()
    print(f"built {place} in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return place


def _runs(place: Path) -> bool:
    """Whether the executable is there and starts on this processor: it is built for the one that built it."""
    if not place.is_file():
        return False
    return subprocess.run([place, "--version"], capture_output=True, check=False).returncode == 0
