"""The commands on access rules, shared context and executions whose JSON is pinned."""

from __future__ import annotations

_RUN = "01a20000-0000-7000-8000-000000000001"

CASES: dict[str, tuple[str, ...]] = {
    "access-load": ("access", "load", "default", "--store", "PROJECT"),
    "access-load-error": ("access", "load", "nowhere.toml", "--store", "PROJECT"),
    "access-allow": ("access", "allow", "dev", "artifact", "data/*", "--priority", "7", "--store", "PROJECT"),
    "access-deny-error": ("access", "deny", "dev", "artifact", "**", "--store", "PROJECT"),
    "access-remove": ("access", "remove", "dev", "artifact", "arch/*", "read", "--store", "PROJECT"),
    "access-remove-error": ("access", "remove", "nobody", "artifact", "*", "read", "--store", "PROJECT"),
    "access-list": ("access", "list", "--agent", "dev", "--store", "PROJECT"),
    "access-list-empty": ("access", "list", "--store", "EMPTY"),
    "access-check": ("access", "check", "dev", "write", "artifact", "data/secret.md", "--store", "PROJECT"),
    "access-explain": ("access", "explain", "dev", "read", "artifact", "data/secret.md", "--store", "PROJECT"),
    "access-test": ("access", "test", "default", "--store", "PROJECT"),
    "access-log": ("access", "log", "--denied", "--store", "PROJECT"),
    "access-log-empty": ("access", "log", "--store", "EMPTY"),
    "context-log": ("context", "log", "--store", "PROJECT"),
    "context-log-empty": ("context", "log", "--store", "EMPTY"),
    "context-set": ("context", "set", "current_sprint", "S1-09", "--by", "project_manager", "--store", "PROJECT"),
    "context-set-error": ("context", "set", "unheard_of", "x", "--store", "PROJECT"),
    "context-set-denied": ("context", "set", "current_sprint", "x", "--as", "dev", "--store", "PROJECT"),
    "context-get": ("context", "get", "context_version", "--store", "PROJECT"),
    "context-get-empty": ("context", "get", "--store", "EMPTY"),
    "execution-record": (
        "execution", "record", "dev", "completed", "--id", _RUN, "--task", "T-8", "--started", "2026-01-22T10:00:00Z",
        "--completed", "2026-01-22T10:15:00Z", "--store", "PROJECT",
    ),
    "execution-record-denied": ("execution", "record", "arch", "started", "--as", "dev", "--store", "PROJECT"),
    "execution-record-error": ("execution", "record", "dev", "done", "--store", "PROJECT"),
    "execution-list-empty": ("execution", "list", "--status", "failed", "--store", "PROJECT"),
}  # fmt: skip
"""Name of the golden file -> command line; see `tests.golden.golden`."""
