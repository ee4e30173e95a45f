"""Shorthands for putting, reading and looking at the folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.types.artifact import GetRequest, GetResponse, NewArtifact, PutRequest, PutResponse, RollbackRequest


def put(artifacts: ArtifactStore, owner: str, **contents: str) -> PutResponse:
    """Put texts; a name's first ``_`` stands for its dot, as in ``a_yaml``."""
    items = [NewArtifact(name=name.replace("_", ".", 1), content=text) for name, text in contents.items()]
    return artifacts.put(PutRequest(agent=owner, artifacts=items))


def put_one(artifacts: ArtifactStore, owner: str, name: str, content: str = "x\n", **more: Any) -> PutResponse:
    """Put one text under a name."""
    return artifacts.put(PutRequest(agent=owner, artifacts=[NewArtifact(name=name, content=content, **more)]))


def get(artifacts: ArtifactStore, path: str, version: int | None = None) -> GetResponse:
    """Return an artifact by AGENT/NAME."""
    owner, _, name = path.partition("/")
    return artifacts.get(GetRequest(agent=owner, name=name, version=version))


def text(artifacts: ArtifactStore, path: str, version: int | None = None) -> str | None:
    """Return the content of an artifact."""
    return get(artifacts, path, version).content


def back(artifacts: ArtifactStore, version: int) -> None:
    """Roll back to a version."""
    artifacts.rollback(RollbackRequest(version=version, reason="tested"))


def tree(folder: Path) -> dict[str, str]:
    """Return path -> content of every file of a version's folder."""
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def object_of(folder: Path, content: str) -> Path:
    """Return where the bytes of a text lie."""
    digest = hashlib.sha256(content.encode("utf-8")).hexdigest()
    return folder / "objects" / digest[:2] / digest[2:]


def meddle(path: Path, content: bytes) -> None:
    """Change the bytes of an object in place, as somebody does who does not ask."""
    path.chmod(0o600)
    path.write_bytes(content)
    os.utime(path)
    path.chmod(0o400)
