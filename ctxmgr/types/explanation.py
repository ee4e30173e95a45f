"""Models of ``detect --explain``."""

from __future__ import annotations

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.finding import Finding, FindingKind
from ctxmgr.types.view import EntryView


class ExplainRequest(Shape):
    """Name an entry as `ShowRequest` does: by index (negative: from the end) or by id."""

    session: Text | None = None
    index: int | None = None
    entry_id: Text | None = None


class Thought(Shape):
    """What one detector thought of the entry.

    Attributes:
        detector: the kind of finding that it looks for.
        compared: excerpt of what it compared.
        count: how often it had seen its pattern by then, the entry included; 0 when the entry is no part of one.
        threshold: how often makes a finding.
        why: why it raised nothing, or that it saw its pattern.
        rule: what it goes by, where several detectors look for one kind of finding.
    """

    detector: FindingKind
    compared: Text
    count: int
    threshold: int
    why: Text
    rule: Text | None = None


class Explanation(Shape):
    """One entry with the thoughts of the detectors and the findings that it is a member of.

    ``thoughts`` is empty, and ``note`` says so, when the detectors were not shown the entry: it has no result, or its
    action is exempt.
    """

    entry: EntryView
    thoughts: list[Thought]
    findings: list[Finding]
    note: Text | None = None
