"""The commands on artifacts and versions whose JSON is pinned."""

from __future__ import annotations

CASES: dict[str, tuple[str, ...]] = {
    "artifact-put": (
        "artifact", "put", "LOG", "--agent", "coder", "-d", "what was done", "--depends", "arch/plan.md:reference",
        "--store", "PROJECT",
    ),
    "artifact-put-error": ("artifact", "put", "LOG", "--agent", "coder", "--name", "../x", "--store", "PROJECT"),
    "artifact-put-denied": ("artifact", "put", "LOG", "--agent", "arch", "--as", "dev", "--store", "PROJECT"),
    "artifact-get": ("artifact", "get", "arch/plan.md", "--store", "PROJECT"),
    "artifact-get-hidden": ("artifact", "get", "data/secret.md", "--as", "dev", "--store", "PROJECT"),
    "artifact-get-error": ("artifact", "get", "arch/plam.md", "--store", "PROJECT"),
    "artifact-list": ("artifact", "list", "--agent", "arch", "--limit", "1", "--store", "PROJECT"),
    "artifact-list-hidden": ("artifact", "list", "--agent", "data", "--as", "dev", "--store", "PROJECT"),
    "artifact-list-empty": ("artifact", "list", "--store", "EMPTY"),
    "artifact-log": ("artifact", "log", "arch/plan.md", "--store", "PROJECT"),
    "artifact-log-error": ("artifact", "log", "arch/gone.md", "--store", "PROJECT"),
    "artifact-diff": ("artifact", "diff", "arch/plan.md", "--from", "1", "--store", "PROJECT"),
    "artifact-diff-error": ("artifact", "diff", "arch/plan.md", "--store", "PROJECT"),
    "version-create": ("version", "create", "after the review", "--store", "PROJECT"),
    "version-create-error": ("version", "create", "too early", "--store", "EMPTY"),
    "version-rollback": ("version", "rollback", "1", "--reason", "the secret", "--store", "PROJECT"),
    "version-rollback-error": ("version", "rollback", "9", "--reason", "x", "--store", "PROJECT"),
    "version-rollback-denied": ("version", "rollback", "1", "--reason", "x", "--as", "dev", "--store", "PROJECT"),
    "version-list": ("version", "list", "--store", "PROJECT"),
    "version-list-hidden": ("version", "list", "--as", "dev", "--store", "PROJECT"),
    "version-list-empty": ("version", "list", "--store", "EMPTY"),
    "version-prune": (
        "version", "prune", "--keep-versions", "1", "--keep-days", "0", "--always-keep", "2", "--store", "PROJECT",
    ),
    "version-prune-none": ("version", "prune", "--dry-run", "--store", "EMPTY"),
}  # fmt: skip
"""Name of the golden file -> command line; see `tests.golden.golden`."""
