"""Shorter texts by structure alone: the same text gives the same summary, on every machine and without a model."""

from __future__ import annotations

from ctxmgr.assemble.counting import Counter
from ctxmgr.assemble.summaries.grammar import GrammarSummariser
from ctxmgr.assemble.summaries.interface import Summariser, Summary
from ctxmgr.assemble.summaries.lines import LineSummariser
from ctxmgr.assemble.summaries.markdown import MarkdownSummariser
from ctxmgr.assemble.summaries.plain_text import TextSummariser
from ctxmgr.assemble.summaries.python import PythonSummariser
from ctxmgr.assemble.summaries.structure import JsonSummariser, YamlSummariser
from ctxmgr.assemble.summaries.summarising import summarise_with

SUMMARISERS: tuple[Summariser, ...] = (
    JsonSummariser(),
    YamlSummariser(),
    MarkdownSummariser(),
    PythonSummariser(),
    GrammarSummariser(),
    LineSummariser(),
    TextSummariser(),
)
"""All summarisers; the first one that can read a text has it, so that the parsers stand before the heuristics."""


def summarise(name: str, text: str, kind: str, counter: Counter, most: int | None = None) -> Summary:
    """Return the summary of a text: deterministic, never longer than the text in tokens or characters, never raises.

    Args:
        name: what the text is called; it tells the kind where ``kind`` is empty.
        text: any text at all, however broken.
        kind: one of `ctxmgr.assemble.kinds.KINDS`, or empty.
        counter: what the tokens are counted with.
        most: tokens to aim at where that is less than the target of the kind.
    """
    return summarise_with(SUMMARISERS, name, text, kind, counter, most)
