"""Write a context package as YAML or JSON."""

from __future__ import annotations

import json
from typing import Any, Literal

from ctxmgr.log.json_value import plain
from ctxmgr.text.content_kind import JSON, YAML
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import Counter
from ctxmgr.text.yaml_writer import block, flow, mapping, quoted
from ctxmgr.types.context_package import ContextPackage, PackageItem

Format = Literal["yaml", "json"]

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def render(package: ContextPackage, form: Format = "yaml") -> str:
    """Return the package as text in UTF-8's reach, ending with a line end."""
    return _yaml(package) if form == "yaml" else _json(package) + "\n"


def item_cost(item: PackageItem, counter: Counter) -> int:
    """Return the tokens that an item takes with its framing, in the format in which it takes more."""
    written = (_yaml_item(item), _dumped(item.to_json()) + ",")
    return max(counter.count(text, item.kind) for text in written)


def frame_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens that a package takes besides its items, in the format in which that is more."""
    bare = package.model_copy(update={"artifacts": []})
    return max(counter.count(_yaml(bare), YAML), counter.count(_json(bare) + "\n", JSON))


def whole_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens of the package counted as one text at the rate of prose, in the format in which that is more."""
    return max(counter.count(render(package, form), "text") for form in ("yaml", "json"))


def _yaml(package: ContextPackage) -> str:
    metadata = {key: value for key, value in package.metadata.model_dump(by_alias=False).items() if value is not None}
    head: dict[str, Any] = {"metadata": metadata}
    for name, values in (("project_context", package.project_context), ("task_context", package.task_context)):
        if values:
            head[name] = plain(values)
    text = "\n".join(["context_package:", *mapping(head, 2)]) + "\n"
    text += "  artifacts:\n" if package.artifacts else "  artifacts: []\n"
    text += "".join(_yaml_item(item) for item in package.artifacts)
    if package.held:
        refer = (one.model_dump(by_alias=False, exclude_none=True) for one in package.held)
        text += "  held:\n" + "".join(f"  - {flow(one)}\n" for one in refer)
    if package.warnings:
        text += "  warnings:\n" + "".join(f"  - {quoted(warning)}\n" for warning in package.warnings)
    if package.missing:
        named = ({"source": one.source, "name": one.name} for one in package.missing)
        text += "  missing:\n" + "".join(f"  - {flow(one)}\n" for one in named)
    return text


def _yaml_item(item: PackageItem) -> str:
    fields = item.model_dump(by_alias=False, exclude={"content"}, exclude_none=True)
    lines = list(mapping(fields, 4))
    lines[0] = "  - " + lines[0].removeprefix("    ")
    return "\n".join(lines) + "\n" + block("content", item.content, 4)


def _json(package: ContextPackage) -> str:
    values = package.to_json()
    for name in ("projectContext", "taskContext"):
        values[name] = plain(values[name])
    return _dumped(values)


def _dumped(values: object) -> str:
    """Return compact JSON; lone surrogates, which no UTF-8 can hold, as escapes."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
