"""Explain what each detector made of one entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import NoHistory
from ctxmgr.history.query.address import entry_of, session_key
from ctxmgr.store import Store
from ctxmgr.types.explanation import ExplainRequest, Explanation, Thought

UNSEEN = "the detectors were not shown this entry: it has no result, or its action is exempt"


def explain(store: Store, request: ExplainRequest, settings: Mapping[str, Any]) -> Explanation:
    """Return what each detector thought of an entry when it came, and the findings that it belongs to.

    Args:
        store: the history.
        request: which entry.
        settings: the ``detect`` table of the configuration.

    Raises:
        NoHistory, OutOfBounds, NotFound: there is no such entry.
        InvalidInput: an ambiguous name, or a setting that can't be used.
    """
    key = session_key(store, request.session)
    entry = entry_of(store, key, request.index, request.entry_id)
    if key is None:
        raise NoHistory("record or import a run first")
    monitor = Monitor(DetectSettings.from_table(settings), explain=entry.index)
    for observation in observations_of(store.sessions.records(key), distinct=True):
        monitor.observe(observation)
    thoughts = [
        Thought(
            detector=opinion.detector, compared=opinion.compared, count=opinion.count, threshold=opinion.threshold,
            why=opinion.why, rule=opinion.rule,
        )
        for opinion in monitor.explain(entry.index)
    ]  # fmt: skip
    findings = [finding for finding in monitor.findings() if entry.id in finding.members]
    return Explanation(entry=entry, thoughts=thoughts, findings=findings, note=None if thoughts else UNSEEN)
