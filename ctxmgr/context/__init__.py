"""Context packages: what an agent needs to know, chosen within a token budget.

Start with `service`. `candidates` collects items, `assembly` makes a package of them, `budget` divides the tokens, and
`summaries` shortens texts that do not fit. This package may import `ctxmgr.artifacts`, `ctxmgr.goals`, `ctxmgr.memory` and the
layers below.
"""
