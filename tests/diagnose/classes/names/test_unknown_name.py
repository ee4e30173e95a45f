"""Which names a manifest lists, and the nearest of them."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import evidence, failed, read


@pytest.mark.parametrize(
    ("manifest", "text", "command", "said", "near"),
    [
        (
            ".pre-commit-config.yaml",
            "repos:\n  - repo: https://git.example/ruff\n    hooks:\n      - id: ruff-format",
            "pre-commit run ruff-fmt",
            "No hook with id `ruff-fmt` in stage `pre-commit`",
            "ruff-format",
        ),
        ("tox.ini", "[testenv:py311]\ndeps = pytest", "tox -e py31", "unknown environment py31", "py311"),
        (
            "compose.yaml",
            "services:\n  billing:\n    image: b",
            "docker compose up biling",
            "no such service: biling",
            "billing",
        ),
    ],
    ids=["hook", "environment", "service"],
)
def test_the_nearest_name_of_a_manifest_is_offered(manifest: str, text: str, command: str, said: str, near: str) -> None:
    """Each manifest lists its names in its own way."""
    found = diagnose(evidence(read(manifest, text), *[failed(command, said)] * 3))

    assert found is not None
    assert found.kind == "unknownName"
    assert near in found.next_step
