"""Work that goes on beside the trouble: ordinary actions of seven trades, none of which holds an answer."""

from __future__ import annotations

import random
from typing import Any

from bench.recovery.second.marks import fill

WORKFLOWS = {
    "code": ("billing-refactor", "checkout-bugfix", "sdk-upgrade"),
    "ops": ("cluster-rollout", "incident-followup", "region-move"),
    "data": ("nightly-ingest", "warehouse-backfill", "revenue-report"),
    "web": ("market-scan", "supplier-research", "grant-survey"),
    "support": ("ticket-triage", "refund-desk", "account-care"),
    "ml": ("ranker-training", "ocr-finetune", "forecast-tuning"),
    "release": ("spring-release", "mobile-release", "hotfix-train"),
}

_TEMPLATES: dict[str, tuple[tuple[str, Any, Any], ...]] = {
    "code": (
        ("read_file", {"path": "src/<noun>/<verb>.py"}, "def <verb>_<noun>(value):\n    return value + <n>\n"),
        ("grep", {"pattern": "<verb>_<noun>", "path": "src"}, "src/<noun>/__init__.py:<m>: from .<verb> import <verb>_<noun>"),
        ("edit_file", {"path": "src/<noun>/<verb>.py", "old": "<n>", "new": "<m>"}, "1 replacement"),
        ("run_tests", {"target": "tests/test_<noun>_<verb>.py"}, "<m> passed in <d>s"),
        ("git", {"args": "diff --stat HEAD~1"}, " src/<noun>/<verb>.py | <m> ++--\n 1 file changed"),
        ("lint", {"path": "src/<noun>"}, "All checks passed (<m> files)"),
    ),
    "ops": (
        ("shell", "kubectl get pods -n <noun>", "<noun>-<verb>-<x>  1/1  Running  0  <m>h"),
        ("shell", "journalctl -u <noun>-<verb> -n 20", "<noun>-<verb>[<n>]: served <m> requests"),
        ("query_metrics", {"expr": "rate(<noun>_<verb>_total[5m])"}, {"value": "<d>", "series": "<m>"}),
        ("read_file", {"path": "deploy/<noun>/<verb>.yaml"}, "replicas: <m>\nresources:\n  cpu: <n>m\n"),
        ("list_alerts", {"service": "<noun>"}, {"firing": 0, "resolved": "<m>"}),
    ),
    "data": (
        ("run_sql", {"sql": "select count(*) from <noun>_<verb>"}, [{"count": "<n>"}]),
        ("profile_column", {"table": "<noun>", "column": "<verb>_at"}, {"nulls": "<m>", "distinct": "<n>"}),
        ("list_partitions", {"table": "<noun>_<verb>"}, ["dt=2026-01-<q>", "dt=2026-02-<q>"]),
        ("validate_rows", {"batch": "<x>"}, {"checked": "<n>", "rejected": 0}),
        ("write_partition", {"table": "<noun>", "rows": "<n>"}, "ok, <m> files"),
    ),
    "web": (
        ("web_search", {"q": "<noun> <verb> overview <n>"}, ["https://example.org/<noun>/<n>", "https://example.net/<verb>"]),
        ("fetch_page", {"url": "https://example.org/<noun>/<n>"}, "The <noun> sector grew by <m> percent according to <verb>."),
        ("extract_table", {"url": "https://example.net/<verb>", "index": 1}, {"rows": "<m>", "columns": 4}),
        ("save_source", {"title": "<noun> and <verb>", "pages": "<m>"}, "saved as source <n>"),
        ("summarise", {"source": "<n>"}, "Mostly background on <noun>; nothing that changes the outline."),
    ),
    "support": (
        ("lookup_ticket", {"id": "T-<n>"}, {"subject": "Question about <noun>", "state": "closed", "messages": "<m>"}),
        ("search_articles", {"q": "<noun> <verb>"}, ["How to <verb> your <noun>", "About <noun> settings"]),
        ("draft_reply", {"ticket": "T-<n>"}, "Thank you for writing about your <noun>. We have noted it."),
        ("tag_ticket", {"id": "T-<n>", "tag": "<noun>"}, "tagged"),
        ("crm_note", {"contact": "C-<n>", "text": "called about <verb>"}, "stored"),
    ),
    "ml": (
        ("read_metrics", {"run": "<x>"}, {"step": "<n>", "loss": "<d>"}),
        ("list_checkpoints", {"run": "<x>"}, ["step-<n>", "step-<m>"]),
        ("plot", {"run": "<x>", "series": "<verb>_<noun>"}, "figure <m> written"),
        ("sample_batch", {"split": "<noun>", "size": "<m>"}, "drawn, mean length <n>"),
        ("evaluate", {"checkpoint": "step-<n>", "task": "<noun>"}, {"accuracy": "<d>"}),
    ),
    "release": (
        ("list_commits", {"range": "<x>..HEAD"}, "<m> commits touching <noun>, <verb>"),
        ("read_changelog", {"package": "<noun>"}, "## <m>.<q>.0\n- <verb> of <noun> made faster"),
        ("check_status", {"pipeline": "<n>"}, {"state": "passed", "jobs": "<m>"}),
        ("label_issue", {"issue": "<n>", "label": "<noun>"}, "labelled"),
        ("draft_notes", {"section": "<noun>"}, "The <verb> of the <noun> was improved."),
    ),
}  # fmt: skip

_NOUNS = (
    "invoice", "session", "cart", "profile", "gallery", "ledger", "shipment", "coupon", "calendar", "avatar", "payroll",
    "catalog", "review", "subscription", "inventory", "notification", "address", "comment", "bookmark", "survey",
)  # fmt: skip
_VERBS = (
    "render", "sort", "merge", "export", "resize", "round", "archive", "rank", "filter", "parse", "index", "group",
    "import", "convert", "print", "share",
)  # fmt: skip


def words(rng: random.Random, domain: str) -> tuple[str, Any, Any]:
    """Return one ordinary action of a trade: its name, its input and its output."""
    action, given, came = rng.choice(_TEMPLATES[domain])
    marks = {
        "noun": rng.choice(_NOUNS),
        "verb": rng.choice(_VERBS),
        "n": str(rng.randrange(100, 99_999)),
        "m": str(rng.randrange(2, 99)),
        "q": str(rng.randrange(10, 28)),
        "d": f"{rng.uniform(0.02, 40):.2f}",
        "x": f"{rng.randrange(16**6):06x}",
    }
    return action, fill(given, marks), fill(came, marks)
