"""Context packages: what an agent needs to know, chosen under a token budget.

Begin with `service`. `assembly` makes a package from what `candidates` collects, `budget` divides the tokens, `summaries`
shortens texts that do not fit. May import `ctxmgr.artifacts`, `ctxmgr.goals`, `ctxmgr.memory` and below.
"""
