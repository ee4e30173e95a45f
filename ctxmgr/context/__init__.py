"""Context packages: what an agent needs to know, chosen under a token budget.

Begin with `service`. `assembly` makes a package out of what `candidates` collects, `budget` divides the tokens, `summaries`
shortens what does not fit whole. May import `ctxmgr.artifacts`, `ctxmgr.goals`, `ctxmgr.memory` and below.
"""
