"""Shorten texts by their structure alone. The same text gives the same summary on every machine, without a model.

Start with `grammar`, which defines the protocol of summarisers and chooses one. This package may import `ctxmgr.text`, but no
other part of `ctxmgr.context`.
"""

from __future__ import annotations

from ctxmgr.context.summaries.grammar import GrammarSummariser, Summariser, Summary, summarise_with
from ctxmgr.context.summaries.prose import LineSummariser, MarkdownSummariser, TextSummariser
from ctxmgr.context.summaries.python import PythonSummariser
from ctxmgr.context.summaries.structured_data import JsonSummariser, YamlSummariser
from ctxmgr.text.tokens import Counter

SUMMARISERS: tuple[Summariser, ...] = (
    JsonSummariser(),
    YamlSummariser(),
    MarkdownSummariser(),
    PythonSummariser(),
    GrammarSummariser(),
    LineSummariser(),
    TextSummariser(),
)
"""All summarisers, parsers before heuristics, because the first one that can read a text summarises it."""


def summarise(name: str, text: str, kind: str, counter: Counter, most: int | None = None) -> Summary:
    """Return the summary of a text: deterministic, never longer than the text in tokens or characters, never raises.

    Args:
        name: name of the text; it determines the kind if ``kind`` is empty.
        text: any text, however broken.
        kind: one of `ctxmgr.text.tokens.KINDS`, or empty.
        counter: counts the tokens.
        most: desired number of tokens, if less than the target of the kind.
    """
    return summarise_with(SUMMARISERS, name, text, kind, counter, most)
