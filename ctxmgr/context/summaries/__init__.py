"""Shorter texts by structure alone: the same text gives the same summary, on every machine and without a model.

Begin with `grammar`, which has the protocol of summarisers and chooses one. May import `ctxmgr.text` and nothing of the
packages.
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
"""All summarisers; the first one that can read a text summarises it, so the parsers come before the heuristics."""


def summarise(name: str, text: str, kind: str, counter: Counter, most: int | None = None) -> Summary:
    """Return the summary of a text: deterministic, never longer than the text in tokens or characters, never raises.

    Args:
        name: the text's name, which decides the kind if ``kind`` is empty.
        text: any text at all, however broken.
        kind: one of `ctxmgr.text.tokens.KINDS`, or empty.
        counter: counts the tokens.
        most: tokens to aim at, if less than the target of the kind.
    """
    return summarise_with(SUMMARISERS, name, text, kind, counter, most)
