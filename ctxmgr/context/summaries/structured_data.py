"""Summarise YAML and JSON: keys and shape first, then values and comments while there is room."""

from __future__ import annotations

from collections.abc import Iterator

from ctxmgr.context.summaries.data_shape import Node, from_json
from ctxmgr.context.summaries.outline import LEVELS, outline
from ctxmgr.context.summaries.yaml_reader import from_yaml
from ctxmgr.text.content_kind import JSON, YAML


class YamlSummariser:
    """YAML as a YAML outline; the parser reads about 60 kB a second, which is what the limit is for."""

    strategy = "yaml/2"
    kinds = frozenset({YAML, JSON})  # JSON with comments, and an outline of JSON, are YAML
    target = 20
    limit = 200_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines; raises what the parser raises on broken YAML."""
        return _drafts(from_yaml(text))


class JsonSummariser:
    """JSON as a YAML outline, which says the same in fewer characters."""

    strategy = "json/2"
    kinds = frozenset({JSON})
    target = 20
    limit = 4_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines; raises ValueError or RecursionError on what is no JSON."""
        return _drafts([from_json(text.removeprefix("\ufeff"))])


def _drafts(documents: list[Node]) -> Iterator[str]:
    for detail in LEVELS if documents else ():
        yield "\n---\n".join("\n".join(outline(document, detail)) for document in documents) + "\n"
