"""Whatever artifacts and history hold, the YAML and the JSON of a package give it back, and nothing steps out of its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ctxmgr.context.packages import render
from ctxmgr.store import empty_store
from ctxmgr.types.context_package import ContextPackage
from tests import builders as b
from tests.context.world import World

TEXTS = {
    "documents": "---\na: 1\n...\n---\nb: 2\n",
    "tabs": "\tindented\n \t mixed\n",
    "control characters": "\x1b[2J\x00\x07\x7f\x85 \u2028 end",
    "a bomb": "a: &a [x]\n" + "".join(f"k{number}: &k{number} [*a, *a]\n" for number in range(30)),
    "a fake end": "  warnings:\n  - \"forged\"\ncontext_package:\n  metadata: {}\n",
    "fences": "```yaml\n```\n~~~\n",
    "only lines": "\n\n\n",
    "a leading blank": "  two\n one\n",
    "no end": "no line end",
    "many ends": "text\n\n\n\n",
    "carriage returns": "a\r\nb\rc",
    "bidi": "safe \u202e gnp.exe \u2066",
    "a byte order mark": "\ufefftext",
    "comment": "# not a comment\n#",
    "quotes": "\"'{}[]&*!|>%@`: - ? ",
    "astral": "😀 \U000e0041 字",
    "long line": "x" * 5_000,
}  # fmt: skip


def read_back(package: ContextPackage) -> None:
    """Hold what two parsers read against the package."""
    text = render(package)
    read: Any = YAML(typ="safe", pure=True).load(text)
    data = json.loads(render(package, "json"))

    assert list(read) == ["context_package"]
    assert [one["content"] for one in read["context_package"]["artifacts"]] == [one.content for one in package.artifacts]
    assert [one["content"] for one in data["artifacts"]] == [one.content for one in package.artifacts]
    assert [one["name"] for one in read["context_package"]["artifacts"]] == [one.name for one in package.artifacts]
    assert read["context_package"].get("project_context", {}) == package.project_context
    assert read["context_package"].get("task_context", {}) == package.task_context
    assert read["context_package"].get("warnings", []) == package.warnings


@pytest.mark.requirement("003-P8")
@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_contents_come_back(world: World, content: str) -> None:
    """Texts made to break out of their place in the package are read back unchanged, as contents, keys and task alike."""
    world.put("arch", "a.txt", content)
    world.need("dev", "arch/*")
    world.keys(**{"k": content, content[:200]: 1})
    made = world.assemble(tokens=50_000, task=content[:100], task_context={content[:300]: [content, {content[:50]: None}]})

    assert made.package.artifacts[0].content == content
    read_back(made.package)


@settings(max_examples=60)
@given(content=st.text(max_size=300), name=st.text(min_size=1, max_size=20), tokens=st.integers(150, 500))
def test_any_text_comes_back(content: str, name: str, tokens: int) -> None:
    """Over random texts and names, cut and whole, both formats give the package back."""
    world = World(empty_store("random"))
    world.store.readonly = False
    try:
        world.put("arch", name, content * 3)
        world.keys(**{name: content})
        read_back(world.assemble(tokens=tokens, items=["arch/*"]).package)
    finally:
        world.store.close()


@pytest.mark.requirement("003-P16")
@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_history_comes_back(world: World, content: str) -> None:
    """An entry, a failure, a snapshot and a continuation are YAML inside the YAML, whatever they hold."""
    odd = {"list": [content], content[:40]: {"deeper": {"y": content}}, "none": None, "n": 10**30}
    records = [
        b.entry("run", 0, "Bash", odd, agent="dev"),
        b.result("run", 0, content, status="error", error={"message": content}),
    ]
    world.store.append(records)
    world.store.append(
        [
            b.build(
                "snapshot", "run", b.at(9), id="snap", entries=["run-e0000", "gone"], summary=content, reasoning="r", hash="0"
            ),
            b.build("continuation", "run", b.at(9), id="cont", target="dev", context={"summary": content, "facts": []}),
        ]
    )
    made = world.assemble(tokens=200_000, items=["entry:run@0", "snapshot:snap", "continuation:cont", "error_context"])
    read_back(made.package)
    parts: dict[str, Any] = {one.type: YAML(typ="safe", pure=True).load(one.content) for one in made.package.artifacts}

    assert parts["entry"]["input"] == odd
    assert parts["entry"]["output"] == content
    assert parts["context"][0]["error"]["message"] == content
    assert parts["snapshot"]["summary"] == content
    assert parts["snapshot"]["entries"][0]["input"] == odd
    assert parts["snapshot"]["missing"] == ["gone"]
    assert parts["continuation"]["context"]["summary"] == content


def test_half_a_character_comes_back_as_an_escape(world: World) -> None:
    """Text that no UTF-8 can hold is written as an escape in both formats."""
    world.store.append([b.entry("run", 0, "Bash", "half \ud800", agent="dev")])
    package = world.assemble(items=["entry:run@0"]).package

    render(package).encode("utf-8")
    render(package, "json").encode("utf-8")
    assert "\\ud800" in package.artifacts[0].content
