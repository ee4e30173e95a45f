"""What a model was told: the fenced blocks and what stands outside of them, the rows it was shown, the agents it may name."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models.function import AgentInfo

_ROW = re.compile(r"(@\d+) .*: (\w+)(?: at \d\d:\d\d)?(?:, quarantined: .*)?")
_TAG = re.compile(r"<[|/!<\w]|\[/?[A-Z_]{3,}\]")
_BLOCK = re.compile(r"<<<data ([A-Za-z0-9]{8,64})>>>\n(.*?)\n<<<end \1>>>", re.DOTALL)


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """Return the fenced blocks: the delimiter, and the lines between."""
    return [(found[1], found[2].split("\n")) for found in _BLOCK.finditer(text)]


def outside(text: str) -> str:
    """Return what stands outside of the fenced blocks."""
    return _BLOCK.sub("", text)


def block_faults(text: str) -> list[str]:
    """Return what is wrong with the fenced blocks of a text: each is provenance and body, one line of JSON each."""
    faults: list[str] = []
    for delimiter, lines in blocks(text):
        if '"form": "text"' in lines[0]:
            body = "\n".join(lines[1:])
            if _TAG.search(body) or delimiter.casefold() in body.casefold():
                faults.append("a block of text holds what may end it")
            lines = [lines[0], "null"]
        if len(lines) != 2:
            faults.append(f"a fenced block has {len(lines)} lines")
        for line in lines:
            if delimiter.casefold() in line.casefold():
                faults.append("a fenced block holds its own delimiter")
            if not line.isascii() or "<" in line or ">" in line:
                faults.append("a fenced block holds what may end it")
            try:
                json.loads(line)
            except (ValueError, RecursionError):
                faults.append("a line of a fenced block is no JSON")
    return faults


def told(message: ModelMessage) -> str:
    """Return all that a request says, tool answers and objections included."""
    return "\n".join(_content(part) for part in message.parts) if isinstance(message, ModelRequest) else ""


def _content(part: Any) -> str:
    content = getattr(part, "content", "")
    # An objection is told as the provider will be told it, with what the model itself wrote.
    render = getattr(part, "model_response", None)
    return str(render()) if part.part_kind == "retry-prompt" and callable(render) else str(content)


def own_words(messages: list[ModelMessage]) -> str:
    """Return all that the model has said itself so far."""
    return "\n".join(str(part) for message in messages if isinstance(message, ModelResponse) for part in message.parts)


def offers(info: AgentInfo) -> str:
    """Return what the model is told of its tools and its conduct."""
    tools = [*info.function_tools, *info.output_tools]
    said = [f"{tool.name} {tool.description} {json.dumps(tool.parameters_json_schema)}" for tool in tools]
    return "\n".join([*said, info.instructions or ""])


def shown(text: str) -> list[dict[str, Any]]:
    """Return the rows of entries that stand in fenced blocks: by what they are called, with their parts as text."""
    found: list[dict[str, Any]] = []
    for _, lines in blocks(text):
        part = ""
        for line in lines[1:]:
            if (head := _ROW.fullmatch(line)) is not None:
                found.append({"id": head[1], "status": head[2]})
            elif found and line.startswith("  "):
                found[-1][part] = f"{found[-1].get(part, '')}\n{line[2:]}".strip()
            else:
                part = line.strip(" :")
    return found


def agents(info: AgentInfo) -> list[str]:
    """Return the targets that the schema of the answer allows."""
    for tool in info.output_tools:
        target: dict[str, Any] = tool.parameters_json_schema.get("properties", {}).get("target", {})
        return [str(name) for name in target.get("enum") or [target.get("const", "")]]
    return []
